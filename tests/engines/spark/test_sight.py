"""What the engine remembers is bounded, by epochs and for large topologies by seats; topologies keep their order."""

import pytest

from barograph.engines.spark.sight import EPOCHS_KEPT, FEWEST_EPOCHS_KEPT, SEATS_KEPT, Sight
from barograph.engines.spark.wire import OperatorSeen, Seated, Seen


def epoch(number: int, instances: int) -> Seen:
    seated = tuple(
        Seated("many", "run", number, 1, 1000 + number, "split", i, "0", "", "the plan does not name it")
        for i in range(instances)
    )
    return Seen((), (), (), seated, (), {})


@pytest.mark.parametrize(
    ("instances", "kept"),
    [(7, EPOCHS_KEPT), (200, SEATS_KEPT // 200), (SEATS_KEPT, FEWEST_EPOCHS_KEPT)],
)
def test_old_epochs_are_forgotten(instances: int, kept: int) -> None:
    sight = Sight()
    for number in range(kept + 3):
        sight.take(epoch(number, instances))
    remembered = [number for _, number in sight.epochs["many"]]
    assert remembered == list(range(3, kept + 3))
    assert all(len(e.seated) == instances for e in sight.epochs["many"].values())


def started(**planned_ms: int) -> Seen:
    """Topologies of one operator; when each was planned, 0 where no seat of it is told."""
    operators = tuple(OperatorSeen(name, 1, "s", 1, True, False, "", False) for name in sorted(planned_ms))
    seated = tuple(Seated(name, "run", 1, 1, at, "s", 0, "0", "", "") for name, at in planned_ms.items() if at)
    return Seen((), operators, (), seated, (), {})


def test_topologies_stand_in_order_of_submission() -> None:
    sight = Sight()
    sight.take(started(late=3000, early=1000))
    assert list(sight.topologies) == ["early", "late"]
    sight.take(started(late=0, early=0, a=9000))
    assert list(sight.topologies) == ["early", "late", "a"], "not by name: a came last"
    sight.take(started(late=0, a=0))
    sight.take(started(late=0, a=0, early=20_000))
    assert list(sight.topologies) == ["early", "late", "a"], "one that is started again keeps its turn"
