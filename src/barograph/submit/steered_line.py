"""One line for the user of a program or a notebook whose query is steered: by which policy, and where its decisions are
shown. Nothing else there says that a policy is at work."""

import logging
import os
import sys

from barograph.control.loop import Mode
from barograph.submit.hooks import say_each_once

log = logging.getLogger(__name__)


def say_steered(policy: str, mode: str) -> None:
    """Once for each policy and mode."""
    say_each_once([_line(policy, mode)], _say)


def said_elsewhere(policy: str, mode: str) -> None:
    """The user knows it already: ``say_steered`` says nothing of it."""
    say_each_once([_line(policy, mode)], lambda _: None)


def _line(policy: str, mode: str) -> str:
    does = "acts" if mode == Mode.ACT else "advises"
    return f"{policy} {does}; look with: barograph decisions {os.getpid()}"


def _say(line: str) -> None:
    log.info("%s", line)
    sys.stderr.write(f"barograph: {line}\n")  # a program that sets up no logging sees it too
    sys.stderr.flush()
