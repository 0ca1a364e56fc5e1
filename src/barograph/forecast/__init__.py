"""Forecast: from the measured cycles, how many rows will arrive at each operator. One file per forecaster."""

from barograph.forecast.autoscale import NextWindow
from barograph.forecast.best_of import BestOf
from barograph.forecast.holt import Holt
from barograph.forecast.last_value import LastValue
from barograph.forecast.parents import Parents
from barograph.forecast.protocol import ByFrame, Estimate, Forecaster
from barograph.forecast.trend import Trend
from barograph.forecast.trend_or_parents import TrendOrParents

__all__ = [
    "BestOf",
    "ByFrame",
    "Estimate",
    "Forecaster",
    "Holt",
    "LastValue",
    "NextWindow",
    "Parents",
    "Trend",
    "TrendOrParents",
]
