"""Which controllers are attached to a driver: any number may advise, and one may act. It starts and ends none.

A controller is named by the process that keeps it, because that one outlives each start of the controller. If that
process is gone, so is the controller, however it ended.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from barograph.config import OPTIONS
from barograph.engines.spark.cluster.processes import Process, alive, identify
from barograph.model import BadInput
from barograph.model.checks import require, require_number

logger = logging.getLogger(__name__)  # "log" is a field here

ACT, ADVISE = OPTIONS["mode"].choices
_REMEMBERED = 10  # of those that have ended: their histories can still be read


@dataclass(frozen=True, slots=True)
class ControllerEntry:
    """One controller. history: its folder. log: its file; empty if it has none. pid: of the process that keeps it.
    cycle_s: it sends a plan so often, if it acts."""

    number: int
    policy: str
    mode: str
    history: str
    log: str
    pid: int
    since_ms: int
    cycle_s: float = 0.0


class AttachedControllers:
    """Of one driver. All but the verb is for this process."""

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._clock = wall, clock
        self._lock = threading.Lock()
        self._entries: dict[int, tuple[ControllerEntry, Process | None]] = {}  # None: it was detached
        self._next = 1
        self.left_s: float | None = None
        """When the last one that acted was detached in order, on the machine's monotonic clock; None if one that acts
        was attached since, or none ever was."""

    def attach(self, policy: str, mode: str, history: str, log: str, pid: int, cycle_s: float = 0.0) -> int:
        """Returns its number. A second one that acts is refused, because plans of two would undo each other."""
        require(mode in (ACT, ADVISE), f"the mode must be {ACT} or {ADVISE}, not {mode!r}")
        keeper = identify(pid)
        require(keeper is not None, f"the process {pid}, which should keep the controller, is not there")
        with self._lock:
            acting = self._acting()
            if mode == ACT and acting is not None:
                raise BadInput(
                    f"a controller (policy {acting.policy}, process {acting.pid}) already acts on this driver: end "
                    "that one first, or only advise"
                )
            number, self._next = self._next, self._next + 1
            entry = ControllerEntry(number, policy, mode, history, log, pid, round(self._wall() * 1000), cycle_s)
            self._entries[number] = entry, keeper
            for old in [e.number for e, there in self._now() if not there][:-_REMEMBERED]:
                del self._entries[old]
            if mode == ACT:
                self.left_s = None
        logger.info("controller %d (policy %s, process %d) is attached to %s", number, policy, pid, mode)
        return number

    def detach(self, number: int) -> None:
        with self._lock:
            if number not in self._entries:
                return
            entry, was_there = self._entries[number]
            self._entries[number] = entry, None
            if entry.mode == ACT and was_there is not None:
                self.left_s = self._clock()
        logger.info("controller %d (policy %s) is detached", number, entry.policy)

    def acting(self) -> ControllerEntry | None:
        """The one that acts now."""
        with self._lock:
            return self._acting()

    def table(self) -> list[dict[str, Any]]:
        """Oldest first, as JSON. ``attached``: whether it is there now."""
        with self._lock:
            return [{**asdict(entry), "attached": there} for entry, there in self._now()]

    def only_advise(self) -> bool:
        """Whether controllers are attached and none of them acts."""
        with self._lock:
            modes = {entry.mode for entry, there in self._now() if there}
        return modes == {ADVISE}

    def verb(self, body: Any) -> Any:
        """Without a body the table; else attach or detach one."""
        if body is None:
            return self.table()
        require(isinstance(body, dict), "controllers: the request must be an object")
        if body.get("do") == "detach":
            self.detach(_whole(body, "number"))
            return None
        require(body.get("do") == "attach", f"controllers: there is no {body.get('do')!r}; there are attach and detach")
        texts = [body.get(name) for name in ("policy", "mode", "history", "log")]
        require(all(isinstance(t, str) for t in texts), "controllers: policy, mode, history and log must be texts")
        policy, mode, history, log = map(str, texts)
        cycle_s = body.get("cycle_s", 0.0)
        require_number("controllers: cycle_s", cycle_s)
        return self.attach(policy, mode, history, log, _whole(body, "pid"), float(cycle_s))

    def _acting(self) -> ControllerEntry | None:
        return next((e for e, there in self._now() if there and e.mode == ACT), None)

    def _now(self) -> list[tuple[ControllerEntry, bool]]:
        return [(entry, keeper is not None and alive(keeper)) for entry, keeper in self._entries.values()]


def _whole(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"controllers: {name} must be a whole number, not {value!r}")
    return value
