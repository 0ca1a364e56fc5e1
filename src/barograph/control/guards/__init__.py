"""What keeps a plan from doing too much, too often or in vain. Pure: a cycle goes in, the same or a smaller one out."""

from barograph.control.guards.acts import Act, acts_of, remember
from barograph.control.guards.guard import Guards, guard

__all__ = ["Act", "Guards", "acts_of", "guard", "remember"]
