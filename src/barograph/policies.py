"""Policies: each a name for one implementation per stage. This map is the only registry there is.

A stage's options are the fields of its implementation; ``with_options`` sets them by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from typing import ClassVar

from barograph.allot import Allotter, Shared
from barograph.forecast import BestOf, Forecaster, LastValue, TrendOrParents
from barograph.migrate import Migrator
from barograph.migrate.plan import Migrate
from barograph.model import BadInput, MigrationMode
from barograph.place import Placer
from barograph.place.even import even
from barograph.place.stay import stay
from barograph.scale import Adaptive, CpuShare, Fixed, Measured, Scaler

STORM = "Storm's default"
LIU = "Liu et al., adaptive online scheduling"


@dataclass(frozen=True)
class Policy:
    """horizon_cycles: how far ahead it forecasts. cycle_s: how often it decides, unless its user says otherwise."""

    name: str
    paper: str
    line: str
    forecaster: Forecaster
    scaler: Scaler
    allotter: Allotter
    placer: Placer
    migrator: Migrator
    horizon_cycles: int = 1
    cycle_s: float = 10.0

    STAGES: ClassVar[tuple[str, ...]] = ("forecaster", "scaler", "allotter", "placer", "migrator")


DEFAULT = "adaptive"

POLICIES: Mapping[str, Policy] = {
    p.name: p
    for p in (
        Policy(
            "adaptive",
            "ours",
            "forecasts by what forecast best so far; CPU shares follow the load, instances follow where shares end",
            BestOf(),
            Adaptive(),
            Shared(),
            even,
            Migrate(MigrationMode.WARM_CUT),
        ),
        Policy(
            "liu",
            LIU,
            "larger of trend and parents; CPU share per instance, smoothed",
            TrendOrParents(),
            CpuShare(),
            Shared(),
            even,
            Migrate(MigrationMode.WORKER),
        ),
        Policy(
            "fixed",
            "Liu et al., R-Storm with a given declaration",
            "CPU shares as declared or given, for the whole run",
            LastValue(),
            Fixed(),
            Shared(),
            even,
            Migrate(MigrationMode.WORKER),
        ),
        Policy(
            "even",
            STORM,
            "workers over nodes and instances over workers in rounds",
            LastValue(),
            Measured(),
            Shared(),
            even,
            Migrate(MigrationMode.WORKER),
        ),
        Policy(
            "spark",
            "Spark alone",
            "nothing is placed, scaled or limited: what a user has today",
            LastValue(),
            Measured(),
            Shared(),
            stay,
            Migrate(),
        ),
    )
}


def named(name: str) -> Policy:
    found = POLICIES.get(name)
    if found is None:
        raise BadInput(f"there is no policy {name!r}; there are {', '.join(POLICIES)}")
    return found


def options_of(policy: Policy) -> dict[str, object]:
    """Every option by its name, as it stands. One that several stages share (phi) is listed once."""
    found: dict[str, object] = {"horizon_cycles": policy.horizon_cycles, "cycle_s": policy.cycle_s}
    for stage in Policy.STAGES:
        found |= dict(_options(getattr(policy, stage)))
    return found


def _options(stage: object) -> Iterator[tuple[str, object]]:
    if not is_dataclass(stage):
        return
    for f in fields(stage):
        value = getattr(stage, f.name)
        if isinstance(value, tuple) and value and all(is_dataclass(v) for v in value):
            for part in value:
                yield from _options(part)
        else:
            yield f.name, value


def with_options(policy: Policy, options: Mapping[str, object]) -> Policy:
    """The policy with options set by name, in every stage that has one of that name."""
    known = options_of(policy)
    for name, value in options.items():
        if name not in known:
            raise BadInput(f"policy {policy.name} has no option {name!r}; it has {', '.join(sorted(known))}")
        fitting = _fitting(f"option {name} of policy {policy.name}", known[name], value)
        if name in ("horizon_cycles", "cycle_s"):
            policy = replace(policy, **{name: fitting})  # type: ignore[arg-type]  # _fitting gave it that type
            continue
        changed = {stage: _with_option(getattr(policy, stage), name, fitting) for stage in Policy.STAGES}
        policy = replace(policy, **changed)  # type: ignore[arg-type]  # a stage stays what it was
    return policy


def _with_option(stage: object, name: str, value: object) -> object:
    if not is_dataclass(stage) or isinstance(stage, type):
        return stage
    changes: dict[str, object] = {}
    for f in fields(stage):
        present = getattr(stage, f.name)
        if f.name == name:
            changes[name] = value
        elif isinstance(present, tuple) and present and all(is_dataclass(v) for v in present):
            changes[f.name] = tuple(_with_option(v, name, value) for v in present)
    return replace(stage, **changes) if changes else stage


def _fitting(what: str, present: object, value: object) -> object:
    """The value in the type of the present one, or a clear refusal."""
    if isinstance(present, StrEnum):
        kind = type(present)
        if not isinstance(value, str) or value not in set(kind):
            raise BadInput(f"{what} must be one of {', '.join(kind)}, not {value!r}")
        return kind(value)
    if isinstance(present, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if present is not None and type(value) is not type(present):
        raise BadInput(f"{what} must be like {present!r}, not {value!r}")
    return value
