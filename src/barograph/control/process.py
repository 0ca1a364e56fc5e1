"""The controller's own process: ``python -m barograph.control.process PARENT CONFIG``, a process id and JSON.

It talks to the driver over the driver's socket. If it ends, the topologies go on as they are; its keeper restarts it,
and it continues from its history. It ends by itself when the process that started it ends.
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from barograph.config import default
from barograph.control.guards import Guards
from barograph.control.heartbeat import ControllerKeeper, HeartbeatFile
from barograph.control.loop import WAKE_S, Loop, Mode, Settings
from barograph.control.node_pool import NodeOrders, Upkeep
from barograph.control.quiet_moments import Quiet
from barograph.engines.epoch_length import Recovery
from barograph.engines.spark.cluster.processes import python_environment
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.history.places import place_of
from barograph.history.write import Recorder
from barograph.logs import OnceOnly, set_up
from barograph.model import BadInput, MigrationMode, Outcome, RefusalCode
from barograph.model.checks import require
from barograph.policy.definition import Policy, options_of, with_options, with_shares
from barograph.policy.registry import DEFAULT, named

log = logging.getLogger("barograph.control.process")  # not __name__, which is __main__ in its own process

WATCH_S = 2.0  # one question for changes; so long after its parent it may still be there
AGAIN_S = 0.5  # before the driver is asked again, when it did not answer

TRIES = 3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The configuration of a controller process. history: a folder. heartbeat: a file. options: of the policy.

    guards, quiet, epochs, nodes: options of ``Guards``, ``Quiet``, ``Recovery`` and ``Upkeep``, as far as they are not
    the defaults. shares_pct: of a policy of fixed shares, by ``topology/operator``.
    gone_s: it ends when the driver does not answer for so long; None for never. recovery_s: the target recovery time,
    which sets the length of epochs; None leaves their length to the triggers of the queries.
    release_after_s, spare_nodes: when idle nodes are released (None: never), and how many are kept.
    """

    socket: str
    history: str
    heartbeat: str
    policy: str = DEFAULT
    cycle_s: float = default("cycle")
    mode: str = default("mode")
    enforce: str = default("enforce")
    options: Mapping[str, object] = field(default_factory=dict)
    guards: Mapping[str, object] = field(default_factory=dict)
    history_mb: float = default("history-size")
    gone_s: float | None = default("driver-gone")
    shares_pct: Mapping[str, float] = field(default_factory=dict)
    spare_nodes: int = default("nodes.spare")
    recovery_s: float | None = default("recovery")
    quiet: Mapping[str, object] = field(default_factory=dict)
    epochs: Mapping[str, object] = field(default_factory=dict)
    nodes: Mapping[str, object] = field(default_factory=dict)
    release_after_s: float | None = field(kw_only=True)

    def settings(self) -> Settings:
        """The settings of its loop. Raises BadInput, so it is called before a process is started."""
        if self.mode not in set(Mode):
            raise BadInput(f"the mode must be one of {', '.join(Mode)}, not {self.mode!r}")
        guards = _made(Guards, "guards", self.guards)
        quiet = _made(Quiet, "quiet", self.quiet)
        target = {} if self.recovery_s is None else {"recovery_s": self.recovery_s}
        recovery = _made(Recovery, "epochs", {**target, **self.epochs})
        pool = {"release_after_s": self.release_after_s, "spare": self.spare_nodes, **self.nodes}
        upkeep = _made(Upkeep, "nodes", pool)
        ends_itself = self.options.get("mode") == MigrationMode.RESTART_APP
        require(not ends_itself, "a policy cannot end the application it steers: choose another mode than restart-app")
        policy = with_shares(
            carried_out(with_options(self._packing(named(self.policy)), self.options)), self.shares_pct
        )
        return Settings(
            policy, self.cycle_s, Mode(self.mode), self.enforce != "off", guards, quiet, recovery, upkeep=upkeep
        )

    def _packing(self, policy: Policy) -> Policy:
        """Emptying a node pauses a topology and saves nothing where empty nodes are never released."""
        keeps_all = self.release_after_s is None and "pack" in options_of(policy)
        return with_options(policy, {"pack": False}) if keeps_all else policy


def _made(kind: type[T], what: str, options: Mapping[str, object]) -> T:
    """A value from its options by name; it checks them itself."""
    try:
        return kind(**options)
    except TypeError as error:
        raise BadInput(f"{what}: {error}") from None


def carried_out(policy: Policy) -> Policy:
    """The policy in a mode that a controller can carry out from inside the application.

    Each policy moves instances as its paper does. Only restart-app is impossible from inside, because it would end the
    controller too; restart-query is the nearest: it restarts the whole query, but not the application.
    """
    if options_of(policy).get("mode") != MigrationMode.RESTART_APP:
        return policy
    return with_options(policy, {"mode": MigrationMode.RESTART_QUERY.value})


