"""What a policy is: one implementation per stage, with their options. Which policies there are is in registry.py.

A stage's options are the fields of its implementation; they are set by name, in every stage that has one of that name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import ClassVar

from barograph.allot import Allotter
from barograph.forecast import Forecaster
from barograph.limit import Limiter
from barograph.limit.limits import Limit
from barograph.migrate import Migrator
from barograph.model import BadInput, Cycle
from barograph.model.checks import or_nearest, require
from barograph.place import Placer
from barograph.scale import Fixed, Scaler


@dataclass(frozen=True)
class Policy:
    """horizon_cycles: how far ahead it forecasts. How often it decides is not the policy's: the option ``cycle`` says
    that, or the scenario of a simulation.

    heeds_triggers: whether a trigger may change a topology's level while this policy steers. Where it does not, levels
    are what users set: a trigger pauses nothing and changes nothing.
    learns, learns_from: of baselines that get their shares from another run: how they take them from it, and the name
    of that run's policy, which is an option. ``learned`` applies it.

    workers_per_node: how many workers the policy wants on each node; an engine that starts workers starts as many.
    None: the policy places nothing, so any number will do.
    """

    name: str
    paper: str
    line: str
    forecaster: Forecaster
    scaler: Scaler
    allotter: Allotter
    placer: Placer
    migrator: Migrator
    limiter: Limiter = field(default_factory=Limit)
    horizon_cycles: int = 1
    heeds_triggers: bool = False
    learns: Callable[[Sequence[Cycle]], Mapping[tuple[str, str], float]] | None = None
    learns_from: str = ""
    workers_per_node: int | None = 1

    STAGES: ClassVar[tuple[str, ...]] = ("forecaster", "scaler", "allotter", "placer", "limiter", "migrator")


def learned(policy: Policy, run: Sequence[Cycle]) -> Policy:
    """The policy with the shares it takes from another run."""
    if policy.learns is None or not isinstance(policy.scaler, Fixed):
        raise BadInput(f"policy {policy.name} takes nothing from another run")
    require(len(run) > 0, f"policy {policy.name} needs a run of at least one cycle to take its shares from")
    return replace(policy, scaler=replace(policy.scaler, shares_pct=policy.learns(run)))


def with_shares(policy: Policy, shares_pct: Mapping[str, float]) -> Policy:
    """The policy with fixed shares by ``topology/operator``, as far as they are given."""
    if not shares_pct:
        return policy
    if not isinstance(policy.scaler, Fixed):
        raise BadInput(f"policy {policy.name} has no fixed shares")
    keys = {_key(name): share for name, share in shares_pct.items()}
    return replace(policy, scaler=replace(policy.scaler, shares_pct=keys))


def _key(name: str) -> tuple[str, str]:
    topology, _, operator = name.rpartition("/")
    return topology, operator


def _own_options(policy: Policy) -> tuple[str, ...]:
    """Options of the policy itself, not of one of its stages."""
    return ("horizon_cycles",) + (() if policy.learns is None else ("learns_from",))


def options_of(policy: Policy) -> dict[str, object]:
    """Every option by name, with its present value. One that several stages share (phi) is listed once."""
    found: dict[str, object] = {name: getattr(policy, name) for name in _own_options(policy)}
    for stage in Policy.STAGES:
        found |= dict(_options(getattr(policy, stage)))
    return found


def _options(stage: object) -> Iterator[tuple[str, object]]:
    if not is_dataclass(stage):
        return
    for f in fields(stage):
        value = getattr(stage, f.name)
        if _is_stages(value):
            for part in value:
                yield from _options(part)
        else:
            yield f.name, value


def _is_stages(value: object) -> bool:
    """Whether a field holds other implementations, such as the candidates of best-of."""
    return isinstance(value, tuple) and bool(value) and all(is_dataclass(v) for v in value)


def with_options(policy: Policy, options: Mapping[str, object]) -> Policy:
    """The policy with options set by name, in every stage that has one of that name."""
    known = options_of(policy)
    for name, value in options.items():
        if name not in known:
            near = or_nearest(name, known)
            raise BadInput(f"policy {policy.name} has no option {name!r}{near}; it has {', '.join(sorted(known))}")
        fitting = _fitting(f"option {name} of policy {policy.name}", known[name], value)
        changed = {stage: _with_option(getattr(policy, stage), name, fitting) for stage in Policy.STAGES}
        changed |= {name: fitting} if name in _own_options(policy) else {}
        policy = replace(policy, **changed)  # type: ignore[arg-type]  # each keeps its type
    return policy


def _with_option(stage: object, name: str, value: object) -> object:
    if not is_dataclass(stage) or isinstance(stage, type):
        return stage
    changes: dict[str, object] = {}
    for f in fields(stage):
        present = getattr(stage, f.name)
        if f.name == name:
            changes[name] = value
        elif _is_stages(present):
            changes[f.name] = tuple(_with_option(v, name, value) for v in present)
    return replace(stage, **changes) if changes else stage


def _fitting(what: str, present: object, value: object) -> object:
    """The value in the type of the present one; where that is None, a number. Raises BadInput where it does not fit."""
    if isinstance(present, StrEnum):
        kind = type(present)
        if not isinstance(value, str) or value not in set(kind):
            raise BadInput(f"{what} must be one of {', '.join(kind)}, not {value!r}")
        return kind(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(present, float) and is_number:
        return float(value)  # type: ignore[arg-type]  # it is a number
    fits = is_number if present is None else type(value) is type(present) or isinstance(present, Mapping)
    require(fits, f"{what} must be {'a number' if present is None else f'like {present!r}'}, not {value!r}")
    return value
