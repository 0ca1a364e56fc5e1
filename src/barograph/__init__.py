"""Barograph: an adaptive online scheduler for stream topologies on Spark."""

from barograph.naming import named

__all__ = ["__version__", "named"]
__version__ = "0.1.0"
