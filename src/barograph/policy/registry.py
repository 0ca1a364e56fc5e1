"""Every policy: a name, the paper it is from, and one implementation per stage. ``POLICIES`` has Barograph's own.

Other installed packages may bring more (``entry_points``); ``named`` finds both. The papers' policies move instances
the way their systems did; the mode is an option of each, so that all can be compared under one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barograph.allot import Dps, Isolation, Shared, Sps
from barograph.forecast import BestOf, LastValue, NextWindow, TrendOrParents
from barograph.limit.limits import Limit
from barograph.migrate.plan import Migrate
from barograph.model import BadInput, MigrationMode
from barograph.model.checks import or_nearest
from barograph.place.even import even
from barograph.place.few_disturbed import FewDisturbed
from barograph.place.isolated import isolated
from barograph.place.offline import Offline
from barograph.place.online import Online
from barograph.place.r_storm import RStorm
from barograph.place.stay import stay
from barograph.place.steady import Steady
from barograph.place.t_storm import TStorm
from barograph.place.whole_nodes import whole_nodes
from barograph.policy.definition import Policy
from barograph.policy.entry_points import InstalledPolicy, installed_policies, load
from barograph.scale import (
    Adaptive,
    CpuShare,
    Fixed,
    Measured,
    Parallelism,
    TrueRate,
    equal_in_total,
    mean_used,
    peak_used,
)

DEFAULT = "adaptive"

RESTART_APP, RESTART_QUERY = Migrate(MigrationMode.RESTART_APP), Migrate(MigrationMode.RESTART_QUERY)
WORKER, BOUNDARY = Migrate(MigrationMode.WORKER), Migrate(MigrationMode.BOUNDARY)
DELAYED = Migrate(MigrationMode.WARM_CUT, delay_s=2.0)  # N-Storm+: "2 seconds in our experiments"

# name, paper, what it does, forecaster, scaler, allotter, placer, migrator, limiter
_ALL = (
    Policy(
        "adaptive",
        "Barograph",
        "uses the best of several forecasts; adjusts CPU shares first, then instances; few moves, little traffic",
        BestOf(),
        Adaptive(),
        Shared(),
        Steady(),
        Migrate(MigrationMode.WARM_CUT),
        Limit(lend=True),
        heeds_triggers=True,
    ),
    Policy(
        "liu",
        "Liu et al.",
        "forecasts by trend and upstream operators; enforces a smoothed CPU share per instance; disturbs few workers",
        TrendOrParents(),
        CpuShare(),
        Shared(),
        FewDisturbed(),
        WORKER,
        workers_per_node=2,  # one for stateful and one for stateless instances
    ),
    Policy(
        "autoscale",
        "Kombi et al.",
        "changes parallelism in advance, by local and global activity; placed by r-storm in separate workers",
        NextWindow(samples_ahead=1),
        Parallelism(),
        Shared(),
        RStorm(one_per_worker=True, anew_on_rescale=True),
        WORKER,  # it "implements the IScheduler interface", so supervisors replace the workers that change
    ),
    Policy(
        "true-rate",
        "as Flink's autoscaler",
        "sets parallelism by true processing rate, target utilisation and catch-up time; placed by r-storm",
        LastValue(),
        TrueRate(),
        Shared(),
        RStorm(),
        RESTART_QUERY,
    ),
    Policy(
        "sps",
        "Chakraborty",
        "gives whole nodes by static priority; no topology starves while all minimums fit",
        LastValue(),
        Measured(),
        Sps(),
        whole_nodes,
        RESTART_QUERY,
    ),
    Policy(
        "dps",
        "Chakraborty",
        "gives whole nodes by dynamic priority; each level is served in full before the next",
        LastValue(),
        Measured(),
        Dps(),
        whole_nodes,
        RESTART_QUERY,
        heeds_triggers=True,
    ),
    Policy(
        "offline",
        "Aniello et al.",
        "places instances by the topology's graph, next to the operators that feed them",
        LastValue(),
        Measured(),
        Shared(),
        Offline(),
        WORKER,
    ),
    Policy(
        "online",
        "Aniello et al.",
        "starts like even; then places by traffic if that saves over 10 % between nodes or a node is overloaded",
        LastValue(),
        Measured(),
        Shared(),
        Online(),
        WORKER,
    ),
    Policy(
        "n-storm",
        "N-Storm",
        "moves single instances at the next boundary and stops nothing else; placed by t-storm",
        LastValue(),
        Measured(),
        Shared(),
        TStorm(),
        BOUNDARY,
    ),
    Policy(
        "n-storm-plus",
        "N-Storm",
        "as n-storm, but at once: the targets are prepared for 2 s, then the instances move",
        LastValue(),
        Measured(),
        Shared(),
        TStorm(),
        DELAYED,
    ),
    Policy(
        "even",
        "Storm's default",
        "distributes workers over nodes and instances over workers, in turn",
        LastValue(),
        Measured(),
        Shared(),
        even,
        WORKER,
    ),
    Policy(
        "isolation",
        "Storm's isolation",
        "gives nodes of their own to topologies that ask for them; places the others like even",
        LastValue(),
        Measured(),
        Isolation(),
        isolated,
        WORKER,
    ),
    Policy(
        "r-storm",
        "Peng et al. 2015",
        "places instances by declared CPU and memory, each on the nearest node that has them; enforces nothing",
        LastValue(),
        Fixed(undeclared_pct=10.0, enforced=False),  # Storm's own default
        Shared(),
        RStorm(),
        WORKER,
    ),
    Policy(
        "t-storm",
        "Xu et al. 2014",
        "places instances with the most traffic first, each where it adds least traffic between nodes",
        LastValue(),
        Measured(),
        Shared(),
        TStorm(),
        WORKER,
    ),
    Policy(
        "fixed",
        "Liu et al., baseline",
        "enforces given or declared CPU shares for the whole run; placed by r-storm",
        LastValue(),
        Fixed(),
        Shared(),
        RStorm(),
        WORKER,
    ),
    Policy(
        "fixed-mean",
        "Liu et al., baseline",
        "as fixed; the share is the operator's mean use in a run without limits",
        LastValue(),
        Fixed(),
        Shared(),
        RStorm(),
        WORKER,
        learns=mean_used,
        learns_from="even",
    ),
    Policy(
        "fixed-peak",
        "Liu et al., baseline",
        "as fixed; the share is the operator's peak use in a run without limits",
        LastValue(),
        Fixed(),
        Shared(),
        RStorm(),
        WORKER,
        learns=peak_used,
        learns_from="even",
    ),
    Policy(
        "fixed-equal",
        "Liu et al., baseline",
        "as fixed; the shares reserve in total what another policy (learns_from) reserved for the operator",
        LastValue(),
        Fixed(),
        Shared(),
        RStorm(),
        WORKER,
        learns=equal_in_total,
        learns_from=DEFAULT,
    ),
    Policy(
        "spark",
        "Spark alone",
        "Spark without the plug-in: nothing is placed, scaled or limited",
        LastValue(),
        Measured(),
        Shared(),
        stay,
        RESTART_APP,
        workers_per_node=None,
    ),
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ALL}


def named(name: str) -> Policy:
    """One of Barograph's own policies, or else one that an installed package brings; only that package is imported."""
    found = POLICIES.get(name)
    if found is not None:
        return found
    others = installed_policies()
    for other in others:
        if other.name == name:
            return load(other, POLICIES, others)
    names = _names(others)
    raise BadInput(f"there is no policy {name!r}{or_nearest(name, names)}; there are {', '.join(names)}")


def known_names() -> list[str]:
    """Barograph's own, then those that installed packages bring. Imports none of these."""
    return _names(installed_policies())


def _names(others: Iterable[InstalledPolicy]) -> list[str]:
    return [*POLICIES, *dict.fromkeys(other.name for other in others if other.name)]


@dataclass(frozen=True, slots=True)
class Listing:
    """All policies that can be used, each with the package it comes from, and a sentence for each that cannot."""

    policies: tuple[tuple[Policy, str], ...]
    problems: tuple[str, ...]


def listing() -> Listing:
    """Imports every package that brings a policy."""
    policies = [(policy, "barograph") for policy in POLICIES.values()]
    problems: list[str] = []
    others = installed_policies()
    for other in others:
        try:
            policies.append((load(other, POLICIES, others), other.package))
        except BadInput as error:
            problems.append(str(error))
    return Listing(tuple(policies), tuple(dict.fromkeys(problems)))
