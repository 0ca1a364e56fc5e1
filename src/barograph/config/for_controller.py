"""Options of the policy and of the controller that carries it out."""

from barograph.config.option import PLAN, REPLAY, RUN, SIM, STEER, SUBMIT, Kind, Option, Scope
from barograph.config.written.operators import SHARES
from barograph.config.written.texts import PERIODS, POLICY_OPTION
from barograph.model import MigrationMode

STEERING = (
    Option(
        name="policy", kind=Kind.TEXT, scope=Scope.CONTROLLER, metavar="P", example="adaptive",
        commands=(RUN, STEER, SUBMIT, SIM, REPLAY, PLAN), unset="none; of a command that needs one, adaptive",
        meaning="policy that controls the queries of a driver, or that is simulated, see 'barograph policies'",
    ),
    Option(
        name="options", kind=Kind.TEXTS, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT, SIM), flag="--option",
        metavar="NAME=VALUE", default=(), example="theta_pct=10",
        form=POLICY_OPTION,
        meaning="an option of the policy; may be given any number of times",
    ),
    Option(
        name="theta", kind=Kind.NUMBER, scope=Scope.CONTROLLER, commands=(RUN, SUBMIT), unit="per cent",
        metavar="PER_CENT", above=0, unset="the policy's own", example="5",
        meaning="step size of the policy's CPU shares",
    ),
    Option(
        name="migration", kind=Kind.CHOICE, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT), metavar="M",
        choices=tuple(m.value for m in MigrationMode),
        unset="the policy's own; for --at: cut", meaning="how changes are made",
    ),
    Option(
        name="share", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), metavar="OPERATOR=PER_CENT,..",
        unset="as the policy says", example="split=40", form=SHARES,
        meaning="CPU share of each instance (policy fixed only)",
    ),
    Option(
        name="like", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), metavar="FILE", unset="none",
        example="report.json", meaning="JSON report of the run to take shares from (fixed-peak, -mean, -equal)",
    ),
    Option(
        name="cycle", kind=Kind.DURATION, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT), default=2.0, above=0,
        meaning="how often the policy decides",
    ),
    Option(
        name="mode", kind=Kind.CHOICE, scope=Scope.CONTROLLER, commands=(RUN,), default="act",
        choices=("act", "advise"),
        meaning="act: apply plans; advise: only record them; submit advises unless --act is given, steer unless that "
        "or this option is given",
    ),
    Option(
        name="enforce", kind=Kind.CHOICE, scope=Scope.SESSION, commands=(RUN, SUBMIT), metavar="WAY", default="auto",
        choices=("auto", "cgroup", "cooperative", "off"),
        meaning="how executors hold instances to their CPU limits; auto: cooperative wherever Java knows the CPU time "
        "of a thread",
    ),
    Option(
        name="recovery", kind=Kind.DURATION, scope=Scope.CONTROLLER, also=Scope.QUERY, commands=(RUN, STEER, SUBMIT),
        default=30.0, above=0, off="off",
        meaning="target recovery time after a failure; no epoch of a supervised query lasts longer than it allows, "
        "under a policy that only advises if it is set; off: epochs have their own length",
    ),
    Option(
        name="history", kind=Kind.TEXT, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT), metavar="DIR",
        unset="not kept after a run; else in a folder of the log", example="history",
        meaning="folder for observations and decisions; also s3://BUCKET/FOLDER or hdfs://HOST/FOLDER",
    ),
    Option(
        name="history-size", kind=Kind.NUMBER, scope=Scope.CONTROLLER, default=512.0, above=0, unit="MB",
        meaning="size of a history above which its oldest files are deleted",
    ),
    Option(
        name="driver-gone", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=120.0, least=0, off="never",
        meaning="a controller ends when the driver has not answered for so long",
    ),
)  # fmt: skip

