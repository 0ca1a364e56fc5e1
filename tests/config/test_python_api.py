"""``barograph.start`` goes by its arguments, then the session's keys, then barograph.toml, then the defaults."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

import barograph
from barograph.control import steered_start
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.driver import application
from barograph.engines.spark.folders import STATE_VARIABLE
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import BadInput
from barograph.priority import RateTrigger, service
from barograph.priority.declared_triggers import DeclaredTriggers
from barograph.submit import hooks
from barograph.submit.steered_line import said_elsewhere


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the supervisor is asked for, and the settings of the session."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {"session": {}}
    supervisor = SimpleNamespace(
        start=lambda build, _checkpoint, **more: found.update(more, build=build) or SimpleNamespace(topology="words"),
        serve=lambda: SimpleNamespace(path=Path("driver.sock")),
        on_close=lambda _call: None,
        queries=(),
    )
    monkeypatch.setattr(application, "supervisor_of_session", lambda _serve: supervisor)
    monkeypatch.setattr(application, "session_settings", lambda: found["session"])
    return found


def build() -> Any:
    raise AssertionError("nothing is started here")


def test_the_defaults(started: dict[str, Any]) -> None:
    barograph.start(build)
    assert (started["options"], started["limits"]) == (QueryOptions(), RestartLimits())


def test_arguments_win_over_keys_and_keys_over_the_file(started: dict[str, Any]) -> None:
    text = "[query]\nlevel = 3\ndesired-nodes = 4\nminimum-nodes = 1\n[restart]\nin-a-row = 5\n"
    Path("barograph.toml").write_text(text, encoding="utf-8")
    started["session"] = {"spark.barograph.query.desiredNodes": "2", "spark.barograph.query.level": "2"}
    barograph.start(build, level=1)
    assert started["options"] == QueryOptions(level=1, desired_nodes=2, minimum_nodes=1)
    assert started["limits"] == RestartLimits(in_a_row=5)


def test_a_wrong_argument(started: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="level must be a whole number of at least 1, not 0: write level=1"):
        barograph.start(build, level=0)
    assert "options" not in started


def watch_attaching(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What controllers are attached with."""
    asked: list[tuple[Any, ...]] = []

    def attach(*given: Any) -> SimpleNamespace:
        asked.append(given)
        return SimpleNamespace(close=None)

    monkeypatch.setattr(steered_start, "attach_once", attach)
    return asked


