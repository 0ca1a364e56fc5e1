"""The controller's own process: ``python -m barograph.loop_process PARENT ORDERS``, a process id and JSON.

It asks the driver at its socket, decides, and orders. Ending it in any way leaves the topologies as they are; who keeps
it starts it again, and it goes on from its history. It ends by itself with the process that started it.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from barograph.beat import Beat, Keeper
from barograph.engines.spark.client import RemoteEngine
from barograph.epochs import RECOVERY_S, Recovery
from barograph.guards import Guards
from barograph.history.write import MOST_MB, Recorder
from barograph.loop import WAKE_S, Loop, Mode, Settings
from barograph.model import BadInput, MigrationMode, Snapshot
from barograph.model.checks import require
from barograph.model.codec import from_json
from barograph.nodes import NodeOrders, Upkeep
from barograph.policies import DEFAULT, Policy, named, options_of, with_options, with_shares

NODES_S = 60.0  # a node that is released ends in order

TRIES = 3


@dataclass(frozen=True, slots=True)
class Orders:
    """What a controller process is told. history, beat: a folder and a file. options: of the policy; guards: of those.

    shares_pct: of a policy of fixed shares, by ``topology/operator``.
    gone_s: it ends when the driver is out of reach for so long; None for never. recovery_s: the target that the length
    of epochs follows; None leaves epochs as their triggers have them.
    release_after_s, spare_nodes: when idle nodes are released (None: never), and how many are kept.
    """

    socket: str
    history: str
    beat: str
    policy: str = DEFAULT
    cycle_s: float = 10.0
    mode: str = Mode.ACT.value
    enforce: bool = True
    options: Mapping[str, object] = field(default_factory=dict)
    guards: Mapping[str, object] = field(default_factory=dict)
    history_mb: float = MOST_MB
    gone_s: float | None = 120.0
    shares_pct: Mapping[str, float] = field(default_factory=dict)
    release_after_s: float | None = None
    spare_nodes: int = 1
    recovery_s: float | None = RECOVERY_S

    def settings(self) -> Settings:
        """Checked before a process is started for them."""
        if self.mode not in set(Mode):
            raise BadInput(f"the mode must be one of {', '.join(Mode)}, not {self.mode!r}")
        try:
            guards = Guards(**self.guards)  # type: ignore[arg-type]  # it checks them itself
        except TypeError as error:
            raise BadInput(f"guards: {error}") from None
        ends_itself = self.options.get("mode") == MigrationMode.RESTART_APP
        require(not ends_itself, "a policy cannot end the application it steers: choose another mode than restart-app")
        policy = with_shares(
            carried_out(with_options(self._packing(named(self.policy)), self.options)), self.shares_pct
        )
        recovery = Recovery() if self.recovery_s is None else Recovery(self.recovery_s)
        upkeep = Upkeep(self.release_after_s, self.spare_nodes)
        return Settings(policy, self.cycle_s, Mode(self.mode), self.enforce, guards, recovery=recovery, upkeep=upkeep)

    def _packing(self, policy: Policy) -> Policy:
        """Emptying a node pauses a topology and saves nothing where empty nodes are never released."""
        keeps_all = self.release_after_s is None and "pack" in options_of(policy)
        return with_options(policy, {"pack": False}) if keeps_all else policy


def carried_out(policy: Policy) -> Policy:
    """The policy with a way to move that a controller can order of the application which it steers.

    Each policy moves in its paper's own way. Only restart-app cannot be ordered from inside: the application would end
    the one who orders it. The nearest way stops and starts the whole query as well, in an application that lives on.
    """
    if options_of(policy).get("mode") != MigrationMode.RESTART_APP:
        return policy
    return with_options(policy, {"mode": MigrationMode.RESTART_QUERY.value})


def keep(orders: Orders, log: Path | None = None, patience: Callable[[float], float] = lambda s: s) -> Keeper:
    """Start a controller and keep it alive, from the process whose end it shares."""
    orders.settings()
    here = str(Path(__file__).parents[1])
    known = os.environ.get("PYTHONPATH")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *([known] if known else [])])}
    order = [sys.executable, "-m", "barograph.loop_process", str(os.getpid()), json.dumps(asdict(orders))]
    return Keeper(order, Path(orders.beat), log, patience, env)


def main(parent: int, orders: Orders) -> int:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    beat = Beat(Path(orders.beat))
    beat("starting", 60.0)
    settings = orders.settings()
    folder = Path(orders.history)
    recorder = Recorder(folder, settings.policy.name, settings.mode.value, most_mb=orders.history_mb)
    engine = RemoteEngine(Path(orders.socket))
    pace = None if orders.recovery_s is None else Pace(engine)
    loop = Loop(engine, settings, recorder, pace, beat, Nodes(engine))
    loop.recall(folder, round(time.time() * 1000))
    news = News(RemoteEngine(Path(orders.socket)), stop)
    news.came_within(0.0)  # where the count stands before the first look: what is told after that look is news

    def wait(seconds: float) -> bool:
        """Until it is time, or told to end, or the one who started us is gone. What comes in between is seen to."""
        deadline_s = time.monotonic() + seconds
        while not stop.is_set() and os.getppid() == parent:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            if news.came_within(min(left_s, 0.5)):
                between(loop, engine)
                beat("waiting", max(0.0, deadline_s - time.monotonic()) + WAKE_S)
        return True

    loop.run(time.monotonic, wait, _say, orders.gone_s)
    news.close()
    engine.close()
    recorder.close()
    return 0


def between(loop: Loop, engine: RemoteEngine) -> None:
    """Priorities may have changed: decide between two cycles. What goes wrong is left to the next cycle."""
    try:
        for _ in range(TRIES):  # the world may change while this decides
            cycle = loop.turn_between(from_json(Snapshot, engine.ask("glance")))
            if cycle is None or cycle.outcome is None or cycle.outcome.ok:
                return
    except (ConnectionError, TimeoutError, BadInput, RuntimeError) as error:
        _say(f"not decided between two cycles: {error}")


class News:
    """Waits for word from the driver that something should not wait for the next cycle, on a connection of its own.

    A driver that has no verb for it is asked once and left in peace.
    """

    def __init__(self, engine: RemoteEngine, stop: threading.Event) -> None:
        self._engine, self._stop = engine, stop
        self._seen = -1
        self._none = False

    def came_within(self, seconds: float) -> bool:
        if self._none:
            self._stop.wait(seconds)
            return False
        try:
            seen = int(self._engine.ask("news", {"seen": self._seen, "seconds": seconds}))
        except BadInput:
            self._none = True
            return False
        except (ConnectionError, TimeoutError, RuntimeError):
            self._stop.wait(seconds)
            return False
        came, self._seen = self._seen not in (-1, seen), seen
        return came

    def close(self) -> None:
        self._engine.close()


class Pace:
    """Tells the driver how long epochs should be; one that has no verb for it is asked once and left in peace."""

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine: RemoteEngine | None = engine

    def __call__(self, epochs_s: Mapping[str, float]) -> None:
        if self._engine is None:
            return
        try:
            self._engine.ask("pace", dict(epochs_s))
        except BadInput as error:
            self._engine = None
            _say(f"epochs keep their length: {error}")


class Nodes:
    """Tells the driver which nodes to release and to fetch; one that has no verb for it is asked once."""

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine: RemoteEngine | None = engine

    def __call__(self, orders: NodeOrders) -> list[str]:
        if self._engine is None:
            return []
        try:
            said = self._engine.ask("nodes", {"release": list(orders.release), "fetch": list(orders.fetch)}, NODES_S)
            return [str(sentence) for sentence in said]
        except BadInput as error:
            self._engine = None
            _say(f"nodes are kept as they are: {error}")
            return []


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1]), Orders(**json.loads(sys.argv[2]))))
    except BadInput as error:
        _say(str(error))
        sys.exit(2)
