"""The recovery bench's figures: which bars are missed, and which causes are one kind."""

import pytest

from bench import recovery

MISSED = {
    "nothing": ([1.0, 1.5, 4.9], [0.4], True, []),
    "slow in the middle": ([1.0, 2.5, 4.0], [0.4], True, ["median down time, s"]),
    "slow once": ([1.0, 1.5, 5.1], [0.4], True, ["worst down time, s"]),
    "everything is replayed again": ([1.0], [0.4, 1.3], True, ["replayed by a second kill, as part of the first's"]),
    "a row": ([1.0], [0.4], False, ["exact"]),
    "no pairs": ([1.0], [], True, []),
    "only pairs": ([], [0.5], True, []),
}


@pytest.mark.parametrize("case", MISSED)
def test_bars(case: str) -> None:
    down_s, again, exact, missed = MISSED[case]
    assert [b.name for b in recovery.bars_of(down_s, again, exact) if not b.met] == missed


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
