"""Options of queries: queues, priorities, operators, quotas, triggers, restarts, and what the plug-in reads."""

from barograph.config.option import RUN, SUBMIT, Kind, Option, Scope
from barograph.config.written.operators import NAMES, NUMBERS, RANGES
from barograph.model.topology import LEVEL

QUERIES = (
    Option(
        name="in-flight", kind=Kind.DURATION, scope=Scope.SESSION, commands=(RUN, SUBMIT), default=0.2, least=0,
        key="spark.barograph.inFlightMs",
        meaning="maximum queueing time in front of an instance; 0s: no limit",
    ),
    Option(
        name="query.level", kind=Kind.WHOLE, scope=Scope.QUERY, default=LEVEL, least=1,
        meaning="priority of a query; 1 is highest",
    ),
    Option(
        name="query.desired-nodes", kind=Kind.WHOLE, scope=Scope.QUERY, least=1, unset="left to the policy",
        example="2", meaning="nodes that a query should have, for policies that share out whole nodes",
    ),
    Option(
        name="query.minimum-nodes", kind=Kind.WHOLE, scope=Scope.QUERY, least=0, unset="left to the policy",
        example="1", meaning="nodes that a query must have, for policies that share out whole nodes",
    ),
    Option(
        name="query.workers", kind=Kind.WHOLE, scope=Scope.QUERY, least=1, unset="left to the policy", example="2",
        meaning="workers that a query should have, for policies that count workers",
    ),
    Option(
        name="query.isolate-nodes", kind=Kind.WHOLE, scope=Scope.QUERY, default=0, least=0,
        meaning="nodes that a query has to itself, for policies that isolate queries",
    ),
    Option(
        name="query.instances", kind=Kind.TEXT, scope=Scope.QUERY, metavar="OPERATOR=LEAST..MOST,..", unset="no bounds",
        example="split=1..8", form=RANGES,
        meaning="least and most instances of operators, whatever the policy; `OPERATOR`, or "
        "`QUERY/OPERATOR` for those of one query",
    ),
    Option(
        name="query.excluded", kind=Kind.TEXT, scope=Scope.QUERY, metavar="OPERATOR,..", unset="none", example="count",
        form=NAMES,
        meaning="operators whose number of instances is never changed",
    ),
    Option(
        name="query.cpu", kind=Kind.TEXT, scope=Scope.QUERY, metavar="OPERATOR=PER_CENT,..", unset="measured",
        example="split=40",
        form=NUMBERS,
        meaning="CPU that one instance of an operator needs, in per cent of a core, for policies that use declared CPU",
    ),
    Option(
        name="query.memory", kind=Kind.TEXT, scope=Scope.QUERY, metavar="OPERATOR=MB,..", unset="none",
        example="split=256", form=NUMBERS,
        meaning="memory that one instance of an operator needs, for policies that place by memory",
    ),
    Option(
        name="query.quota-cpu", kind=Kind.NUMBER, scope=Scope.QUERY, above=0, unit="per cent", unset="no quota",
        example="150", meaning="the most CPU that all instances of a query together may have, in per cent of a core",
    ),
    Option(
        name="query.quota-executors", kind=Kind.WHOLE, scope=Scope.QUERY, least=1, unset="no quota", example="2",
        meaning="the most executors on which a query may have instances",
    ),
    Option(
        name="query.target-p99", kind=Kind.NUMBER, scope=Scope.QUERY, commands=(RUN, SUBMIT), above=0, unit="ms",
        metavar="MS", unset="no target", example="200",
        meaning="what the 99th percentile of a query's complete times should stay below; `adaptive` then holds the "
        "least CPU that its forecast needs for it",
    ),
    Option(
        name="priority.rate", kind=Kind.NUMBER, scope=Scope.QUERY, above=0, unit="rows/s", unset="no such trigger",
        example="2000", meaning="arrivals above which the trigger of a query is turned on",
    ),
    Option(
        name="priority.rate-for", kind=Kind.DURATION, scope=Scope.QUERY, default=3.0, above=0,
        meaning="how long arrivals must be above priority.rate",
    ),
    Option(
        name="priority.rate-off-part", kind=Kind.NUMBER, scope=Scope.QUERY, default=0.8, least=0, most=1,
        meaning="part of priority.rate below which the trigger is turned off",
    ),
    Option(
        name="priority.rate-off-for", kind=Kind.DURATION, scope=Scope.QUERY, default=10.0, above=0,
        meaning="how long arrivals must be below that part",
    ),
    Option(
        name="priority.above", kind=Kind.NUMBER, scope=Scope.QUERY, unset="no such trigger", example="30",
        meaning="value above which a row counts as a raw event; the program reports values with `barograph.batch_seen`",
    ),
    Option(
        name="priority.above-part", kind=Kind.NUMBER, scope=Scope.QUERY, default=0.8, least=0, most=1,
        meaning="part of a batch's rows that must be raw events for the trigger to be turned on",
    ),
    Option(
        name="priority.above-off-part", kind=Kind.NUMBER, scope=Scope.QUERY, default=0.5, least=0, most=1,
        meaning="part of a batch's rows below which it is turned off",
    ),
    Option(
        name="priority.level", kind=Kind.WHOLE, scope=Scope.QUERY, default=1, least=1,
        meaning="level of a query while one of these triggers is on",
    ),
    Option(
        name="restart.same-failures", kind=Kind.WHOLE, scope=Scope.QUERY, default=3, least=1,
        meaning="the same failure so many times at one epoch is a bug, and the query is not restarted",
    ),
    Option(
        name="restart.in-a-row", kind=Kind.WHOLE, scope=Scope.QUERY, default=10, least=1,
        meaning="deaths without a committed epoch between them after which a query is not restarted, if they are "
        "spread over restart.keep-trying",
    ),
    Option(
        name="restart.keep-trying", kind=Kind.DURATION, scope=Scope.QUERY, default=600.0, least=0,
        meaning="how long a query that commits nothing is restarted at least: so long may files, connections or space "
        "be missing",
    ),
    Option(
        name="restart.within", kind=Kind.DURATION, scope=Scope.QUERY, default=3600.0, least=0,
        meaning="deaths that are longer ago do not count for restart.in-a-row",
    ),
    Option(
        name="restart.first-wait", kind=Kind.DURATION, scope=Scope.QUERY, default=0.25, least=0,
        meaning="wait before the second restart in a row; it doubles with each further one",
    ),
    Option(
        name="restart.longest-wait", kind=Kind.DURATION, scope=Scope.QUERY, default=15.0, least=0,
        meaning="longest wait before a restart",
    ),
    Option(
        name="restart.patience", kind=Kind.DURATION, scope=Scope.QUERY, default=120.0, least=0,
        meaning="longest wait for seats before a query is given up",
    ),
    Option(
        name="lease.patience", kind=Kind.DURATION, scope=Scope.SESSION, live=True, default=10.0, least=1,
        key="spark.barograph.leasePatienceMs",
        meaning="a driver that has not renewed its lease on a checkpoint for so long may lose it to another driver",
    ),
    Option(
        name="executor.hung-after", kind=Kind.DURATION, scope=Scope.SESSION, default=12.0, least=5, off="off",
        meaning="an executor that does not report for so long, while others do, is ended and replaced; if none "
        "reports, all are after half as long again. Longer than any garbage collection, and short enough for the "
        "recovery target. The master and the workers of an embedded cluster may be stopped for as long",
    ),
    Option(
        name="executors.least", kind=Kind.WHOLE, scope=Scope.SESSION, default=1, least=1,
        meaning="executors of an application that are not released, however idle they are",
    ),
    Option(
        name="executors.most", kind=Kind.WHOLE, scope=Scope.SESSION, least=1, example="8",
        unset="as many as it begins with; on a standalone cluster, as many as there is room for",
        meaning="executors that an application may have; on YARN and Kubernetes further ones are asked for when the "
        "load needs them",
    ),
    Option(
        name="latency.column", kind=Kind.TEXT, scope=Scope.SESSION, live=True, default="barograph_due_ms",
        meaning="column with the time at which a row fell due, or at which its event happened",
    ),
    Option(
        name="latency.read-column", kind=Kind.TEXT, scope=Scope.SESSION, live=True, default="barograph_read_ms",
        meaning="column with the time at which a row was read",
    ),
    Option(
        name="allowlist-check", kind=Kind.SWITCH, scope=Scope.SESSION, default=True,
        meaning="refuse queries with operators or sinks that Spark does not allow in real-time mode; the sinks `noop` "
        "and `memory`, and the one that times rows in runs, are allowed",
    ),
)  # fmt: skip
