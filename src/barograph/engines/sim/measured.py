"""What was measured on Spark, as the simulator's constants: figures of the benches boundary, moves, rescale, recovery.

The file is one JSON object: a text ``machine``, and under a bench's name what that bench printed, or a part
of it. Each figure in the file replaces a constant; the others stay as in calibration.toml. With figures of all four
benches the simulator counts as calibrated.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barograph.engines.sim.calibration import Calibration
from barograph.model.checks import BadInput, require, require_number, require_plain

BENCHES = ("boundary", "moves", "rescale", "recovery")
_LEAST_S = 0.01


def parse_figures(text: str, where: str, base: Calibration) -> Calibration:
    """The constants of ``base`` with what the file says instead."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
    except RecursionError:
        raise BadInput(f"{where}: values are nested too deeply to be read") from None
    require_plain(where, found)
    require(isinstance(found, dict), f"{where}: an object is expected")
    for key in found:
        require(key in (*BENCHES, "machine"), f"{where}: unknown key {key!r}; there are machine, {', '.join(BENCHES)}")
    require(isinstance(found.get("machine"), str), f"{where}: machine must say where it was measured")
    given = [name for name in BENCHES if found.get(name)]
    figures = {name: _Figures(f"{where}: {name}", found[name]) for name in given}
    calibration = replace(
        base, calibrated=len(given) == len(BENCHES), origin=f"{', '.join(given) or 'nothing'} on {found['machine']}"
    )
    for name, take in _TAKES.items():
        if name in figures:
            calibration = take(figures[name], calibration)
    return calibration


class _Figures:
    """Numbers by their path in a bench's result."""

    def __init__(self, where: str, found: Any) -> None:
        require(isinstance(found, Mapping), f"{where} must be an object")
        self._where, self._found = where, found

    def get(self, path: str) -> float | None:
        at: Any = self._found
        for key in path.split("/"):
            if not isinstance(at, Mapping) or key not in at:
                return None
            at = at[key]
        require_number(f"{self._where}/{path}", at)
        return float(at)

    def sum(self, folder: str, *names: str) -> float | None:
        parts = [self.get(f"{folder}/{name}") for name in names]
        return None if any(p is None for p in parts) else sum(p or 0.0 for p in parts)


def _boundary(of: _Figures, c: Calibration) -> Calibration:
    """A cut: from the order until sources stop; from the last row in flight to the first new one, or else the gap."""
    stop = of.get("half_load/cut/parts_s/stop")
    stands = of.sum("half_load/cut/parts_s", "commit", "launch", "first_row")
    gap = of.get("half_load/cut/gap_s/median")
    stands = gap if stands is None else stands
    return replace(
        c,
        cut_order_s=c.cut_order_s if stop is None else stop,
        boundary_s=c.boundary_s if stands is None else stands,
    )


def _moves(of: _Figures, c: Calibration) -> Calibration:
    """What each mode adds to a cut that moves one instance without state."""
    cut = of.get("stateless/cut/1/median_pause_s")
    query = _more(of.get("stateless/restart-query/1/median_pause_s"), cut)
    worker = _more(of.get("stateless/worker/1/median_pause_s"), cut)
    app = _more(of.get("restart-app/1/pause_s"), cut)
    state = _more(of.get("stateful/cut/1/median_pause_s"), cut)
    query_s = c.query_restart_s if query is None else query
    return replace(
        c,
        query_restart_s=query_s,
        executor_start_s=c.executor_start_s if worker is None else max(_LEAST_S, worker - query_s),
        app_restart_s=c.app_restart_s if app is None else app,
        state_load_s=c.state_load_s if state is None else state,
    )


def _rescale(of: _Figures, c: Calibration) -> Calibration:
    """The part of its pause that is neither the boundary nor the query's restart."""
    pause = of.get("changes/pause_s/median")
    return c if pause is None else replace(c, repartition_s=max(_LEAST_S, pause - c.boundary_s - c.query_restart_s))


def _recovery(of: _Figures, c: Calibration) -> Calibration:
    """From a kill until the query's failure is noticed; if only the total is given, the total without the restart."""
    folder = next((f for f in ("epoch_20s", "epoch_60s", "epoch_5s") if of.get(f"{f}/down_s/median") is not None), "")
    notice, down = of.get(f"{folder}/parts_s/notice"), of.get(f"{folder}/down_s/median")
    if notice is None and down is not None:
        notice = max(_LEAST_S, down - c.query_restart_s - c.boundary_s)
    return c if notice is None else replace(c, failure_seen_s=notice)


def _more(pause_s: float | None, than_s: float | None) -> float | None:
    return None if pause_s is None or than_s is None else max(_LEAST_S, pause_s - than_s)


_TAKES = {"boundary": _boundary, "moves": _moves, "rescale": _rescale, "recovery": _recovery}
