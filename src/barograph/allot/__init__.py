"""Allot: which nodes each topology may use. One file per way to share them when there are too few."""

from barograph.allot.counts import Given, dps, sps
from barograph.allot.isolation import Isolation
from barograph.allot.priority import Dps, Sps
from barograph.allot.protocol import Allotter
from barograph.allot.shared import Shared

__all__ = ["Allotter", "Dps", "Given", "Isolation", "Shared", "Sps", "dps", "sps"]
