"""What keeps a plan from doing too much, too often or in vain. Pure: a cycle goes in, the same or a smaller one out."""

from barograph.control.guards.acts import Act, acts_of, remember
from barograph.control.guards.guard import Guards, guard
from barograph.control.guards.stale import OldFigures

__all__ = ["Act", "Guards", "OldFigures", "acts_of", "guard", "remember"]
