"""Every row of the thesis's tables and further worked cases, and the laws of both schedulers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.allot.counts import Given, dps, sps
from barograph.model import BadInput

SPS = {
    "use case 1": (16, (8, 8, 4, 4), (4, 4, 2, 2), (1, 1, 2, 2), (6, 6, 2, 2)),
    "use case 2": (20, (16, 8), (8, 4), (1, 2), (13, 7)),
    "enough nodes": (24, (8, 8, 4, 4), (4, 4, 2, 2), (1, 1, 2, 2), (8, 8, 4, 4)),
    "half the size": (8, (4, 4, 2, 2), (2, 2, 1, 1), (1, 1, 2, 2), (3, 3, 1, 1)),
    "short of minimums": (7, (8, 8, 4, 4), (4, 4, 2, 2), (1, 1, 2, 2), (4, 0, 2, 0)),
    "three levels": (18, (10, 6, 8, 4), (3, 2, 2, 1), (1, 2, 2, 3), (6, 4, 5, 3)),
    "minimums aside": (11, (2, 2, 2, 2, 4, 4), (1, 1, 1, 1, 2, 2), (1, 1, 1, 1, 2, 2), (2, 2, 2, 1, 2, 2)),
    "top-up": (5, (3, 3, 3, 3), (1, 1, 1, 1), (1, 1, 1, 2), (2, 1, 1, 1)),
    "exactly the minimums": (12, (8, 8, 4, 4), (4, 4, 2, 2), (1, 1, 2, 2), (4, 4, 2, 2)),
    "levels listed last first": (20, (8, 16), (4, 8), (2, 1), (7, 13)),
}
DPS = {
    "1, trigger off": (16, (8, 8, 4, 4), (2, 2, 2, 2), (5, 5, 3, 3)),
    "1, trigger on": (16, (8, 8, 4, 4), (1, 1, 2, 2), (8, 8, 0, 0)),
    "2, off": (20, (16, 8), (2, 2), (13, 7)),
    "2, on": (20, (16, 8), (1, 2), (16, 4)),
    "enough nodes": (24, (8, 8, 4, 4), (1, 1, 2, 2), (8, 8, 4, 4)),
    "three levels": (18, (10, 6, 8, 4), (1, 2, 2, 3), (10, 3, 5, 0)),
    "one left over": (10, (5, 5, 5), (2, 2, 2), (4, 3, 3)),
    "two too many": (10, (7, 7, 7, 7), (2, 2, 2, 2), (3, 3, 2, 2)),
}


@pytest.mark.parametrize("case", SPS)
def test_sps_worked(case: str) -> None:
    nodes, desired, minimum, level, expected = SPS[case]
    assert sps(nodes, desired, minimum, level).given == expected


@pytest.mark.parametrize("case", DPS)
def test_dps_worked(case: str) -> None:
    nodes, desired, level, expected = DPS[case]
    assert dps(nodes, desired, level).given == expected


def test_sps_names_topologies_without_nodes_and_idle_nodes() -> None:
    found = sps(7, (8, 8, 4, 4), (4, 4, 2, 2), (1, 1, 2, 2))
    assert (found.starved, found.idle) == ((1, 3), 1)


def test_nodes_in_excess_are_taken_from_the_smallest_fraction() -> None:
    # quotas 2.5, 2.75 and 3.75 of 9: rounded 3 + 3 + 4 = 10, and the first was rounded up by most
    assert dps(9, (10, 11, 15), (1, 1, 1)).given == (2, 3, 4)


BAD: dict[str, tuple[Callable[[], Given], str]] = {
    "minimum above desired": (lambda: sps(9, (4, 4), (5, 1), (1, 1)), "minimum 5 of topology 0 is above its desired 4"),
    "level 0": (lambda: dps(9, (4, 4), (1, 0)), "level of topology 1"),
    "empty cluster": (lambda: dps(0, (4, 4), (1, 1)), "nodes must be"),
    "levels missing": (lambda: dps(9, (4, 4), (1,)), "2 desired numbers and 1 levels"),
    "minimums missing": (lambda: sps(9, (4, 4), (1,), (1, 1)), "2 desired numbers and 1 minimums"),
    "no topology": (lambda: dps(9, (), ()), "no topology"),
    "desired 0": (lambda: dps(9, (4, 0), (1, 1)), "desired of topology 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_the_wrong_value(case: str) -> None:
    call, words = BAD[case]
    with pytest.raises(BadInput, match=words):
        call()


topologies = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(1, 4)).map(lambda t: (t[0], min(t[:2]), t[2])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 120), topologies)
def test_sps_totals_are_exact_and_within_bounds(nodes: int, them: list[tuple[int, int, int]]) -> None:
    desired, minimum, level = (tuple(column) for column in zip(*them, strict=True))
    found = sps(nodes, desired, minimum, level)
    assert found.idle == nodes - sum(found.given) >= 0
    assert found == sps(nodes, desired, minimum, level)
    if nodes >= sum(minimum):
        assert all(sm <= cn <= sd for sm, cn, sd in zip(minimum, found.given, desired, strict=True))
        assert sum(found.given) == min(nodes, sum(desired)) or nodes == sum(minimum)
    else:
        assert all(cn in (0, sm) for sm, cn in zip(minimum, found.given, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 120), topologies)
def test_dps_totals_are_exact_and_serve_levels_in_full(nodes: int, them: list[tuple[int, int, int]]) -> None:
    desired, _, level = (tuple(column) for column in zip(*them, strict=True))
    found = dps(nodes, desired, level)
    assert sum(found.given) == min(nodes, sum(desired))
    assert all(0 <= cn <= sd for cn, sd in zip(found.given, desired, strict=True))
    for short in (i for i, cn in enumerate(found.given) if cn < desired[i]):
        assert not any(cn for i, cn in enumerate(found.given) if level[i] > level[short])
