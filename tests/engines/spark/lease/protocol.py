"""A model of how drivers write to one checkpoint: lease, offset log, commit log, repartition. Searched exhaustively.

A driver takes the lease in five steps, drops what was begun and not committed, and runs epochs: it reads one or two
rows, writes the offsets, then the commit, each in three steps (a temporary file, a look whether the entry exists, the
move). Instead of an epoch it may repartition, which reads nothing, or begin that and undo it. A driver may be stopped
between any two steps for any time, or die; any driver may take another one for dead at any time.

Law: of every committed epoch, the rows in the state that its commit names are those up to its offset. Otherwise rows
were lost or counted twice.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

Entries = tuple[tuple[int, int], ...]  # epoch -> value, in order


@dataclass(frozen=True, slots=True)
class Disk:
    """offsets: the end of each epoch. commits: the rows in the state that each commit names. numbers: of the owners so
    far. fences: those that stand."""

    offsets: Entries = ()
    commits: Entries = ()
    numbers: frozenset[int] = frozenset()
    fences: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Driver:
    """at: the next step. number: of its lease. epoch, end, rows: of the epoch it writes; undo: it will take it back."""

    at: str = "look"
    number: int = 0
    epoch: int = 0
    end: int = 0
    rows: int = 0
    undo: bool = False


@dataclass(frozen=True, slots=True)
class State:
    disk: Disk
    drivers: tuple[Driver, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Of one driver. detail: what it chose."""

    driver: int
    name: str
    detail: int = 0


OVER = ("ended", "dead")


@dataclass(frozen=True, slots=True)
class Protocol:
    """fenced: a driver that takes over moves the fences of the others away. last_epoch: nothing is begun after it."""

    drivers: int = 2
    last_epoch: int = 1
    fenced: bool = True

    def begin(self) -> State:
        return State(Disk(), (Driver(),) * self.drivers)

    def steps(self, state: State) -> Iterator[tuple[Step, State]]:
        for index, driver in enumerate(state.drivers):
            if driver.at in OVER:
                continue
            for name, detail, disk, after in self._moves(state.disk, driver):
                drivers = (*state.drivers[:index], after, *state.drivers[index + 1 :])
                yield Step(index, name, detail), State(disk, drivers)
            dead = (*state.drivers[:index], Driver("dead"), *state.drivers[index + 1 :])
            yield Step(index, "die"), State(state.disk, dead)

    def _moves(self, disk: Disk, d: Driver) -> Iterator[tuple[str, int, Disk, Driver]]:
        match d.at:
            case "look":
                yield "look", 0, disk, replace(d, at="number", number=max(disk.numbers, default=0) + 1)
            case "number":
                if d.number in disk.numbers:
                    yield "number", 0, disk, replace(d, at="look")
                else:
                    yield "number", 1, replace(disk, numbers=disk.numbers | {d.number}), replace(d, at="fence")
            case "fence":
                yield "fence", 0, replace(disk, fences=disk.fences | {d.number}), replace(d, at="check")
            case "check":
                if max(disk.numbers) == d.number:
                    yield "check", 1, disk, replace(d, at="fence off")
                else:
                    yield "check", 0, replace(disk, fences=disk.fences - {d.number}), replace(d, at="ended")
            case "fence off":
                left = frozenset(f for f in disk.fences if f >= d.number)
                yield "fence off", 0, replace(disk, fences=left), replace(d, at="drop")
            case "drop":
                yield from self._drop(disk, d)
            case "begin":
                yield from self._begin(disk, d)
            case "open offsets" | "open commits":
                log = d.at.split()[1]
                yield d.at, 0, disk, replace(d, at=f"exists {log}" if self._stands(disk, d) else "ended")
            case "exists offsets" | "exists commits":
                log = d.at.split()[1]
                there = d.epoch in dict(getattr(disk, log))
                yield d.at, int(there), disk, replace(d, at="ended" if there else f"move {log}")
            case "move offsets":
                if not self._stands(disk, d):
                    yield d.at, 0, disk, replace(d, at="ended")
                else:
                    then = "undo" if d.undo else "open commits"
                    yield d.at, 1, replace(disk, offsets=_put(disk.offsets, d.epoch, d.end)), replace(d, at=then)
            case "move commits":
                if not self._stands(disk, d):
                    yield d.at, 0, disk, replace(d, at="ended")
                else:
                    yield d.at, 1, replace(disk, commits=_put(disk.commits, d.epoch, d.rows)), replace(d, at="begin")
            case "undo":
                yield from self._remove(disk, replace(d, undo=False, epoch=d.epoch - 1), d.epoch, "begin")

    def _drop(self, disk: Disk, d: Driver) -> Iterator[tuple[str, int, Disk, Driver]]:
        """As Spark does when it starts a real-time query: an epoch that is not committed is read again."""
        committed = max(dict(disk.commits), default=-1)
        begun = [e for e, _ in disk.offsets if e > committed]
        if begun:
            yield from self._remove(disk, d, begun[0], "drop")
        else:
            yield "drop", -1, disk, replace(d, at="begin")

    def _remove(self, disk: Disk, d: Driver, epoch: int, then: str) -> Iterator[tuple[str, int, Disk, Driver]]:
        if not self._stands(disk, d):
            yield d.at, epoch, disk, replace(d, at="ended")
        else:
            left = tuple(entry for entry in disk.offsets if entry[0] != epoch)
            yield d.at, epoch, replace(disk, offsets=left), replace(d, at=then)

    def _begin(self, disk: Disk, d: Driver) -> Iterator[tuple[str, int, Disk, Driver]]:
        """detail: rows that it reads; 0: a repartition; -1: one that is undone. What a driver knows of the past it read
        at its start; a later owner's entries it meets only when it writes."""
        past = d.epoch if d.rows or d.end else max(dict(disk.commits), default=-1)
        fresh = not (d.rows or d.end)
        end = dict(disk.offsets).get(past, 0) if fresh else d.end
        rows = dict(disk.commits).get(past, 0) if fresh else d.rows
        epoch = past + 1
        if epoch > self.last_epoch:
            yield "begin", 0, disk, replace(d, at="ended")
            return
        for more in (1, 2):
            after = replace(d, at="open offsets", epoch=epoch, end=end + more, rows=rows + more, undo=False)
            yield "begin", more, disk, after
        if past >= 0:
            again = replace(d, at="open offsets", epoch=epoch, end=end, rows=rows)
            yield "begin", 0, disk, replace(again, undo=False)
            yield "begin", -1, disk, replace(again, undo=True)

    def _stands(self, disk: Disk, d: Driver) -> bool:
        return not self.fenced or d.number in disk.fences


