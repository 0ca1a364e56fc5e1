"""Which rounds the bench of interference counts, where it places instances, and what it reads of causes.

A round counts in which the way that was asked for was in force and every instance was in its place."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from bench._interference.causes import Reading, Stopped, causes, run_queue_s_in, stopped_in
from bench._interference.in_force import InForce, not_counted, ratios
from bench._interference.places import by_index, limits_only, one_plan
from bench.interference import B_INSTANCES, FIXED, bars

from barograph.engines.spark.bridge.reports import Executor
from barograph.model import Instance, InstanceMetrics, Metrics, Outcome, Placement, Plan, Rescale, Slot
from barograph.testing.local_cluster import PARALLELISM

A0, B0, B1 = Instance("a", "split", 0), Instance("b", "split", 0), Instance("b", "split", 1)


def held(*looks: tuple[str, ...]) -> InForce:
    """looks: at each, the way of every executor."""
    found = InForce()
    for ways in looks:
        found.saw(
            Executor(str(k), "h", 2, 2, enforces=way, enforces_because="no rights" if way == "cooperative" else "")
            for k, way in enumerate(ways)
        )
    return found


@pytest.mark.parametrize(
    ("asked", "looks", "counts"),
    [
        ("cgroup", (("cgroup", "cgroup"), ("cgroup", "cgroup")), True),
        ("cgroup", (("cgroup", "cgroup"), ("cgroup", "cooperative")), False),
        ("cgroup", (("cooperative", "cooperative"),), False),
        ("off", (("off", "off"),), True),
        ("off", (("cooperative", "off"),), False),
        ("auto", (("cooperative", "cooperative"),), True),
        ("auto", (("cgroup", "cgroup"),), True),  # where Java knows no CPU time of a thread
        ("auto", (("cgroup", "cooperative"),), False),
        ("auto", (("off", "off"),), False),
        ("auto", (("", ""),), False),
        ("auto", (), False),
        ("cgroup", (), False),
    ],
)
def test_a_round_counts_if_every_executor_held_limits_in_that_way_all_the_time(
    asked: str, looks: tuple[tuple[str, ...], ...], counts: bool
) -> None:
    assert held(*looks).counts_for(asked) == counts


def test_a_round_by_another_way_gives_no_ratio_and_is_said() -> None:
    in_force = {
        "idle": [held(("cooperative",))] * 2,
        "auto": [held(("cooperative",))] * 2,
        "cgroup": [held(("cgroup",)), held(("cgroup",), ("cooperative",))],
        "off": [held(("off",))] * 2,
    }
    p99_ms = {"idle": [10.0, 20.0], "auto": [11.0, 30.0], "cgroup": [15.0, 21.0], "off": [50.0, 40.0]}
    assert ratios(p99_ms, in_force) == {"auto": [1.1, 1.5], "cgroup": [1.5], "off": [5.0, 2.0]}
    assert not_counted(in_force) == [
        "round 1, cgroup: not counted, because limits were held by cgroup, cooperative (no rights)"
    ]


@pytest.mark.parametrize(
    ("counted", "rounds", "missed"),
    [
        ([1.1, 1.0, 1.9, 1.2, 1.0], 5, []),
        ([1.3, 1.3, 1.0], 5, ["median"]),
        ([1.0, 1.0, 2.1], 5, ["worst"]),
        ([1.0, 1.0], 5, ["count"]),
        ([], 5, ["count"]),
        ([1.0], 1, ["rounds"]),
    ],
)
def test_more_than_half_of_the_rounds_must_count(counted: list[float], rounds: int, missed: list[str]) -> None:
    assert [bar.name.split()[-1] for bar in bars(counted, rounds, 60.0) if not bar.met] == missed


def test_a_shortened_run_does_not_pass() -> None:
    good = [1.0] * 5
    assert all(bar.met for bar in bars(good, 5, 60.0))
    assert [bar.name for bar in bars(good, 5, 20.0) if not bar.met] == ["measured of each case, in seconds"]
    assert [bar.name for bar in bars([1.0], 1, 60.0) if not bar.met] == ["number of rounds"]


def test_both_are_on_each_node_in_the_same_places_in_every_case() -> None:
    slots = [Slot(f"node-{k}", 0) for k in (1, 2, 3)]
    first, second = (one_plan({f"a-{k}": PARALLELISM, f"b-{k}": B_INSTANCES}, slots) for k in ("idle", "off"))
    letters = [{f"a-{k}": "a", f"b-{k}": "b"} for k in ("idle", "off")]
    places = by_index(first, letters[0])
    assert places == by_index(second, letters[1]) and len(places) == sum((*PARALLELISM.values(), *B_INSTANCES.values()))
    assert [places[f"b/split/{k}"] for k in range(3)] == ["node-3/0", "node-1/0", "node-2/0"]
    for slot in slots:
        assert sum(s == slot for s in first.placement.slots.values()) == len(places) / 3
        assert {i.topology for i, s in first.placement.slots.items() if s == slot} == {"a-idle", "b-idle"}


def test_the_policy_changes_limits_only() -> None:
    applied: list[Plan] = []

    class Driver:
        def apply(self, plan: Plan) -> Outcome:
            applied.append(plan)
            return Outcome()

    driver = cast(Any, Driver())
    whole = Plan(Placement({A0: Slot("n1", 0)}), (Rescale("b", "split", 3),), {A0: 5.0}, cuts=("b",), version=7)
    with limits_only(driver):
        driver.apply(whole)
    driver.apply(whole)
    assert applied == [Plan(shares_pct={A0: 5.0}, version=7), whole]
    assert set((FIXED.excluded or "").split(",")) == PARALLELISM.keys() == B_INSTANCES.keys()


def test_a_round_in_which_an_instance_was_elsewhere_counts_for_no_way() -> None:
    def placed(node: str) -> InForce:
        found = held(("cooperative",))
        found.found({A0: "n1", B0: node}, {A0: "n1", B0: "n2"})
        return found

    stayed, moved = placed("n2"), placed("n1")
    assert stayed.counts_for("auto") and not moved.counts_for("auto") and not moved.counts_for("idle")
    moved.found({A0: "n1", B0: "n2"}, {A0: "n1", B0: "n2"})
    assert not moved.counts_for("auto"), "not all the time"
    fewer = held(("cooperative",))
    fewer.found({A0: "n1"}, {A0: "n1", B0: "n2"})
    assert not fewer.counts_for("auto")
    off = held(("off",))
    in_force = {"idle": [moved, stayed], "auto": [stayed, stayed], "cgroup": [off, off], "off": [off, off]}
    p99_ms = {"idle": [10.0, 20.0], "auto": [11.0, 30.0], "cgroup": [1.0, 1.0], "off": [50.0, 40.0]}
    assert ratios(p99_ms, in_force) == {"auto": [1.5], "cgroup": [], "off": [2.0]}
    assert not_counted(in_force)[0] == (
        "round 0, idle: not counted, because limits were held by cooperative (no rights), and b/split/0 elsewhere"
    )


def test_both_versions_of_control_groups_are_read() -> None:
    first = "nr_periods 90\nnr_throttled 12\nthrottled_time 2500000000\nnr_bursts 0\n"
    second = "usage_usec 9\nnr_periods 90\nnr_throttled 12\nthrottled_usec 2500000\n"
    assert stopped_in(first) == stopped_in(second) == Stopped(12, 2.5)


def test_the_second_figure_of_schedstat_is_the_wait_for_a_processor() -> None:
    assert run_queue_s_in("387113 2500000000 2\n") == 2.5


def test_causes_are_what_grew_meanwhile() -> None:
    executor_of = {A0: "0", B0: "0", B1: "1"}
    rows = {
        A0: InstanceMetrics(cpu_s=2.0, throttled_s=0.75), B0: InstanceMetrics(cpu_s=3.0, throttled_s=9.0),
        B1: InstanceMetrics(cpu_s=4.0),
    }  # fmt: skip
    metrics = cast(Metrics, SimpleNamespace(row=rows.__getitem__))
    before = Reading(
        {"n1": Stopped(10, 1.0), "n2": None}, {"0": 100.0, "1": 50.0}, {(7, 70): 1.0, (7, 71): 5.0}, metrics,
        executor_of,
    )  # fmt: skip
    after = Reading(
        {"n1": Stopped(15, 3.5), "n2": None}, {"0": 106.5, "1": 55.0, "2": 3.0}, {(7, 70): 1.5, (7, 72): 9.0}, metrics,
        executor_of,
    )  # fmt: skip
    assert causes(before, after, "a") == {
        "nodes": {"n1": {"stops": 5, "stopped_s": 2.5}, "n2": None},
        "executors": {
            "0": {"a_cpu_s": 2.0, "b_cpu_s": 3.0, "rest_cpu_s": 1.5},
            "1": {"a_cpu_s": 0.0, "b_cpu_s": 4.0, "rest_cpu_s": 1.0},
        },
        "a_throttled_s": 0.75,
        "a_run_queue_s": 0.5,
        "a_threads": 1,
    }
    assert causes(before, Reading(), "a")["a_run_queue_s"] is None
