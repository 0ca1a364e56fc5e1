"""The main file that spark-submit runs for ``barograph submit``: it prepares pyspark, then runs the user's script.

``launcher.py OPTIONS SCRIPT [ARGUMENT ...]``, OPTIONS as JSON. The script finds everything as if it had been started
itself: its name is ``__main__``, and its arguments, its path and its folder for imports are its own. No installed file
is changed.
"""

import json
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """policy: of the flag; empty: that of Spark's keys, among them those of the program's own builder, else ``usual``,
    which is what was said at the start. started: master of the cluster that was started for the program; empty if there
    is none. config: file of options; empty: barograph.toml of the working directory. main_class: of an application in
    Scala or Java; empty: the program is a Python script."""

    mode: str
    policy: str
    usual: str
    started: str = ""
    config: str = ""
    main_class: str = ""


def main(words: Sequence[str]) -> None:
    options, script, arguments = SubmitOptions(**json.loads(words[0])), words[1], list(words[2:])
    if options.main_class:
        sys.exit(run_jvm_program(options, arguments))
    sys.path[0] = str(
        Path(script).resolve().parent
    )  # it was this file's folder, with modules that are not the script's
    prepare(options)
    sys.argv = [script, *arguments]
    sys.excepthook = without_our_frames
    run_script(script)


def prepare(options: SubmitOptions) -> None:
    """From here on sessions get our settings, and queries are kept."""
    from pyspark.sql import SparkSession

    import barograph
    from barograph.control.attach import histories_here
    from barograph.engines.spark.driver.application import application_settings
    from barograph.engines.spark.query.start.writer_ahead import Build
    from barograph.engines.spark.query.supervised_query import Supervised
    from barograph.logs import settings_of_environment
    from barograph.submit.configure import our_settings
    from barograph.submit.kept_starts import keep_starts
    from barograph.submit.noted_writers import note_calls
    from barograph.submit.own_queries import OwnQueries
    from barograph.submit.session_settings import add_to_sessions
    from barograph.submit.steered_line import said_elsewhere
    from barograph.submit.streams import show_kept
    from barograph.submit.told_decisions import ToldDecisions

    config = Path(options.config) if options.config else None
    told, others = ToldDecisions(histories_here, say), list[str]()

    def keep(build: Build, checkpoint: str | None, session: SparkSession) -> Supervised:
        started = cast("Any", build)  # also a start that is not a writer's plain one
        chosen = chosen_policy(options, application_settings(session))
        if chosen != options.usual and chosen not in others:
            others.append(chosen)
            say(f"the program's own settings choose the policy {chosen}, not {options.usual}")
        said_elsewhere(chosen, options.mode)
        query = barograph.start(started, checkpoint, policy=chosen, mode=options.mode, session=session)
        if settings_of_environment().level is None:  # with a level, the controllers' own logs are on standard error
            told.begin()
        return query

    add_to_sessions(our_settings(config), options.started, say)
    queries = OwnQueries()
    note_calls()
    keep_starts(keep, queries, say)
    show_kept(queries)


def chosen_policy(options: SubmitOptions, settings: Mapping[str, str]) -> str:
    """settings: of the session, with those of the program's own builder and of Spark's files."""
    return options.policy or settings.get("spark.barograph.policy") or options.usual


def run_jvm_program(options: SubmitOptions, arguments: Sequence[str]) -> int:
    """Returns the exit code, which counts only while the application leaves the JVM running."""
    from barograph.config import resolve
    from barograph.control.attach import histories_here
    from barograph.engines.spark.query.failures.diagnosis import RestartLimits
    from barograph.logs import settings_of_environment
    from barograph.submit.configure import our_settings
    from barograph.submit.jvm_program import JvmEnded, JvmProgram, MainFailed
    from barograph.submit.told_decisions import ToldDecisions

    config = Path(options.config) if options.config else None
    ours, told = our_settings(config), ToldDecisions(histories_here, say)
    program = JvmProgram(options.main_class, arguments, say)
    program.add_settings(ours, options.started)
    # With a level, the controllers' own logs are on standard error.
    told_there = settings_of_environment().level is not None
    program.watch(ours, partial(chosen_policy, options), options.mode, (lambda: None) if told_there else told.begin)
    try:
        program.run(RestartLimits(**resolve(config).fields("restart")))
    except MainFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except JvmEnded:
        return 1
    finally:
        program.close()
    return 0


def run_script(script: str) -> None:
    """As ``python SCRIPT`` does. Its module stays ``__main__``: its threads may outlive its last line."""
    path = Path(script)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = module
    exec(compile(path.read_bytes(), script, "exec"), module.__dict__)


def without_our_frames(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback begins at the script. What Barograph refuses, or what a user can mend, is one sentence, with the line
    of the script."""
    from barograph.submit.users_errors import sentence_for

    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    if trace is not None and (said := sentence_for(error)):
        where = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
        sys.stderr.write(f"barograph submit: {said} ({where})\n")
    else:
        traceback.print_exception(kind, error, trace)


def say(text: str) -> None:
    sys.stderr.write(f"-- {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