def _put(entries: Entries, epoch: int, value: int) -> Entries:
    return tuple(sorted({**dict(entries), epoch: value}.items()))


def wrong(disk: Disk) -> str:
    """Which law is broken; empty if none is."""
    offsets = dict(disk.offsets)
    for epoch, rows in disk.commits:
        if epoch not in offsets:
            return f"epoch {epoch} is committed without offsets"
        if rows < offsets[epoch]:
            return f"{offsets[epoch] - rows} rows of epoch {epoch} or before are lost"
        if rows > offsets[epoch]:
            return f"{rows - offsets[epoch]} rows of epoch {epoch} or before are counted twice"
    return ""


@dataclass(frozen=True, slots=True)
class Search:
    """trace: the shortest way to a broken law, empty if there is none; why: which. ends: where every driver is over.
    came: each state that can be reached, and from where."""

    came: dict[State, tuple[State, Step] | None]
    trace: tuple[Step, ...] = ()
    why: str = ""
    ends: tuple[State, ...] = ()

    @property
    def states(self) -> int:
        return len(self.came)

    def way(self, state: State) -> tuple[Step, ...]:
        """The shortest one."""
        return _way(self.came, state)


def search(protocol: Protocol) -> Search:
    """Every state that can be reached, breadth first."""
    first = protocol.begin()
    came: dict[State, tuple[State, Step] | None] = {first: None}
    waiting, ends = deque([first]), []
    while waiting:
        state = waiting.popleft()
        if why := wrong(state.disk):
            return Search(came, _way(came, state), why)
        if all(d.at in OVER for d in state.drivers):
            ends.append(state)
        for step, after in protocol.steps(state):
            if after not in came:
                came[after] = (state, step)
                waiting.append(after)
    return Search(came, ends=tuple(ends))


def _way(came: dict[State, tuple[State, Step] | None], state: State) -> tuple[Step, ...]:
    steps: list[Step] = []
    while (before := came[state]) is not None:
        state, step = before
        steps.append(step)
    return tuple(reversed(steps))


def walked(protocol: Protocol, trace: tuple[Step, ...]) -> State:
    """Where these steps lead."""
    state = protocol.begin()
    for wanted in trace:
        state = after_step(protocol, state, wanted)
    return state


def every_step(protocol: Protocol) -> list[tuple[Step, ...]]:
    """Traces in which each step is taken with each of its results, wherever the other driver may be meanwhile."""
    ways: dict[tuple[object, ...], tuple[State, Step]] = {}
    found = search(protocol)
    for state in found.came:  # the nearest states first
        for step, after in protocol.steps(state):
            ways.setdefault(_situation(step, state, after), (state, step))
    taken: set[tuple[object, ...]] = set()
    chosen = []
    for trace in sorted(((*found.way(state), step) for state, step in ways.values()), key=len, reverse=True):
        state, here = protocol.begin(), set()
        for step in trace:
            before, state = state, after_step(protocol, state, step)
            here.add(_situation(step, before, state))
        if not here <= taken:  # a longer trace has it all
            chosen.append(trace)
            taken |= here
    assert taken >= set(ways)
    return chosen


def _situation(step: Step, before: State, after: State) -> tuple[object, ...]:
    others = tuple(d.at for i, d in enumerate(after.drivers) if i != step.driver)
    return step.name, step.detail, before.drivers[step.driver].at, after.drivers[step.driver].at, others


def after_step(protocol: Protocol, state: State, wanted: Step) -> State:
    return next(after for step, after in protocol.steps(state) if step == wanted)
