"""The recovery bench's figures: which bars are missed, and which causes are one kind."""

import pytest

from bench import recovery

FAST = [1.0, 1.5, 4.9]
MISSED = {
    "nothing": ({"5s": FAST}, [0.4], [29.0], True, []),
    "slow in the middle": ({"5s": [1.0, 2.5, 4.0]}, [0.4], [29.0], True, ["median down time, s: 5s"]),
    "slow once": ({"5s": [1.0, 1.5, 5.1]}, [0.4], [29.0], True, ["worst down time, s: 5s"]),
    "slow in one group": (
        {"5s": FAST, "20s": FAST, "pairs, second": [2.1, 2.2]}, [0.4], [29.0], True,
        ["median down time, s: pairs, second"],
    ),
    "everything is replayed again": (
        {"5s": [1.0]}, [0.4, 1.3], [29.0], True, ["replayed by a second kill, as part of the first's"]
    ),
    "a row": ({"5s": [1.0]}, [0.4], [29.0], False, ["exact"]),
    "no pairs": ({"5s": [1.0], "pairs, first": []}, [], [29.0], True, []),
    "only pairs": ({"5s": [], "pairs, first": [1.0]}, [0.5], [], True, []),
    "the target": ({"5s": [1.0]}, [0.4], [12.0, 30.1, 20.0], True, ["worst recovery under the target, s"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSED)
def test_bars(case: str) -> None:
    down_s, again, recovered_s, exact, missed = MISSED[case]
    assert [b.name for b in recovery.bars_of(down_s, again, recovered_s, exact) if not b.met] == missed


def test_causes_are_counted_by_kind() -> None:
    assert recovery.kind_of("lost executor 12 on node-2") == recovery.kind_of("lost executor 3 on node-1")
    assert recovery.kind_of("too few seats for all instances: it needs 7 and 6 are free") == (
        "too few seats for all instances"
    )


def test_a_kill_that_was_not_settled_has_no_catch_up() -> None:
    found = recovery.summary([{"down": 1.0, "replayed": 10.0}, {"down": 2.0, "replayed": 30.0, "catch_up": 4.0}])
    assert found["down_s"] == {"median": 1.5, "worst": 2.0, "count": 2}
    assert found["catch_up_s"] == {"median": 4.0, "worst": 4.0, "count": 1}
    assert found["parts_s"] == {}


def test_a_backlog_is_gone_after_the_last_second_with_more_rows_than_become_due() -> None:
    output = {t: 30 if t < 400 else 10 for t in range(1000)}  # by centisecond: four seconds of 3,000 rows, then 1,000
    assert recovery.last_above_ms(output, 0.0, 10_000.0, 1200.0) == pytest.approx(4900.0, abs=20.0)
    assert recovery.last_above_ms(output, 5000.0, 10_000.0, 1200.0) == 5000.0, "there was none"
    assert recovery.last_above_ms(output, 0.0, 3000.0, 1200.0) == 3000.0, "the next kill came before it was gone"
