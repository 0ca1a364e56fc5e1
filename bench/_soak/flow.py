"""What the soak's driver tells the bench, in a file that is replaced some times a second. Times are monotonic."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Flow:
    """run: the query run; flowing_since_s: when its first row came out, with all instances up; None: none has yet.

    last_row_s: when rows last came out. executors: those with instances. controller: its process; waits: it has done a
    cycle. heap_mb: of the driver's JVM after a collection. deaths: causes of restarts of the query, and how long each
    took.
    """

    pid: int
    run: str = ""
    flowing_since_s: float | None = None
    last_row_s: float = 0.0
    executors: tuple[str, ...] = ()
    controller: int = 0
    controller_waits: bool = False
    heap_mb: float = 0.0
    deaths: tuple[tuple[str, float], ...] = ()


def write(flow: Flow, folder: Path) -> None:
    fresh = folder / f".flow.{flow.pid}"
    fresh.write_text(json.dumps(asdict(flow)))
    fresh.replace(folder / "flow.json")


def read(folder: Path) -> Flow | None:
    try:
        raw = json.loads((folder / "flow.json").read_text())
    except OSError:
        return None
    deaths = tuple((str(cause), float(down_s)) for cause, down_s in raw.pop("deaths"))
    return Flow(executors=tuple(raw.pop("executors")), deaths=deaths, **raw)
