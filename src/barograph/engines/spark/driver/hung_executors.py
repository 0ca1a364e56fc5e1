"""Ends executors that are alive but hang: Spark itself would wait two minutes (spark.network.timeout) for them.

What is hung is judged by ``silence``. A hung executor of an embedded cluster is killed by its process id; elsewhere
Spark is told to end and replace it. The query then restarts as after any lost executor.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from barograph.engines.spark.bridge.reports import LastReport
from barograph.engines.spark.cluster.node_status import executors_of
from barograph.engines.spark.cluster.processes import kill
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.driver.silence import Silence
from barograph.logs import OnceOnly

log = logging.getLogger(__name__)


class WatchedExecutors(Protocol):
    """What this needs of an engine."""

    application: str

    def end_silent(self, executor: str, why: str) -> bool: ...

    def where(self, executor: str) -> str: ...


class HungExecutors:
    """Of one application; ``ExecutorWatch`` calls ``judge`` each second. run: its embedded cluster, if it has one."""

    def __init__(
        self,
        engine: WatchedExecutors,
        run: Run | None,
        hung_after_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._run, self._now = engine, run, now
        self._silence, self._hung_after_s = Silence(hung_after_s), hung_after_s
        self._warnings = OnceOnly(log)

    def judge(self, reports: Mapping[str, LastReport]) -> None:
        """reports: of every live executor that has reported, as of now."""
        ages_s = {executor: report.age_s for executor, report in reports.items()}
        found = self._silence.judge(ages_s, self._now())
        if found.spared:
            names = ", ".join(map(self._engine.where, found.spared))
            text = f"{names}: no report for more than {self._hung_after_s:g} s, but it is not ended"
            self._warnings.warn("spared", f"{text}: {found.because}")
        else:
            self._warnings.over("spared")
        for executor in found.hung:
            self._end(executor, f"it has not reported for {ages_s[executor]:.0f} s")

    def _end(self, executor: str, why: str) -> None:
        log.warning("%s is ended and replaced: %s", self._engine.where(executor), why)
        if self._run is not None:
            nodes = self._run.settings.node_names()
            of_nodes = (executors_of(self._run, node, self._engine.application) for node in nodes)
            if mine := [found[executor] for found in of_nodes if executor in found]:
                kill(mine)  # Spark sees its connection close
                return
        self._engine.end_silent(executor, why)
