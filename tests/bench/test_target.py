"""The bench of targets counts every second, also those in which nothing came out."""

from dataclasses import replace

from tests.cycles import chain, remembered, seen, work

from barograph.model import Cycle, Demand, Latency, Operator, TopologyMetrics
from bench import target


def cycles(*p99_ms: float | None, cycle_s: float = 1.0) -> list[Cycle]:
    """None: nothing came out."""
    topology, found = chain(Operator("s", 1, source=True)), []
    for k, p99 in enumerate(p99_ms):
        now = seen(topology, {"s": work(10.0, ms=1.0)}, cycle_s=cycle_s, at_s=cycle_s * k)
        due = None if p99 is None else Latency(p99, p99, p99, p99, p99)
        found.append(remembered(replace(now, topology_metrics=(TopologyMetrics("t", latency_due=due),)), Demand(())))
    return found


def held(listed: list[Cycle]) -> target.Held:
    return target.held(listed, 1.0, 1.0, 1.0, 1.0, 0, True)


def test_a_second_without_a_row_is_above_every_target() -> None:
    found = held(cycles(None, 10.0, None, 100.0, 10.0, None))
    assert (found.seconds, found.silent) == (4, 0.25), "not before the first row, and not after the last one"
    assert found.above == {"50": 0.5, "200": 0.25, "1000": 0.25}


def test_a_cycle_counts_by_its_length() -> None:
    found = held([*cycles(10.0, 10.0), *cycles(100.0, cycle_s=2.0)])
    assert (found.seconds, found.above["50"]) == (4, 0.5)


def test_a_run_without_any_latency_holds_no_target() -> None:
    silent = held(cycles(None, None))
    assert silent.above == {"50": 1.0, "200": 1.0, "1000": 1.0}
    whole = replace(silent, seconds=round(target.SECONDS), above=dict.fromkeys(silent.above, 0.0))
    for run, met in ((silent, False), (whole, True)):
        runs = dict.fromkeys(("none", "50", "200", "1000", "fixed-peak"), run)
        judged = {bar.name: bar.met for bar in target.bars({"sim": runs})}
        assert judged["sim: seconds that are judged, of the load"] is met
