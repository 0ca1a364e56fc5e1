"""The supervisor of a driver process: starts queries and keeps them alive, serves the engine port, can be frozen.

It owns start and stop of queries; what runs where is decided by the controller whose plans it applies.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.engines.epoch_length import Recovery
from barograph.engines.port import CONTROLLER
from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.engines.spark.bridge.baselines import observer_in
from barograph.engines.spark.cluster.runs import run_of
from barograph.engines.spark.driver.apply_when_up import apply_when_up
from barograph.engines.spark.driver.change_signal import ChangeSignal
from barograph.engines.spark.driver.client import SOCKETS
from barograph.engines.spark.driver.endpoint import Endpoint, Verb
from barograph.engines.spark.driver.epoch_bounds import EpochBounds
from barograph.engines.spark.driver.hung_executors import HungExecutors
from barograph.engines.spark.driver.one_plan import OnePlan
from barograph.engines.spark.driver.partitions import Partitions
from barograph.engines.spark.driver.status import describe
from barograph.engines.spark.driver.upkeep import ExecutorWatch, JudgesExecutors, RegularUpkeep
from barograph.engines.spark.engine import SparkEngine
from barograph.engines.spark.executors.chosen import executors_of
from barograph.engines.spark.executors.decommissions import Decommissions
from barograph.engines.spark.executors.node_release import NodeRelease
from barograph.engines.spark.folders import state_folder
from barograph.engines.spark.orders.left_limits import LeftLimits
from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.grown_topics import GrownTopics
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.query.start.checkpoint_claims import CheckpointClaims, qualified_by, used_in
from barograph.engines.spark.query.start.first_size import PLANNED, SizeChoice
from barograph.engines.spark.query.start.writer_ahead import Build
from barograph.engines.spark.query.supervised_query import Supervised
from barograph.engines.spark.security.driver_uses import USES
from barograph.engines.spark.security.uses import uses
from barograph.model import BadInput, Node, Outcome, Plan, Refusal, RefusalCode, Snapshot, nodes_kept
from barograph.model.codec import from_json, to_json

log = logging.getLogger(__name__)

UP_TIMEOUT_S = 120.0
STEERED_S = 60.0  # a controller sends a plan in each cycle; one that sent none for so long is gone, or only advises


class Supervisor:
    """One for each Spark application. Close it before the session is stopped."""

    def __init__(
        self, spark: SparkSession, nodes: Mapping[str, Node] | None = None, engine: SparkEngine | None = None
    ) -> None:
        master = str(spark.sparkContext.master)
        run = run_of(master)
        if nodes is None:
            hosts = {} if run is None else run.settings.addresses()
            nodes = {} if run is None else {hosts[n.name]: n for n in run.settings.model_nodes()}
        self.spark = spark
        conf = dict(spark.sparkContext.getConf().getAll())
        config = resolve(spark=conf)
        self.engine = SparkEngine(spark, nodes, timeout_s=config["timeout"]) if engine is None else engine
        self.app, self.master, self.run_name = spark.sparkContext.appName, master, "" if run is None else run.name
        self.engine.application = str(spark.sparkContext.applicationId)
        self.engine.executors = executors_of(
            self.engine, conf, run, self.engine.application, lambda: len(self.engine.workers())
        )
        self.node_release = NodeRelease(self.engine, self.engine.executors)
        self._claims = CheckpointClaims(qualified_by(spark), used_in(spark))
        self._queries: dict[str, Supervised] = {}
        self._lock = threading.Lock()
        self._one_plan = OnePlan(lambda plan: apply_when_up(self.engine.apply, plan, self.queries, UP_TIMEOUT_S))
        self.frozen = False
        self.change_signal = ChangeSignal()
        self.controllers = AttachedControllers()
        self.steered_s: float | None = None
        """When a controller last sent a plan, on the machine's monotonic clock; None if none ever did."""
        self.endpoint: Endpoint | None = None
        self._ending: list[Callable[[], object]] = []
        self._folder = None if run is None else run.folder
        topics = GrownTopics(self.engine, lambda: not (self.frozen or self.controllers.only_advise()))
        self.bounds = EpochBounds(self.engine, self._paced, lambda: self.frozen, stale_s=config["guards.stale"])
        if engine is None:  # the session's settings are known to the plug-in, a file's are not
            self.engine.enforce(config["enforce"])
        judges: list[JudgesExecutors] = [Partitions(self.engine)]
        self.left_limits = LeftLimits(
            self.engine, self.controllers, lambda: self.steered_s, lambda: self.frozen, lambda: self._one_plan.busy,
            gone_s=STEERED_S,
        )  # fmt: skip
        hung_after_s = config["executor.hung-after"]
        if hung_after_s is not None and self.engine.can_grow():
            judges.insert(0, HungExecutors(self.engine, run, hung_after_s))
        # Executors have a thread of their own: upkeep may wait for the engine's lock, and then the look at them would
        # come late, as if the driver had been stopped.
        self._upkeep = [
            RegularUpkeep(
                {
                    "keeping up limits and orders": self.engine,
                    "bounding epochs": self.bounds,
                    "looking for grown topics": topics,
                    "lifting limits that no controller keeps": self.left_limits,
                }
            ),
            RegularUpkeep({"looking for hung and cut off executors": ExecutorWatch(self.engine, *judges)}),
            RegularUpkeep({"leaving decommissioned executors": Decommissions(self.engine)}),
        ]

    def start(
        self,
        build: Build,
        checkpoint: str | None = None,
        limits: RestartLimits | None = None,
        options: QueryOptions | None = None,
        recovery: Recovery | None = None,
        size: SizeChoice | None = None,
    ) -> Supervised:
        """Start a query and keep it alive. ``build`` is called again, ahead, for each restart. recovery: bounds its
        epochs, with or without a controller; None: they are as long as the query's trigger or a controller says. size:
        what its first size goes by if it has more instances than there are seats, besides its options. Refused: a
        checkpoint that another of them has."""
        choice = replace(size or PLANNED, declared=(options or QueryOptions()).of)
        with self._claims.claim(build, checkpoint) as claim:
            query = claim.query = Supervised(self.engine, claim.build, checkpoint, limits or RestartLimits(), choice)
            with self._lock:  # before anything that may fail: what is not among them is not stopped at the end
                self._queries = {name: q for name, q in self._queries.items() if q.isActive}
                self._queries[query.topology] = query
        if options is not None:
            self.engine.declare(query.topology, options)
        self.bounds.bound(query.topology, recovery, claim.on_used)
        return query

    def _paced(self) -> Mapping[str, float]:
        """The lengths of epochs, by topology, that a controller sets now."""
        steered = self.steered_s is not None and time.monotonic() - self.steered_s < STEERED_S
        return self.engine.pace.wanted_s if steered else {}

    @property
    def queries(self) -> tuple[Supervised, ...]:
        with self._lock:
            return tuple(self._queries.values())

    # --- the engine port ---

    def observe(self, observer: str = CONTROLLER) -> Snapshot:
        return self.engine.observe(observer)

    def apply(self, plan: Plan) -> Outcome:
        if plan.version is not None:
            self.steered_s = time.monotonic()
        if self.frozen:
            why = "the driver is frozen: nothing changes until it is thawed"
            return Outcome(refused=(Refusal("the plan", RefusalCode.FROZEN, why),))
        return self._one_plan(plan)

    def keep_nodes(self, release: Sequence[str] = (), fetch: Sequence[str] = ()) -> Outcome:
        """Release idle nodes and fetch others. The outcome leaves out those that stay as they are."""
        if self.frozen:
            return Outcome(left_out=nodes_kept(release, fetch, RefusalCode.FROZEN, "the driver is frozen"))
        down = [q.topology for q in self.queries if q.isActive and not q.await_up(0.0)]
        if down:  # it is not known yet which nodes it will use
            kept = nodes_kept(release, (), RefusalCode.RESTARTING, f"{down[0]} is being started again")
            fetched = self.node_release.change((), fetch)
            return replace(fetched, left_out=(*kept, *fetched.left_out))
        return self.node_release.change(release, fetch)

    def status(self) -> dict[str, Any]:
        return describe(self)

    def freeze(self, on: bool = True) -> None:
        if on is not self.frozen:
            log.info("the driver is %s", "frozen: no plan is applied until it is thawed" if on else "thawed")
        self.frozen = on
        self.engine.pace.hold(on)

    # --- its endpoint ---

    def serve(self, more: Mapping[str, Verb] | None = None) -> Endpoint:
        """Open the endpoint for other processes of this user. more: verbs besides the supervisor's own."""
        if self.endpoint is None:
            folder = self.folder()
            sweep_sockets(folder)
            path = folder / SOCKETS.replace("*", str(os.getpid()))
            verbs: dict[str, Callable[[Any], Any]] = {
                "observe": lambda body: to_json(self.observe(observer_in(body))),
                "apply": lambda body: to_json(self.apply(from_json(Plan, body))),
                "status": lambda _: self.status(),
                "freeze": self._freeze,
                "nodes": self._nodes,
                "pace": self.engine.pace.want,
                "glance": lambda body: to_json(self.engine.glance(observer_in(body))),
                "news": self.change_signal.verb,
                "controllers": self.controllers.verb,
                USES: lambda _: to_json(uses(self)),
            }
            self.endpoint = Endpoint(path, {**verbs, **(more or {})})
        return self.endpoint

    def folder(self) -> Path:
        """Holds files that outlive this process: the cluster's, or one that drivers share. Private to this user."""
        if self._folder is not None:
            return self._folder
        folder = state_folder() / "drivers"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _freeze(self, body: Any) -> None:
        self.freeze(bool(body.get("on", True)) if isinstance(body, dict) else True)

    def _nodes(self, body: Any) -> Any:
        lists = {name: body.get(name, []) for name in ("release", "fetch")} if isinstance(body, dict) else {}
        if not lists or not all(isinstance(v, list) and all(isinstance(n, str) for n in v) for v in lists.values()):
            raise BadInput('nodes takes {"release": [NODE, ...], "fetch": [NODE, ...]}')
        return to_json(self.keep_nodes(**lists))

    def on_close(self, call: Callable[[], object]) -> None:
        """Register a call for ``close``, after serving ends and before queries are stopped."""
        self._ending.append(call)

    def close(self) -> None:
        """Stop serving, and stop every supervised query. Each part is done whatever became of those before it; then the
        last error is raised."""
        self.left_limits.lifts = False  # its controllers end with it, and so do its queries
        with ExitStack() as parts:  # which does the last one first
            for upkeep in reversed(self._upkeep):
                parts.callback(upkeep.close)
            parts.callback(self._stop_queries)
            while self._ending:
                parts.callback(self._ending.pop(0))
            endpoint, self.endpoint = self.endpoint, None
            if endpoint is not None:
                parts.callback(endpoint.close)
            parts.callback(self.node_release.close)

    def _stop_queries(self) -> None:
        with ExitStack() as parts:
            for query in reversed(self.queries):
                parts.callback(query.stop)


def sweep_sockets(folder: Path) -> None:
    """Remove the sockets of drivers that are gone."""
    for path in folder.glob(SOCKETS):
        pid = path.stem.removeprefix("driver-")
        if not (pid.isdecimal() and Path(f"/proc/{pid}").exists()):
            path.unlink(missing_ok=True)
