"""Options of queries: queues, priorities, restarts, and what the plug-in reads from Spark's configuration."""

from barograph.config.option import RUN, Kind, Option, Scope

QUERIES = (
    Option(
        name="in-flight", kind=Kind.DURATION, scope=Scope.QUERY, commands=(RUN,), default=0.2, least=0,
        key="spark.barograph.inFlightMs",
        meaning="maximum queueing time in front of an instance; 0s: no limit",
    ),
    Option(
        name="query.level", kind=Kind.WHOLE, scope=Scope.QUERY, default=2, least=1,
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
        name="executor.hung-after", kind=Kind.DURATION, scope=Scope.QUERY, default=12.0, least=5, off="off",
        meaning="an executor that does not report for so long, while others do, is ended and replaced; longer than any "
        "garbage collection, and short enough for the recovery target",
    ),
    Option(
        name="latency.column", kind=Kind.TEXT, scope=Scope.QUERY, default="barograph_due_ms",
        meaning="column with the time at which a row fell due, or at which its event happened",
    ),
    Option(
        name="latency.read-column", kind=Kind.TEXT, scope=Scope.QUERY, default="barograph_read_ms",
        meaning="column with the time at which a row was read",
    ),
    Option(
        name="allowlist-check", kind=Kind.SWITCH, scope=Scope.QUERY, default=True,
        meaning="refuse queries with operators or sinks that Spark does not allow in real-time mode; the sinks `noop` "
        "and `memory`, and the one that times rows in runs, are allowed",
    ),
)  # fmt: skip