def test_a_policy_attaches_a_controller(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = watch_attaching(monkeypatch)
    barograph.start(build)
    assert asked == [], "without a policy it is only kept alive"
    barograph.start(build, policy="adaptive", options={"guards.cooldown": "7s", "lend": False}, history="seen")
    ((socket, config, of_policy),) = asked
    assert (socket, of_policy) == (Path("driver.sock"), {"lend": False})
    assert (config["policy"], config["mode"], config["history"]) == ("adaptive", "act", "seen")
    assert config["guards.cooldown"] == 7.0
    assert started["recovery"] is not None
    barograph.start(build, policy="adaptive", mode="advise")
    assert started["recovery"] is None, "what only advises does not change the length of epochs"
    barograph.start(build, policy="adaptive", mode="advise", options={"recovery": "20s"})
    assert started["recovery"] == Recovery(recovery_s=20.0)


def test_a_line_says_once_that_a_policy_is_at_work_and_how_to_look(
    started: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A notebook shows what is on standard error, and sets up no logging."""
    watch_attaching(monkeypatch)
    monkeypatch.setattr(hooks, "_said", set())
    barograph.start(build)
    assert started["options"] == QueryOptions() and capsys.readouterr().err == ""
    with caplog.at_level("INFO", "barograph"):
        for _ in range(2):
            barograph.start(build, policy="adaptive", mode="advise")
    look = f"look with: barograph decisions {os.getpid()}"
    assert capsys.readouterr().err == f"barograph: adaptive advises; {look}\n"
    assert caplog.messages == [f"adaptive advises; {look}"]
    said_elsewhere("liu", "act")  # as barograph submit does
    barograph.start(build, policy="liu", mode="act")
    assert capsys.readouterr().err == ""
    barograph.start(build, policy="adaptive")
    assert capsys.readouterr().err == f"barograph: adaptive acts; {look}\n"


def test_an_option_that_the_policy_does_not_use_is_warned_of(
    started: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch_attaching(monkeypatch)
    options = {"query.isolate-nodes": 1, "query.workers": 2, "query.cpu": "split=40"}
    with caplog.at_level("WARNING", "barograph"):
        barograph.start(build, policy="isolation", options=options)
        barograph.start(build, options=options)
    assert [record.getMessage() for record in caplog.records] == [
        "query.cpu has no effect under the policy isolation; it is for adaptive, autoscale, true-rate, r-storm, fixed, "
        "fixed-mean, fixed-peak, fixed-equal"
    ]
    assert "options" in started


def test_the_policy_may_come_from_the_session(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = watch_attaching(monkeypatch)
    started["session"] = {
        "spark.barograph.policy": "liu", "spark.barograph.mode": "advise",
        "spark.barograph.options": "theta_pct=10,lend=false",
    }  # fmt: skip
    barograph.start(build)
    assert (asked[0][1]["policy"], asked[0][1]["mode"]) == ("liu", "advise")
    assert asked[0][1]["options"] == ("theta_pct=10", "lend=false")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "watch", "policy": "adaptive"}, "mode must be one of act, advise, not 'watch'"),
        ({"options": {"guards.cool": "1s"}}, "there is no option 'guards.cool'"),
        (
            {"options": {"guards.cooldown": 3}},
            r"options\['guards.cooldown'\] must be a time .*: \"3s\"",
        ),
        ({"options": {3: 4}}, "the name of an option must be a text, not 3"),
        ({"options": {"lend": False}}, "lend: needs a policy, for example policy='adaptive'"),
        ({"history": "seen"}, "history: needs a policy"),
    ],
)
def test_wrong_arguments_start_nothing(started: dict[str, Any], given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        barograph.start(build, **given)
    assert "options" not in started


def test_a_query_is_a_writer_or_a_function(started: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="start takes a DataStreamWriter or a function that returns one, not 3"):
        barograph.start(3)  # type: ignore[arg-type]
    assert "options" not in started
    writer = DataStreamWriter.__new__(DataStreamWriter)
    barograph.start(writer)
    assert started["build"]() is writer


def test_options_of_operators_quotas_and_triggers(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[tuple[Any, ...]] = []
    monkeypatch.setattr(service, "priorities_of", lambda _: SimpleNamespace(watch=lambda *given: watched.append(given)))
    started["session"] = {"spark.barograph.query.excluded": "count", "spark.barograph.query.quotaExecutors": "2"}
    more = {
        "query.cpu": "split=40",
        "query.quota-cpu": 150,
        "query.workers": 3,
        "query.isolate-nodes": 1,
        "query.target-p99": 200,
    }
    barograph.start(build, limits={"split": (1, 8)}, options=more)
    assert started["options"] == QueryOptions(
        instances="split=1..8", excluded="count", cpu="split=40", quota_cpu_pct=150.0, quota_executors=2, workers=3,
        isolate_nodes=1, target_p99_ms=200.0,
    )  # fmt: skip
    assert watched == []
    barograph.start(build, options={"priority.rate": 2000})
    assert watched == [("words", DeclaredTriggers(RateTrigger(2000.0, 3.0, 0.8, 10.0)))]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": "adaptiv"}, "there is no policy 'adaptiv'"),
        ({"policy": "adaptive", "options": {"lent": 1}}, "policy adaptive has no option 'lent'"),
        ({"limits": {"split": 8}}, r"limits\['split'\] must be \(least, most\)"),
        ({"limits": {"split": (8, 1)}}, r"limits\['split'\] must be \(least, most\)"),
        (
            {"options": {"query.instances": "split=8..1"}},
            'is not OPERATOR=LEAST..MOST.*: write .*"split=1..8"',
        ),
        ({"options": {"query.quota-cpu": 0}}, r"options\['query.quota-cpu'\] must be a number in per cent above 0"),
        ({"options": {"query.target-p99": -5}}, r"options\['query.target-p99'\] must be a number of ms above 0"),
        ({"options": {"guards.frozen-in": "weekends"}, "policy": "adaptive"}, "'weekends' is no period of the week"),
        ({"options": {"priority.rate": "fast"}}, r"options\['priority.rate'\] must be a number of rows/s above 0"),
    ],
)
def test_wrong_bounds_start_nothing(
    started: dict[str, Any], given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    with pytest.raises(BadInput, match=said):
        barograph.start(build, **given)
    assert "options" not in started
