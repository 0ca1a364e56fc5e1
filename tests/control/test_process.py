"""The controller process beside a simulated cluster: killed or stopped, it is restarted, and topologies go on."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.control.test_loop import SCENARIO
from tests.small_disk import fill, small_disk

from barograph.control.heartbeat import ControllerKeeper, HeartbeatFile, last_heartbeat
from barograph.control.node_pool import NodeOrders
from barograph.control.process import ChangeWatch, ControllerConfig, RemoteEpochLengths, RemoteNodePool, keep
from barograph.engines.sim import Simulator, parse_scenario
from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.engines.spark.cluster.processes import identify
from barograph.engines.spark.driver.change_signal import ChangeSignal
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.driver.endpoint import Endpoint, Verb
from barograph.history import entries, gaps
from barograph.history.files import parts
from barograph.model import BadInput, Outcome, Plan, ReasonCode, Refusal, RefusalCode
from barograph.model.codec import from_json, to_json

pytestmark = pytest.mark.limit(300)  # controllers are started several times, which takes long on a busy machine


def wait_until(condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)


class Cluster:
    """A simulated cluster served like a driver's; its time passes whether or not it is observed."""

    def __init__(self, folder: Path, more: Mapping[str, Verb] = MappingProxyType({})) -> None:
        self.sim = Simulator(parse_scenario(SCENARIO, "loop"), seed=1)
        self.sim.start()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.plans: list[Plan] = []
        self.path = folder / f"driver-{os.getpid()}.sock"
        self.paces: list[object] = []
        self.news, self.level = ChangeSignal(), 2
        self.controllers = AttachedControllers()
        self.meanwhile: Callable[[], None] = lambda: None
        verbs = {
            "observe": self.observe, "apply": self.apply, "pace": self.paces.append,
            "news": self.news.verb, "glance": self.observe, "controllers": self.controllers.verb,
        }  # fmt: skip
        self._endpoint = Endpoint(self.path, {**verbs, **more})
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def observe(self, _: object) -> object:
        with self._lock:
            self.sim.advance(0.5)  # some time has always passed since the last call
            now = self.sim.observe()
            return to_json(replace(now, topologies=tuple(replace(t, level=self.level) for t in now.topologies)))

    def apply(self, body: object) -> object:
        with self._lock:
            self.plans.append(from_json(Plan, body))
            outcome = to_json(self.sim.apply(self.plans[-1]))
        self.meanwhile()
        return outcome

    def _live(self) -> None:
        while not self._stop.wait(0.05):
            with self._lock:
                self.sim.advance(0.25)

    def close(self) -> None:
        """Also more than once."""
        self._stop.set()
        self._thread.join()
        self._endpoint.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    found = Cluster(folder)
    yield found
    found.close()


def config(cluster: Cluster, folder: Path, **more: object) -> ControllerConfig:
    fields = {"cycle_s": 0.3, "policy": "adaptive", "release_after_s": None, **more}
    return ControllerConfig(str(cluster.path), str(folder / "history"), str(folder / "beat"), **fields)  # type: ignore[arg-type]


def recorded(folder: Path) -> int:
    return max((p.last for p in parts(folder / "history")), default=0)


