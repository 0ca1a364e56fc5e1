"""The port to what starts and ends executors of an application. Which are needed, and when, is decided elsewhere."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from barograph.config import default
from barograph.model import RefusalCode


@dataclass(frozen=True, slots=True)
class ExecutorBounds:
    """How many executors an application keeps, and how many it may have. most None: what the cluster gives."""

    least: int = default("executors.least")
    most: int | None = default("executors.most")


@dataclass(frozen=True, slots=True)
class KeptNode:
    """Why a node is not released or fetched. Programs read the code, people the sentence."""

    code: RefusalCode
    why: str


class Executors(Protocol):
    """Of one application. The bounds are kept by ``NodeRelease``, which asks."""

    bounds: ExecutorBounds
    target: int | None
    """How many are wanted in all; None: one wherever there is room."""

    def released(self) -> tuple[str, ...]:
        """Nodes whose executors were released, and that can be wanted again."""
        ...

    def more(self, there: Collection[str]) -> int:
        """How many executors may be wanted besides those of released nodes. there: nodes with executors."""
        ...

    def want(self, count: int, node: str = "") -> None:
        """Have so many executors in all. node: a released one that is wanted again. Where an executor comes up is up to
        the cluster manager; only of an embedded cluster it is that node."""
        ...

    def release(self, node: str, ids: Collection[str]) -> KeptNode | None:
        """End the executors of a node, and want no others in their place; none ends if one of them runs a task. Call
        ``settle`` afterwards, whatever came of it. Returns None when done, else why not."""
        ...

    def settle(self) -> None:
        """Finish what ``release`` began; may take seconds."""
        ...

    def close(self) -> None:
        """The application ends."""
        ...


class ExecutorRequests(Protocol):
    """What Spark can be asked, whatever the cluster manager; dynamic allocation is not needed."""

    def end_idle(self, ids: Collection[str], left: int | None) -> bool:
        """End these executors, unless one of them runs a task. left: how many are wanted from now on; None: the
        others that live now."""
        ...

    def want_executors(self, count: int | None) -> None:
        """None: one wherever there is room."""
        ...
