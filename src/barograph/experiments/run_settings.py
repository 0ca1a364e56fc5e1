"""Everything a run is, and what is refused before anything is started."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barograph.engines.spark.conf import IN_FLIGHT_MS
from barograph.engines.spark.eyes import MESSAGE_TIMEOUT_S
from barograph.engines.spark.java import find_java
from barograph.engines.spark.runs import run_of
from barograph.engines.spark.settings import ClusterSettings, require_free_port
from barograph.experiments.actions import Action, check_actions
from barograph.experiments.steering import Steering
from barograph.model import BadInput, Load, MigrationMode
from barograph.model.checks import require, require_number, require_positive, require_whole
from barograph.workloads import wordcount
from barograph.workloads.lines import LineShape

LEAST_PLAIN_EPOCH_S = 5.0  # Spark's own bound


@dataclass(frozen=True)
class RunSettings:
    """Everything a run is. master: a cluster that exists; None starts one as ``cluster`` says.

    timeout_s: complete time above which a row is late. in_flight_s: what may wait in front of an instance; 0: no bound.
    steering: the policy that steers it; None leaves everything where ``even`` first put it.
    toil_us: of an operator, CPU microseconds that each row costs it besides.
    migration: how what --at orders takes effect.
    plain: on Spark alone, without the plug-in: nothing can be ordered or steered then.
    journal: where it notes what must outlive its driver; one that is not empty is gone on with.
    """

    load: Load
    seconds: float = 60.0
    parallelism: dict[str, int] = field(default_factory=lambda: dict(wordcount.DEFAULT_PARALLELISM))
    epoch_s: float = 60.0
    cluster: ClusterSettings = field(default_factory=lambda: ClusterSettings(3, 0.6, 8))
    master: str | None = None
    checkpoint: Path | None = None
    actions: tuple[Action, ...] = ()
    lines: LineShape = field(default_factory=LineShape)
    drain_s: float = 120.0
    timeout_s: float = MESSAGE_TIMEOUT_S
    in_flight_s: float = IN_FLIGHT_MS / 1000
    steering: Steering | None = None
    journal: Path | None = None
    toil_us: Mapping[str, int] = field(default_factory=dict)
    plain: bool = False
    migration: MigrationMode = MigrationMode.CUT

    def __post_init__(self) -> None:
        require_positive("seconds", self.seconds)
        require_number("epoch", self.epoch_s, 1.0)
        require_positive("drain seconds", self.drain_s)
        require_positive("timeout", self.timeout_s)
        require_number("in flight", self.in_flight_s, 0.0)
        known = set(wordcount.DEFAULT_PARALLELISM)
        for operator, count in self.parallelism.items():
            require(operator in known, f"wordcount has no operator {operator!r}; it has {', '.join(sorted(known))}")
            require_whole(f"parallelism of {operator}", count, 1)
        for operator, micros in self.toil_us.items():
            toilers = " and ".join(wordcount.TOILERS)
            require(operator in wordcount.TOILERS, f"only {toilers} of wordcount can be made to toil, not {operator!r}")
            require_whole(f"toil of {operator}", micros)


def check(settings: RunSettings) -> None:
    """Refuse, before anything is started, what can never be."""
    find_java()
    if settings.master is None:
        cluster = settings.cluster
        require_free_port(cluster.port)
    else:
        run = run_of(settings.master)
        require(
            run is not None,
            f"no cluster answers to {settings.master!r} here: 'barograph cluster status' lists those that run",
        )
        assert run is not None
        cluster = run.settings
    if settings.plain:
        require(settings.steering is None, "Spark alone cannot be steered")
        require(not settings.actions, "on Spark alone nobody can move, scale, cut or restart: leave --at out")
        require_number("epoch of Spark alone", settings.epoch_s, LEAST_PLAIN_EPOCH_S)
    topology = wordcount.topology(settings.parallelism)
    seats = cluster.nodes * cluster.executors * cluster.seats
    count = sum(o.parallelism for o in topology.operators)
    require(count <= seats, f"{count} instances need a seat each and there are {seats} seats")
    slots = dict.fromkeys(cluster.node_names(), cluster.executors)
    check_actions(settings.actions, topology, slots, seats, settings.seconds)
    if settings.checkpoint is not None and settings.journal is None:
        require_empty_and_writable(settings.checkpoint)


def require_empty_and_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        require(not any(folder.iterdir()), f"the checkpoint folder {folder} is not empty: a run starts from nothing")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"the checkpoint folder {folder} cannot be written: {error.strerror}") from error
