"""Runs an application in Scala or Java in the driver's JVM, with Barograph's Python beside it.

spark-submit starts our launcher as a Python program, whose JVM has the application's jar. Its main method is called in
that JVM; the session that it makes is then watched as one of a Python program is: endpoint, policy, orders. No line of
the application changes, and its handles of queries are Spark's own. So a query is not started again by itself: if main
ends because one of its queries died with an executor, main is called again and finds its session and its checkpoints.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.control.first_size import choice_by
from barograph.control.steered_start import steer
from barograph.engines.spark.backoff import doubled_s
from barograph.engines.spark.driver.application import application_settings, supervisor_of_session
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.failures.diagnosis import GiveUpCode, RestartLimits, ended_by
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.engines.spark.tolerated import tolerated
from barograph.model import BadInput
from barograph.priority.service import serve
from barograph.submit.hooks import say_new
from barograph.submit.jvm_deaths.main_deaths import Attached, MainDeaths
from barograph.submit.jvm_deaths.unnoticed_ends import UnnoticedEnds
from barograph.submit.session_settings import settings_to_add
from barograph.submit.settings import left_out
from barograph.submit.users_errors import sentence_of_text

log = logging.getLogger(__name__)

Policies = Callable[[Mapping[str, str]], str]
_LOOK_S = 0.5
# A look at the queries costs the driver a few calls. When main has just been called they may die as soon as they start.
_QUERIES_S, _LATELY_S = 2.0, 30.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
_QUERY_DIED = "StreamingQueryException"
_JVM_ENDED = (Py4JNetworkError, ConnectionError)


class MainFailed(Exception):  # noqa: N818  # named like what happened
    """Main threw and is not called again, or there is none. The text is for the user: a sentence that says what to do,
    or else what Java itself would print."""


class JvmEnded(Exception):  # noqa: N818  # named like what happened
    """The application ended its JVM itself, as by System.exit; the JVM's exit code is the program's."""


def _told(text: str) -> str:
    """text: the stack trace of what main threw."""
    said = sentence_of_text(text)
    return f"barograph submit: {said}" if said else f'Exception in thread "main" {text}'


class JvmProgram:
    """main: its class."""

    def __init__(self, main: str, arguments: Sequence[str], say: Callable[[str], None]) -> None:
        SparkContext._ensure_initialized()
        self._gateway: Any = SparkContext._gateway
        self._jvm: Any = SparkContext._jvm
        self._main, self._arguments, self._say = main, arguments, say
        self._supervisor: Supervisor | None = None
        self._settings: dict[str, str] | None = None
        self._closing = threading.Event()
        self._attached: Attached | None = None
        self._tried = threading.Event()  # it is attached, or will not be
        self._calls, self._call = 0, 0  # of main: how many, and the number of the present one; 0 between two
        self._called_s = 0.0

    def add_settings(self, ours: dict[str, str], started_for_it: str) -> None:
        """As properties of the JVM: every session that does not say otherwise takes them. started_for_it: the master of
        the cluster that was started for this program, or empty."""
        system = self._jvm.java.lang.System
        theirs = {str(k): str(system.getProperty(k)) for k in system.getProperties().stringPropertyNames()}
        theirs = {key: value for key, value in theirs.items() if key.startswith("spark.")}
        for key, value in settings_to_add(theirs, ours, started_for_it, self._say).items():
            system.setProperty(key, value)

    def watch(self, ours: dict[str, str], policy: Policies, mode: str, begun: Callable[[], None]) -> None:
        """Serve and steer the application's session as soon as there is one. policy: its name, by the session's
        settings. begun: called as soon as it is steered."""
        threading.Thread(
            target=self._attend, args=(ours, policy, mode, begun), name="watch-application", daemon=True
        ).start()

    def run(self, limits: RestartLimits) -> None:
        """Call main until it returns. Raises MainFailed if it fails for a reason that another call would not mend, and
        JvmEnded if there is no JVM any more."""
        deaths = MainDeaths(limits, self._attached_within, self._conf, self._closing.wait, self._say)
        while (text := self._died_of()) is not None:
            after = deaths.judged(text, self._called_s, time.monotonic())
            if (why := after.why) is not None:
                if why.code is GiveUpCode.NEVER_FITS:  # Java's stack trace says nothing more
                    raise MainFailed(f"barograph submit: {ended_by(after.topology, MainFailed(), why)}")
                self._say(f"{self._main} is not called again: {why.text}")
                raise MainFailed(_told(text))
            self._stop_queries()
            wait = f" in {after.wait_s:.0f} s" if after.wait_s else ""
            self._say(f"a query ended: {after.death.text}; {self._main} is called again{wait}")
            self._closing.wait(after.wait_s)

    def close(self) -> None:
        self._closing.set()
        with (
            tolerated(log, "the application's queries could not be ended", Py4JError, OSError),
            contextlib.suppress(*_JVM_ENDED),
        ):
            if self._supervisor is not None and not self._is_over():
                self._supervisor.close()

    def _died_of(self) -> str | None:
        """Calls main. Returns what it threw because a query died; None if it returned."""
        self._calls, self._called_s = self._calls + 1, time.monotonic()
        self._call = self._calls
        try:
            try:
                self._call_main()
            except Py4JJavaError as error:
                thrown = error.java_exception
                text = self._text_of(thrown.getCause() or thrown)  # wrapped, because main is called by reflection
                if _QUERY_DIED not in text or self._is_over():
                    raise MainFailed(_told(text)) from None
                return text
            return None
        except (Py4JNetworkError, OSError):
            raise JvmEnded from None
        finally:
            self._call = 0

    def _call_main(self) -> None:
        texts = self._array("String", self._arguments)
        self._main_method().invoke(None, self._array("Object", [texts]))

    def _main_method(self) -> Any:
        java = self._jvm.java.lang
        kinds = self._array("Class", [java.Class.forName("[Ljava.lang.String;")])
        try:
            kind = java.Class.forName(self._main, True, java.Thread.currentThread().getContextClassLoader())
            return kind.getMethod("main", kinds)
        except Py4JJavaError as error:
            said = error.java_exception.toString()
            raise MainFailed(f"barograph submit: {self._main} is no class with a main method: {said}") from None

    def _text_of(self, thrown: Any) -> str:
        """With its stack and its causes."""
        return str(self._jvm.org.apache.spark.util.Utils.exceptionString(thrown))

    def _array(self, kind: str, values: Sequence[Any]) -> Any:
        made = self._gateway.new_array(getattr(self._jvm.java.lang, kind), len(values))
        for index, value in enumerate(values):
            made[index] = value
        return made

    def _session(self) -> Any:
        found = self._jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession()
        return found.get() if found.isDefined() else None

    def _is_over(self) -> bool:
        session = self._session()
        return session is None or bool(session.sparkContext().isStopped())

    def _conf(self) -> Any:
        return self._session().conf()

    def _attached_within(self, timeout_s: float) -> Attached | None:
        self._tried.wait(timeout_s)
        return self._attached

    def _stop_queries(self) -> None:
        """Main starts all of them again. One that cannot be stopped does not keep it from that: Spark stops a run when
        the next one of its query is started."""
        with tolerated(log, "the application's queries could not be stopped", Exception):
            for query in self._session().streams().active():
                with tolerated(log, "a query of the application could not be stopped", Exception):
                    query.stop()
        with tolerated(log, "Spark still knows of the query that died", Exception):
            self._session().streams().resetTerminated()  # else awaitAnyTermination throws its error again at once

    def _attend(self, ours: dict[str, str], policy: Policies, mode: str, begun: Callable[[], None]) -> None:
        """Steer it, then look for queries that died and that main does not wait for, with a policy or without."""
        try:
            self._watch(ours, policy, mode, begun)
        finally:
            self._tried.set()
        ends = UnnoticedEnds(self._say, self._text_of)
        while not self._closing.wait(_LOOK_S if time.monotonic() - self._called_s < _LATELY_S else _QUERIES_S):
            try:
                if (session := self._session()) is not None:
                    ends.look(self._call, session.streams().active(), time.monotonic())
            except Exception as error:  # noqa: BLE001  # PySpark makes types of its own of Java's errors
                if self._has_ended(error):
                    return
                log.warning("the application's queries are not known: %s; they are looked at again", error)

    def _watch(self, ours: dict[str, str], policy: Policies, mode: str, begun: Callable[[], None]) -> None:
        """Until it is steered, or that is refused. Whatever else fails is tried again: the application lives long."""
        failures, told = 0, ""
        while not self._closing.wait(doubled_s(_FIRST_WAIT_S, failures - 1, _LONGEST_WAIT_S) if failures else 0.0):
            try:
                self._steer(ours, policy, mode)
            except Exception as error:  # noqa: BLE001  # PySpark makes types of its own of Java's errors
                if self._has_ended(error):
                    return
                refused = isinstance(error, BadInput)
                reason = f"the application runs without Barograph's policy: {type(error).__name__}: {error}"
                if reason != told:
                    self._say(reason if refused else f"{reason}; it is tried again until it succeeds")
                if refused:
                    return
                failures, told = failures + 1, reason
                continue
            if failures:
                self._say("the application runs with Barograph's policy now")
            begun()
            return

    def _steer(self, ours: dict[str, str], policy: Policies, mode: str) -> None:
        settings = self._adopted(ours)
        config = resolve(spark=settings, arguments={"policy": policy(settings), "mode": mode})
        self._supervisor = supervisor_of_session(serve)
        size = replace(choice_by(config, {}), declared=QueryOptions(**config.fields("query")).of)
        self._attached = Attached(self._supervisor.engine, size)
        self._tried.set()
        steer(self._supervisor, config)

    def _adopted(self, ours: dict[str, str]) -> dict[str, str]:
        """The settings of the application's session, which is this thread's active one from then on. Waits for it."""
        if self._settings is None:
            while (session := self._session()) is None:
                time.sleep(_LOOK_S)
            context = SparkContext._active_spark_context  # a process has one: this, after an attempt that failed
            if context is None:
                theirs = session.sparkContext()
                jsc, conf = self._jvm.JavaSparkContext(theirs), SparkConf(_jconf=theirs.conf())
                context = SparkContext(gateway=self._gateway, jsc=jsc, conf=conf)
            self._settings = application_settings(SparkSession(context, session))
            say_new(left_out(self._settings, ours), self._say)
        return self._settings

    def _has_ended(self, error: Exception) -> bool:
        """Whether there is nothing to steer any more: its JVM, or its session."""
        if isinstance(error, Py4JNetworkError):
            return True
        try:
            return self._is_over() and self._settings is not None
        except _JVM_ENDED:
            return True
        except Py4JError:
            return False