def keep(
    config: ControllerConfig, log: Path | int | None = None, patience: Callable[[float], float] = lambda s: s
) -> ControllerKeeper:
    """Start a controller and restart it whenever it fails; it ends with this process."""
    config.settings()
    command = [sys.executable, "-m", "barograph.control.process", str(os.getpid()), json.dumps(asdict(config))]
    return ControllerKeeper(command, Path(config.heartbeat), log, patience, python_environment())


def main(parent: int, config: ControllerConfig) -> int:
    stop = threading.Event()
    changes = ChangeWatch(RemoteEngine(Path(config.socket)), stop)

    def end(*_: object) -> None:
        stop.set()
        changes.interrupt()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the process that keeps it too, and that one decides
    heartbeat = HeartbeatFile(Path(config.heartbeat))
    heartbeat("starting", 60.0)
    settings = config.settings()
    folder = place_of(config.history)
    recorder = Recorder(folder, settings.policy.name, settings.mode.value, most_mb=config.history_mb)
    engine = RemoteEngine(Path(config.socket))
    lengths = None if config.recovery_s is None else RemoteEpochLengths(engine)
    loop = Loop(engine, settings, recorder, lengths, heartbeat, RemoteNodePool(engine))
    loop.recall(folder)
    changes.came_within(0.0)  # takes the present count, so that a change during the first cycle is noticed

    def wait(seconds: float) -> bool:
        """Wait, and decide at once on changes that come meanwhile. True when told to end or the parent is gone."""
        deadline_s = time.monotonic() + seconds
        while not stop.is_set() and os.getppid() == parent:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            if changes.came_within(min(left_s, WATCH_S)):
                between(loop, engine)
                heartbeat("waiting", max(0.0, deadline_s - time.monotonic()) + WAKE_S)
        return True

    loop.run(time.monotonic, wait, config.gone_s)
    changes.close()
    engine.close()
    recorder.close()
    return 0


def between(loop: Loop, engine: RemoteEngine) -> None:
    """Priorities may have changed: decide between two cycles. Errors are left to the next cycle."""
    try:
        for _ in range(TRIES):  # the cluster may change meanwhile
            cycle = loop.turn_between(engine.glance())
            if cycle is None or cycle.outcome is None or cycle.outcome.ok:
                return
    except (ConnectionError, TimeoutError, BadInput, RuntimeError) as error:
        log.warning("not decided between two cycles: %s; the next cycle decides", error)


class ChangeWatch:
    """Waits for the driver to report a change that should not wait for the next cycle, on a connection of its own.

    A driver without this verb is asked only once.
    """

    def __init__(self, engine: RemoteEngine, stop: threading.Event) -> None:
        self._engine, self._stop = engine, stop
        self._seen = -1
        self._none = False
        self._warnings = OnceOnly(log)

    def came_within(self, seconds: float) -> bool:
        if self._none:
            self._stop.wait(seconds)
            return False
        try:
            seen = int(self._engine.ask("news", {"seen": self._seen, "seconds": seconds}))
        except BadInput as error:
            log.warning("changes between two cycles wait for the next cycle: %s", error)
            self._none = True
            return False
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            if not self._stop.is_set():
                self._warnings.warn("news", f"the driver cannot be asked for changes: {error}; it is asked again")
            self._stop.wait(min(seconds, AGAIN_S))
            return False
        self._warnings.over("news")
        came, self._seen = self._seen not in (-1, seen), seen
        return came

    def interrupt(self) -> None:
        """End the present question at once. A signal handler may call it."""
        self._engine.interrupt()

    def close(self) -> None:
        self._engine.close()


class RemoteEpochLengths:
    """Tells the driver how long epochs should be; a driver without this verb is asked only once."""

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine: RemoteEngine | None = engine

    def __call__(self, epochs_s: Mapping[str, float]) -> None:
        if self._engine is None:
            return
        try:
            self._engine.ask("pace", dict(epochs_s))
        except BadInput as error:
            self._engine = None
            log.warning("epochs keep their length: %s", error)


class RemoteNodePool:
    """Tells the driver which nodes to release and to fetch; a driver without this verb is asked only once."""

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine: RemoteEngine | None = engine

    def __call__(self, orders: NodeOrders) -> Outcome:
        if self._engine is not None:
            try:
                return self._engine.keep_nodes(orders.release, orders.fetch)
            except BadInput as error:
                self._engine = None
                log.warning("nodes are kept as they are: %s", error)
        return orders.not_done(RefusalCode.NODES_KEPT, "the driver does not know the order")


if __name__ == "__main__":
    set_up("info")
    try:
        sys.exit(main(int(sys.argv[1]), ControllerConfig(**json.loads(sys.argv[2]))))
    except BadInput as error:
        log.error("%s", error)  # noqa: TRY400  # bad input is one sentence, without a traceback
        sys.exit(2)
