"""Every policy there is: a name, whose it is, and one implementation per stage. This map is the only registry.

The papers' policies move instances the way their systems did (migration.md's modes); the mode is an option of each,
so that all can be compared under one.
"""

from collections.abc import Mapping

from barograph.allot import Dps, Isolation, Shared, Sps
from barograph.forecast import BestOf, LastValue, NextWindow, TrendOrParents
from barograph.migrate.plan import Migrate
from barograph.model import BadInput, MigrationMode
from barograph.place.dealt import dealt
from barograph.place.even import even
from barograph.place.few_disturbed import FewDisturbed
from barograph.place.isolated import isolated
from barograph.place.offline import Offline
from barograph.place.online import Online
from barograph.place.r_storm import RStorm
from barograph.place.stay import stay
from barograph.place.steady import Steady
from barograph.place.t_storm import TStorm
from barograph.policy import Policy, learned, options_of, with_options, with_shares
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

__all__ = ["DEFAULT", "POLICIES", "Policy", "learned", "named", "options_of", "with_options", "with_shares"]

DEFAULT = "adaptive"

RESTART_APP, RESTART_QUERY = Migrate(MigrationMode.RESTART_APP), Migrate(MigrationMode.RESTART_QUERY)
WORKER, BOUNDARY = Migrate(MigrationMode.WORKER), Migrate(MigrationMode.BOUNDARY)
DELAYED = Migrate(MigrationMode.WARM_CUT, delay_s=2.0)  # N-Storm+: "2 seconds in our experiments"

# name, paper, what it does, forecaster, scaler, allotter, placer, migrator
_ALL = (
    Policy(
        "adaptive",
        "Barograph",
        "the best forecaster so far; CPU shares follow the load, instances where shares end; few moves, little traffic",
        BestOf(),
        Adaptive(),
        Shared(),
        Steady(),
        Migrate(MigrationMode.WARM_CUT, lend=True),
        heeds_triggers=True,
    ),
    Policy(
        "liu",
        "Liu et al.",
        "predicts by trend and parents; CPU share per instance, smoothed and enforced; few disturbed workers",
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
        "preventive parallelism by local and global activity; placed by r-storm, one of an operator in a worker",
        NextWindow(samples_ahead=1),
        Parallelism(),
        Shared(),
        RStorm(one_per_worker=True, anew_on_rescale=True),
        WORKER,  # it "implements the IScheduler interface", so supervisors replace the workers that change
    ),
    Policy(
        "true-rate",
        "as Flink's autoscaler",
        "instances by true processing rate, target utilisation and catch-up time; placed by r-storm",
        LastValue(),
        TrueRate(),
        Shared(),
        RStorm(),
        RESTART_QUERY,
    ),
    Policy(
        "sps",
        "Chakraborty",
        "whole nodes by static priority, nobody starves while all minimums fit",
        LastValue(),
        Measured(),
        Sps(),
        dealt,
        RESTART_QUERY,
    ),
    Policy(
        "dps",
        "Chakraborty",
        "whole nodes by dynamic priority, a level is served in full before the next",
        LastValue(),
        Measured(),
        Dps(),
        dealt,
        RESTART_QUERY,
        heeds_triggers=True,
    ),
    Policy(
        "offline",
        "Aniello et al.",
        "placed by the topology's shape: next to the components that feed them",
        LastValue(),
        Measured(),
        Shared(),
        Offline(),
        WORKER,
    ),
    Policy(
        "online",
        "Aniello et al.",
        "starts as even; then by measured traffic, where that saves over 10 % between nodes or a node is overloaded",
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
        "as n-storm, but at once, and new places are prepared for 2 s before what moves ends in the old ones",
        LastValue(),
        Measured(),
        Shared(),
        TStorm(),
        DELAYED,
    ),
    Policy(
        "even",
        "Storm's default",
        "workers over nodes and instances over workers in rounds",
        LastValue(),
        Measured(),
        Shared(),
        even,
        WORKER,
    ),
    Policy(
        "isolation",
        "Storm's isolation",
        "machines of one's own for topologies that ask for them, the rest even",
        LastValue(),
        Measured(),
        Isolation(),
        isolated,
        WORKER,
    ),
    Policy(
        "r-storm",
        "Peng et al. 2015",
        "placed by declared CPU and memory, each on the nearest node that has them; nothing enforced",
        LastValue(),
        Fixed(undeclared_pct=10.0, enforced=False),  # Storm's own default
        Shared(),
        RStorm(),
        WORKER,
    ),
    Policy(
        "t-storm",
        "Xu et al. 2014",
        "placed by falling traffic, each where it adds least between nodes",
        LastValue(),
        Measured(),
        Shared(),
        TStorm(),
        WORKER,
    ),
    Policy(
        "fixed",
        "Liu et al., baseline",
        "CPU shares as given or declared, enforced for the whole run; placed by r-storm",
        LastValue(),
        Fixed(),
        Shared(),
        RStorm(),
        WORKER,
    ),
    Policy(
        "fixed-mean",
        "Liu et al., baseline",
        "as fixed, each operator at its mean use in an unconstrained run",
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
        "as fixed, each operator at its peak use in an unconstrained run",
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
        "as fixed, each operator at what another policy (learns_from) allotted to it in total",
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
        "nothing is placed, scaled or limited: what a user has today",
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
    found = POLICIES.get(name)
    if found is None:
        raise BadInput(f"there is no policy {name!r}; there are {', '.join(POLICIES)}")
    return found
