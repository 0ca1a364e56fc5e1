"""Options of runs of a workload, and of the clusters that Barograph starts."""

from barograph.config.option import RUN, SUBMIT, UP, Kind, Option, Scope
from barograph.config.written.actions import ACTION
from barograph.config.written.operators import INSTANCES, MICROS
from barograph.config.written.texts import BROKERS, LOAD, MASTER

LEAST_CORES = 0.01  # the smallest CPU quota of a control group in its longest period
NODE_SEATS = 8  # of a node of a run that has one worker

RUNS = (
    Option(
        name="run.seconds", kind=Kind.NUMBER, scope=Scope.RUN, commands=(RUN,), default=60.0, above=0, unit="seconds",
        meaning="seconds until the inputs close",
    ),
    Option(
        name="run.load", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="the workload's own",
        example="constant 2000", form=LOAD,
        meaning="rows a second of each input; the help of run lists the shapes",
    ),
    Option(
        name="run.parallelism", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), metavar="OPERATOR=INSTANCES,..",
        unset="the workload's own", example="split=4", form=INSTANCES,
        meaning="instances of operators",
    ),
    Option(
        name="run.busy", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), metavar="OPERATOR=MICROSECONDS,..",
        unset="none", example="split=100", form=MICROS,
        meaning="additional CPU time of each row in these operators",
    ),
    Option(
        name="run.checkpoint", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="a temporary one",
        metavar="DIR", example="checkpoint", meaning="an empty folder, kept after the run",
    ),
    Option(
        name="run.master", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="one is started",
        example="spark://127.0.0.1:7077",
        form=MASTER,
        meaning="spark://HOST:PORT of a running cluster: one of 'barograph cluster', or any other standalone one",
    ),
    Option(
        name="run.properties-file", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="none", metavar="FILE",
        example="cluster.properties",
        meaning="Spark settings for --master, as spark-submit takes them: the cluster's secret, cores of executors",
    ),
    Option(
        name="run.at", kind=Kind.TEXTS, scope=Scope.RUN, commands=(RUN,), metavar="SECONDS:ACTION", default=(),
        example="20:cut", form=ACTION,
        meaning="an action during the run; may be given any number of times",
    ),
    Option(
        name="run.source", kind=Kind.CHOICE, scope=Scope.RUN, commands=(RUN,), default="replay",
        choices=("replay", "kafka"),
        meaning="replay: a source makes the rows; kafka: they are written into a topic when due, and read there",
    ),
    Option(
        name="run.sink", kind=Kind.CHOICE, scope=Scope.RUN, commands=(RUN,), default="none", choices=("none", "kafka"),
        meaning="kafka: the result is written into a topic, which is judged too",
    ),
    Option(
        name="run.brokers", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="one is started",
        metavar="HOST:PORT,..", example="127.0.0.1:9092", form=BROKERS,
        meaning="Kafka's brokers for --source kafka",
    ),
    Option(
        name="run.brokers-file", kind=Kind.TEXT, scope=Scope.RUN, commands=(RUN,), unset="none", metavar="FILE",
        example="client.properties", meaning="options of Kafka's clients for --brokers, such as a login",
    ),
    Option(
        name="run.behind", kind=Kind.DURATION, scope=Scope.RUN, commands=(RUN,), default=0.0, least=0,
        meaning="the load starts that long before the query, which begins with the backlog of that time",
    ),
    Option(
        name="run.drain", kind=Kind.DURATION, scope=Scope.RUN, commands=(RUN,), default=120.0, above=0,
        meaning="maximum time for draining",
    ),
    Option(
        name="run.node-cpu", kind=Kind.CORES, scope=Scope.RUN, commands=(RUN,), default=0.6, least=LEAST_CORES,
        metavar="CORES", meaning="cores of each node of a run: one number, or 0.6,0.3,0.9",
    ),
    Option(
        name="run.seats", kind=Kind.WHOLE, scope=Scope.RUN, commands=(RUN,), least=1, example="8",
        unset=f"{NODE_SEATS} on each node", meaning="instances that each worker of a run can hold",
    ),
    Option(
        name="run.executors", kind=Kind.WHOLE, scope=Scope.RUN, commands=(RUN,), least=1, example="1",
        unset="what the policy needs, mostly 1", meaning="workers on each node of a run",
    ),
    Option(
        name="epoch", kind=Kind.DURATION, scope=Scope.RUN, commands=(RUN,), default=60.0, least=1,
        meaning="length of an epoch that is not cut",
    ),
    Option(
        name="timeout", kind=Kind.DURATION, scope=Scope.SESSION, commands=(RUN, SUBMIT), default=30.0, above=0,
        meaning="latency above which a row of a query is late",
    ),
)  # fmt: skip

CLUSTERS = (
    Option(
        name="cluster.nodes", kind=Kind.WHOLE, scope=Scope.CLUSTER, commands=(RUN, UP), default=3, least=1, most=250,
        meaning="nodes to start",
    ),
    Option(
        name="cluster.node-cpu", kind=Kind.CORES, scope=Scope.CLUSTER, commands=(UP,), least=LEAST_CORES,
        metavar="CORES", off="unlimited", example="0.6", unset="no limit",
        meaning="cores of each node: one number, or 0.6,0.3,0.9",
    ),
    Option(
        name="cluster.seats", kind=Kind.WHOLE, scope=Scope.CLUSTER, commands=(UP,), least=1, example="4",
        unset="4, or as many more as make four for each core of all nodes", meaning="seats of each executor",
    ),
    Option(
        name="cluster.executors", kind=Kind.WHOLE, scope=Scope.CLUSTER, commands=(UP,), default=1, least=1,
        meaning="executors on each node",
    ),
    Option(
        name="cluster.memory", kind=Kind.WHOLE, scope=Scope.CLUSTER, commands=(UP,), default=1024, least=512,
        metavar="MB", unit="MB", meaning="heap of each executor; a run divides it among the workers of a node",
    ),
    Option(
        name="cluster.port", kind=Kind.WHOLE, scope=Scope.CLUSTER, commands=(RUN, UP), least=1, most=65535,
        unset="a free one", example="7077", meaning="port of the master",
    ),
)  # fmt: skip