def test_killed_and_stopped_it_is_restarted_and_the_topologies_keep_running(cluster: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    longest_s = [60.0]  # for a busy machine; a controller that is known to be stopped need not be waited for
    with keep(config(cluster, tmp_path), log, patience=lambda s: min(s, longest_s[0])) as keeper:
        wait_until(lambda: recorded(tmp_path) >= 3)
        starts = keeper.starts
        keeper.process.send_signal(signal.SIGKILL)
        wait_until(lambda: keeper.starts > starts)
        before, at_s = recorded(tmp_path), cluster.sim.now_s
        wait_until(lambda: cluster.sim.now_s > at_s + 1.0)  # rows flow although no controller runs
        wait_until(lambda: recorded(tmp_path) >= before + 3)
        starts, stopped = keeper.starts, keeper.process
        stopped.send_signal(signal.SIGSTOP)
        longest_s[0] = 1.0
        wait_until(lambda: keeper.starts > starts)
        longest_s[0] = 60.0
        assert stopped.poll() is not None
        before = recorded(tmp_path)
        wait_until(lambda: recorded(tmp_path) >= before + 3)
    assert keeper.process.poll() is not None
    assert "the controller ended with code -9" in keeper.said
    assert any(said.startswith("the controller hung (") for said in keeper.said)
    found = list(entries(tmp_path / "history"))
    assert 2 <= sum(e.gap is not None for e in found) < keeper.starts
    assert gaps(tmp_path / "history", most_cycles=1e9) == []
    assert cluster.paces and set(cluster.paces[0]) == {"t"}  # type: ignore[call-overload]  # a JSON object
    assert cluster.plans and all(p.version is not None for p in cluster.plans)
    assert cluster.sim.grain.unaccounted(cluster.sim.now_s) == 0
    lines = log.read_text().splitlines()
    others = [line for line in lines if " INFO barograph.control.decision_log: t: " not in line]
    assert lines and not others, "decisions, and nothing else"


def test_a_full_disk_does_not_stop_it(cluster: Cluster, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, keep(config(cluster, disk), tmp_path / "log") as keeper:
        wait_until(lambda: recorded(disk) >= 3)
        filler = fill(disk)
        before, plans = recorded(disk), len(cluster.plans)
        wait_until(lambda: len(cluster.plans) >= plans + 5)  # it goes on deciding
        beat = last_heartbeat(keeper.heartbeat, keeper.process.pid)
        assert beat is not None
        wait_until(lambda: (last_heartbeat(keeper.heartbeat, keeper.process.pid) or beat).at_s > beat.at_s)
        assert recorded(disk) <= before + 1, "one may have been half-way"
        filler.unlink()
        wait_until(lambda: recorded(disk) >= before + 6)
        found = list(entries(disk / "history"))
        assert [e.number for e in found] == list(range(1, len(found) + 1))
        assert all(e.cycle is not None and e.cycle.outcome is not None for e in found)
        assert (keeper.starts, keeper.said) == (1, [])
    assert "cannot be written: No space left on device" in (tmp_path / "log").read_text()


def test_a_heartbeat_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        heartbeat = HeartbeatFile(disk / "beat")
        heartbeat("a task with a long name", 5.0)
        fill(disk)
        heartbeat("work", 4.0)
        found = last_heartbeat(disk / "beat", os.getpid())
        assert found is not None and (found.doing, found.patience_s) == ("work", 4.0)
        assert [p.name for p in disk.iterdir() if p.name.startswith(".beat")] == []


def test_it_advises_without_touching_anything(cluster: Cluster, tmp_path: Path) -> None:
    with keep(config(cluster, tmp_path, mode="advise")):
        wait_until(lambda: recorded(tmp_path) >= 2)
    assert cluster.plans == [] and cluster.paces == []
    assert cluster.sim.version == 0


def test_new_levels_do_not_wait_for_the_next_cycle(cluster: Cluster, tmp_path: Path) -> None:
    with keep(config(cluster, tmp_path, cycle_s=600.0)):
        wait_until(lambda: recorded(tmp_path) >= 1)
        assert len(cluster.plans) == 1
        cluster.level = 1
        cluster.news.raise_signal()
        wait_until(lambda: len(cluster.plans) == 2)
        wait_until(lambda: recorded(tmp_path) >= 2)
    assert any(r.code is ReasonCode.NEW_LEVELS for r in cluster.plans[1].reasons)


def test_levels_that_change_during_the_first_cycle_are_noticed_too(cluster: Cluster, tmp_path: Path) -> None:
    def change() -> None:
        cluster.level = 1
        cluster.news.raise_signal()

    cluster.meanwhile = change
    with keep(config(cluster, tmp_path, cycle_s=600.0)):
        wait_until(lambda: len(cluster.plans) == 2)
    assert any(r.code is ReasonCode.NEW_LEVELS for r in cluster.plans[1].reasons)


def test_it_ends_with_the_process_that_started_it(cluster: Cluster, tmp_path: Path) -> None:
    program = (
        "import json, sys, time; from barograph.control.process import ControllerConfig, keep\n"
        "k = keep(ControllerConfig(**json.loads(sys.argv[1]))); print(k.process.pid, flush=True); time.sleep(600)\n"
    )
    names = ("socket", "history", "heartbeat", "cycle_s", "release_after_s")
    told = {f: getattr(config(cluster, tmp_path), f) for f in names}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", program, json.dumps(told)], stdout=subprocess.PIPE, env=env)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    wait_until(lambda: recorded(tmp_path) >= 1)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: identify(child) is None)


def test_a_question_for_changes_ends_when_it_is_interrupted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()
    news = ChangeSignal()

    def verb(body: object) -> int:
        asked.set()
        return news.verb(body)

    endpoint = Endpoint(tmp_path / "driver.sock", {"news": verb})
    stop = threading.Event()
    changes = ChangeWatch(RemoteEngine(endpoint.path), stop)
    assert not changes.came_within(0.0)
    asked.clear()
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(changes.came_within(10.0)))
    asking.start()
    assert asked.wait(10.0)
    began_s = time.monotonic()
    stop.set()
    changes.interrupt()
    asking.join()
    assert time.monotonic() - began_s < 5.0
    assert found == [False]
    assert not caplog.records, "it was told to end"
    changes.close()
    news.raise_signal()
    endpoint.close()


def test_a_driver_that_sets_no_epochs_is_asked_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o700)
    asked: list[object] = []
    endpoint = Endpoint(tmp_path / "s", {"observe": asked.append})
    engine = RemoteEngine(tmp_path / "s")
    pace = RemoteEpochLengths(engine)
    pace({"t": 30.0})
    pace({"t": 20.0})
    assert caplog.messages == ["epochs keep their length: there is no verb 'pace'; there are observe"]
    engine.close()
    endpoint.close()