GUARDS = (
    Option(
        name="guards.cooldown", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=20.0, least=0,
        meaning="time after a change in which a topology is not changed again",
    ),
    Option(
        name="guards.cuts-per-hour", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=240, least=0, off="unlimited",
        meaning="maximum number of cuts in an hour, over all topologies",
    ),
    Option(
        name="guards.moves-per-hour", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=4000, least=0, off="unlimited",
        meaning="maximum number of moved instances in an hour, over all topologies",
    ),
    Option(
        name="guards.rescales-per-hour", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=60, least=0, off="unlimited",
        meaning="maximum number of rescaled operators in an hour, over all topologies",
    ),
    Option(
        name="guards.settle-cycles", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=3, least=1,
        meaning="cycles in a row in which an operator must need fewer instances before it gets fewer",
    ),
    Option(
        name="guards.stale", kind=Kind.DURATION, scope=Scope.CONTROLLER, also=Scope.SESSION, default=3.0, above=0,
        off="never",
        meaning="age of an instance's figures above which its topology is left as it is",
    ),
    Option(
        name="guards.return", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=60.0, least=0,
        meaning="time after a move in which an instance does not move back",
    ),
    Option(
        name="guards.probation", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=20.0, least=0,
        meaning="time after which a change is judged, and undone if it did not help",
    ),
    Option(
        name="guards.penance", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=120.0, least=0,
        meaning="time after an undone change in which the topology stays as it is, unless its load changes",
    ),
    Option(
        name="guards.after-loss", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=30.0, least=0,
        meaning="time after a topology has lost a worker in which it is not changed: its query has just begun anew",
    ),
    Option(
        name="guards.frozen", kind=Kind.SWITCH, scope=Scope.CONTROLLER, default=False, meaning="change nothing at all",
    ),
    Option(
        name="guards.frozen-in", kind=Kind.TEXT, scope=Scope.CONTROLLER, unset="never", metavar="PERIODS",
        example="Mo-Fr 08:00-18:00",
        form=PERIODS,
        meaning="periods of the week in which nothing is changed, separated by semicolons: days and times, and a time "
        "zone other than the machine's, as in `Sa,Su; Fr 22:00-06:00 UTC`",
    ),
    Option(
        name="quiet.calm-part", kind=Kind.NUMBER, scope=Scope.CONTROLLER, default=0.5, least=0, most=1,
        meaning="part of the recent loads' range up to which a load is quiet enough for a cut that is not urgent",
    ),
    Option(
        name="quiet.look-cycles", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=30, least=1,
        meaning="how many cycles count as recent",
    ),
    Option(
        name="quiet.most-wait", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=120.0, least=0,
        meaning="longest time that a cut waits for a quiet moment; 0s: cuts do not wait",
    ),
    Option(
        name="quiet.known-cycles", kind=Kind.WHOLE, scope=Scope.CONTROLLER, default=3, least=0,
        meaning="cycles after which the quiet load of a topology is known; cuts wait until then; 0: they do not",
    ),
    Option(
        name="epochs.down", kind=Kind.DURATION, scope=Scope.CONTROLLER, also=Scope.QUERY, default=2.0, least=0,
        meaning="time from a failure until rows flow again, as the recovery target counts it",
    ),
    Option(
        name="epochs.least", kind=Kind.DURATION, scope=Scope.CONTROLLER, also=Scope.QUERY, default=5.0, above=0,
        meaning="shortest epoch that the recovery target may lead to",
    ),
    Option(
        name="epochs.most", kind=Kind.DURATION, scope=Scope.CONTROLLER, also=Scope.QUERY, default=300.0, above=0,
        meaning="longest epoch that the recovery target may lead to",
    ),
    Option(
        name="epochs.near", kind=Kind.NUMBER, scope=Scope.CONTROLLER, also=Scope.QUERY, default=0.2, least=0, most=1,
        meaning="part of an epoch's length by which a new length must differ to be worth a change",
    ),
    Option(
        name="nodes.release-after", kind=Kind.DURATION, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT),
        default=60.0, least=0, off="never", meaning="idle time after which a node is released",
    ),
    Option(
        name="nodes.spare", kind=Kind.WHOLE, scope=Scope.CONTROLLER, commands=(RUN, STEER, SUBMIT),
        flag="--spare-nodes", default=1, least=0, meaning="idle nodes that are kept",
    ),
    Option(
        name="nodes.fill", kind=Kind.NUMBER, scope=Scope.CONTROLLER, default=85.0, above=0, most=100, unit="per cent",
        meaning="part of the nodes' CPU that the forecast may need before another node is fetched",
    ),
    Option(
        name="nodes.fetch", kind=Kind.DURATION, scope=Scope.CONTROLLER, default=15.0, above=0,
        meaning="time that fetching a node is taken to last until one was seen",
    ),
)  # fmt: skip
