"""Clusters as files: recorded ones, read leniently, and those users write, read strictly."""

from barograph.recordings.read import Recording, read, shipped
from barograph.recordings.world import demand_of, snapshot_of

__all__ = ["Recording", "demand_of", "read", "shipped", "snapshot_of"]
