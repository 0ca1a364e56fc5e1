"""Shares of a fixed policy: as given, or from another run's JSON."""

import json
from pathlib import Path

import pytest

from barograph.config.written.operators import parse_shares
from barograph.experiments.steering.fixed_shares import fixed_shares
from barograph.model import BadInput

PARALLELISM = {"source": 2, "split": 2, "count": 3}
RUN = {
    "policy": "adaptive",
    "seconds": 100.0,
    "cpu_core_s": {"reserved": 70.0, "limit": 100.0, "used": 40.0},
    "shares": {
        "source": {"instances": 2, "mean": 5.0, "max": 10.0},
        "split": {"instances": 2, "mean": 15.0, "max": 25.0},
        "count": {"instances": 3, "mean": 10.0, "max": 30.0},
    },
    "operators": {
        "wordcount/source": {"instances": [2, 2], "used_pct": [2.0, 6.0]},
        "wordcount/split": {"instances": [2, 4], "used_pct": [20.0, 80.0]},
        "wordcount/count": {"instances": [3, 3], "used_pct": [15.0, 45.0]},
    },
}
UNSTEERED = {**RUN, "policy": "even", "shares": {}}


@pytest.fixture
def like(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return tmp_path / "run.json"


def test_peak_is_the_most_any_instance_had(like: Path) -> None:
    assert fixed_shares("fixed-peak", {}, like, PARALLELISM) == {"source": 10, "split": 25, "count": 30}


def test_equal_is_the_same_cpu_in_total_by_mean_demand(like: Path) -> None:
    found = fixed_shares("fixed-equal", {}, like, PARALLELISM)
    assert found == pytest.approx({"source": 5, "split": 15, "count": 10})  # 2 * 5 + 2 * 15 + 3 * 10 = 70 % for 100 s
    twice = {**RUN, "cpu_core_s": {"reserved": 140.0}}
    like.write_text(json.dumps(twice))
    assert fixed_shares("fixed-equal", {}, like, PARALLELISM)["split"] == pytest.approx(30)


def test_mean_is_what_an_instance_used(like: Path) -> None:
    found = fixed_shares("fixed-mean", {}, like, PARALLELISM)
    assert found == pytest.approx({"source": 2, "split": 15, "count": 10})


def test_a_run_that_gave_no_shares_tells_what_was_used(tmp_path: Path) -> None:
    like = tmp_path / "run.json"
    like.write_text(json.dumps(UNSTEERED))
    peak = fixed_shares("fixed-peak", {}, like, PARALLELISM)
    assert peak == pytest.approx({"source": 3, "split": 20, "count": 15})
    equal = fixed_shares("fixed-equal", {}, like, PARALLELISM)
    assert sum(equal[o] * n for o, n in PARALLELISM.items()) == pytest.approx(70.0), "70 core-s over 100 s"
    assert equal["split"] / equal["source"] == pytest.approx(15 / 2)


def test_given() -> None:
    assert fixed_shares("fixed", parse_shares("split=40,count=60"), None, PARALLELISM) == {"split": 40, "count": 60}
    assert fixed_shares("adaptive", {}, None, PARALLELISM) == {}


WRONG = {
    "not JSON": ("nothing", "is not JSON"),
    "a list": ("[]", "not the JSON of a run"),
    "neither shares nor use": (json.dumps({**UNSTEERED, "operators": {}}), "has no operators"),
    "an operator is missing": (
        json.dumps({**UNSTEERED, "operators": {"wordcount/source": RUN["operators"]["wordcount/source"]}}),  # type: ignore[index]
        "no operator 'split'",
    ),
    "an operator that did nothing": (
        json.dumps({**UNSTEERED, "operators": {"wordcount/source": {"instances": [2], "used_pct": [0.0]}}}),
        "used no CPU",
    ),
    "a series that is none": (
        json.dumps({**UNSTEERED, "operators": {"wordcount/source": {"instances": [2]}}}), "used_pct of an operator",
    ),
    "unknown CPU": (json.dumps({**RUN, "cpu_core_s": {"reserved": None, "used": 1.0}}), "reserved is unknown"),
    "a file of an earlier version": (json.dumps({**RUN, "cpu_core_s": {"allotted": 70.0}}), "reserved is unknown"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_will_not_do(case: str, tmp_path: Path) -> None:
    text, expected = WRONG[case]
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadInput, match=expected):
        fixed_shares("fixed-equal", {}, tmp_path / "run.json", PARALLELISM)


@pytest.mark.parametrize("text", ["split", "split=", "split=0", "split=101", "split=x", "=4", "split=4,split=5"])
def test_shares_that_cannot_be(text: str) -> None:
    with pytest.raises(BadInput):
        parse_shares(text)
