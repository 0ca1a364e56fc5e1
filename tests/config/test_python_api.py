"""``barograph.start`` goes by its arguments, then the session's keys, then barograph.toml, then the defaults."""

import os
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import barograph
from barograph.config import OPTIONS, Config, Kind, Option
from barograph.config.option import Scope
from barograph.config.values import in_toml, read
from barograph.control import steered_start
from barograph.control.attach import controller_config
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


class Session:
    """application: Spark's settings as they were when it was made. since: what was set in the session since then."""

    def __init__(self) -> None:
        self.application: dict[str, str] = {}
        self.since: dict[str, str] = {}
        self.sparkContext = self

    def getConf(self) -> SimpleNamespace:  # noqa: N802  # Spark's name
        return SimpleNamespace(getAll=lambda: list(self.application.items()))

    @property
    def conf(self) -> SimpleNamespace:
        return SimpleNamespace(getAll={**self.application, **self.since})


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    """The only one of the program. As in a thread that the program started, none is active."""
    found = Session()
    monkeypatch.setattr(SparkContext, "_active_spark_context", found)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", found)
    return found


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session) -> dict[str, Any]:
    """What the supervisor is asked for, and for which session."""
    assert session is not None
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    supervisor = SimpleNamespace(
        start=lambda build, _checkpoint, **more: found.update(more, build=build) or SimpleNamespace(topology="words"),
        serve=lambda: SimpleNamespace(path=Path("driver.sock")),
        on_close=lambda _call: None,
        queries=(),
    )
    monkeypatch.setattr(
        application, "supervisor_of_session", lambda _serve, spark: found.update(supervised=spark) or supervisor
    )
    monkeypatch.setattr(hooks, "say_left_out_of_session", lambda spark: found.update(looked_at=spark))
    return found


def build() -> Any:
    raise AssertionError("nothing is started here")


def writer_in(session: Session) -> DataStreamWriter:
    made = DataStreamWriter.__new__(DataStreamWriter)
    made._df = SimpleNamespace(sparkSession=session)  # type: ignore[assignment]
    return made


def test_the_defaults(started: dict[str, Any]) -> None:
    barograph.start(build)
    assert (started["options"], started["limits"]) == (QueryOptions(), RestartLimits())


def test_arguments_win_over_keys_and_keys_over_the_file(started: dict[str, Any], session: Session) -> None:
    text = "[query]\nlevel = 3\ndesired-nodes = 4\nminimum-nodes = 1\n[restart]\nin-a-row = 5\n"
    Path("barograph.toml").write_text(text, encoding="utf-8")
    session.application = {"spark.barograph.query.desiredNodes": "2", "spark.barograph.query.level": "2"}
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

    def said() -> list[str]:
        return [line for line in capsys.readouterr().err.splitlines() if line.startswith("barograph: ")]  # not the log

    assert said() == [f"barograph: adaptive advises; {look}"]
    assert caplog.messages == [f"adaptive advises; {look}"]
    said_elsewhere("liu", "act")  # as barograph submit does
    barograph.start(build, policy="liu", mode="act")
    assert said() == []
    barograph.start(build, policy="adaptive")
    assert said() == [f"barograph: adaptive acts; {look}"]


