"""What is simulated: a cluster, topologies with their cost per row, loads, and events during the run.

Values only; ``read.py`` makes them from TOML.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barograph.config import default
from barograph.engines.sim.world.sync import Sync
from barograph.model import MigrationMode, Node, Topology
from barograph.model.checks import require, require_number, require_positive, require_whole
from barograph.model.loads.load import Load

MAX_SPREAD = 0.57  # of a uniform distribution that stays above 0


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator does to a row: CPU per row, its spread (standard deviation / mean), and, of a source, its load.

    imbalance V: source instance i of C takes R(1 - V(1 - 2i/(C-1))) of the load (Aniello et al.).
    live: the source makes its rows itself, so that none are made while it stands still; else they wait for it.
    """

    cost_s: float
    spread: float = 0.0
    load: Load | None = None
    imbalance: float = 0.0
    live: bool = False

    def __post_init__(self) -> None:
        require_positive("cost_ms", self.cost_s)
        require_number("spread", self.spread)
        require(self.spread <= MAX_SPREAD, f"spread must be at most {MAX_SPREAD}, not {self.spread!r}")
        require_number("imbalance", self.imbalance)
        require(self.imbalance < 1, f"imbalance must be below 1, not {self.imbalance!r}")

    def fractions(self, parallelism: int) -> tuple[float, ...]:
        if parallelism == 1:
            return (1.0,)
        last = parallelism - 1
        return tuple((1 - self.imbalance * (1 - 2 * i / last)) / parallelism for i in range(parallelism))


@dataclass(frozen=True, slots=True)
class Flow:
    """What an edge does: rows out for each row in; of fields, how many keys and their Zipf exponent.

    keys 0: the exponent is over the receiving instances themselves, in a seeded order. sticky: the share of rows whose
    key is a constant of the sending instance (Aniello et al.: one half in the reference chain).
    """

    selectivity: float = 1.0
    keys: int = 1000
    skew: float = 0.0
    sticky: float = 0.0

    def __post_init__(self) -> None:
        require_number("selectivity", self.selectivity)
        require_number("sticky", self.sticky)
        require(self.sticky <= 1, f"sticky must be at most 1, not {self.sticky!r}")
        require_whole("keys", self.keys)
        require_number("skew", self.skew)


@dataclass(frozen=True, slots=True)
class LevelChange:
    at_s: float
    level: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """What changes a topology's level while it runs, under policies that heed triggers.

    calm: its level while the trigger is off. level: while it is on.
    changes: at moments known in advance, because they follow from the load or were recorded.
    events: the first batch that is a raw event, and the first after it that is none. The topology knows whether a
    batch is one when ``share`` of its rows have reached a sink.
    """

    calm: int = 2
    level: int = 1
    changes: tuple[LevelChange, ...] = ()
    events: tuple[int, int] | None = None
    share: float = 0.8

    def __post_init__(self) -> None:
        require_whole("trigger: calm", self.calm, 1)
        require_whole("trigger: level", self.level, 1)
        require_positive("trigger: share", self.share)
        require(self.share <= 1, f"trigger: share must be at most 1, not {self.share!r}")
        if self.events is not None:
            first, end = self.events
            require_whole("trigger: the first event", first)
            require_whole("trigger: the end of the events", end, first)


@dataclass(frozen=True)
class SimulatedTopology:
    """A topology and what its rows cost: work by operator name, flow by edge position.

    The topology's level is the one its developer gives it. producers: how many send a batch, at the same time.
    """

    topology: Topology
    work: Mapping[str, Work]
    flow: tuple[Flow, ...]
    trigger: Trigger | None = None
    producers: int = 1


@dataclass(frozen=True, slots=True)
class Loss:
    """At at_s a worker (or, with slot None, a whole node) dies. It is back after back_s seconds, None for never."""

    at_s: float
    node: str
    slot: int | None = None
    back_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reassign:
    """From first_s on, every every_s seconds, ``instances`` random instances move to another worker (N-Storm).

    delay_s: of a warm-cut, see ``Plan.delay_s``.
    """

    every_s: float
    instances: int
    mode: MigrationMode
    first_s: float
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        require_positive("reassign.every_s", self.every_s)
        require_number("reassign.first_s", self.first_s)
        require_number("reassign.delay_s", self.delay_s)
        require_whole("reassign.instances", self.instances, 1)


@dataclass(frozen=True)
class Scenario:
    """step_s: the length of a step of time. enforce: whether a plan's limits are enforced; else topologies interfere.

    send_thread_s: the time of a row in the one thread that sends for a worker; 0 where instances send for themselves.
    calibration: constants of the simulator that differ on the system simulated, by their names in ``Calibration``.
    moves_fail_rows: whether a move that replaces workers begins at once and fails rows, as Storm's moves do: those in
    flight, and those that fall due in it.
    sync: the cycles in which nodes and workers ask for a new placement; None: it is pushed to them.
    notes: what was unusual in the recorded cluster it was made from, and how that is treated.
    """

    name: str
    title: str
    nodes: tuple[Node, ...]
    workloads: tuple[SimulatedTopology, ...]
    duration_s: float
    paper: str = ""
    grain: str = "rows"
    cycle_s: float = 10.0
    epoch_s: float = default("epoch")
    timeout_s: float = default("timeout")
    step_s: float = 0.25
    enforce: bool = True
    send_thread_s: float = 0.0
    calibration: Mapping[str, float] = field(default_factory=dict)
    moves_fail_rows: bool = False
    losses: tuple[Loss, ...] = ()
    reassign: Reassign | None = None
    sync: Sync | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
