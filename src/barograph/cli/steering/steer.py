"""Attach a controller to a running driver: it decides by a policy, for all queries of the driver.

    barograph steer                                     advise: decide by the default policy, and change nothing
    barograph steer DRIVER --policy liu --advise        another policy, for the driver of this name
    barograph steer DRIVER --policy adaptive --act      let the policy change instances, places and CPU

DRIVER is the name of its cluster or application, its process id or its socket. The command shows each decision as it is
made and runs until Ctrl-C or the end of the driver; then the queries go on with the last plan, but without its CPU
limits. One controller at a time can act on a driver; any number can advise. 'barograph freeze' holds a driver, and
'barograph decisions' shows decisions. Options come from flags, --conf KEY=VALUE, and barograph.toml of the working
directory.
"""

import argparse
import signal
import sys

from barograph.cli.steering.decisions import follow
from barograph.cli.support.drivers import HELP, find_driver
from barograph.config import resolve
from barograph.config.declared import OPTIONS
from barograph.config.flags import add_conf_flag, add_flags
from barograph.config.option import STEER
from barograph.config.sources import parse_conf
from barograph.config.when_read import refuse_in_steer
from barograph.control.attach import attach
from barograph.control.recorded_decisions import RecordedDecisions
from barograph.control.steered_start import warn_without_effect
from barograph.engines.spark.cluster.processes import alive, identify
from barograph.history.places import place_of
from barograph.policy.declarations import declared
from barograph.policy.registry import DEFAULT


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("driver", nargs="?", metavar="DRIVER", help=HELP)
    modes = parser.add_mutually_exclusive_group()
    for mode, text in (("act", "apply plans"), ("advise", "only record them (default)")):
        modes.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, help=text)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of decisions (default %(default)s)")
    add_conf_flag(parser)
    add_flags(parser, STEER)


def run(args: argparse.Namespace) -> int:
    flags = {name: getattr(args, name, None) for name, option in OPTIONS.items() if STEER in option.commands}
    conf = parse_conf(args.conf)
    config = resolve(args.config, conf, flags, command=STEER)
    refuse_in_steer(conf)
    mode = args.mode or (config["mode"] if config.is_set("mode") else "advise")
    given = {"mode": mode, "policy": None if config["policy"] else DEFAULT}
    config = resolve(args.config, conf, flags, given, command=STEER)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the controller ends first
    engine, status = find_driver(args.driver)
    driver = identify(status["pid"])
    controller = attach(engine.path, config)
    try:
        declares = {name for topology in engine.glance().topologies for name in declared(topology)}
        warn_without_effect(controller.config.policy, declares)
        history = place_of(controller.config.history)
        does = "acts on" if mode == "act" else "advises, and changes nothing of,"
        frozen = "; the driver is frozen: 'barograph thaw' lets it be changed" if status["frozen"] else ""
        print(f"-- policy {config['policy']} {does} {status['app']}; its history is {history}{frozen}", flush=True)
        decisions = RecordedDecisions(history)
        if config["history"] is not None:  # earlier decisions may be in it
            decisions.skip()
        follow(decisions, False, args.format, lambda: driver is not None and alive(driver))
        print(f"-- {status['app']} has ended", flush=True)
    finally:
        controller.close()
        engine.close()
    return 0
