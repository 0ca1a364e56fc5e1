"""Run a program of your own under Barograph, unchanged: a PySpark script, or a jar of Scala or Java.

barograph submit app.py ARGUMENTS                              on a small cluster that is started on this machine
barograph submit --master spark://HOST:7077 app.py ARGUMENTS   on your cluster (standalone, YARN, Kubernetes, local[N])
barograph submit --act --policy adaptive app.py                the policy also changes what runs where
barograph submit --class Main app.jar ARGUMENTS                an application in Scala or Java

Every real-time query with a checkpoint is kept: it is started again from its checkpoint whenever an executor or a node
is lost, and query.awaitTermination() and spark.streams go on. Any other query runs as Spark runs it, and one line says
why it is not kept. Settings of the script and of spark-submit hold; jar, plug-in and planner rule are added to them,
and executors get the jar from the driver.

Without --act a policy only advises: it says what it would change, and nothing is changed. barograph status shows what
runs, barograph decisions what was decided, from any other terminal.

Options of spark-submit come before the script and are passed on. What follows the script is its own. Spark Connect
and --deploy-mode cluster are refused. Options of queries and controllers in barograph.toml hold. Those with a flag here
reach the program as --conf of their spark.barograph.* key does, and those without one can be set by --conf.

Queries of a jar are watched and steered too. Their handles are Spark's own, so they are kept in another way: if main
ends because a query died with an executor, main is called again. Stateful operators keep their number of instances.
"""

import argparse
import sys
from typing import Any

from barograph.cli.support.spark_words import SWITCHES, VALUED
from barograph.config.declared import OPTIONS
from barograph.config.flags import add_flags, add_option_flags, config_of
from barograph.config.option import SPARK_PREFIX, SUBMIT, UP, Scope
from barograph.config.resolved import Config
from barograph.model.checks import require
from barograph.policy.configured import require_policy
from barograph.policy.registry import DEFAULT


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barograph submit [options] [options of spark-submit] SCRIPT.py|APP.jar [ARGUMENT ...]"
    parser.add_argument("--act", action="store_true", help="the policy changes what runs where; without it, it advises")
    add_option_flags(parser, SUBMIT)
    parser.add_argument("--workloads", action="store_true", help="add the jar with the replay source too")
    cluster = parser.add_argument_group("the cluster that is started without --master")
    add_flags(cluster, UP)
    spark = parser.add_argument_group("options of spark-submit")
    for name, help_line in VALUED.items():
        spark.add_argument(name, dest="spark", action=_Passed, default=[], metavar="VALUE", help=help_line)
    for name, help_line in SWITCHES.items():
        spark.add_argument(name, dest="spark", action=_Passed, default=[], nargs=0, help=help_line)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script and its arguments")


class _Passed(argparse.Action):
    """Notes an option of spark-submit with its value."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        del parser
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), (option, values if values else None)])


def run(args: argparse.Namespace) -> int:
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    require(bool(words), "which script? barograph submit [options] SCRIPT.py [ARGUMENT ...]")

    from barograph.cli.submission.call import SubmitCall, run_on_own_cluster, run_there, settings_of, spark_output
    from barograph.engines.spark.cluster.settings import ClusterSettings
    from barograph.submit.launcher import SubmitOptions

    # Options among Spark's settings are checked here, before a cluster is started.
    args.conf = [f"{key}={value}" for key, value in settings_of(args.spark).items() if key.startswith(SPARK_PREFIX)]
    config = config_of(args, UP, SUBMIT)
    require_policy(config)
    policy = config["policy"] or DEFAULT
    mode = "act" if args.act else "advise"
    if config.is_set("mode") and config["mode"] == "act" != mode:
        _say(f"mode=act of {config.place('mode')} is not used: --act lets it act")
    file = "" if args.config is None else str(args.config.absolute())
    launch = SubmitCall.of([*args.spark, *_as_conf(config)], words, args.workloads)
    options = SubmitOptions(mode, args.policy or "", policy, config=file)
    if launch.master:
        _say_mode(mode, policy)
        return run_there(launch, options, spark_output(launch, _say))
    settings = ClusterSettings(**config.fields("cluster"))
    _say_mode(mode, policy)
    hung_after_s = config["executor.hung-after"]
    return run_on_own_cluster(launch, options, settings, _say, spark_output(launch, _say), hung_after_s)


def _as_conf(config: Config) -> list[tuple[str, str]]:
    """The flags of options of sessions, queries and controllers, behind the user's own --conf: the later one holds. The
    policy has a way of its own, by which it wins over the program's builder too."""
    settings = config.spark_settings((Scope.SESSION, Scope.QUERY, Scope.CONTROLLER))
    flags = [o for o in OPTIONS.values() if o.flag_name and config.place(o.name) == o.flag_name and o.name != "policy"]
    return [("--conf", f"{o.key_name}={settings[o.key_name]}") for o in flags if o.key_name]


def _say_mode(mode: str, policy: str) -> None:
    does = {
        "advise": f"{policy} only advises, and changes nothing (--act lets it act)",
        "act": f"{policy} acts: it changes how many instances run, where, and with how much CPU",
    }
    _say(f"{mode}: queries are kept; {does[mode]}; look with: barograph status, barograph decisions")


def _say(text: str) -> None:
    print(f"-- {text}", file=sys.stderr, flush=True)