def test_an_option_that_the_policy_does_not_use_is_warned_of(
    started: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch_attaching(monkeypatch)
    options = {"query.isolate-nodes": 1, "query.workers": 2, "query.cpu": "split=40"}
    target = {"query.target-p99": 100}
    with caplog.at_level("WARNING", "barograph"):
        barograph.start(build, policy="isolation", options=options)
        barograph.start(build, options=options)
        barograph.start(build, policy="true-rate", options=target)
        barograph.start(build, options=target)
        barograph.start(build, policy="adaptive", options=target)
    assert [record.getMessage() for record in caplog.records] == [
        "query.cpu has no effect under the policy isolation; it is for adaptive, autoscale, true-rate, r-storm, fixed, "
        "fixed-mean, fixed-peak, fixed-equal",
        "query.target-p99 has no effect under the policy true-rate; it is for adaptive",
        "query.target-p99 has no effect without a policy; it is for adaptive",
    ]
    assert "options" in started


@pytest.mark.usefixtures("started")
def test_the_policy_may_come_from_the_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = watch_attaching(monkeypatch)
    session.application = {
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
    writer = writer_in(Session())
    barograph.start(writer)
    assert started["build"]() is writer


def test_options_of_operators_quotas_and_triggers(
    started: dict[str, Any], session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[tuple[Any, ...]] = []
    monkeypatch.setattr(service, "priorities_of", lambda _: SimpleNamespace(watch=lambda *given: watched.append(given)))
    session.application = {"spark.barograph.query.excluded": "count", "spark.barograph.query.quotaExecutors": "2"}
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


def test_a_query_may_be_started_in_any_thread(started: dict[str, Any], session: Session) -> None:
    """In one that the program started, no session is active."""
    barograph.start(build)
    assert started["supervised"] is started["looked_at"] is session
    other = Session()
    barograph.start(writer_in(other))
    assert started["supervised"] is started["looked_at"] is other
    barograph.start(build, session=cast(SparkSession, other))
    assert started["supervised"] is other


@pytest.mark.usefixtures("session")
def test_without_a_session_nothing_is_started(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_instantiatedSession", "_active_spark_context"):  # the first session may be one that has ended
        monkeypatch.setattr(SparkContext if "context" in name else SparkSession, name, None)
        with pytest.raises(BadInput, match="there is no Spark session yet: make one before"):
            barograph.start(build)
        monkeypatch.setattr(SparkSession, "_instantiatedSession", Session())
    assert "options" not in started


def test_each_query_has_what_its_session_says_when_it_is_started(started: dict[str, Any], session: Session) -> None:
    session.application = {"spark.barograph.query.targetP99": "500", "spark.barograph.query.level": "3"}
    for target_ms in (50, 70):
        session.since["spark.barograph.query.targetP99"] = str(target_ms)
        session.since["spark.barograph.recovery"] = f"{target_ms}s"
        barograph.start(build)
        assert started["options"] == QueryOptions(target_p99_ms=target_ms, level=3)
        assert started["recovery"] == Recovery(recovery_s=target_ms)
    other = Session()
    barograph.start(writer_in(other))
    assert started["options"] == QueryOptions()
    session.since = {"spark.barograph.latency.column": "at", "spark.barograph.leasePatienceMs": "20000"}
    barograph.start(build)
    assert started["options"] == QueryOptions(target_p99_ms=500, level=3)


ELSEWHERE = "set it in the builder of the first session, by --conf, or as"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("query.levl", "1", "there is no key 'spark.barograph.query.levl': write spark.barograph.query.level"),
        ("query.targetP99", "fast", "spark.barograph.query.targetP99 must be a number of ms above 0, not 'fast'"),
        (
            "latency.kolumn",
            "at",
            "there is no key 'spark.barograph.latency.kolumn': write spark.barograph.latency.column",
        ),
        (
            "cycle", "5s", "spark.barograph.cycle is '5s' in this session and '3s' in its application: a controller "
            f"steers all queries of an application; {ELSEWHERE} cycle of barograph.start",
        ),
        (
            "enforce", "cgroup", "spark.barograph.enforce is 'cgroup' in this session and not set in its application: "
            f"it is read when the application is made; {ELSEWHERE} enforce in barograph.toml",
        ),
    ],
)  # fmt: skip
def test_a_key_that_nothing_would_read_is_refused(
    started: dict[str, Any], session: Session, key: str, value: str, said: str
) -> None:
    session.application = {"spark.barograph.cycle": "3s"}
    session.since = {f"spark.barograph.{key}": value}
    with pytest.raises(BadInput, match=re.escape(said)):
        barograph.start(build)
    assert "options" not in started


STEERED: dict[str, object] = {"policy": "liu", "priority.rate": 10, "priority.above": 5}
OTHER_VALUES: dict[str, object] = {
    "policy": "adaptive", "options": ["theta_pct=10"], "history": "seen", "nodes.spare": 2, "quiet.look-cycles": 40,
    "epochs.most": "400s", "priority.level": 3, "priority.above-off-part": 0.1,
}  # fmt: skip


def other_value(option: Option) -> object:
    """Than the default."""
    if option.name in OTHER_VALUES or option.kind is Kind.SWITCH:
        return OTHER_VALUES.get(option.name, not option.default)
    if option.choices:
        return next(c for c in option.choices if c not in (option.default, "restart-app"))
    if option.example and option.kind is not Kind.TEXTS:
        return tomllib.loads(f"x = {in_toml(option, read(option, option.example, text=True))}")["x"]
    return "4s" if option.kind is Kind.DURATION else 1


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda o: o.name)
def test_each_option_of_a_start_is_used_or_refused(
    option: Option, started: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Used: the query, its triggers, the bounds of its epochs or its controller are other ones with it."""
    found: dict[str, Any] = {}

    def attach(socket: Path, config: Config, more: Any) -> SimpleNamespace:
        found["controller"] = controller_config(config, socket, Path("folder"), more)
        return SimpleNamespace(close=None)

    watch = SimpleNamespace(watch=lambda _, triggers: found.update(triggers=triggers))
    monkeypatch.setattr(service, "priorities_of", lambda _: watch)
    monkeypatch.setattr(steered_start, "attach_once", attach)

    def outcome(**more: object) -> tuple[object, ...]:
        barograph.start(build, options={**STEERED, **more})
        return *(started[part] for part in ("options", "limits", "recovery")), found["triggers"], found["controller"]

    if {Scope.QUERY, Scope.CONTROLLER} & {*option.scopes}:
        assert outcome(**{option.name: other_value(option)}) != outcome()
        return
    with pytest.raises(BadInput) as refused:
        outcome(**{option.name: other_value(option)})
    said = f"options['{option.name}'] is "
    if option.scope is Scope.SESSION:
        assert str(refused.value).startswith(f"{said}read ") and option.key_name in str(refused.value)
    else:
        assert str(refused.value).startswith(f"{said}an option of ") and "options" not in started


def test_an_option_of_the_controller_needs_a_policy(started: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"options\['cycle'\], options\['guards.stale'\]: needs a policy, for example"):
        barograph.start(build, options={"cycle": "5s", "recovery": "20s", "guards.stale": "5s"})
    assert "options" not in started
    barograph.start(build, options={"recovery": "20s", "epochs.most": "40s"})
    assert started["recovery"] == Recovery(recovery_s=20.0, most_s=40.0)