def test_a_driver_that_keeps_its_nodes_is_asked_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o700)
    asked: list[object] = []

    done = Outcome(("released n-1",))
    kept = Outcome(
        left_out=(Refusal("release of n-1", RefusalCode.NODES_KEPT, "the driver does not know the order", node="n-1"),)
    )

    def release(body: object) -> Any:
        asked.append(body)
        return to_json(done)

    verbs: dict[str, Verb] = {"nodes": release}
    engine = RemoteEngine(tmp_path / "s")
    told = RemoteNodePool(engine)
    for answer in (done, kept, kept):
        endpoint = Endpoint(tmp_path / "s", verbs)
        assert told(NodeOrders(release=("n-1",))) == answer
        engine.close()
        endpoint.close()
        verbs = {}
    assert asked == [{"release": ["n-1"], "fetch": []}]
    assert caplog.messages == ["nodes are kept as they are: there is no verb 'nodes'; there are "]


def test_a_controller_that_dies_at_once_is_not_restarted_all_the_time(tmp_path: Path) -> None:
    with ControllerKeeper([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "beat") as keeper:
        wait_until(lambda: len(keeper.said) >= 2)
    assert keeper.said[:2] == ["the controller ended with code 3"] * 2
    assert keeper.starts <= 5


def test_a_heartbeat_of_another_process_does_not_count(tmp_path: Path) -> None:
    HeartbeatFile(tmp_path / "beat")("working", 5.0)
    found = last_heartbeat(tmp_path / "beat", os.getpid())
    assert found is not None and found.doing == "working" and found.patience_s == 5.0
    assert last_heartbeat(tmp_path / "beat", os.getpid() + 1) is None
    (tmp_path / "beat").write_text("half")
    assert last_heartbeat(tmp_path / "beat", os.getpid()) is None


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "no such policy": ({"policy": "luck"}, "there is no policy 'luck'"),
    "no such mode": ({"mode": "dream"}, "the mode must be one of act, advise, not 'dream'"),
    "no such guard": ({"guards": {"luck": 1}}, "guards: .*luck"),
    "bad guard": ({"guards": {"cooldown_s": -1}}, "guards: cooldown_s must be a number"),
    "no such rule of quiet moments": ({"quiet": {"luck": 1}}, "quiet: .*luck"),
    "bounds of epochs that clash": ({"epochs": {"least_s": 9.0, "most_s": 4.0}}, "the shortest epoch 9 s is above"),
    "a bad rule of nodes": ({"nodes": {"fetch_s": 0}}, "nodes: fetch_s must be"),
    "no grace time": ({"release_after_s": -1}, "nodes: release_after_s must be"),
    "no such option": ({"options": {"luck": 1}}, "has no option 'luck'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_configuration_starts_nothing(case: str, tmp_path: Path) -> None:
    fields, sentence = WRONG[case]
    with pytest.raises(BadInput, match=sentence):
        whole = {"release_after_s": None, **fields}
        keep(ControllerConfig("s", str(tmp_path / "h"), str(tmp_path / "b"), **whole))  # type: ignore[arg-type]  # that is it
    assert list(tmp_path.iterdir()) == []
