"""Why something was decided. Programs read the code and the numbers; people read the sentence. No logic reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from barograph.model.checks import require


class ReasonCode(StrEnum):
    """One code for each kind of decision. Histories hold them: see ``history.files.FORMAT`` before you change one."""

    # The cycle as a whole.
    NOTHING_TO_DECIDE = "nothing-to-decide"  # no topology runs, or no node is there
    NOT_PLACED = "not-placed"  # the placer found no place for this instance
    NEW_LEVELS = "new-levels"  # priority levels changed, so the plan is applied without waiting
    OTHER = "other"  # a reason of a policy that is not Barograph's own

    # Forecasters.
    FORECAST = "forecast"  # how the load of this operator was forecast

    # Scalers: the CPU share of an operator's instances.
    SHARE_FIXED = "share-fixed"  # the share was given or declared, and does not change
    SHARE_DECLARED = "share-declared"  # the share that was declared
    SHARE_UNDECLARED = "share-undeclared"  # no share was given or declared: a default
    SHARE_MEASURED = "share-measured"  # the CPU that was used lately
    SHARE_FORECAST = "share-forecast"  # rows forecast times CPU per row, smoothed
    SHARE_BEFORE = "share-before"  # nothing was measured yet: the share it had before
    SHARE_EVEN = "share-even"  # nothing was measured yet: an even part of the cluster
    HEADROOM_GIVEN_UP = "headroom-given-up"  # shares were cut to what is needed, so that they fit the cluster
    CLUSTER_TOO_SMALL = "cluster-too-small"  # shares were cut below what is needed, in proportion

    # Scalers: the number of an operator's instances.
    INSTANCES_SUFFICE = "instances-suffice"  # the present number is kept, because it is enough
    INSTANCES_FIXED = "instances-fixed"  # another number would be better, but the operator's number cannot change
    INSTANCES_SHORT = "instances-short"  # more are needed, and this scaler does not change the number
    MORE_INSTANCES = "more-instances"  # the load needs more instances
    FEWER_INSTANCES = "fewer-instances"  # the load needs fewer instances
    RESTING = "resting"  # the topology was changed a moment ago, so its numbers are not used yet
    WINDOW_NOT_FULL = "window-not-full"  # fewer cycles were measured than the scaler needs
    SOURCE_NOT_SCALED = "source-not-scaled"  # the scaler leaves sources as they are
    RATE_UNKNOWN = "rate-unknown"  # what one instance can do is not known yet
    WISH_TOO_NEW = "wish-too-new"  # the load has needed another number for too few cycles
    NO_SEAT_FREE = "no-seat-free"  # more instances are needed, and no worker has a seat for them
    STATE_STAYS = "state-stays"  # fewer would do, but moving the operator's state costs more
    LOAD_GROWS = "load-grows"  # fewer would do now, but the load is growing

    # Scalers: keys.
    HOT_INSTANCE = "hot-instance"  # because of their keys, far more rows go to this instance than to the others
    ONE_KEY_TOO_MUCH = "one-key-too-much"  # one key, or keys that cannot be parted, need more than an instance can use

    # Scalers: a target for the p99 of a topology.
    TARGET_HELD = "target-held"  # the forecast p99 is below the target, with so much CPU and so many nodes
    TARGET_MISSED = "target-missed"  # no CPU of the cluster, or no CPU at all, brings the forecast p99 below the target
    TARGET_BLIND = "target-blind"  # nothing tells how the p99 follows CPU, so the target is not followed

    # What the owner of a topology declares, for every policy.
    MOST_INSTANCES = "most-instances"  # more are wanted than the operator may have
    LEAST_INSTANCES = "least-instances"  # fewer are wanted than the operator must have
    SCALES_TOGETHER = "scales-together"  # it has as many instances as the operators that it scales with need
    EXCLUDED_FROM_SCALING = "excluded-from-scaling"  # another number is wanted, and the operator is to be left as it is
    CPU_QUOTA = "cpu-quota"  # shares were cut to what the topology may have at most
    WORKER_QUOTA = "worker-quota"  # instances were gathered on as many workers as the topology may have
    WORKER_QUOTA_SHORT = "worker-quota-short"  # as many workers as it may have do not hold all its instances

    # Allotters: which topology gets which nodes.
    NODES_BY_LEVEL = "nodes-by-level"  # the topology gets nodes by its priority level
    NO_NODE_LEFT = "no-node-left"  # higher levels and minimums take all nodes
    ISOLATED = "isolated"  # the topology has the nodes that are its own
    ISOLATION_SHORT = "isolation-short"  # no node has room for some of the workers of an isolated topology
    WAITS_FOR_ISOLATED = "waits-for-isolated"  # isolated topologies get their nodes first
    ALL_NODES_ISOLATED = "all-nodes-isolated"  # every node belongs to an isolated topology

    # Placers: how a topology was placed.
    PLACED_EVENLY = "placed-evenly"  # instances were dealt over free slots in rounds
    PLACED_ON_OWN_NODES = "placed-on-own-nodes"  # instances were dealt over the nodes of an isolated topology
    PLACED_ANEW = "placed-anew"  # the nodes of the topology changed, so all its instances were dealt again
    NODES_UNCHANGED = "nodes-unchanged"  # the nodes of the topology did not change, so it stays
    PLACED_BY_DECLARATION = "placed-by-declaration"  # nearest to the declared CPU and memory
    PLACED_BY_GRAPH = "placed-by-graph"  # next to the operators that feed them
    PLACED_BY_TRAFFIC = "placed-by-traffic"  # instances that exchange most rows share a worker or node
    MOVED_IF_DISTURBED = "moved-if-disturbed"  # only overload or scaling in moved instances
    MOVED_LITTLE = "moved-little"  # few moves, little traffic, few nodes
    TOPOLOGY_NOT_PLACED = "topology-not-placed"  # the topology does not fit, so nothing of it was placed

    # Placers: whether anything moves at all.
    FORCED_MOVES = "forced-moves"  # only instances that must move were moved
    NODES_FREED = "nodes-freed"  # moving empties nodes, which is worth the pause
    TRAFFIC_SAVED = "traffic-saved"  # moving keeps rows on their nodes, which is worth the pause
    STILL_SETTLING = "still-settling"  # a change was made a moment ago, so a crowded node is left as it is
    TOO_FEW_SLOTS = "too-few-slots"  # the topologies need more slots than there are
    SCHEDULE_NOT_DUE = "schedule-not-due"  # the next schedule is computed later
    SCHEDULE_UNMEASURED = "schedule-unmeasured"  # nothing was measured yet: placed as the default scheduler does
    SCHEDULE_NEEDED = "schedule-needed"  # an instance has no place, so the new schedule was taken
    SCHEDULE_SAME = "schedule-same"  # the new schedule is the present one
    SCHEDULE_INCOMPLETE = "schedule-incomplete"  # the new schedule lacks places, so it was not taken
    SCHEDULE_GAINS = "schedule-gains"  # the new schedule saves enough traffic, so it was taken
    SCHEDULE_RELIEVES = "schedule-relieves"  # nodes were overloaded, so the new schedule was taken
    SCHEDULE_GAINS_LITTLE = "schedule-gains-little"  # the new schedule saves too little traffic to be taken
    SCHEDULE_COMPUTED = "schedule-computed"  # the period was over, so a new schedule was computed and taken

    # The migrator.
    ONE_CUT = "one-cut"  # all changes of a topology share one cut
    WAITS_FOR_SEATS = "waits-for-seats"  # its moves wait until another topology has left the seats they need

    # Guards: why part of a plan is held back, or an earlier change undone.
    FROZEN = "frozen"  # the controller is frozen
    FROZEN_PERIOD = "frozen-period"  # it is a time in which nothing is to be changed
    COOLDOWN = "cooldown"  # the topology was changed a moment ago
    ROLLED_BACK = "rolled-back"  # the last change of the topology did not help, so it is undone
    NOT_JUDGED = "not-judged"  # it is or was unknown how long rows wait, or a worker was lost since the last change
    AFTER_ROLLBACK = "after-rollback"  # the last change was rolled back, and the load is still the same
    AFTER_LOSS = "after-loss"  # it lost a worker a moment ago, so its figures are not those of its load
    WOULD_RETURN = "would-return"  # an instance would go back to where it came from a moment ago
    BUDGET_USED_UP = "budget-used-up"  # this hour's budget of cuts, moves or rescales is used up
    FEWER_TOO_EARLY = "fewer-too-early"  # fewer instances have been enough for too few cycles
    SEATS_HELD = "seats-held"  # it needs seats of a topology whose own change is held back
    FIGURES_STALE = "figures-stale"  # its workers have not reported for too long, so it is left as it is
    WAITS_FOR_QUIET = "waits-for-quiet"  # the cut is not urgent and waits for a lower load

    # The length of epochs.
    EPOCH_NO_LOAD = "epoch-no-load"  # no load is seen, so a failure would replay nothing
    EPOCH_SHORTEST = "epoch-shortest"  # the shortest one allowed, which still misses the recovery target
    EPOCH_LONGEST = "epoch-longest"  # the longest one allowed, which meets the recovery target
    EPOCH_FITTED = "epoch-fitted"  # the longest one that meets the recovery target
    EPOCH_KEPT = "epoch-kept"  # the present length is close enough

    # Nodes.
    NODE_FETCHED = "node-fetched"  # the forecast load does not fit the nodes that are there
    SPARE_NODE_FETCHED = "spare-node-fetched"  # fewer idle nodes were left than are to be kept
    RELEASE_DISABLED = "release-disabled"  # nodes are not to be released, so a released one is fetched
    NODE_RELEASED = "node-released"  # no instance ran on the node for the grace time
    NODES_ANSWERED = "nodes-answered"  # what became of orders for nodes in a cycle whose plan was refused


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was decided: about what, the kind of decision, one sentence, and the numbers behind it."""

    about: str
    code: ReasonCode
    why: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(isinstance(self.code, ReasonCode), f"the reason about {self.about} needs a code, not {self.code!r}")
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))

    def __hash__(self) -> int:
        return hash((self.about, self.code, self.why, tuple(self.numbers.items())))
