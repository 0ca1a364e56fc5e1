"""What reads each kind of hostile input, as the product does: it takes bytes and returns a value or raises BadInput."""

import json
import os
import random
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from barograph.config import resolve
from barograph.control.decide import decide
from barograph.engines.check import refusals
from barograph.engines.sim import Simulator, parse_scenario
from barograph.engines.sim.scenario.bounds import require_rows
from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.engines.spark.bridge.baselines import observer_in
from barograph.engines.spark.driver import change_signal
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.driver.framing import Closed, address_of, receive
from barograph.engines.spark.driver.status import describe
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.orders.epoch_pace import EpochPace
from barograph.engines.spark.security.driver_uses import USES
from barograph.engines.spark.security.uses import uses
from barograph.history import Recorder, entries
from barograph.model import BadInput, Load, Plan, Snapshot
from barograph.model.checks import require
from barograph.model.codec import from_json, to_json
from barograph.policy.registry import named
from barograph.priority import PriorityManager
from barograph.recordings.fields import parse
from barograph.recordings.read import read as read_recording
from bench import _hostile_inputs as inputs

Make = Callable[[random.Random], bytes]
Take = Callable[[bytes], object]


def readers(folder: Path, stack: ExitStack) -> dict[str, tuple[Make, Take]]:
    """kind -> what makes an input from dice, and what reads it. folder: private, for files and a socket."""
    now = _snapshot()
    history = _History(folder / "history")
    return {
        "configuration": (partial(inputs.spoilt_text, inputs.CONFIGURATION), _Configuration(folder / "barograph.toml")),
        "load": (inputs.spoilt_words, load),
        "recorded cluster": (partial(inputs.spoilt_json, dict(inputs.CLUSTER)), _Cluster(folder / "clusters.json")),
        "scenario": (partial(inputs.spoilt_text, inputs.SCENARIO), scenario),
        "plan": (partial(inputs.spoilt_json, dict(inputs.PLAN)), partial(plan, now)),
        "endpoint message": (message, _Messages(folder, now, stack)),
        "history file": (history.make, history),
    }


def text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"not text: {error}") from None


class _Configuration:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, content: bytes) -> object:
        self._path.write_bytes(content)
        return resolve(self._path)


class _Cluster:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, content: bytes) -> object:
        self._path.write_bytes(content)
        return read_recording(self._path, "c")


def load(content: bytes) -> object:
    found = Load.parse(text(content), read=_no_file)
    return found.schedule(600.0).rows_by(600.0)


def _no_file(path: str) -> str:
    raise BadInput(f"the trace {path!r} is not read here")


def scenario(content: bytes) -> object:
    found = parse_scenario(text(content), "x.toml")
    require_rows(found, found.grain, "x.toml")
    return found


def plan(now: Snapshot, content: bytes) -> object:
    return refusals(from_json(Plan, parse(text(content), "the plan")), now)


def message(dice: random.Random) -> bytes:
    body = inputs.spoilt_json(dict(dice.choice(inputs.REQUESTS)), dice)
    length = len(body) if dice.random() < 0.9 else dice.choice((0, 1, len(body) + 1, 2**31, 2**32 - 1))
    return (struct.pack(">I", length) + body)[: dice.choice((None, None, None, None, 3, 4, 5))]


class _Messages:
    """A real endpoint. Every answer is an object with ok; a message that is cut off closes the connection."""

    def __init__(self, folder: Path, now: Snapshot, stack: ExitStack) -> None:
        hooks = SimpleNamespace(
            heeds_triggers=lambda: True, pause=_nothing, resume=_nothing, drained=_nothing, reschedule=_nothing,
            flows=_nothing,
        )  # fmt: skip
        priorities = PriorityManager(folder / "priorities.json", hooks)
        priorities.know({"t": 2})
        driver, pace = _driver(now), EpochPace(lambda _: None)
        driver.engine.pace = pace
        stack.enter_context(patch.object(change_signal, "LONGEST_S", 0.0))  # a wait that was asked for is no hang
        verbs: dict[str, Callable[[Any], Any]] = {
            "apply": lambda body: [r.reason for r in refusals(from_json(Plan, body), now)],
            "observe": lambda body: (observer_in(body), to_json(now)),
            "pace": pace.want,
            "glance": lambda body: (observer_in(body), to_json(now)),
            "status": lambda _: describe(driver),
            "freeze": partial(Supervisor._freeze, driver),
            USES: lambda _: to_json(uses(driver)),
            "priority": priorities.verb,
            "controllers": driver.controllers.verb,
            "news": change_signal.ChangeSignal().verb,
            "nodes": partial(Supervisor._nodes, driver),
        }
        self._endpoint = Endpoint(folder / "driver-1.sock", verbs)
        stack.callback(self._endpoint.close)

    def __call__(self, content: bytes) -> object:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            with address_of(self._endpoint.path) as address:
                connection.connect(address)
            try:
                connection.settimeout(5.0)
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                answer = receive(connection, 5.0, 5.0)
            except (Closed, OSError) as error:
                raise BadInput(f"the connection was closed: {error}") from None
        if answer["ok"]:
            return answer
        raise (BadInput if answer["kind"] == "bad input" else AssertionError)(answer["error"])


