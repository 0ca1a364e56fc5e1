"""Whether a plan is possible on the cluster as it is now. Pure; both engines check here before they act."""

from collections import Counter
from dataclasses import replace

from barograph.model import Instance, Operator, Plan, Refusal, RefusalCode, Rescale, Snapshot, Topology


def refusals(plan: Plan, now: Snapshot) -> tuple[Refusal, ...]:
    """Every impossible part of the plan with its reason; empty when the whole plan may be applied."""
    if plan.version is not None and plan.version != now.version:
        why = f"it was made from state {plan.version} of the cluster, and the cluster is now in state {now.version}"
        return (Refusal("the plan", RefusalCode.STALE, why),)
    found = [*_unknown_cuts(plan, now), *_bad_rescales(plan, now)]
    if found:
        return tuple(found)
    after = {t.name: rescaled(t, plan) for t in now.topologies}
    found += _bad_places(plan, now, after)
    found += _bad_cpu(plan, now, after)
    if not found and (plan.placement or plan.rescales):  # shares and cuts need no seats
        found += _overfull(plan, now, after)
    return tuple(found)


def rescaled(topology: Topology, plan: Plan) -> Topology:
    """The topology after the plan's rescales. Operators that scale together are rescaled if the plan names one."""
    named = {
        r.operator: r.parallelism for r in plan.rescales if r.topology == topology.name and topology.has(r.operator)
    }
    counts = {other: n for name, n in named.items() for other in topology.operator(name).scales_with} | named
    if not counts:
        return topology
    operators = tuple(replace(o, parallelism=counts.get(o.name, o.parallelism)) for o in topology.operators)
    return replace(topology, operators=operators)


def _unknown_cuts(plan: Plan, now: Snapshot) -> list[Refusal]:
    names = {t.name for t in now.topologies}
    return [
        Refusal(f"cut {c}", RefusalCode.NO_SUCH_TOPOLOGY, f"there is no topology {c!r}")
        for c in plan.cuts
        if c not in names
    ]


def _bad_rescales(plan: Plan, now: Snapshot) -> list[Refusal]:
    found = []
    topologies = {t.name: t for t in now.topologies}
    for r in plan.rescales:
        what = f"scale {r.topology}/{r.operator}={r.parallelism}"
        topology = topologies.get(r.topology)
        if topology is None:
            found.append(Refusal(what, RefusalCode.NO_SUCH_TOPOLOGY, f"there is no topology {r.topology!r}"))
        elif not topology.has(r.operator):
            names = ", ".join(o.name for o in topology.operators)
            why = f"topology {r.topology} has no operator {r.operator!r}; it has {names}"
            found.append(Refusal(what, RefusalCode.NO_SUCH_OPERATOR, why))
        else:
            operator = topology.operator(r.operator)
            refused = _bad_count(what, operator, r.parallelism) or _bad_together(what, topology, operator, r, plan)
            found += [] if refused is None else [refused]
    return found


def _bad_count(what: str, operator: Operator, count: int, it: str = "it") -> Refusal | None:
    """Why an operator cannot have so many instances. it: what the sentence calls it."""
    if count != operator.parallelism and operator.fixed_because:
        prefix = "" if it == "it" else f"{it} has to follow, and "
        return Refusal(what, RefusalCode.FIXED_PARALLELISM, f"{prefix}{operator.fixed_because}")
    if operator.max_parallelism is not None and count > operator.max_parallelism:
        return Refusal(what, RefusalCode.ABOVE_MOST, f"{it} may have at most {operator.max_parallelism} instances")
    if count < operator.min_parallelism:
        return Refusal(what, RefusalCode.BELOW_LEAST, f"{it} must have at least {operator.min_parallelism} instances")
    return None


