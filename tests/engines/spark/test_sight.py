"""What the engine remembers is bounded: by epochs, and for large topologies by seats."""

import pytest

from barograph.engines.spark.sight import EPOCHS_KEPT, FEWEST_EPOCHS_KEPT, SEATS_KEPT, Sight
from barograph.engines.spark.wire import Seated, Seen


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
