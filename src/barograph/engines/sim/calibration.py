"""The simulator's constants, read from one file. Strict: a missing, unknown or negative key is named."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from barograph.config.toml_text import parse_toml
from barograph.model.checks import BadInput, require, require_number

CONSTANTS, MEASURED = "calibration.toml", "measured.json"


@dataclass(frozen=True, slots=True)
class Hop:
    """One row from one instance to another."""

    delay_s: float
    send_cpu_s: float
    receive_cpu_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """calibration.toml says what each constant is. hops: same worker, same node, other node."""

    calibrated: bool
    origin: str
    cut_order_s: float
    boundary_s: float
    cold_start_s: float
    state_load_s: float
    state_load_mb_per_s: float
    query_restart_s: float
    app_restart_s: float
    executor_start_s: float
    failure_seen_s: float
    repartition_s: float
    repartition_mb_per_s: float
    hops: tuple[Hop, Hop, Hop]
    in_flight_s: float
    in_flight_min_rows: float
    contention_loss: float
    slice_s: float


_KEYS = {
    "cut_order_s": "epoch.cut_order_s",
    "boundary_s": "epoch.boundary_s",
    "cold_start_s": "epoch.cold_start_s",
    "state_load_s": "epoch.state_load_s",
    "state_load_mb_per_s": "epoch.state_load_mb_per_s",
    "query_restart_s": "restart.query_s",
    "app_restart_s": "restart.app_s",
    "executor_start_s": "restart.executor_s",
    "failure_seen_s": "restart.failure_seen_s",
    "repartition_s": "restart.repartition_s",
    "repartition_mb_per_s": "restart.repartition_mb_per_s",
    "in_flight_s": "buffer.in_flight_s",
    "in_flight_min_rows": "buffer.in_flight_min_rows",
    "contention_loss": "cpu.contention_loss",
    "slice_s": "cpu.slice_s",
}
CONSTANT_NAMES = frozenset(_KEYS)  # the fields that are one number
_HOPS = ("same_worker", "same_node", "other_node")
_HOP_KEYS = ("delay_ms", "send_us", "receive_us")
_POSITIVE = {"epoch.state_load_mb_per_s", "restart.repartition_mb_per_s", "buffer.in_flight_min_rows"}


def read_calibration(path: Path | None = None) -> Calibration:
    """The shipped constants, or those of a file: TOML with all of them, or JSON with measured figures of benches, which
    replace the shipped ones."""
    from barograph.engines.sim.measured import parse_figures  # that module imports this one

    here = resources.files(__package__)
    shipped = parse_calibration(here.joinpath(CONSTANTS).read_text(encoding="utf-8"), CONSTANTS)
    if path is None:
        return parse_figures(here.joinpath(MEASURED).read_text(encoding="utf-8"), MEASURED, shipped)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"the calibration {str(path)!r} cannot be read: {error.strerror}") from None
    return parse_figures(text, str(path), shipped) if path.suffix == ".json" else parse_calibration(text, str(path))


def with_constants(calibration: Calibration, constants: Mapping[str, float]) -> Calibration:
    """The calibration with some constants set, by names out of ``CONSTANT_NAMES``."""
    return replace(calibration, **constants)  # type: ignore[arg-type]  # each of them names a number


def parse_calibration(text: str, where: str) -> Calibration:
    flat = _flatten(parse_toml(text, where))
    hop_keys = [f"hop.{kind}.{key}" for kind in _HOPS for key in _HOP_KEYS]
    known = {"calibrated", "origin", *_KEYS.values(), *hop_keys}
    for key in flat:
        require(key in known, f"{where}: unknown key {key!r}")
    for key in sorted(known):
        require(key in flat, f"{where}: {key} is missing")
    require(isinstance(flat["calibrated"], bool), f"{where}: calibrated must be true or false")
    require(isinstance(flat["origin"], str), f"{where}: origin must be a text")
    for key in (*_KEYS.values(), *hop_keys):
        require_number(f"{where}: {key}", flat[key])
        require(key not in _POSITIVE or flat[key] > 0, f"{where}: {key} must be above 0")
    require(flat["cpu.contention_loss"] < 1, f"{where}: cpu.contention_loss must be below 1")
    numbers: dict[str, Any] = {name: float(flat[key]) for name, key in _KEYS.items()}
    hops = tuple(
        Hop(flat[f"hop.{kind}.delay_ms"] / 1e3, flat[f"hop.{kind}.send_us"] / 1e6, flat[f"hop.{kind}.receive_us"] / 1e6)
        for kind in _HOPS
    )
    found = {"calibrated": flat["calibrated"], "origin": flat["origin"], "hops": hops, **numbers}
    return Calibration(**{f.name: found[f.name] for f in fields(Calibration)})


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
