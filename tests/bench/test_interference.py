"""Which rounds the bench of interference counts: those in which the way that was asked for was in force."""

import pytest
from bench.interference import InForce, bars, not_counted, ratios

from barograph.engines.spark.bridge.reports import Executor


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
        ([1.0], 1, []),
    ],
)
def test_more_than_half_of_the_rounds_must_count(counted: list[float], rounds: int, missed: list[str]) -> None:
    assert [bar.name.split()[-1] for bar in bars(counted, rounds) if not bar.met] == missed
