"""Clusters as files: recorded ones, read leniently, and those users write, read strictly."""

from barograph.recordings.read import Recording, names, read, shipped
from barograph.recordings.world import demand_of, snapshot_of

__all__ = ["Recording", "demand_of", "names", "read", "shipped", "snapshot_of"]
