"""Figures of benches as the simulator's constants."""

import json
from importlib import resources
from pathlib import Path

import pytest

from barograph.engines.sim import read_calibration
from barograph.engines.sim.calibration import MEASURED
from barograph.engines.sim.measured import BENCHES, parse_figures
from barograph.model import BadInput

BASE = read_calibration()
ALL = {
    "machine": "here",
    "boundary": {"half_load": {"cut": {
        "gap_s": {"median": 0.9},
        "parts_s": {"stop": 0.03, "drain": 0.05, "commit": 0.1, "launch": 0.2, "first_row": 0.1},
    }}},
    "moves": {
        "stateless": {"cut": {"1": {"median_pause_s": 0.5}}, "restart-query": {"1": {"median_pause_s": 1.3}},
                      "worker": {"1": {"median_pause_s": 4.5}}},
        "stateful": {"cut": {"1": {"median_pause_s": 0.6}}},
        "restart-app": {"1": {"pause_s": 12.5}, "16": {"pause_s": 13.0}},
    },
    "rescale": {"changes": {"pause_s": {"median": 1.5}}},
    "recovery": {"epoch_20s": {"down_s": {"median": 2.5}, "parts_s": {"notice": 0.7}}},
}  # fmt: skip


def test_all_four_benches_calibrate_it() -> None:
    found = parse_figures(json.dumps(ALL), "f", BASE)
    assert found.calibrated
    assert found.origin == "boundary, moves, rescale, recovery on here"
    assert (found.cut_order_s, found.boundary_s) == pytest.approx((0.03, 0.4))
    assert found.query_restart_s == pytest.approx(0.8)
    assert found.executor_start_s == pytest.approx(4.5 - 0.5 - 0.8)
    assert (found.app_restart_s, found.state_load_s) == pytest.approx((12.0, 0.1))
    assert found.repartition_s == pytest.approx(1.5 - 0.4 - 0.8)
    assert found.failure_seen_s == 0.7
    assert found.hops == BASE.hops


def test_what_was_not_measured_stays() -> None:
    gap = {"half_load": {"cut": {"gap_s": {"median": 0.6}}}}
    only = parse_figures(json.dumps({"machine": "here", "boundary": gap}), "f", BASE)
    assert not only.calibrated
    assert only.boundary_s == 0.6
    assert (only.cut_order_s, only.query_restart_s) == (BASE.cut_order_s, BASE.query_restart_s)
    down = {"epoch_5s": {"down_s": {"median": 3.0}}}
    whole = parse_figures(json.dumps({"machine": "here", "recovery": down}), "f", BASE)
    assert whole.failure_seen_s == pytest.approx(3.0 - BASE.query_restart_s - BASE.boundary_s)


def test_the_shipped_constants_have_what_was_measured() -> None:
    measured = json.loads(resources.files("barograph.engines.sim").joinpath(MEASURED).read_text(encoding="utf-8"))
    parts = measured["boundary"]["half_load"]["cut"]["parts_s"]
    assert BASE.boundary_s == pytest.approx(parts["commit"] + parts["launch"] + parts["first_row"])
    assert all(bench in BASE.origin for bench in measured if bench != "machine")


def test_a_file_of_figures(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(ALL))
    assert read_calibration(tmp_path / "mine.json").repartition_s == pytest.approx(0.3)


WRONG = {
    "not JSON": ("{", "f: "),
    "an unknown bench": (json.dumps({"machine": "m", "speed": {}}), "unknown key 'speed'"),
    "no machine": (json.dumps({"boundary": {}}), "machine must say where"),
    "a text for a number": (
        json.dumps({"machine": "m", "rescale": {"changes": {"pause_s": {"median": "long"}}}}), "rescale/changes",
    ),
    "a negative pause": (
        json.dumps({"machine": "m", "rescale": {"changes": {"pause_s": {"median": -1}}}}), "at least 0, not -1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_will_not_do(case: str) -> None:
    text, expected = WRONG[case]
    with pytest.raises(BadInput, match=expected):
        parse_figures(text, "f", BASE)


def test_every_bench_has_its_place() -> None:
    assert set(BENCHES) == set(ALL) - {"machine"}
