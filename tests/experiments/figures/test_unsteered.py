"""CPU and nodes of a run that no policy steers."""

import pytest
from tests.cycles import chain, nodes, seen

from barograph.experiments.figures.unsteered import UnsteeredFigures
from barograph.experiments.report import ActionReport
from barograph.model import Instance, InstanceMetrics, Operator, Placement, Slot

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 2))
S0, A0, A1 = (Instance("t", o, i) for o, i in (("s", 0), ("a", 0), ("a", 1)))


def watched() -> UnsteeredFigures:
    """Three seconds on both nodes, then one on one of them."""
    found = UnsteeredFigures(4.0)
    for at_s, home, cycle_s in ((3.0, Slot("n2", 0), 3.0), (4.0, Slot("n1", 0), 1.0)):
        placement = Placement({S0: Slot("n1", 0), A0: Slot("n1", 0), A1: home})
        work = {"s": InstanceMetrics(cpu_s=0.5), "a": InstanceMetrics(cpu_s=1.0)}
        found.take(at_s, seen(TOPOLOGY, work, cluster=nodes(2, 60), placement=placement, cycle_s=cycle_s))
    return found


def test_every_key_is_there() -> None:
    did = ("moved t/a/1 from n2/0 to n1/0", "scaled t/a from 2 to 3", "cut t after epoch 0")
    action = ActionReport(1.0, "move", True, "", 0.2, 0.3, did, moves=1, rescales=1)
    told = watched().told([action], whole=True).to_json()
    given = pytest.approx(4 * 1.2)  # what is seen holds until the next look: both nodes, of 0.6 cores each
    assert told["cpu_core_s"] == {"reserved": given, "limit": given, "used": 3.0}
    assert told["nodes_used"] == {"mean": 2.0, "max": 2}
    assert told["workers_used"] == {"mean": 2.0, "max": 2}
    assert told["operators"]["t/a"]["predicted_rows_per_s"] == []  # type: ignore[index]
    assert (told["policy"], told["moves"], told["rescales"], told["decisions"]) == ("even", 1, 1, [])


def test_what_another_driver_saw_is_not_known() -> None:
    told = watched().told([], whole=False).to_json()
    assert told["cpu_core_s"] == {"reserved": None, "limit": None, "used": None}
    assert told["nodes_used"] == told["workers_used"] == {"mean": None, "max": None}
    assert told["traffic"] is None
