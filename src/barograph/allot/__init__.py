"""Allot: which nodes each topology may use. One file per way of sharing too few of them."""

from barograph.allot.protocol import Allotter
from barograph.allot.shared import Shared

__all__ = ["Allotter", "Shared"]
