"""Limits that follow threads, and that are lifted while an epoch ends."""

from collections.abc import Mapping
from typing import cast

from barograph.engines.spark.limits.cluster_limits import ClusterLimits
from barograph.engines.spark.limits.group_writes import ThreadLimit
from barograph.engines.spark.limits.instance_limits import AGAIN_S, MOST_PCT, InstanceLimits
from barograph.model import Instance

A, B = Instance("a", "split", 0), Instance("b", "split", 0)


class NotedLimits:
    """Limits of a cluster that are only recorded."""

    problem = ""

    def __init__(self) -> None:
        self.held: list[dict[Instance, float]] = []

    def hold(self, held: Mapping[Instance, tuple[str, ThreadLimit]]) -> tuple[str, ...]:
        self.held.append({instance: h.limit_pct for instance, (_, h) in held.items()})
        return ()


def test_limits_are_lifted_until_the_next_call() -> None:
    groups = NotedLimits()
    limits = InstanceLimits(cast(ClusterLimits, groups), lambda: 0.0)
    threads = {A: ("node-1", 11), B: ("node-1", 12)}
    limits.order({A: 20.0, B: 30.0})
    limits.hold(threads)
    limits.lift({"a"})
    limits.hold(threads)
    limits.hold({A: ("node-1", 13), B: ("node-1", 12)})  # the next epoch's thread is not limited either
    limits.lift(())
    limits.hold({A: ("node-1", 13), B: ("node-1", 12)})
    assert groups.held == [{A: 20, B: 30}, {A: MOST_PCT, B: 30}, {A: MOST_PCT, B: 30}, {A: 20, B: 30}]


def test_a_limit_that_is_ordered_while_lifted_holds_afterwards() -> None:
    groups = NotedLimits()
    limits = InstanceLimits(cast(ClusterLimits, groups), lambda: 0.0)
    limits.lift({"a"})
    limits.order({A: 40.0})
    limits.hold({A: ("node-1", 11)})
    limits.lift(())
    limits.hold({A: ("node-1", 11)})
    assert groups.held == [{A: MOST_PCT}, {A: 40}]


def test_limits_are_written_again_after_a_while() -> None:
    groups, now = NotedLimits(), [0.0]
    limits = InstanceLimits(cast(ClusterLimits, groups), lambda: now[0])
    limits.hold({A: ("node-1", 11)})
    limits.order({A: 40.0})
    for at_s in (0.0, 0.5 * AGAIN_S, AGAIN_S, 1.5 * AGAIN_S, 2.0 * AGAIN_S):
        now[0] = at_s
        limits.hold({A: ("node-1", 11)})
    assert groups.held == [{A: 40}] * 3
    now[0] = 9.0 * AGAIN_S
    limits.hold({})
    now[0] = 99.0 * AGAIN_S
    limits.hold({})
    assert groups.held[3:] == [{}], "no thread has a limit: nothing is written"
