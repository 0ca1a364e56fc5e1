"""However time is cut into cycles, the same load gives the same demand: seconds count, not cycles.

The same law of forecasts is in ``tests/forecast/test_laws.py``.
"""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cycles import chain, nodes, remembered, seen

from barograph.forecast import LastValue
from barograph.model import Cycle, Grouping, InstanceMetrics, Operator, Snapshot
from barograph.scale import Adaptive
from barograph.scale.adaptive.spans import SHORT_S

SECONDS = 40
# What is wanted is compared, not when it is done: so the number of instances cannot be changed.
COUNTING = chain(
    Operator("spout", 4, source=True, min_parallelism=4, max_parallelism=4),
    Operator("split", 4, min_parallelism=4, max_parallelism=4),
    Operator("count", 4, stateful=True, min_parallelism=4, max_parallelism=4),
    grouping=Grouping.FIELDS,
)
# At most as long as a cycle usually is, and a few longer ones among them: a slow change makes its own cycle long.
usual_s = st.lists(st.floats(0.3, SHORT_S), min_size=20, max_size=30)
long_s = st.lists(st.tuples(st.integers(0, 30), st.floats(SHORT_S, 12.0)), max_size=3)


def work(rate: float, seconds: float, cost_ms: float, waiting_s: float, instances: int = 4) -> list[InstanceMetrics]:
    """Of one cycle, spread unevenly. waiting_s: of how many seconds the rows wait that are pending throughout."""
    parts = [0.4, *[0.6 / (instances - 1)] * (instances - 1)]
    return [
        InstanceMetrics(
            arrived=rate * seconds * part,
            executed=rate * seconds * part,
            emitted=rate * seconds * part,
            busy_s=rate * seconds * part * cost_ms / 1e3,
            cpu_s=rate * seconds * part * cost_ms / 1e3,
            pending=rate * waiting_s * part,
        )
        for part in parts
    ]


def decided(lengths_s: Sequence[float], rate: float, cost_ms: float, waiting_s: float) -> list[Cycle]:
    """What is demanded at the end of each of these cycles."""
    history: list[Cycle] = []
    at_s = 0.0
    for length_s in lengths_s:
        at_s += length_s
        numbers = {o.name: work(rate, length_s, cost_ms, waiting_s) for o in COUNTING.operators}
        now: Snapshot = seen(COUNTING, numbers, cluster=nodes(8), cycle_s=length_s, at_s=at_s)
        history.append(remembered(now, Adaptive()(history, now, LastValue()(history, now, 1))))
    return history


@settings(max_examples=20)
@given(
    lengths_s=usual_s,
    longer=long_s,
    rate=st.floats(1.0, 3000.0),
    cost_ms=st.floats(0.05, 1.0),
    waiting_s=st.sampled_from([0.0, 0.1, 1.0, 1.9, 2.1, 5.0, 30.0]),
)
@example(lengths_s=[1.0] * SECONDS, longer=[], rate=1000.0, cost_ms=0.5, waiting_s=5.0)
@example(lengths_s=[2.0] * (SECONDS // 2), longer=[(19, 12.0)], rate=700.0, cost_ms=0.5, waiting_s=5.0)
@example(lengths_s=[1.0] * 20, longer=[(20, 12.0)], rate=66.0, cost_ms=1.0, waiting_s=1.9)  # longer than its backlog
def test_the_same_load_gives_the_same_demand_however_time_is_cut_into_cycles(
    lengths_s: list[float], longer: list[tuple[int, float]], rate: float, cost_ms: float, waiting_s: float
) -> None:
    """Within 1 %, whatever the length of the cycle in which it is decided. Rows wait all the time."""
    cut = list(lengths_s)
    for at, length_s in longer:
        cut.insert(at, length_s)
    expected = decided([SHORT_S] * (SECONDS // 2), rate, cost_ms, waiting_s)[-1].demand
    found = decided(cut, rate, cost_ms, waiting_s)[-1].demand
    assert [o.wanted for o in found.operators] == [o.wanted for o in expected.operators]
    for mine, other in zip(found.operators, expected.operators, strict=True):
        assert mine.held_pct == pytest.approx(other.held_pct, rel=0.01)
        assert mine.shares_pct == pytest.approx(other.shares_pct, rel=0.01), mine.operator
