"""Policies that other installed packages bring, found through the entry point group ``barograph.policies``.

A package is imported only when its policy is asked for by name or when policies are listed. A package that cannot be
used is reported in one sentence and does not affect other policies. A package cannot replace a policy of Barograph.
"""

from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions

from barograph.model import BadInput
from barograph.policy.definition import Policy

GROUP = "barograph.policies"


@dataclass(frozen=True, slots=True)
class InstalledPolicy:
    """One entry point, not loaded. ``problem`` says why its package cannot be read; empty where it can."""

    name: str
    package: str
    entry: EntryPoint | None = None
    problem: str = ""


def installed_policies() -> tuple[InstalledPolicy, ...]:
    """The entry points of all installed packages, in the order of the import path. Imports none of them."""
    found: list[InstalledPolicy] = []
    packages = set[str]()
    for distribution in distributions():
        if f"[{GROUP}]" not in (distribution.read_text("entry_points.txt") or ""):
            continue
        package = distribution.name
        if package not in packages:  # a second copy further down the import path is not the one that is imported
            packages.add(package)
            found += _entries(distribution, package)
    return tuple(found)


def _entries(distribution: Distribution, package: str) -> list[InstalledPolicy]:
    try:
        entries = distribution.entry_points.select(group=GROUP)
    except Exception as error:  # noqa: BLE001  # the file is whatever its package wrote
        return [InstalledPolicy("", package, problem=f"the entry points of package {package} cannot be read: {error}")]
    return [InstalledPolicy(entry.name, package, entry) for entry in entries]


def load(found: InstalledPolicy, taken: Collection[str], among: Collection[InstalledPolicy]) -> Policy:
    """The policy itself; BadInput with one sentence where it cannot be used.

    taken: names of Barograph's own policies. among: all installed policies, to see which names are there twice.
    """
    if found.entry is None:
        raise BadInput(found.problem)
    here = f"policy {found.name!r} of package {found.package}"
    if found.name in taken:
        raise BadInput(f"{here} is not used: Barograph has a policy of that name; rename the entry point")
    same = [other.package for other in among if other.name == found.name]
    if len(same) > 1:
        raise BadInput(f"policy {found.name!r} is brought by {' and '.join(same)}; uninstall all but one of them")
    try:
        policy = found.entry.load()
    except (Exception, SystemExit) as error:  # importing runs the package's own code, which may raise anything
        raise BadInput(f"{here} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(policy, Policy):
        raise BadInput(f"{here} is not usable: {found.entry.value} must be a Policy, not a {type(policy).__name__}")
    if policy.name != found.name:
        raise BadInput(f"{here} is not usable: the name of its Policy, {policy.name!r}, differs from the entry point's")
    for stage in Policy.STAGES:
        if not callable(getattr(policy, stage)):
            raise BadInput(f"{here} is not usable: its {stage} cannot be called")
    return policy
