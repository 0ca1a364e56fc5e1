"""The cost of a DPS trigger on a warm three-node cluster under load.

Topology ``event`` turns its trigger on and off repeatedly beside ``archive``, 1,000 lines a second each; each desires
two of the three nodes, so that one node moves between them.

A controller process uses the policy dps; the trigger is requested over the driver's endpoint, as ``barograph
priority`` does. JSON: ``rate_lines_s`` of each topology; ``changes``, each with ``on``, ``O_s`` (trigger until sources
read again), ``drain_s``, ``reschedule_s``, ``resume_s`` (its parts), ``nodes`` (of event and archive after it) and
``in_order``; ``overhead_s`` and its parts (median, worst, count); ``rows`` lost and counted twice, of both topologies.
Bars: every change in order, with the nodes DPS gives; nothing lost or counted twice; median O under 1 s. Takes about
three minutes; BENCH_REPEATS changes the number of changes (10).
"""

import os
import sys
import time

from barograph.engines.spark.driver.client import RemoteEngine
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.experiments.running.warm_up import require_alive, warm_up
from barograph.experiments.verdict import Verdict
from barograph.priority.machine import PriorityPhase
from barograph.priority.manager import PriorityManager
from barograph.priority.service import priorities_of, serve
from barograph.testing.local_cluster import PARALLELISM, LocalCluster, RunningQuery, open_local_cluster
from barograph.workloads.wordcount import WORKLOAD as WORDCOUNT
from bench._figures import Bar, figures, finish, say

RATE = 1000
WARM_TURNS = 2
CYCLE_S = 5.0
REPEATS = int(os.environ.get("BENCH_REPEATS", "10"))
EVENT, ARCHIVE = "event", "archive"
IN_ORDER = [PriorityPhase.DRAINING, PriorityPhase.RESCHEDULING, PriorityPhase.RESUMING, PriorityPhase.STEADY]
LONGEST_S = 30.0
PARTS = ("O_s", "drain_s", "reschedule_s", "resume_s")


def main() -> int:
    with open_local_cluster() as stage:
        warm_up(stage.spark, WORDCOUNT, PARALLELISM)
        serve(stage.supervisor)
        for name in (EVENT, ARCHIVE):
            stage.engine.declare(name, QueryOptions(desired_nodes=2))
        with stage.query(ARCHIVE, rate=RATE) as archive, stage.query(EVENT, rate=RATE) as event:
            with stage.steered("dps", cycle_s=CYCLE_S, options={"mode": "cut"}) as keeper:
                await_nodes(stage, event, on=False)
                found = [change(stage, event, on=turn % 2 == 0) for turn in range(WARM_TURNS + REPEATS)][WARM_TURNS:]
                said = list(keeper.said)
            verdicts = {c.name: c.verdict() for c in (event, archive)}
    rows = {name: {"lost": v.lost, "counted_twice": v.counted_twice, "exact": v.exact} for name, v in verdicts.items()}
    result = {
        "rate_lines_s": RATE, "changes": found, "controller_said": said, "rows": rows,
        "overhead_s": {part: figures([numbers(c)[part] for c in found]) for part in PARTS},
    }  # fmt: skip
    return finish(result, bars(found, list(verdicts.values())))


def bars(found: list[dict[str, object]], verdicts: list[Verdict]) -> list[Bar]:
    return [
        Bar("changes in order", sum(c["in_order"] is True for c in found), at_least=len(found)),
        Bar("changes after which nodes are as DPS gives them", sum(as_given(c) for c in found), at_least=len(found)),
        Bar("rows lost or counted twice", sum(v.lost + v.counted_twice for v in verdicts), at_most=0),
        Bar("topologies counted exactly", sum(v.exact for v in verdicts), at_least=len(verdicts)),
        Bar("median overhead O, s", figures([numbers(c)["O_s"] for c in found])["median"], at_most=1.0),
    ]


def numbers(found: dict[str, object]) -> dict[str, float]:
    return {part: float(str(found[part])) for part in PARTS}


def as_given(found: dict[str, object]) -> bool:
    return found["nodes"] == ([2, 1] if found["on"] else [1, 2])


def nodes_of(stage: LocalCluster) -> list[int]:
    """How many nodes event and archive have, if they share none; otherwise 0."""
    now = stage.engine.glance()
    homes = {name: {s.node for s in now.placement.of_topology(name).slots.values()} for name in (EVENT, ARCHIVE)}
    return [0, 0] if homes[EVENT] & homes[ARCHIVE] else [len(homes[EVENT]), len(homes[ARCHIVE])]


def await_nodes(stage: LocalCluster, counting: RunningQuery, on: bool) -> list[int]:
    wanted = [2, 1] if on else [1, 2]
    deadline = time.monotonic() + LONGEST_S
    counting.settle(lambda: nodes_of(stage) == wanted or time.monotonic() > deadline, 2 * LONGEST_S)
    return nodes_of(stage)


def since(manager: PriorityManager, at_s: float) -> list[tuple[float, str, PriorityPhase]]:
    return [step for step in manager.passed if step[0] >= at_s]


def change(stage: LocalCluster, event: RunningQuery, on: bool) -> dict[str, object]:
    """One change, after rows have flowed for a while. Nothing is observed while it is in progress."""
    calm_s = time.monotonic() + 4.0
    event.settle(lambda: time.monotonic() > calm_s)
    time.sleep(0.5)
    manager = priorities_of(stage.supervisor).manager
    assert stage.supervisor.endpoint is not None
    remote = RemoteEngine(stage.supervisor.endpoint.path)
    asked_s = time.monotonic()  # the clock of the priority manager
    remote.ask("priority", {"do": "trigger", "topology": EVENT, "on": on})
    remote.close()
    deadline = time.monotonic() + LONGEST_S
    while [p for _, _, p in since(manager, asked_s)][-1:] != [PriorityPhase.STEADY] and time.monotonic() < deadline:
        time.sleep(0.02)
    require_alive(event.query)
    steps = since(manager, asked_s)
    at_s = {phase: at for at, _, phase in steps}
    seen = [phase for _, _, phase in steps]
    in_order = seen == IN_ORDER
    times = [at_s.get(phase, float("nan")) for phase in IN_ORDER]
    found: dict[str, object] = {
        "on": on,
        "O_s": round(times[3] - times[0], 3),
        "drain_s": round(times[1] - times[0], 3),
        "reschedule_s": round(times[2] - times[1], 3),
        "resume_s": round(times[3] - times[2], 3),
        "in_order": in_order,
        "nodes": await_nodes(stage, event, on),
        "told": manager.told[-2:],
    }
    say(
        f"trigger {'on ' if on else 'off'}: O {found['O_s']} s (drain {found['drain_s']}, reschedule "
        f"{found['reschedule_s']}, resume {found['resume_s']}), nodes {found['nodes']}"
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
