"""Waiting times at one operator and along a topology."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.model import Edge, Operator, Topology
from barograph.scale.adaptive.queueing import Leg, leg, path_p99_s


def one(load: float, service_s: float = 0.001, span_s: float = 2.0) -> Leg:
    return leg(np.array([load]), np.array([100.0]), np.array([service_s]), span_s)


def test_below_full_load_it_is_the_queue_of_random_arrivals() -> None:
    """M/M/1 at 50 %: a row takes s / (1 - rho) on the mean; one in a hundred waits longer than s ln(50) / (1 - rho)."""
    found = one(0.5)
    assert found.mean_s == pytest.approx(0.002)
    assert found.mean_s + found.above_s == pytest.approx(0.001 + 0.002 * math.log(50))


def test_above_full_load_the_queue_grows_for_as_long_as_shares_stay() -> None:
    assert one(1.5).mean_s + one(1.5).above_s == pytest.approx(0.001 + 1.0 + 2.326 * math.sqrt(2 * 1.5 * 2 * 0.001))


@given(st.floats(0.0, 3.0), st.floats(0.001, 0.5), st.floats(1e-5, 0.1))
def test_more_load_never_makes_rows_faster(load: float, more: float, service_s: float) -> None:
    less, then = one(load, service_s), one(load + more, service_s)
    assert np.isfinite(then.mean_s + then.above_s)
    assert then.mean_s + then.above_s >= less.mean_s + less.above_s - 1e-12


def test_the_slowest_instance_counts_unless_it_gets_next_to_no_rows() -> None:
    loads, service = np.array([0.1, 0.9]), np.array([0.001, 0.001])
    hot = leg(loads, np.array([10.0, 90.0]), service, 2.0)
    assert hot.mean_s + hot.above_s == pytest.approx(one(0.9).mean_s + one(0.9).above_s)
    rare = leg(loads, np.array([999.0, 1.0]), service, 2.0)
    assert rare.mean_s + rare.above_s == pytest.approx(one(0.1).mean_s + one(0.1).above_s)
    assert leg(loads, np.zeros(2), service, 2.0) == Leg()


def test_the_slowest_path_counts() -> None:
    operators = (Operator("s", 1, source=True), Operator("a", 1), Operator("b", 1), Operator("end", 1))
    edges = (Edge("s", "a"), Edge("s", "b"), Edge("a", "end"), Edge("b", "end"))
    legs = {"s": Leg(1, 3), "a": Leg(1, 4), "b": Leg(1, 0), "end": Leg(1, 0)}
    assert path_p99_s(Topology("t", operators, edges), legs) == (3 + 5, ("s", "a", "end"))
