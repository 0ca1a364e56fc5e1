"""Whether a plan can be, in the world as it is now. Pure; both engines ask here before they act."""

from collections import Counter
from dataclasses import replace

from barograph.model import Instance, Plan, Refusal, Snapshot, Topology


def refusals(plan: Plan, now: Snapshot) -> tuple[Refusal, ...]:
    """Everything in the plan that cannot be, each with its reason; empty when the plan may be applied whole."""
    if plan.version is not None and plan.version != now.version:
        return (
            Refusal("the plan", f"it was made from state {plan.version} of the cluster, which is now in {now.version}"),
        )
    found = [*_unknown_cuts(plan, now), *_bad_rescales(plan, now)]
    if found:
        return tuple(found)
    after = {t.name: rescaled(t, plan) for t in now.topologies}
    found += _bad_places(plan, now, after)
    found += _bad_cpu(plan, now, after)
    if not found and (plan.placement or plan.rescales):  # shares and cuts take nobody's seat
        found += _overfull(plan, now, after)
    return tuple(found)


def rescaled(topology: Topology, plan: Plan) -> Topology:
    """The topology as it is once the plan's rescales hold."""
    counts = {r.operator: r.parallelism for r in plan.rescales if r.topology == topology.name}
    if not counts:
        return topology
    operators = tuple(replace(o, parallelism=counts.get(o.name, o.parallelism)) for o in topology.operators)
    return replace(topology, operators=operators)


def _unknown_cuts(plan: Plan, now: Snapshot) -> list[Refusal]:
    names = {t.name for t in now.topologies}
    return [Refusal(f"cut {c}", f"there is no topology {c!r}") for c in plan.cuts if c not in names]


def _bad_rescales(plan: Plan, now: Snapshot) -> list[Refusal]:
    found = []
    topologies = {t.name: t for t in now.topologies}
    for r in plan.rescales:
        what = f"scale {r.topology}/{r.operator}={r.parallelism}"
        topology = topologies.get(r.topology)
        if topology is None:
            found.append(Refusal(what, f"there is no topology {r.topology!r}"))
        elif not topology.has(r.operator):
            names = ", ".join(o.name for o in topology.operators)
            found.append(Refusal(what, f"topology {r.topology} has no operator {r.operator!r}; it has {names}"))
        else:
            operator = topology.operator(r.operator)
            if operator.fixed_because and r.parallelism != operator.parallelism:
                found.append(Refusal(what, operator.fixed_because))
            elif operator.max_parallelism is not None and r.parallelism > operator.max_parallelism:
                found.append(Refusal(what, f"it may have at most {operator.max_parallelism} instances"))
            elif r.parallelism < operator.min_parallelism:
                found.append(Refusal(what, f"it must have at least {operator.min_parallelism} instances"))
    return found


def _no_such_instance(instance: Instance, after: dict[str, Topology]) -> str:
    topology = after.get(instance.topology)
    if topology is None:
        return f"there is no topology {instance.topology!r}"
    if not topology.has(instance.operator):
        return f"topology {topology.name} has no operator {instance.operator!r}"
    count = topology.operator(instance.operator).parallelism
    if instance.index >= count:
        return f"{instance.operator} has {count} instances, numbered from 0"
    return ""


def _bad_places(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    found = []
    nodes = {n.name for n in now.nodes}
    for instance, slot in plan.placement.slots.items():
        what = f"move {instance}={slot}"
        if reason := _no_such_instance(instance, after):
            found.append(Refusal(what, reason))
        elif slot.node not in nodes:
            asleep = any(n.name == slot.node for n in now.asleep)
            why = f"{slot.node} is released" if asleep else f"there is no node {slot.node!r}"
            found.append(Refusal(what, f"{why}; there are {', '.join(sorted(nodes))}"))
        elif now.worker(slot) is None:
            found.append(Refusal(what, f"no worker is alive in slot {slot}"))
    return found


def _bad_cpu(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    """Shares and limits of instances that are not there, or above what one instance can use.

    A limit is written on the instance's node and is at most what the node has; a share is only reckoned with.
    """
    found = []
    given = {n.name: n.cpu_pct for n in now.nodes}
    asked = [("share", i, pct) for i, pct in plan.shares_pct.items()]
    asked += [("limit", i, pct) for i, pct in plan.limits_pct.items()]
    for word, instance, pct in asked:
        if reason := _no_such_instance(instance, after):
            found.append(Refusal(f"{word} {instance}={pct:g}", reason))
            continue
        slot = plan.placement.get(instance) or now.placement.get(instance)
        most = 100.0 if slot is None or word == "share" else min(100.0, given.get(slot.node, 100.0))
        if pct > most:
            what, reason = f"{word} {instance}={pct:g}", f"one instance can use at most {most:g} % of a core there"
            found.append(Refusal(what, reason))
    return found


def _overfull(plan: Plan, now: Snapshot, after: dict[str, Topology]) -> list[Refusal]:
    """Seats: of each worker for what is placed, and of all workers for what runs."""
    alive = {i for t in after.values() for i in t.instances()}
    slots = {**now.placement.slots, **plan.placement.slots}
    taken = Counter(slots[i] for i in alive if i in slots)
    found = []
    for slot, count in sorted(taken.items()):
        worker = now.worker(slot)
        if worker is not None and count > worker.seats:
            found.append(Refusal(f"worker {slot}", f"it would hold {count} instances and has {worker.seats} seats"))
    seats = sum(w.seats for w in now.workers)
    if len(alive) > seats:
        found.append(Refusal("the plan", f"{len(alive)} instances need a seat each and there are {seats} seats"))
    return found
