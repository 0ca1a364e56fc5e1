"""Checks of values from files: one sentence each, and no value makes the check itself fail."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barograph.model import BadInput, Operator, Topology
from barograph.model.bounds import MOST_NODES, require_few_nodes
from barograph.model.checks import require_at_most, require_between, require_number, require_plain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None, max_examples=50)
@given(PLAIN)
def test_ordinary_values_are_plain(value: object) -> None:
    require_plain("here", value)


@settings(deadline=None, max_examples=50)
@given(PLAIN, st.integers(33, 2000))
def test_deep_values_are_refused(value: object, depth: int) -> None:
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    with pytest.raises(BadInput, match=r"^here: values are nested more than 32 deep$"):
        require_plain("here", value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**5000], ids=["above", "below", "unprintable"])
def test_long_numbers_are_refused(value: int) -> None:
    with pytest.raises(BadInput, match=r"^here: a whole number is beyond 64 bits$"):
        require_plain("here", {"a": [1, value]})


def test_a_whole_number_beyond_every_float_is_no_number() -> None:
    with pytest.raises(BadInput, match="must be a number of at least 0"):
        require_number("cpu", 10**400)


def test_bounds_are_shown_as_they_are_written() -> None:
    require_at_most("nodes", 10, 10)
    with pytest.raises(BadInput, match=r"^nodes must be at most 10,000, not 10,001$"):
        require_at_most("nodes", 10_001, 10_000)
    require_between("cost", 0.5, 0.5, 1.0)
    with pytest.raises(BadInput, match=r"^cost must be from 0\.5 to 1, not 1e\+300$"):
        require_between("cost", 1e300, 0.5, 1.0)


@pytest.mark.parametrize("name", ["isolate_nodes", "desired_nodes", "minimum_nodes"])
def test_a_topology_asks_for_no_more_nodes_than_there_can_be(name: str) -> None:
    plain = Topology("t", (Operator("s", 1),))
    most: dict[str, Any] = {name: MOST_NODES}
    more: dict[str, Any] = {name: MOST_NODES + 1}
    require_few_nodes("here", replace(plain, **most))
    with pytest.raises(BadInput, match=f"^here: topology t: {name} must be at most 10,000, not 10,001$"):
        require_few_nodes("here", replace(plain, **more))