def _driver(now: Snapshot) -> Any:
    """What a supervisor has that its verbs and its status ask for. What it is told in requests, they must survive."""
    engine = SimpleNamespace(
        recently=lambda: now, nodes=now.nodes, held_back=dict, live_executors=(), output_rows=lambda *_: 0,
        shares=SimpleNamespace(shares_pct={}, limits_pct={}), gates=SimpleNamespace(paused=set(), resting=set()),
    )  # fmt: skip
    settings = SimpleNamespace(getAll=lambda: [("spark.driver.port", "1")])
    context = SimpleNamespace(
        _accumulatorServer=None, _gateway=None, getConf=lambda: settings, uiWebUrl=None, master="local"
    )
    jvm = SimpleNamespace(
        java=_at("lang.ProcessHandle.current", lambda: SimpleNamespace(pid=os.getpid)),
        org=_at("apache.spark.barograph.plugin.Bridge.blockPort", lambda: 2),
    )
    driver: Any = SimpleNamespace(
        engine=engine, app="hostile", master="local", run_name="", frozen=False, queries=(),
        bounds=SimpleNamespace(most_s={}), controllers=AttachedControllers(), left_limits=SimpleNamespace(lifted=()),
        keep_nodes=lambda release=(), fetch=(): [*release, *fetch],
        spark=SimpleNamespace(
            streams=SimpleNamespace(active=()), sparkContext=context, _jvm=jvm, _jsparkSession=None,
            conf=SimpleNamespace(get=lambda *_: "BarographPlugin"),
        ),
    )  # fmt: skip
    driver.freeze = partial(Supervisor.freeze, driver)
    return driver


def _at(path: str, found: object) -> Any:
    """An object at which the path leads to this one."""
    for name in reversed(path.split(".")):
        found = SimpleNamespace(**{name: found})
    return found


def _nothing(*_: object) -> bool:
    return False


class _History:
    """A file of a history, spoilt as bytes, or written well with a spoilt cycle in it."""

    def __init__(self, folder: Path) -> None:
        now = _snapshot()
        recorder = Recorder(folder, "adaptive", "act", clock=lambda: 1000.0)
        recorder.record(decide(named("adaptive"), [], now))
        recorder.close()
        (self._path,) = folder.glob("*.parquet")
        self._good = self._path.read_bytes()
        self._table = pq.ParquetFile(self._path).read()  # type: ignore[no-untyped-call]
        self._cycle = json.loads(self._table.column("cycle")[0].as_py())

    def make(self, dice: random.Random) -> bytes:
        if dice.random() < 0.6:
            return inputs.spoilt_bytes(self._good, dice)
        spoilt = inputs.spoilt_json(self._cycle, dice).decode(errors="replace")
        column = pa.array([spoilt], pa.string())
        table = self._table.set_column(self._table.schema.get_field_index("cycle"), "cycle", column)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)  # type: ignore[no-untyped-call]
        return bytes(sink.getvalue())

    def __call__(self, content: bytes) -> object:
        self._path.write_bytes(content)
        found = list(entries(self._path.parent))
        require(bool(found), "the entry is left out, and a warning says why")
        return found


def _snapshot() -> Snapshot:
    simulator = Simulator(parse_scenario(inputs.SCENARIO, "hostile"), seed=1)
    simulator.start()
    simulator.advance(5.0)
    return simulator.observe()
