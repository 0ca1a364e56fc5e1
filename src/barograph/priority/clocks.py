"""The times of a priority state on two clocks: one that never goes back, for waits, and the wall clock, for storing."""

from dataclasses import replace

from barograph.priority.machine import PriorityLimits, PriorityState


def shifted(state: PriorityState, by_s: float) -> PriorityState:
    """The same state on another clock, which is ahead of this one by so many seconds."""
    return PriorityState(
        {
            name: replace(
                s,
                asked_s=s.asked_s + by_s,
                since_s=s.since_s + by_s,
                on_s=s.on_s + by_s,
                rest_until_s=s.rest_until_s + by_s,
                starved_s=None if s.starved_s is None else s.starved_s + by_s,
            )
            for name, s in state.standings.items()
        }
    )


def not_ahead(state: PriorityState, at_s: float, limits: PriorityLimits) -> PriorityState:
    """A stored state as of now: where the wall clock was set back since, what has happened is not in the future."""
    return PriorityState(
        {
            name: replace(
                s,
                asked_s=min(s.asked_s, at_s),
                since_s=min(s.since_s, at_s),
                on_s=min(s.on_s, at_s),
                rest_until_s=min(s.rest_until_s, at_s + limits.rest_s),
                starved_s=None if s.starved_s is None else min(s.starved_s, at_s),
            )
            for name, s in state.standings.items()
        }
    )
