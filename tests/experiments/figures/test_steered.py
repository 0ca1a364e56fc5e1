"""The steering part of a run's report, as JSON and as text."""

from barograph.engines.sim.result import OperatorSeries, TrafficResult
from barograph.experiments.figures.run_meter import UNKNOWN, Metered
from barograph.experiments.figures.steered import Steered

SPLIT = OperatorSeries([2.0, 4.0], [2, 3], [100.0, 110.0], [99.0, 120.0], [20.0, 30.0], [60.0, None], [10.0, 12.0])
METERED = Metered(
    12.3456, 30.0, 8.0, 1.5, 2, 2.0, 3, TrafficResult(1234.5, 2000.0, 0.25, 0.5), {"wordcount/split": SPLIT}
)
LIU = Steered("liu", METERED, 4, 1, migration="worker")


def test_as_json() -> None:
    told = LIU.to_json()
    assert told["cpu_core_s"] == {"reserved": 12.35, "limit": 30.0, "used": 8.0}
    assert told["workers_used"] == {"mean": 2.0, "max": 3}
    assert told["traffic"] == {
        "inter_node_rows_per_s": 1234.5, "inter_worker_rows_per_s": 2000.0, "inter_node_share": 0.25,
        "inter_worker_share": 0.5,
    }  # fmt: skip
    operators = told["operators"]
    assert isinstance(operators, dict)
    assert operators["wordcount/split"]["instances"] == [2, 3]
    assert operators["wordcount/split"]["limit_pct"] == [60.0, None]
    assert told["migration"] == "worker"


def test_in_few_words() -> None:
    said = "\n".join(LIU.lines())
    for words in ("liu, worker", "reserved 12.3 core-s, limit 30.0, used 8.0", "2.0 workers, 3 at most", "split 2 to 3",
                  "between nodes 1,234 rows/s (25% of all)"):  # fmt: skip
        assert words in said, said


def test_the_unknown_is_told_as_such() -> None:
    said = "\n".join(Steered("spark", UNKNOWN, None, 0).lines())
    assert "unknown nodes" in said and "reserved unknown" in said and "traffic" not in said
