"""Show what the controller of a driver decided, why, and what came of it.

    barograph decisions                   of the only driver on this machine
    barograph decisions DRIVER            of one, by the name of its cluster or application, its process id or socket
    barograph decisions DRIVER --follow   and each further decision as it is made, until Ctrl-C or the driver's end;
                                          if another controller begins to act, those of that one
    barograph decisions DRIVER --all      also cycles that changed nothing, and decisions that are the same again

They come from the history of the controller that acts; of the latest other one if none acts. A decision ends with
applied, refused (with the reason) or advised (nothing was done); what a guard held back is named with the guard's code.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from barograph.cli.support.drivers import HELP, find_driver
from barograph.control.recorded_decisions import RecordedDecision, RecordedDecisions
from barograph.engines.spark.driver.client import RemoteEngine
from barograph.history.places import place_of
from barograph.model import BadInput
from barograph.model.checks import require

_LOOK_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("driver", nargs="?", metavar="DRIVER", help=HELP)
    parser.add_argument("--follow", action="store_true", help="go on with each further decision")
    parser.add_argument("--all", action="store_true", help="also cycles that changed nothing")
    parser.add_argument("--last", metavar="N", help="begin with only the last N decisions")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    require(args.last is None or args.last.isdecimal(), f"--last must be a whole number, not {args.last!r}")
    engine, status = find_driver(args.driver)
    try:
        chosen = chosen_controller(engine.controllers())
        if chosen is None:
            raise BadInput(
                f"no controller is or was attached to {status['app']}: "
                f"'barograph steer {status['pid']} --policy adaptive --advise' attaches one"
            )
        decisions = RecordedDecisions(place_of(chosen["history"]))
        shown = [d for d in decisions.new() if args.all or d.notable]
        for decision in shown if args.last is None else shown[max(0, len(shown) - int(args.last)) :]:
            print(line_of(decision, args.format), flush=True)
        if args.follow:
            _follow_controllers(engine, chosen, decisions, args.all, args.format)
    finally:
        engine.close()
    return 0


def chosen_controller(known: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The one that acts, else the latest that is attached, else the latest that was."""
    return max(known, key=lambda c: (c["attached"], c["attached"] and c["mode"] == "act", c["number"]), default=None)


def follow(decisions: RecordedDecisions, every: bool, form: str, goes_on: Callable[[], bool]) -> None:
    """Print each further decision, until the driver or the controller is gone."""
    more = True
    while more:
        more = goes_on()  # before the last look, so that no decision is left out
        _show_new(decisions, every, form)
        if more:
            time.sleep(_LOOK_S)


def _follow_controllers(
    engine: RemoteEngine, chosen: dict[str, Any], decisions: RecordedDecisions, every: bool, form: str
) -> None:
    """The same of the controller that would be chosen now, which may be another one later, until the driver is gone."""
    while True:
        known = _controllers(engine)
        _show_new(decisions, every, form)
        if known is None:
            return
        now = chosen_controller(known) or chosen
        if now["number"] != chosen["number"]:
            if now["history"] != chosen["history"]:
                decisions = RecordedDecisions(place_of(now["history"]))
                decisions.skip()  # of an earlier controller
            chosen = now
            print(_switch_line(now, form), flush=True)
        time.sleep(_LOOK_S)


def _show_new(decisions: RecordedDecisions, every: bool, form: str) -> None:
    for decision in decisions.new():
        if every or decision.notable:
            print(line_of(decision, form), flush=True)


def _controllers(engine: RemoteEngine) -> list[dict[str, Any]] | None:
    """None if the driver does not answer."""
    try:
        return engine.controllers()
    except (ConnectionError, TimeoutError):
        return None


def _switch_line(controller: dict[str, Any], form: str) -> str:
    if form == "json":
        return json.dumps({key: controller[key] for key in ("policy", "mode", "history")})
    return f"--- policy {controller['policy']} ({controller['mode']}) from now on ---"


def line_of(decision: RecordedDecision, form: str) -> str:
    if form == "json":
        told: dict[str, Any] = {
            "number": decision.number, "wall_ms": decision.wall_ms, "policy": decision.policy, "mode": decision.mode,
        }  # fmt: skip
        return json.dumps({**told, **({"gap": decision.gap} if decision.line is None else decision.line.fields())})
    when = datetime.fromtimestamp(decision.wall_ms / 1000.0, UTC).strftime("%Y-%m-%d %H:%M:%S")
    what = f"--- {decision.gap} ---" if decision.line is None else decision.line.text()
    return f"{when}  {decision.policy}  {what}"
