"""N-Storm's worker rule, on the worked example of migration.md."""

from barograph.migrate.diff import Action, WorkerChange, worker_change, worker_changes
from barograph.model import Instance, Placement, Slot

W1, W2, W3 = Slot("n1", 0), Slot("n1", 1), Slot("n2", 0)


def inst(name: str) -> Instance:
    return Instance("t", name[0], int(name[1]))


def placed(**slots: str) -> Placement:
    at = {"w1": W1, "w2": W2, "w3": W3}
    return Placement({inst(i): at[w] for w, held in slots.items() for i in held.split()})


BEFORE = placed(w1="A0 A1", w2="B0 B1", w3="C0")
AFTER = placed(w1="A0 B1", w2="A1 B0", w3="C0")


def test_worked_example() -> None:
    assert worker_changes(BEFORE, AFTER) == {
        W1: WorkerChange(Action.UPDATE, (inst("B1"),), (inst("A1"),)),
        W2: WorkerChange(Action.UPDATE, (inst("A1"),), (inst("B1"),)),
        W3: WorkerChange(Action.ROUTES),
    }


def test_only_new_is_still_an_update() -> None:
    change = worker_change({inst("A0")}, {inst("A0"), inst("A1")})
    assert change == WorkerChange(Action.UPDATE, (inst("A1"),), ())


def test_nothing_assigned_or_another_topology_is_no_action() -> None:
    assert worker_change({inst("A0")}, set()) == WorkerChange(Action.WAIT)
    assert worker_change({inst("A0")}, {inst("A1")}, same_topology=False) == WorkerChange(Action.WAIT)
