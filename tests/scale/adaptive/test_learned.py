"""What the measured p99 says about the model: floor, factor and margin."""

import numpy as np
import pytest
from tests.cycles import chain, remembered, seen, work

from barograph.model import Latency, Operator, Snapshot, TopologyMetrics
from barograph.scale.adaptive.learned import boundaries, fitted, learn

TOPOLOGY = chain(Operator("s", 1, source=True), Operator("a", 1))


def cycle(k: int, rows: float, p99: float | None, epoch: int = 0) -> Snapshot:
    found = seen(TOPOLOGY, {"s": work(rows, ms=0.1), "a": work(rows)}, at_s=10.0 * k)
    latency = None if p99 is None else Latency(p99 / 3, p99 / 4, p99, p99, p99)
    metrics = TopologyMetrics("t", epoch=epoch, completed_rows=rows, latency_due=latency)
    object.__setattr__(found, "topology_metrics", (metrics,))
    return found


def test_floor_and_factor_are_found_again() -> None:
    model_s = np.linspace(0.005, 0.1, 40)
    found = fitted(model_s, 0.02 + 0.4 * model_s)
    assert found.factor == pytest.approx(0.4, abs=0.08)
    assert found.p99_s(0.05) == pytest.approx(0.04, abs=0.004)


def test_a_few_slow_cycles_say_nothing_about_shares() -> None:
    model_s = np.linspace(0.005, 0.1, 40)
    measured_s = 0.02 + model_s
    measured_s[::10] = 5.0
    assert fitted(model_s, measured_s).p99_s(0.05) == pytest.approx(0.07, abs=0.01)


def test_noise_is_a_margin() -> None:
    model_s, noise = np.full(40, 0.01), np.tile([0.0, 0.0, 0.05, 0.05], 10)
    assert fitted(model_s, 0.02 + noise).p99_s(0.01) == pytest.approx(0.07, abs=1e-3)


def test_a_model_that_says_too_much_is_scaled_down() -> None:
    found = fitted(np.full(10, 0.1), np.full(10, 0.02))
    assert found.floor_s == 0.0
    assert found.p99_s(0.1) == pytest.approx(0.02)


def test_too_few_cycles_and_cycles_without_latency_say_nothing() -> None:
    blind = [remembered(cycle(k, 5000, None)) for k in range(9)]
    assert learn(blind, cycle(9, 5000, None), TOPOLOGY) is None
    assert learn([], cycle(0, 5000, 20.0), TOPOLOGY) is None
    known = [remembered(cycle(k, 5000, 20.0)) for k in range(9)]
    found = learn(known, cycle(9, 5000, 20.0), TOPOLOGY)
    assert found is not None and found.cycles == 8


def test_cycles_with_a_boundary_are_left_out() -> None:
    """Every fourth cycle ends an epoch, and then two are slow: a pause is no queue."""
    slow = (600.0, 300.0, 300.0, 20.0)
    cycles = [cycle(k, 5000, slow[k % 4], epoch=k // 4) for k in range(21)]
    found = learn([remembered(c) for c in cycles[:-1]], cycles[-1], TOPOLOGY)
    assert found is not None and found.p99_s(0.0) < 0.05
    assert boundaries([remembered(c) for c in cycles[:-1]], cycles[-1], "t") == (5, 200.0)
