"""Shares that follow threads, and that are lifted while an epoch ends."""

from collections.abc import Mapping
from typing import cast

from barograph.engines.spark.share_groups import ClusterShares
from barograph.engines.spark.share_writes import Held
from barograph.engines.spark.shares import AGAIN_S, MOST_PCT, Shares
from barograph.model import Instance

A, B = Instance("a", "split", 0), Instance("b", "split", 0)


class Groups:
    """Control groups that note what is to be held."""

    problem = ""

    def __init__(self) -> None:
        self.held: list[dict[Instance, float]] = []

    def hold(self, held: Mapping[Instance, tuple[str, Held]]) -> tuple[str, ...]:
        self.held.append({instance: h.share_pct for instance, (_, h) in held.items()})
        return ()


def test_lifted_until_the_next_word() -> None:
    groups = Groups()
    shares = Shares(cast(ClusterShares, groups), lambda: 0.0)
    threads = {A: ("node-1", 11), B: ("node-1", 12)}
    shares.order({A: 20.0, B: 30.0})
    shares.hold(threads)
    shares.lift({"a"})
    shares.hold(threads)
    shares.hold({A: ("node-1", 13), B: ("node-1", 12)})  # the next epoch's thread is not held back either
    shares.lift(())
    shares.hold({A: ("node-1", 13), B: ("node-1", 12)})
    assert groups.held == [{A: 20, B: 30}, {A: MOST_PCT, B: 30}, {A: MOST_PCT, B: 30}, {A: 20, B: 30}]


def test_a_share_that_is_ordered_meanwhile_holds_afterwards() -> None:
    groups = Groups()
    shares = Shares(cast(ClusterShares, groups), lambda: 0.0)
    shares.lift({"a"})
    shares.order({A: 40.0})
    shares.hold({A: ("node-1", 11)})
    shares.lift(())
    shares.hold({A: ("node-1", 11)})
    assert groups.held == [{A: MOST_PCT}, {A: 40}]


def test_what_threads_start_is_put_in_order_again_after_a_while() -> None:
    groups, now = Groups(), [0.0]
    shares = Shares(cast(ClusterShares, groups), lambda: now[0])
    shares.hold({A: ("node-1", 11)})
    shares.order({A: 40.0})
    for at_s in (0.0, 0.5 * AGAIN_S, AGAIN_S, 1.5 * AGAIN_S, 2.0 * AGAIN_S):
        now[0] = at_s
        shares.hold({A: ("node-1", 11)})
    assert groups.held == [{A: 40}] * 3
    now[0] = 9.0 * AGAIN_S
    shares.hold({})
    now[0] = 99.0 * AGAIN_S
    shares.hold({})
    assert groups.held[3:] == [{}], "nobody is held: there is nothing to look at"
