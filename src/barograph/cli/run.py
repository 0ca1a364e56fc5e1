"""Run a workload on a real Spark cluster under a load, change it while it runs, and check the result exactly.

Without --master a small cluster is started on this machine and stopped after the run. With --master the run is on a
cluster that is up: one of 'barograph cluster up', or any standalone cluster, whose nodes are its hosts; there
--checkpoint must be a folder that all hosts see, and --properties-file brings the secret and the size of executors.
The load is in rows a second of each input:

  constant 2000                              the same rate all the time
  steps 0s=500 60s=2500 120s=500             each rate holds until the next point
  ramp 0s=500 60s=2500                       linear between the points; the last rate holds
  onoff high=80 low=40 share=0.5 period=60s  high for that share of each period
  random 1..25 x200 every 10s seed=7         a new random whole number each period, times 200
  batches rows=640 every=60s count=80 within=1s  80 batches, one each period, each sent within 1 s
  trace FILE                                 lines of seconds,rate
  constant 80 noise 0.05 every 5s seed=7     any shape but a trace, with up to 5 % of noise, redrawn every 5 s

Actions; --at may be given any number of times, and changes for the same second share one cut:

  --at '20:move count/1=node-2'  --at '30:scale count=4'  --at '40:cut'
  --at '20:kill executor@node-2' --at '30:kill node@node-2' --at '40:start node@node-2'  --at '50:kill driver'
  --at '20:kill broker'  --at '30:start broker'

A kill is SIGKILL. Executors and the driver are restarted, a node and the broker too unless a later action starts them,
and the query continues from its checkpoint.

With --source kafka the rows are written into a topic when they are due, and the query reads them there. A broker is
started for the run unless --brokers names another, whose topics stay. With --sink kafka the result goes to a topic,
which must have every result, at least once.

A run begins with the policy's own first placement, and changes are made as in the policy's paper (see --migration).
Policy 'spark' runs the same query on the same cluster without the plug-in. 'fixed' takes its shares from --share;
'fixed-peak', 'fixed-mean' and 'fixed-equal' take theirs from --like.

After --seconds the inputs close and the remaining rows are drained and committed. Then count and checksum of every key
are read from the checkpoint and compared with what the inputs contained. Exit code 0: every row was read and counted
once, and every action was done; 1: otherwise; 2: invalid arguments.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from barograph.config import Config
from barograph.config.flags import add_conf_flag, add_flags, config_of
from barograph.config.written.actions import parse_action
from barograph.config.written.operators import parse_instances, parse_micros, parse_shares
from barograph.history.places import HistoryPath, place_of, require_usable
from barograph.model import BadInput, Load, MigrationMode
from barograph.workloads import registry

if TYPE_CHECKING:
    from barograph.experiments.run_settings import FromKafka
    from barograph.experiments.steering.steering import Steering

PLAIN = "spark"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", help=f"one of: {', '.join(registry.names())}")
    add_flags(parser, "run")
    add_conf_flag(parser)
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="format of the report (default table)"
    )


def run(args: argparse.Namespace) -> int:
    registry.require_workload(args.workload)
    config = config_of(args, "run")
    load = None if config["run.load"] is None else _load(config)

    # Importing Spark takes a second; arguments that are wrong above are reported before that.
    from barograph.control.steered_start import warn_without_effect
    from barograph.engines.epoch_length import recovery_of
    from barograph.engines.spark.cluster.settings import ClusterSettings
    from barograph.engines.spark.log_folder import end_of, new_log_folder
    from barograph.engines.spark.query.failures.diagnosis import RestartLimits
    from barograph.engines.spark.query.query_options import QueryOptions
    from barograph.experiments.run_settings import RunSettings
    from barograph.experiments.running.killable_driver import run_it
    from barograph.experiments.running.live_table import LiveTable
    from barograph.experiments.running.warm_up import RunFailed
    from barograph.experiments.steering.worker_sizes import workers_for

    workload = registry.workload(args.workload)
    given = parse_instances(config["run.parallelism"] or "")
    workload.require_operators(config.origins["run.parallelism"], given)
    busy_us = parse_micros(config["run.busy"] or "")
    workload.require_busy(config.origins["run.busy"], busy_us)
    parallelism = {**workload.default_parallelism, **given}
    steering = _steering(config, workload.name, parallelism)
    policy = None if steering is None else steering.decider()
    workers = workers_for(
        policy,
        workload.topology(parallelism),
        config["run.executors"],
        config["run.seats"],
        config["cluster.memory"],
    )
    settings = RunSettings(
        workload=workload,
        load=load or Load.parse(workload.default_load),
        seconds=config["run.seconds"],
        parallelism=parallelism,
        epoch_s=config["epoch"],
        cluster=ClusterSettings(
            config["cluster.nodes"],
            config["run.node-cpu"],
            workers.seats,
            workers.executors,
            workers.memory_mb,
            port=config["cluster.port"],
        ),
        master=config["run.master"],
        checkpoint=_path(config["run.checkpoint"]),
        actions=tuple(parse_action(a, workload.name) for a in config["run.at"]),
        drain_s=config["run.drain"],
        timeout_s=config["timeout"],
        in_flight_s=config["in-flight"],
        steering=steering,
        busy_us=busy_us,
        plain=config["policy"] == PLAIN,
        migration=MigrationMode(config["migration"] or MigrationMode.CUT),
        restart=RestartLimits(**config.fields("restart")),
        recovery=recovery_of(config["recovery"], config.fields("epochs")),
        query=QueryOptions(**config.fields("query")) if config.any_set("query") else None,
        conf=config.spark_settings(),
        properties=_path(config["run.properties-file"]),
        kafka=_kafka(config),
        behind_s=config["run.behind"],
    )
    warn_without_effect(config["policy"], settings.query.declared() if settings.query else ())
    table = LiveTable(sys.stderr)
    logs = new_log_folder("run")
    try:
        report = run_it(replace(settings, logs=logs), table.show, table.say)
    except BadInput:
        if not any(logs.iterdir()):
            logs.rmdir()
        raise
    except RunFailed as error:
        print(f"barograph run: {error}\n{end_of(logs)}", file=sys.stderr, end="")
        return 1
    except Exception:
        print(end_of(logs), file=sys.stderr, end="")
        raise
    print(json.dumps(report.to_json(), indent=2) if args.format == "json" else report.summary())
    return 0 if report.ok else 1


def _load(config: Config) -> Load:
    """What a trace's file holds is read only here."""
    try:
        return Load.parse(config["run.load"])
    except BadInput as error:
        raise BadInput(f"{config.origins['run.load']}: {error}") from None


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _kafka(config: Config) -> "FromKafka | None":
    from barograph.config.written.properties import properties_of
    from barograph.experiments.run_settings import FromKafka

    if config["run.source"] == "replay":
        return None
    file = _path(config["run.brokers-file"])
    return FromKafka(config["run.brokers"], config["run.sink"] == "kafka", {} if file is None else properties_of(file))


def _history(text: str | None) -> HistoryPath | None:
    if text is None:
        return None
    require_usable(text)  # before a cluster is started
    return place_of(text)


def _steering(config: Config, topology: str, parallelism: Mapping[str, int]) -> "Steering | None":
    """None without a policy, and for Spark without the plug-in."""
    from barograph.control.attach import controller_fields
    from barograph.experiments.steering.fixed_shares import fixed_shares
    from barograph.experiments.steering.steering import Steering

    policy = config["policy"]
    if policy in (None, PLAIN):
        for name in filter(config.is_set, ("options", "theta", "share", "like")):
            why = "needs a policy: give --policy" if policy is None else f"cannot be used with policy {PLAIN}"
            raise BadInput(f"{config.origins[name]} {why}")
        return None
    places = config.origins["share"], config.origins["like"]
    shares = fixed_shares(policy, parse_shares(config["share"] or ""), _path(config["like"]), parallelism, places)
    return Steering(
        **controller_fields(config),
        history=_history(config["history"]),
        shares_pct={f"{topology}/{operator}": share for operator, share in shares.items()},
    )
