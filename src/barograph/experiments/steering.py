"""A run that is steered: the controller process beside it, and what the history says it decided. It decides nothing."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barograph.beat import Keeper
from barograph.engines.spark.endpoint import Endpoint
from barograph.epochs import RECOVERY_S
from barograph.experiments.asked import asked
from barograph.experiments.held import Held
from barograph.experiments.meter import metered
from barograph.experiments.steered import Steered
from barograph.history.entry import from_row
from barograph.history.read import require_history, rows
from barograph.loop import Mode
from barograph.loop_process import Orders, keep
from barograph.model import BadInput, MigrationMode
from barograph.model.checks import require_positive
from barograph.policies import Policy, named, options_of

_BEFORE_MS = 60_000  # a history that is kept may hold earlier runs, which ended long before this load began


@dataclass(frozen=True)
class Steering:
    """By which policy a run is steered, and how. history: a folder that is kept; None: it goes with the run.

    shares_pct: of a policy of fixed shares, by ``topology/operator``.
    release_after_s: how long a node must be idle to be released; None: all are kept.
    recovery_s: the target that the length of epochs follows; None: they stay as they are.
    """

    policy: str
    cycle_s: float = 2.0
    mode: str = "act"
    enforce: bool = True
    options: Mapping[str, object] = field(default_factory=dict)
    history: Path | None = None
    shares_pct: Mapping[str, float] = field(default_factory=dict)
    release_after_s: float | None = None
    spare_nodes: int = 1
    recovery_s: float | None = RECOVERY_S

    def __post_init__(self) -> None:
        require_positive("cycle", self.cycle_s)
        self.orders(Path(), Path()).settings()  # an unknown policy or option is told before anything is started

    def orders(self, socket: Path, folder: Path) -> Orders:
        return Orders(
            str(socket), str(self.history or folder / "history"), str(folder / "beat"), self.policy, self.cycle_s,
            self.mode, self.enforce, dict(self.options), shares_pct=dict(self.shares_pct),
            release_after_s=self.release_after_s, spare_nodes=self.spare_nodes, recovery_s=self.recovery_s,
        )  # fmt: skip

    @property
    def acts(self) -> bool:
        """Whether its plans are carried out; else they are only recorded."""
        return self.mode == Mode.ACT

    def decider(self) -> Policy:
        """The policy as its controller runs it."""
        return self.orders(Path(), Path()).settings().policy

    @property
    def migration(self) -> str:
        """How its plans take effect."""
        return str(options_of(self.decider()).get("mode", MigrationMode.CUT))

    @property
    def instead(self) -> str:
        """One sentence where plans take effect in another way than the policy's own although no option says so."""
        own = options_of(named(self.policy)).get("mode")
        if "mode" in self.options or own in (None, self.migration):
            return ""
        return (
            f"{self.policy} moves by {own} in its paper; a policy cannot end the application it steers, so here it "
            f"moves by {self.migration}"
        )

    def start(self, socket: Path, folder: Path) -> Keeper:
        return keep(self.orders(socket, folder), folder / "controller.log")


@dataclass
class Outlook:
    """What became of the steering; None until it has ended, and where there was none."""

    found: Steered | None = None


@contextmanager
def steered(
    steering: Steering | None,
    endpoint: Endpoint | None,
    start_ms: int,
    seconds: float,
    begun: Held | None,
    say: Callable[[str], None],
) -> Iterator[Outlook]:
    """While this lasts a controller process acts, where the run is steered by a policy.

    start_ms: the load's start. begun: what is in force before the controller's first plan; None: unknown.
    """
    outlook = Outlook()
    if steering is None or endpoint is None:
        yield outlook
        return
    with tempfile.TemporaryDirectory(prefix="barograph-steering-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        say(f"steered by {steering.policy}, which moves by {steering.migration}")
        if steering.instead:
            say(steering.instead)
        keeper = steering.start(endpoint.path, folder)
        try:
            yield outlook
        finally:
            keeper.close()
            history = Path(steering.orders(endpoint.path, folder).history)
            outlook.found = read_steered(steering, history, start_ms, seconds, begun, keeper)


def read_steered(
    steering: Steering, folder: Path, start_ms: int, seconds: float, begun: Held | None, keeper: Keeper
) -> Steered:
    """From the history, once the controller has ended. Times are since the load's start, which lasts ``seconds``."""
    try:
        require_history(folder)
        found = [r for r in rows(folder) if r["kind"] == "cycle" and r["wall_ms"] >= start_ms - _BEFORE_MS]
    except BadInput:
        found = []  # it never got to its first cycle; what it said tells why
    cycles = [((r["wall_ms"] - start_ms) / 1000, entry.cycle) for r in found if (entry := from_row(r)).cycle]
    # Not what plans name: a change that waits for a boundary is named again in each cycle until then.
    done = [text for r in found for text in r["done"] or ()]
    return Steered(
        steering.policy,
        metered(cycles, seconds, begun),
        sum(text.startswith("moved ") for text in done),
        sum(text.startswith("scaled ") for text in done),
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
