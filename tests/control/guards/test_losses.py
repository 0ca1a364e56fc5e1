"""A topology that has lost a worker is left as it is for a while, and its last change is not judged."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.control.guards.test_guard import FREE, MOVE, TWO, act, cycle, k, topology, world

from barograph.control.guards import Guards, guard
from barograph.control.guards.acts import Distress
from barograph.control.guards.losses import losses
from barograph.model import Cycle, Instance, MigrationMode, Placement, Plan, ReasonCode, Slot, Snapshot, Worker

GUARDS = replace(FREE, after_loss_s=30.0)


def at(at_s: float, executors: Mapping[str, str], placement: Mapping[Instance, Slot] | None = None) -> Snapshot:
    """With these executors, by node."""
    found = world(at_s, placement=None if placement is None else dict(placement))
    return replace(found, workers=tuple(Worker(Slot(node), name, 4) for node, name in executors.items()))


WHOLE = {"n1": "a", "n2": "b", "n3": "c"}
LOST = {"n1": "d", "n2": "b", "n3": "c"}  # all instances are on n1
AWAY = {"n2": "b", "n3": "c"}
ELSEWHERE = {"n1": "a", "n2": "e", "n3": "c"}
MOVED = dict.fromkeys(topology().instances(), TWO)
MOVED_AWAY = cycle(at(60.0, WHOLE), Plan(Placement(MOVED)), applied=True)
REPLACED = cycle(at(60.0, WHOLE), Plan(mode=MigrationMode.WORKER), applied=True)

SEEN = {
    "replaced at once": ([cycle(at(60.0, WHOLE), Plan())], at(70.0, LOST), {"t": 70.0}),
    "gone": ([cycle(at(60.0, WHOLE), Plan())], at(70.0, AWAY), {"t": 70.0}),
    "earlier": ([cycle(at(60.0, WHOLE), Plan()), cycle(at(70.0, LOST), Plan())], at(80.0, LOST), {"t": 70.0}),
    "long ago": ([cycle(at(10.0, WHOLE), Plan()), cycle(at(20.0, LOST), Plan())], at(80.0, LOST), {}),
    "without an instance": ([cycle(at(60.0, WHOLE), Plan())], at(70.0, ELSEWHERE), {}),
    "nothing was lost": ([cycle(at(60.0, WHOLE), Plan())], at(70.0, WHOLE), {}),
    "moved away before": ([MOVED_AWAY], at(70.0, AWAY, MOVED), {}),
    "replaced by a plan": ([REPLACED], at(70.0, LOST), {}),
    "nothing is known": ([], at(70.0, LOST), {}),
}


@pytest.mark.parametrize("case", SEEN)
def test_what_counts_as_a_loss(case: str) -> None:
    history, now, expected = SEEN[case]
    assert losses(history, now, since_s=50.0) == expected


def decided(now_s: float, guards: Guards = GUARDS, homeless: bool = False) -> Cycle:
    """The worker of all instances is lost at 70; the instances run on n2 then, unless they have no worker."""
    now = at(now_s, AWAY, None if homeless else MOVED)
    history = [cycle(at(60.0, WHOLE), Plan()), *([cycle(at(70.0, AWAY, MOVED), Plan())] if now_s > 70.0 else [])]
    slot = TWO if homeless else Slot("n3")
    plan = Plan(Placement(dict.fromkeys(topology().instances(), slot)), cuts=("t",), limits_pct={k(0): 20.0})
    return guard(guards, (), history, cycle(now, plan))


def test_it_is_left_as_it_is_for_a_while_but_for_its_limits() -> None:
    found = decided(80.0).plan
    assert not found.placement.slots and not found.cuts and found.limits_pct
    (why,) = found.reasons
    assert why.code is ReasonCode.AFTER_LOSS and dict(why.numbers) == {"since_s": 10.0, "after_loss_s": 30.0}


def test_it_is_changed_where_an_instance_has_no_worker_and_after_that_time() -> None:
    assert decided(80.0, homeless=True).plan.placement.slots
    assert decided(100.0).plan.placement.slots
    assert decided(80.0, replace(GUARDS, after_loss_s=0.0)).plan.placement.slots


def test_a_change_before_a_loss_is_not_judged() -> None:
    """Rows wait for the restart, so it seems to have done harm."""
    before = Placement(dict.fromkeys(topology().instances(), Slot("n3")))
    changed = act(65.0, before=before, distress=Distress(0.0, 0.1), load_rows_s=100.0)
    guards = replace(GUARDS, probation_s=20.0, after_loss_s=0.0)
    now = replace(world(90.0, placement=MOVED, wait_s=9.0), workers=at(90.0, AWAY).workers)
    quiet = [cycle(replace(world(60.0), workers=at(60.0, WHOLE).workers), Plan())]
    lost = [*quiet, cycle(replace(world(70.0, placement=MOVED), workers=now.workers), Plan())]
    kept = [cycle(replace(world(60.0, placement=MOVED), workers=now.workers), Plan())]
    codes = [
        [r.code for r in guard(guards, (changed,), history, cycle(now, Plan())).plan.reasons]
        for history in (kept, lost)
    ]
    assert codes == [[ReasonCode.ROLLED_BACK], [ReasonCode.NOT_JUDGED]]


def test_the_move_of_other_tests_is_not_held() -> None:
    assert guard(GUARDS, (), (), cycle(world(), MOVE)).plan.placement.slots
