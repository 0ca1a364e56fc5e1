"""What a cluster manager is told when executors are released and wanted again."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from barograph.engines.spark.executors.chosen import executors_of
from barograph.engines.spark.executors.port import ExecutorBounds, KeptNode
from barograph.engines.spark.executors.requested import RequestedExecutors
from barograph.model import BadInput, RefusalCode


@dataclass
class Manager:
    """live: its executors. wanted: what it was told last. busy: whether a task runs on what is to end."""

    live: set[str] = field(default_factory=lambda: {"0", "1", "2"})
    wanted: list[int | None] = field(default_factory=list)
    busy: bool = False

    def end_idle(self, ids: Collection[str], left: int | None) -> bool:
        self.wanted.append(left)
        if not self.busy:
            self.live -= set(ids)
        return not self.busy

    def want_executors(self, count: int | None) -> None:
        self.wanted.append(count)


def requested(
    manager: Manager, begun_with: int | None = None, least: int = 1, most: int | None = None
) -> RequestedExecutors:
    return RequestedExecutors(manager, lambda: len(manager.live), begun_with, ExecutorBounds(least, most))


def test_on_a_standalone_cluster_room_is_used_again_once_nothing_is_released() -> None:
    manager = Manager()
    executors = requested(manager)
    assert (executors.target, executors.more(()), manager.wanted) == (None, 0, [])
    assert executors.release("host-2", ["2"]) is None
    assert executors.release("host-1", ["1"]) is None
    assert (manager.wanted, executors.target) == ([2, 1], 1), "else others would be started in their place"
    assert executors.released() == ("host-2", "host-1")
    assert executors.more({"host-0"}) == 0
    executors.want(2, "host-1")
    assert (manager.wanted[-1], executors.released()) == (2, ("host-2",))
    executors.want(3, "host-2")
    assert (manager.wanted[-1], executors.target, executors.released()) == (None, None, ())


def test_a_lost_executor_that_is_replaced_on_a_released_node_leaves_one_more_to_be_wanted() -> None:
    manager = Manager()
    executors = requested(manager)
    executors.release("host-2", ["2"])
    assert executors.more({"host-0", "host-1"}) == 0
    assert executors.more({"host-0", "host-2"}) == 1, "host-1 was lost, and its executor came up on host-2"


def test_an_executor_that_waits_for_its_place_stays_wanted() -> None:
    """Four are wanted and three live: the cluster manager has yet to replace one."""
    manager = Manager()
    executors = requested(manager, begun_with=4)
    assert executors.release("host-2", ["2"]) is None
    assert (manager.wanted, executors.target) == ([3], 3)


def test_further_executors_come_up_to_the_most_that_are_allowed() -> None:
    manager = Manager()
    executors = requested(manager, begun_with=3, most=5)
    assert (manager.wanted, executors.more(())) == ([], 2), "nothing is asked for before it is needed"
    executors.want(4, "more-4")
    assert (manager.wanted, executors.more(())) == ([4], 1)
    executors.release("host-0", ["0"])
    assert (executors.target, executors.more({"host-1"})) == (3, 1)
    assert requested(Manager(), begun_with=3).more(()) == 0, "without a bound there are those it began with"


def test_a_standalone_cluster_gives_no_more_than_the_most_from_the_start() -> None:
    manager = Manager()
    executors = requested(manager, most=5)
    assert (manager.wanted, executors.target, executors.more(())) == ([5], 5, 0)


@pytest.mark.parametrize(("begun_with", "before"), [(None, None), (3, 3)])
def test_what_runs_a_task_stays(begun_with: int | None, before: int | None) -> None:
    manager = Manager(busy=True)
    executors = requested(manager, begun_with)
    assert executors.release("host-2", ["2"]) == KeptNode(RefusalCode.NODE_IN_USE, "a task runs there")
    assert (manager.wanted, executors.target, executors.released()) == ([2, before], before, ())
    assert executors.release("host-9", []) == KeptNode(RefusalCode.NO_WORKER, "it has no executor")


@pytest.mark.parametrize(
    ("conf", "target"),
    [
        ({"spark.master": "spark://a:7077", "spark.executor.instances": "3"}, None),
        ({"spark.master": "spark://a:7077", "spark.barograph.executors.most": "4"}, 4),
        ({"spark.master": "yarn"}, 2),
        ({"spark.master": "k8s://https://a", "spark.executor.instances": "7"}, 7),
    ],
)
def test_what_an_application_begins_with_follows_from_its_master(conf: dict[str, str], target: int | None) -> None:
    found = executors_of(Manager(), conf, None, "app", lambda: 3)
    assert isinstance(found, RequestedExecutors)
    assert found.target == target


def test_bounds_are_options_and_local_mode_has_no_executors() -> None:
    assert executors_of(Manager(), {"spark.master": "local[4]"}, None, "app", lambda: 1) is None
    conf = {"spark.master": "yarn", "spark.barograph.executors.least": "2", "spark.barograph.executors.most": "6"}
    found = executors_of(Manager(), conf, None, "app", lambda: 3)
    assert found is not None and found.bounds == ExecutorBounds(2, 6)
    with pytest.raises(BadInput, match=r"executors\.least \(7, .*\) is above executors\.most \(6"):
        executors_of(Manager(), {**conf, "spark.barograph.executors.least": "7"}, None, "app", lambda: 3)
