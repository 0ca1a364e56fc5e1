"""Jars from Maven repositories, pinned by checksum."""

from barograph.maven.jars import fetch
from barograph.maven.pins import Jar, pinned
from barograph.maven.tools import FetchFailed, Ivy

__all__ = ["FetchFailed", "Ivy", "Jar", "fetch", "pinned"]
