"""Starts a query of a program: kept alive by its driver's supervisor, and steered if the configuration has a policy."""

import logging
import threading
from collections.abc import Iterable, Mapping

from pyspark.sql.streaming.readwriter import DataStreamWriter

from barograph.config import OPTIONS, Config
from barograph.config.when_read import refuse_in_start
from barograph.control.attach import AttachedController, attach_once
from barograph.control.first_size import choice_by
from barograph.control.loop import Mode
from barograph.engines.epoch_length import recovery_of
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.query.start.writer_ahead import Build
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.policy.declarations import without_effect

log = logging.getLogger(__name__)

_attaching = threading.Lock()
_starting: set[object] = set()  # queries that have a controller and are not among those of their supervisor yet


def start_query(
    supervisor: Supervisor,
    build: Build | DataStreamWriter,
    config: Config,
    checkpoint: str | None = None,
    policy_options: Mapping[str, object] | None = None,
) -> Supervised:
    """build: the writer of the query, not started, or a function that makes one. policy_options: besides those of the
    configuration. What is wrong is refused before the query starts; if it does not start, no controller is left but
    that of other queries. Threads of a program may start queries at the same time: they share one controller."""
    made = _build_of(build)
    options, limits = QueryOptions(**config.fields("query")), RestartLimits(**config.fields("restart"))
    recovery = recovery_of(config["recovery"], config.fields("epochs")) if _bounds_epochs(config) else None
    this = object()
    with _attaching:
        controller = steer(supervisor, config, policy_options or {})
        _starting.add(this)
    try:
        warn_without_effect(config["policy"], options.declared())
        return supervisor.start(
            made, checkpoint, limits=limits, options=options, recovery=recovery,
            size=choice_by(config, policy_options or {}),
        )  # fmt: skip
    except BaseException:
        with _attaching:
            _starting.discard(this)
            if controller is not None and not _starting and not supervisor.queries:
                controller.close()
        raise
    finally:
        with _attaching:
            _starting.discard(this)


def warn_without_effect(policy: str | None, options: Iterable[str]) -> None:
    """options: that queries of the driver declare, to which a controller with this policy was attached; None: none."""
    for sentence in without_effect(policy, options):
        log.warning("%s", sentence)


def steer(
    supervisor: Supervisor, config: Config, policy_options: Mapping[str, object] | None = None
) -> AttachedController | None:
    """Attach the controller that the configuration asks for; it steers every query of the driver. None: it asks for
    none."""
    if config["policy"] is None:
        names = [name for name in ("options", "theta", "history") if config.is_set(name)]
        given = [*(config.origins[name] for name in names), *(policy_options or {})]
        require(not given, f"{', '.join(given)}: needs a policy, for example policy='adaptive'")
        return None
    controller = attach_once(supervisor.serve().path, config, policy_options)
    supervisor.on_close(controller.close)
    return controller


def split_options(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Options of the configuration by name, and those of the policy: all other names. Refused: those that no start
    reads."""
    for name in options:
        require(isinstance(name, str), f"options: the name of an option must be a text, not {name!r}")
    ours = {name: value for name, value in options.items() if name in OPTIONS or "." in name}
    for name in ours:
        if name not in OPTIONS:
            raise BadInput(f"options: there is no option {name!r}: 'barograph config reference' lists them")
    refuse_in_start(ours)
    return ours, {name: value for name, value in options.items() if name not in ours}


def _build_of(build: Build | DataStreamWriter) -> Build:
    if isinstance(build, DataStreamWriter):
        return lambda: build  # it can be started any number of times
    require(callable(build), f"start takes a DataStreamWriter or a function that returns one, not {build!r}")
    return build


def _bounds_epochs(config: Config) -> bool:
    """A controller that only advises changes nothing, so epochs keep their length unless their user asked for it."""
    advises = config["policy"] is not None and config["mode"] == Mode.ADVISE
    return not advises or config.is_set("recovery")