def _bad_together(what: str, topology: Topology, operator: Operator, asked: Rescale, plan: Plan) -> Refusal | None:
    """Why operators that scale with this one cannot follow it."""
    counts = {r.operator: r.parallelism for r in plan.rescales if r.topology == topology.name}
    for name in operator.scales_with:
        if counts.get(name, asked.parallelism) != asked.parallelism:
            why = f"{name} always has as many instances as {operator.name}: scale both to the same number"
            return Refusal(what, RefusalCode.FIXED_PARALLELISM, why)
        refused = _bad_count(what, topology.operator(name), asked.parallelism, f"{name}, which scales with it,")
        if refused is not None and name not in counts:
            return refused
    return None


def _no_such_instance(what: str, instance: Instance, after: dict[str, Topology]) -> Refusal | None:
    topology = after.get(instance.topology)
    if topology is None:
        return Refusal(what, RefusalCode.NO_SUCH_TOPOLOGY, f"there is no topology {instance.topology!r}")
    if not topology.has(instance.operator):
        why = f"topology {topology.name} has no operator {instance.operator!r}"
        return Refusal(what, RefusalCode.NO_SUCH_OPERATOR, why)
    count = topology.operator(instance.operator).parallelism
    if instance.index >= count:
        why = f"{instance.operator} has {count} instances, numbered from 0"
        return Refusal(what, RefusalCode.NO_SUCH_INSTANCE, why)
    return None


def _bad_places(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    found = []
    nodes = {n.name for n in now.nodes}
    for instance, slot in plan.placement.slots.items():
        what = f"move {instance}={slot}"
        if (unknown := _no_such_instance(what, instance, after)) is not None:
            found.append(unknown)
        elif slot.node not in nodes:
            asleep = any(n.name == slot.node for n in now.asleep)
            code = RefusalCode.NODE_RELEASED if asleep else RefusalCode.NO_SUCH_NODE
            why = f"{slot.node} is released" if asleep else f"there is no node {slot.node!r}"
            found.append(Refusal(what, code, f"{why}; there are {', '.join(sorted(nodes))}", slot))
        elif now.worker(slot) is None:
            found.append(Refusal(what, RefusalCode.NO_WORKER, f"no worker is alive in slot {slot}", slot))
    return found


def _bad_cpu(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    """Shares and limits of unknown instances, or above what one instance can use.

    A limit is enforced on the instance's node, so it is at most what that node has; shares are only added up.
    """
    found = []
    given = {n.name: n.cpu_pct for n in now.nodes}
    asked = [("share", i, pct) for i, pct in plan.shares_pct.items()]
    asked += [("limit", i, pct) for i, pct in plan.limits_pct.items()]
    for word, instance, pct in asked:
        what = f"{word} {instance}={pct:g}"
        if (unknown := _no_such_instance(what, instance, after)) is not None:
            found.append(unknown)
            continue
        slot = plan.placement.get(instance) or now.placement.get(instance)
        most = 100.0 if slot is None or word == "share" else min(100.0, given.get(slot.node, 100.0))
        if pct > most:
            why = f"one instance can use at most {most:g} % of a core there"
            found.append(Refusal(what, RefusalCode.TOO_MUCH_CPU, why, slot))
    return found


def _overfull(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    """Workers that would hold more instances than they have seats, and a cluster with fewer seats than instances."""
    alive = {i for t in after.values() for i in t.instances()}
    slots = {**now.placement.slots, **plan.placement.slots}
    taken = Counter(slots[i] for i in alive if i in slots)
    found = []
    for slot, count in sorted(taken.items()):
        worker = now.worker(slot)
        if worker is not None and count > worker.seats:
            why = f"it would hold {count} instances and has {worker.seats} seats"
            found.append(Refusal(f"worker {slot}", RefusalCode.WORKER_FULL, why, slot))
    seats = sum(w.seats for w in now.workers)
    if len(alive) > seats:
        why = f"{len(alive)} instances need a seat each and there are {seats} seats"
        found.append(Refusal("the plan", RefusalCode.TOO_FEW_SEATS, why))
    return found
