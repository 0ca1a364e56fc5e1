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
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from barograph.config import resolve
from barograph.control.steered_start import steer
from barograph.engines.spark.driver.application import session_settings, supervisor_of_session
from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.engines.spark.query.failures.diagnosis import Death, RestartLimits, diagnose, give_up, wait_s
from barograph.engines.spark.tolerated import tolerated
from barograph.priority.service import serve
from barograph.submit.hooks import say_new
from barograph.submit.session_settings import settings_to_add
from barograph.submit.settings import left_out
from barograph.submit.users_errors import sentence_of_text

log = logging.getLogger(__name__)

Policies = Callable[[Mapping[str, str]], str]
_LOOK_S = 0.5
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
        settings. begun: called then."""
        threading.Thread(
            target=self._watch, args=(ours, policy, mode, begun), name="watch-application", daemon=True
        ).start()

    def run(self, limits: RestartLimits) -> None:
        """Call main until it returns. Raises MainFailed if it fails for a reason that another call would not mend, and
        JvmEnded if there is no JVM any more."""
        deaths: list[Death] = []
        while True:
            began_s = time.monotonic()
            try:
                self._call_main()
                return
            except Py4JJavaError as error:
                text = self._stack_trace(error)
                now_s = time.monotonic()
                if _QUERY_DIED not in text or self._is_over():
                    raise MainFailed(_told(text)) from None
                if now_s - began_s > limits.within_s:
                    deaths = []
                deaths.append(diagnose(text, now_s, None, ()))
                if (why := give_up(deaths, limits)) is not None:
                    self._say(f"{self._main} is not called again: {why.text}")
                    raise MainFailed(_told(text)) from None
            except (Py4JNetworkError, OSError):
                raise JvmEnded from None
            self._stop_queries()
            wait = wait_s(deaths, limits)
            self._say(
                f"a query ended: {deaths[-1].text}; {self._main} is called again"
                + (f" in {wait:.0f} s" if wait else "")
            )
            time.sleep(wait)

    def close(self) -> None:
        with (
            tolerated(log, "the application's queries could not be ended", Py4JError, OSError),
            contextlib.suppress(*_JVM_ENDED),
        ):
            if self._supervisor is not None and not self._is_over():
                self._supervisor.close()

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

    def _stack_trace(self, error: Py4JJavaError) -> str:
        """Of what main threw: Java wraps it, because main is called by reflection."""
        thrown = error.java_exception
        return str(self._jvm.org.apache.spark.util.Utils.exceptionString(thrown.getCause() or thrown))

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

    def _stop_queries(self) -> None:
        for query in self._session().streams().active():
            query.stop()

    def _watch(self, ours: dict[str, str], policy: Policies, mode: str, begun: Callable[[], None]) -> None:
        try:
            while (session := self._session()) is None:
                time.sleep(_LOOK_S)
            context = session.sparkContext()
            jsc = self._jvm.JavaSparkContext(context)
            conf = SparkConf(_jconf=context.conf())
            SparkSession(SparkContext(gateway=self._gateway, jsc=jsc, conf=conf), session)  # this thread's active one
            settings = session_settings()
            say_new(left_out(settings, ours), self._say)
            config = resolve(spark=settings, arguments={"policy": policy(settings), "mode": mode})
            self._supervisor = supervisor_of_session(serve)
            steer(self._supervisor, config)
            begun()
        except Py4JNetworkError:
            return  # the application has ended its JVM
        except (Py4JError, OSError, ValueError) as error:
            self._say(f"the application runs without Barograph's policy: {type(error).__name__}: {error}")
