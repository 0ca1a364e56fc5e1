"""Attaches a controller to a driver, as the configuration says: from the driver's own process or from another one.

The driver knows which controllers are attached, and refuses a second one that acts. The controller itself is a process
of its own (``process``), which the process that called this keeps alive and which ends with it.
"""

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from barograph.config import Config
from barograph.config.policy_options import parse_options
from barograph.control.heartbeat import STANDARD_ERROR, ControllerKeeper
from barograph.control.process import ControllerConfig, keep
from barograph.engines.spark.driver.client import DriverFailed, RemoteEngine
from barograph.engines.spark.log_folder import CONTROLLER, new_log_folder
from barograph.history.places import HistoryPath, absolute, place_of, require_usable
from barograph.history.read import last_number
from barograph.logs import settings_of_environment
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.policy.configured import require_policy
from barograph.policy.definition import options_of
from barograph.policy.registry import named

log = logging.getLogger(__name__)

_lock = threading.Lock()
_here: dict[Path, "AttachedController"] = {}  # by the driver's socket, of those that ``attach_once`` made


@dataclass(frozen=True)
class AttachedController:
    """A controller that this process keeps for a driver until it is closed. number: by which the driver knows it.
    recorded_before: the last number that its history had before it began."""

    keeper: ControllerKeeper
    config: ControllerConfig
    number: int
    log: Path | None
    recorded_before: int

    def __enter__(self) -> "AttachedController":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the controller; topologies go on with the last plan, without its CPU limits."""
        with _lock:
            if _here.get(Path(self.config.socket)) is self:
                del _here[Path(self.config.socket)]
        self.keeper.close()
        _detach(Path(self.config.socket), self.number)


def controller_fields(config: Config, more: Mapping[str, object] | None = None) -> dict[str, Any]:
    """What ``ControllerConfig`` takes from the configuration. more: options of the policy that were given elsewhere."""
    require_policy(config)
    policy = config["policy"]
    options = {**parse_options(config["options"]), **(more or {})}
    if config["theta"] is not None:
        require("theta_pct" in options_of(named(policy)), f"policy {policy} has no theta: its CPU shares have no steps")
        options["theta_pct"] = config["theta"]
    if config["migration"] is not None:
        require("mode" not in options, "migration and the policy's option mode set the same thing: give one of them")
        options["mode"] = config["migration"]
    nodes = config.fields("nodes")
    return {
        "policy": policy, "cycle_s": config["cycle"], "mode": config["mode"], "enforce": config["enforce"],
        "options": options, "guards": config.fields("guards"), "history_mb": config["history-size"],
        "gone_s": config["driver-gone"], "spare_nodes": nodes.pop("spare"), "recovery_s": config["recovery"],
        "quiet": config.fields("quiet"), "epochs": config.fields("epochs"),
        "release_after_s": nodes.pop("release_after_s"), "nodes": nodes,
    }  # fmt: skip


def controller_config(
    config: Config, socket: Path, folder: Path, more: Mapping[str, object] | None = None
) -> ControllerConfig:
    """folder: for its heartbeat, and for its history unless the configuration names one. Raises BadInput for a policy
    or an option of it that does not exist."""
    kept = config["history"]
    history = folder / "history" if kept is None else absolute(kept)
    found = ControllerConfig(str(socket), str(history), str(folder / "beat"), **controller_fields(config, more))
    found.settings()
    return found


def attach(socket: Path, config: Config, more: Mapping[str, object] | None = None) -> AttachedController:
    """Start a controller for the driver with this socket and keep it alive, until it is closed or this process ends.

    config: says which policy, in which mode, with which history. more: options of the policy besides.
    Raises BadInput for a wrong policy or option, and where another controller acts already: then nothing was started.
    """
    require_usable(controller_config(config, socket, Path(), more).history)  # before a folder is made
    folder = new_log_folder("controller")
    return attach_controller(controller_config(config, socket, folder, more), folder / CONTROLLER)


def attach_controller(config: ControllerConfig, file: Path) -> AttachedController:
    """file: for its log. Once a log level was chosen, its lines go to standard error."""
    config.settings()
    recorded_before = last_number(place_of(config.history))
    chosen = settings_of_environment().level is not None
    request = {
        "do": "attach", "policy": config.policy, "mode": config.mode, "history": config.history,
        "log": "" if chosen else str(file), "pid": os.getpid(), "cycle_s": config.cycle_s,
    }  # fmt: skip
    number = int(_ask(Path(config.socket), request))
    try:
        keeper = keep(config, STANDARD_ERROR if chosen else file)
    except BaseException:
        _detach(Path(config.socket), number)
        raise
    return AttachedController(keeper, config, number, None if chosen else file, recorded_before)


def attach_once(socket: Path, config: Config, more: Mapping[str, object] | None = None) -> AttachedController:
    """The controller that this process keeps for the driver; attached now if there is none yet.

    A controller steers all queries of its driver, so a second query must ask for the same."""
    with _lock:
        present = _here.get(socket)
    if present is not None and not _is_attached(present):  # of an application of this process that has ended
        present.close()
        present = None
    if present is None:
        present = attach(socket, config, more)
        with _lock:
            _here[socket] = present
        return present
    asked = controller_config(config, socket, Path(), more)
    here = present.config
    if config["history"] is None:
        asked = replace(asked, history=here.history)
    if replace(asked, heartbeat=here.heartbeat) != here:
        raise BadInput(
            f"this driver is steered by policy {here.policy} in mode {here.mode} already, and a controller steers all "
            "queries of its driver: start this query with the same policy, mode, history and options, or without a "
            "policy"
        )
    return present


def histories_here() -> Mapping[HistoryPath, int]:
    """The folders in which the controllers that this process keeps for drivers record what they decide, each with the
    last number that it had before its controller began."""
    with _lock:
        return {place_of(controller.config.history): controller.recorded_before for controller in _here.values()}


def _is_attached(controller: AttachedController) -> bool:
    """Whether the driver that is there now knows it. A process may have several applications one after the other."""
    known = _ask(Path(controller.config.socket), None)
    me = (controller.number, controller.config.history)
    return any(c["attached"] and (c["number"], c["history"]) == me for c in known)


def _ask(socket: Path, body: object) -> Any:
    engine = RemoteEngine(socket)
    try:
        return engine.ask("controllers", body)
    finally:
        engine.close()


def _detach(socket: Path, number: int) -> None:
    try:
        _ask(socket, {"do": "detach", "number": number})
    except (ConnectionError, TimeoutError) as error:  # the driver has ended, or is ending
        log.debug("the driver at %s was not told that its controller has ended: %s", socket, error)
    except (BadInput, DriverFailed) as error:
        log.warning("the driver at %s could not note that its controller has ended: %s", socket, error)
