"""Starts the controller process of a steered run and reads its decisions from the history. It decides nothing."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barograph.config import default
from barograph.control.attach import AttachedController, attach_controller
from barograph.control.heartbeat import ControllerKeeper
from barograph.control.loop import Mode
from barograph.control.process import ControllerConfig
from barograph.engines.spark.driver.endpoint import Endpoint
from barograph.engines.spark.log_folder import CONTROLLER
from barograph.experiments.figures.asked_shares import asked
from barograph.experiments.figures.cpu_in_force import CpuInForce
from barograph.experiments.figures.run_meter import metered
from barograph.experiments.figures.steered import Steered
from barograph.history.entry import from_row
from barograph.history.places import HistoryPath, place_of
from barograph.history.read import require_history, rows
from barograph.model import BadInput, MigrationMode
from barograph.model.checks import require_positive
from barograph.policy.definition import Policy, options_of
from barograph.policy.registry import named

log = logging.getLogger(__name__)

_BEFORE_MS = 60_000  # a kept history may hold earlier runs, which ended long before this load began


@dataclass(frozen=True)
class Steering:
    """How a policy steers a run. history: a folder that is kept; None: it is deleted after the run.

    shares_pct: of a policy of fixed shares, by ``topology/operator``.
    enforce: how executors hold instances to their limits; off: no limits are ordered.
    release_after_s: how long a node must be idle to be released; None: none is released.
    recovery_s: target recovery time, which sets the epoch length; None: the epoch length stays as it is.
    guards, quiet, epochs, nodes, history_mb, gone_s: as in ``ControllerConfig``.
    """

    policy: str
    cycle_s: float = default("cycle")
    mode: str = default("mode")
    enforce: str = default("enforce")
    options: Mapping[str, object] = field(default_factory=dict)
    history: HistoryPath | None = None
    shares_pct: Mapping[str, float] = field(default_factory=dict)
    spare_nodes: int = default("nodes.spare")
    recovery_s: float | None = default("recovery")
    guards: Mapping[str, object] = field(default_factory=dict)
    quiet: Mapping[str, object] = field(default_factory=dict)
    epochs: Mapping[str, object] = field(default_factory=dict)
    nodes: Mapping[str, object] = field(default_factory=dict)
    history_mb: float = default("history-size")
    gone_s: float | None = default("driver-gone")
    release_after_s: float | None = field(kw_only=True)

    def __post_init__(self) -> None:
        require_positive("cycle", self.cycle_s)
        self.config(Path(), Path()).settings()  # an unknown policy or option is refused before anything is started

    def config(self, socket: Path, folder: Path) -> ControllerConfig:
        return ControllerConfig(
            str(socket), str(self.history or folder / "history"), str(folder / "beat"), self.policy, self.cycle_s,
            self.mode, self.enforce, dict(self.options), dict(self.guards), self.history_mb, self.gone_s,
            dict(self.shares_pct), self.spare_nodes, self.recovery_s, dict(self.quiet), dict(self.epochs),
            dict(self.nodes), release_after_s=self.release_after_s,
        )  # fmt: skip

    @property
    def acts(self) -> bool:
        """Whether plans are carried out; if not, they are only recorded."""
        return self.mode == Mode.ACT

    def decider(self) -> Policy:
        """The policy with the options that its controller uses."""
        return self.config(Path(), Path()).settings().policy

    @property
    def migration(self) -> str:
        """The migration mode of its plans."""
        return str(options_of(self.decider()).get("mode", MigrationMode.CUT))

    @property
    def instead(self) -> str:
        """A sentence where the migration mode differs from the policy's own although no option says so; else empty."""
        own = options_of(named(self.policy)).get("mode")
        if "mode" in self.options or own in (None, self.migration):
            return ""
        return (
            f"{self.policy} moves by {own} in its paper; a policy cannot end the application it steers, so here it "
            f"moves by {self.migration}"
        )

    def start(self, socket: Path, folder: Path, logs: Path | None = None) -> AttachedController:
        """logs: a folder for the controller's log."""
        return attach_controller(self.config(socket, folder), (logs or folder) / CONTROLLER)


@dataclass
class SteeringResult:
    """found: figures and decisions of the controller; None until it has ended, and where there was none."""

    found: Steered | None = None


@contextmanager
def steered(
    steering: Steering | None,
    endpoint: Endpoint | None,
    start_ms: int,
    seconds: float,
    begun: CpuInForce | None,
    say: Callable[[str], None],
    logs: Path | None = None,
) -> Iterator[SteeringResult]:
    """While this lasts, a controller process runs, if a policy steers the run.

    start_ms: the load's start. begun: what is in force before the controller's first plan; None: unknown.
    logs: a folder for its log; None: the log is deleted after the run.
    """
    result = SteeringResult()
    if steering is None or endpoint is None:
        yield result
        return
    with tempfile.TemporaryDirectory(prefix="barograph-steering-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        say(f"steered by {steering.policy}, which moves by {steering.migration}")
        if steering.instead:
            say(steering.instead)
        controller = steering.start(endpoint.path, folder, logs)
        try:
            yield result
        finally:
            controller.close()
            history = place_of(steering.config(endpoint.path, folder).history)
            result.found = read_steered(steering, history, start_ms, seconds, begun, controller.keeper)


def read_steered(
    steering: Steering,
    folder: HistoryPath,
    start_ms: int,
    seconds: float,
    begun: CpuInForce | None,
    keeper: ControllerKeeper,
) -> Steered:
    """From the history, once the controller has ended. Times are since the load's start, which lasts ``seconds``."""
    try:
        require_history(folder)
        found = [r for r in rows(folder) if r["kind"] == "cycle" and r["wall_ms"] >= start_ms - _BEFORE_MS]
    except BadInput as error:
        log.warning("the controller recorded no cycle: %s; the report has no decisions, and its log says why", error)
        found = []
    cycles = [((r["wall_ms"] - start_ms) / 1000, entry.cycle) for r in found if (entry := from_row(r)).cycle]
    # Not the changes in plans: one that waits for a boundary is in the plan of each cycle until then.
    outcomes = [cycle.outcome for _, cycle in cycles if cycle.outcome is not None]
    return Steered(
        steering.policy,
        metered(cycles, seconds, begun),
        sum(outcome.moves for outcome in outcomes),
        sum(outcome.rescales for outcome in outcomes),
        tuple(_decision(r, start_ms) for r in found if r["changed"] or r["refused"] or r["done"]),
        keeper.starts,
        tuple(keeper.said),
        asked(cycles, seconds),
        steering.migration,
    )


def _decision(row: Mapping[str, Any], start_ms: int) -> dict[str, object]:
    refused = [f"{r['what']}: {r['reason']}" for r in row["refused"] or ()]
    return {
        "at_s": round((row["wall_ms"] - start_ms) / 1000, 1),
        "what": list(row["done"] or ()) or [f"{m['instance']} to {m['target']}" for m in row["moves"] or ()],
        "why": [f"{r['about']}: {r['why']}" for r in row["reasons"] or ()] + refused,
        "ok": not refused,
        "pause_s": row["order_to_commit_s"],
    }
