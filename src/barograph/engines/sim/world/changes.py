"""What a plan changes, topology by topology, and how long each mode stops a topology for it. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace

from barograph.engines.check import rescaled
from barograph.engines.sim.calibration import Calibration
from barograph.model import Instance, MigrationMode, Move, Placement, Plan, Slot, Topology, Worker


@dataclass(frozen=True)
class TopologyChange:
    """What changes for one topology once it has stopped for it. moves: of instances that remain, to another slot.

    ready_s: the earliest time at which it can take effect: every worker concerned knows of it and, for a warm-cut,
    is prepared.
    """

    parallelism: Mapping[str, int] = field(default_factory=dict)
    moves: Mapping[Instance, Slot] = field(default_factory=dict)
    level: int | None = None
    mode: MigrationMode = MigrationMode.CUT
    ready_s: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.parallelism or self.moves or self.level is not None)


def changes(plan: Plan, topologies: Iterable[Topology], placement: Placement) -> dict[str, TopologyChange]:
    """Topology -> what the plan changes of it; a topology that it only cuts has an empty TopologyChange."""
    found: dict[str, TopologyChange] = {}
    moves: dict[str, dict[Instance, Slot]] = defaultdict(dict)
    for instance, slot in plan.placement.slots.items():
        if placement.get(instance) != slot:
            moves[instance.topology][instance] = slot
    for topology in topologies:
        changed = {
            o.name: o.parallelism
            for o in rescaled(topology, plan).operators
            if o.parallelism != topology.operator(o.name).parallelism
        }
        if changed or topology.name in moves or topology.name in plan.cuts:
            found[topology.name] = TopologyChange(changed, moves.get(topology.name, {}), None, plan.mode)
    return found


def after(change: TopologyChange, topology: Topology) -> Topology:
    """The topology after the change. An operator's state stays the same in total, so fewer instances have more each."""
    operators = tuple(
        replace(o, parallelism=n, state_mb=o.state_mb * o.parallelism / n)
        if (n := change.parallelism.get(o.name, o.parallelism)) != o.parallelism
        else o
        for o in topology.operators
    )
    level = topology.level if change.level is None else change.level
    return replace(topology, operators=operators, level=level)


def assign_seats(
    topology: Topology,
    present: Mapping[Instance, Slot],
    taken: Mapping[Slot, int],
    change: TopologyChange,
    workers: Mapping[Slot, Worker],
) -> dict[Instance, Slot] | None:
    """Where each instance of the topology is once the change holds; None where seats are missing.

    present: where its instances are now. taken: how many seats of each worker other topologies have.
    An instance that the plan does not place and that is new or has lost its worker goes where Spark's offers put it:
    to the worker with the most free seats; among equals node after node.
    """
    found: dict[Instance, Slot] = {}
    unplaced = []
    for instance in topology.instances():
        slot = change.moves.get(instance) or present.get(instance)
        if slot is None or slot not in workers:
            unplaced.append(instance)
        else:
            found[instance] = slot
    if unplaced:
        mine = Counter(found.values())
        offers = [(taken.get(slot, 0) + mine[slot] - w.seats, slot.index, slot) for slot, w in workers.items()]
        heapify(offers)
        for instance in unplaced:
            if not offers or offers[0][0] >= 0:
                return None
            minus_free, index, slot = offers[0]
            found[instance] = slot
            heapreplace(offers, (minus_free + 1, index, slot))
    return found


def moved(before: Mapping[Instance, Slot], now: Mapping[Instance, Slot]) -> list[Move]:
    return [Move(i, before.get(i), s) for i, s in now.items() if before.get(i) != s]


def pause_s(
    change: TopologyChange,
    topology: Topology,
    moves: Iterable[Move],
    warm: set[tuple[str, str, Slot]],
    calibration: Calibration,
) -> float:
    """How long the topology stands still, from its last row in flight to its first new one.

    warm: (topology, operator, slot) that ran before. A worker loads the state of its new instances one after the
    other; workers do so in parallel. A warm-cut has loaded state and code before. ``worker`` ends the epoch
    before it replaces executors, so nothing is replayed.
    """
    mode = change.mode
    pause = calibration.boundary_s
    if mode is not MigrationMode.WARM_CUT:
        load: dict[Slot, float] = defaultdict(float)
        cold = False
        for move in moves:
            operator = topology.operator(move.instance.operator)
            if move.target is None:
                continue
            cold = cold or (topology.name, operator.name, move.target) not in warm
            if operator.stateful:
                load[move.target] += state_load_s(operator.state_mb, calibration)
        pause += max(load.values(), default=0.0) + (calibration.cold_start_s if cold else 0.0)
    stateful = [o for o in topology.operators if o.stateful and o.name in change.parallelism]
    for operator in stateful:
        pause += calibration.repartition_s + operator.state_mb * operator.parallelism / calibration.repartition_mb_per_s
    if stateful or mode is MigrationMode.RESTART_QUERY:
        pause += calibration.query_restart_s
    if mode is MigrationMode.RESTART_APP:
        pause += calibration.app_restart_s
    if mode is MigrationMode.WORKER:
        pause += calibration.executor_start_s + calibration.query_restart_s
    return pause


def state_load_s(state_mb: float, calibration: Calibration) -> float:
    return calibration.state_load_s + state_mb / calibration.state_load_mb_per_s


def warm_up_s(change: TopologyChange, topology: Topology, calibration: Calibration) -> float:
    """How long the targets of a warm-cut are prepared, while the topology runs on; workers prepare in parallel."""
    load: dict[Slot, float] = defaultdict(float)
    for instance, target in change.moves.items():
        operator = topology.operator(instance.operator)
        if operator.stateful:
            load[target] += state_load_s(operator.state_mb, calibration)
    return calibration.cold_start_s + max(load.values(), default=0.0)
