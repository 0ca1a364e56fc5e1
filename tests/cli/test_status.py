"""What people see of a driver: figures of an executor that no longer reports are marked as stale."""

from typing import Any

from barograph.cli.status import table


def status(age_s: float | None, deaths: int = 0, because: str = "") -> dict[str, Any]:
    node = {
        "name": "node-1", "released": False, "executors": ["0"], "seats": 4, "cpu_pct": 100.0, "cpu_used_pct": 12.0,
        "age_s": age_s, "deaths_in_a_row": deaths, "held_back_s": 20.0 * deaths if deaths else None,
        "enforces": ["cooperative"], "enforces_because": [because] if because else [],
    }  # fmt: skip
    topology = {
        "name": "t", "doing": "running", "epoch": 3, "in_rows_s": 10.0, "out_rows_s": 9.0, "backlog_rows": 0.0,
        "latency_ms": None, "latency_record_ms": None, "by_node": {"node-1": ["source/0"]}, "restarts": [],
        "age_s": age_s,
    }  # fmt: skip
    head = {"app": "a", "master": "m", "run": "", "pid": 1, "frozen": False, "controllers": [], "limits_lifted": None}
    return {**head, "nodes": [node], "topologies": [topology]}


def test_fresh_figures_are_not_marked() -> None:
    for age_s in (None, 0.2, 3.0):
        assert "STALE" not in table(status(age_s))


def test_old_figures_are_marked_with_their_age() -> None:
    _, topology, node = table(status(7.4)).splitlines()
    assert topology.endswith("STALE: 7 s old")
    assert node.endswith("cpu 12 of 100 %  STALE: 7 s old")


def test_controllers_are_named() -> None:
    found = {**status(0.2), "controllers": [{"policy": "adaptive", "mode": "act"}, {"policy": "liu", "mode": "advise"}]}
    assert table(found).splitlines()[1:3] == ["  policy adaptive acts", "  policy liu advises"]


def test_limits_that_no_controller_keeps_are_said_to_be_lifted() -> None:
    found = {**status(0.2), "limits_lifted": "the controller was detached: CPU limits are lifted"}
    assert table(found).splitlines()[1] == "  LIMITS LIFTED: the controller was detached: CPU limits are lifted"
    assert "LIFTED" not in table(status(0.2))


def test_a_node_that_instances_avoid_is_marked() -> None:
    assert table(status(0.2, 3)).splitlines()[-1].endswith("HELD BACK: 3 deaths in a row, 60 s left")
    assert "HELD BACK" not in table(status(0.2))


def test_limits_that_are_not_held_as_asked_are_marked_with_the_reason() -> None:
    assert "LIMITS" not in table(status(0.2))
    found = table(status(0.2, because="/x: Permission denied; tried again in 1 s")).splitlines()[-1]
    assert found.endswith("LIMITS cooperative: /x: Permission denied; tried again in 1 s")


def test_latency_is_shown_by_kind() -> None:
    found = status(0.2)
    column, record = ({"p50": n, "p99": 2 * n, "max": 3 * n} for n in (10.0, 12.0))
    exact, bound = "p50 10 p99 20 max 30 by column", "p50 12 p99 24 max 36 by record time"
    for here, there, shown in ((None, None, "-"), (None, record, bound), (column, record, f"{exact}, {bound}")):
        found["topologies"][0] |= {"latency_ms": here, "latency_record_ms": there}
        assert table(found).splitlines()[1].endswith(f"latency ms {shown}")
