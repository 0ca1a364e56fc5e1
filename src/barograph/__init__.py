"""Barograph: an adaptive online scheduler for stream topologies on Spark."""

__version__ = "0.1.0"
