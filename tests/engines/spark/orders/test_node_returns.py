"""Instances return to a node at once when it is well, and ever later when its executors die again and again."""

import pytest

from barograph.engines.spark.orders.node_returns import COLD_S, LONGEST_S, SOON_S, NodeReturns


class Node:
    """A node whose executor is lost and replaced, beside one that is well."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.returns = NodeReturns(lambda: self.now_s)
        self.executor = 1
        self.look(busy=True)

    def look(self, busy: bool = False) -> bool:
        """Whether the instances may return."""
        name = str(self.executor)
        cold = self.returns.look({"0": "well", name: "ill"}, {"0", name} if busy else {"0"})
        assert "0" not in cold
        return name not in cold

    def die(self) -> None:
        self.executor += 1

    def waits_s(self) -> float:
        """Let the new executor live until instances may return."""
        began_s = self.now_s
        while not self.look():
            self.now_s += 1.0
        return self.now_s - began_s

    def flap(self, busy_s: float) -> float:
        """Give it instances, lose it after ``busy_s``, and wait until the next one may have them."""
        self.look(busy=True)
        self.now_s += busy_s
        self.die()
        return self.waits_s()


def test_each_death_soon_after_it_got_instances_doubles_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    assert [node.flap(5.0) for _ in range(4)] == [COLD_S, 2 * COLD_S, 4 * COLD_S, 8 * COLD_S]
    assert "ill lost an executor 5 s after it got instances, 4 times in a row" in caplog.text
    assert "instances return to it 160 s after its next executor is up" in caplog.text
    assert [node.flap(5.0) for _ in range(4)][-1] == LONGEST_S


def test_a_death_after_a_while_begins_anew() -> None:
    node = Node()
    for _ in range(3):
        node.flap(5.0)
    assert node.flap(SOON_S) == COLD_S
    assert node.returns.held_back() == {}


def test_a_node_that_is_well_for_a_while_is_trusted_again() -> None:
    node = Node()
    for _ in range(3):
        node.flap(5.0)
    node.look(busy=True)
    node.now_s += SOON_S
    node.look(busy=True)
    assert node.flap(5.0) == COLD_S


def test_an_executor_that_dies_without_instances_changes_nothing() -> None:
    node = Node()
    node.flap(5.0)
    node.flap(5.0)
    node.die()
    node.look()
    node.now_s += 3.0
    node.die()
    assert node.waits_s() == 2 * COLD_S


def test_an_executor_that_is_ended_on_purpose_did_not_die() -> None:
    node = Node()
    for _ in range(3):
        node.look(busy=True)
        node.returns.forget({str(node.executor)})
        node.die()
        assert node.waits_s() == COLD_S


def test_what_is_held_back_is_told_with_the_time_that_is_left() -> None:
    node = Node()
    node.flap(5.0)
    assert node.returns.held_back() == {}
    node.look(busy=True)
    node.now_s += 5.0
    node.die()
    node.look()
    node.now_s += 10.0
    assert node.returns.held_back() == {"ill": (2, 2 * COLD_S - 10.0)}


def test_a_node_is_not_avoided_for_longer_because_all_nodes_lose_executors() -> None:
    """As when something kills executors wherever they are."""
    now_s, number = 1000.0, 3
    returns, executors = NodeReturns(lambda: now_s), {"0": "a", "1": "b", "2": "c"}

    def lose(node: str) -> float:
        """Returns how long instances avoid the node then."""
        nonlocal now_s, number
        returns.look(executors, executors)
        now_s += 5.0
        gone = next(e for e, n in executors.items() if n == node)
        del executors[gone]
        returns.look(executors, executors)
        executors[str(number)] = node
        number += 1
        return returns.wait_s(node)

    for _ in range(4):
        waits = [lose(node) for node in "abc"]
    assert waits[-1] == COLD_S and max(waits) <= 2 * COLD_S
    assert [lose("a"), lose("a"), lose("a")][-1] > 2 * COLD_S, "but for one that loses more than the others"


def test_executors_of_the_first_look_are_not_new() -> None:
    assert NodeReturns(lambda: 0.0).look({"0": "well"}, ()) == set()
