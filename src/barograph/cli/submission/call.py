"""The call of spark-submit that runs a script under Barograph, on a cluster that is there or on one of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType

from barograph.config.written.properties import conf_folder, properties_of, spark_defaults
from barograph.engines.spark.cluster.embedded import start_cluster
from barograph.engines.spark.cluster.java import java_home, pyspark_home
from barograph.engines.spark.cluster.node_keeper import NodeKeeper
from barograph.engines.spark.cluster.processes import RUN_MARK, python_environment
from barograph.engines.spark.cluster.runs import run_of
from barograph.engines.spark.cluster.settings import ClusterSettings
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.engines.spark.conf import plugin_settings, workloads_settings
from barograph.engines.spark.log_folder import SPARK, new_log_folder
from barograph.guardian import guarded
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.submit import launcher
from barograph.submit.connect import refuse_connect
from barograph.submit.launcher import SubmitOptions
from barograph.submit.settings import JARS, joined

Option = tuple[str, str | None]

_KINDS = "barograph submit runs Python scripts and jars of Scala or Java"
_JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
_PYTHON, _DRIVER_PYTHON = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"


@dataclass(frozen=True, slots=True)
class SubmitCall:
    """options: of spark-submit, without those that are given below. jars: the user's and ours, comma-separated.
    master: empty if none was named. main_class: of a jar; empty: the program is a Python script."""

    options: tuple[Option, ...]
    script: str
    arguments: tuple[str, ...]
    master: str
    name: str
    jars: str
    main_class: str = ""

    @classmethod
    def of(
        cls, options: Sequence[Option], words: Sequence[str], workloads: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> "SubmitCall":  # fmt: skip
        """From the words of a command line. Raises BadInput for what cannot be run."""
        script, *arguments = words
        _require_program(script, options)
        settings = settings_of(options, environment)
        last = {name: value or "" for name, value in options}
        refuse_connect({**settings, **({"spark.remote": last["--remote"]} if "--remote" in last else {})}, environment)
        where = last.get("--deploy-mode") or settings.get("spark.submit.deployMode") or "client"
        if where != "client":
            raise BadInput(
                f"--deploy-mode {where} is not supported: the driver must be a process of this machine, so that "
                "Barograph can keep its queries; leave it out"
            )
        ours = workloads_settings(ship=True) if workloads else plugin_settings(ship=True)
        theirs = last.get("--jars") or settings.get(JARS, "")
        given = ("--jars", "--master", "--name", "--class")
        is_jar = script.endswith(".jar")
        return cls(
            tuple(o for o in options if o[0] not in given), script, tuple(arguments),
            last.get("--master") or settings.get("spark.master") or environment.get("MASTER", ""),
            last.get("--name") or settings.get("spark.app.name") or Path(script).name,
            joined(joined(script if is_jar else "", theirs), ours[JARS]),
            last.get("--class") or _main_of(Path(script)) if is_jar else "",
        )  # fmt: skip

    def command(self, submit: SubmitOptions) -> list[str]:
        program = str(pyspark_home() / "bin" / "spark-submit")
        passed = [word for name, value in self.options for word in ((name,) if value is None else (name, value))]
        ours = ["--master", self.master, "--name", self.name, "--jars", self.jars]
        options = json.dumps(asdict(replace(submit, main_class=self.main_class)))
        return [program, *passed, *ours, launcher.__file__, options, self.script, *self.arguments]

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The Python of this process runs the driver. Executors on this machine use it too, unless the user chose one;
        elsewhere it may not be there. Of a Spark of the user's own, the folder of settings is kept."""
        here = self.master.startswith("local") or run_of(self.master) is not None
        workers = {} if _PYTHON in inherited or not here else {_PYTHON: sys.executable}
        return {
            **inherited, "SPARK_HOME": str(pyspark_home()), "JAVA_HOME": str(java_home()),
            "SPARK_CONF_DIR": str(conf_folder(pyspark_home(), inherited)),
            _DRIVER_PYTHON: sys.executable, **workers,
        }  # fmt: skip


def with_own_folder(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment with a folder for what the driver's JVM keeps on the local disk, unless the user chose one. Spark
    gives blocks and shuffle files the rights that the shell's mask leaves, and so does what the program writes itself:
    only the folder can be private."""
    option = f'"-Djava.io.tmpdir={folder}"'  # Spark's own settings win over it, and so do Java options of the user
    return {**environment, _JAVA_OPTIONS: " ".join(filter(None, (option, environment.get(_JAVA_OPTIONS))))}


def spark_output(launch: SubmitCall, say: Callable[[str], None]) -> Path | None:
    """A file for what Spark's JVM writes to its standard error. The program's own output is not in it: spark-submit
    passes what a script writes, to either stream, to its standard output. None: it was asked for on the terminal, or
    the program is a jar, which writes to the JVM's own."""
    if launch.main_class or any(name == "--verbose" for name, _ in launch.options):
        return None
    file = new_log_folder("submit") / SPARK
    say(f"Spark's own output is in {file}")
    return file


def run_there(launch: SubmitCall, submit: SubmitOptions, file: Path | None) -> int:
    """On the master that was named. This process becomes spark-submit. file: for the output of Spark's JVM."""
    command = launch.command(submit)
    if file is not None:
        with file.open("ab") as opened:
            os.dup2(opened.fileno(), 2)
    environment = launch.environment(python_environment())
    with guarded("submit") as home:  # removed when the program ends, which has this process's id
        os.execve(command[0], command, with_own_folder(environment, home.folder))


def run_on_own_cluster(
    launch: SubmitCall,
    submit: SubmitOptions,
    settings: ClusterSettings,
    say: Callable[[str], None],
    file: Path | None,
    hung_after_s: float | None,
) -> int:
    """On a cluster that is started for it and ends with it. Returns the exit code of the program. file: for the output
    of Spark's JVM. hung_after_s: of the cluster's keeper."""
    with ExitStack() as ending:
        say(f"starting {settings.nodes} nodes with {settings.executors * settings.seats} seats each")
        try:
            cluster = ending.enter_context(start_cluster(settings))
        except StartFailed as error:
            raise BadInput(str(error)) from None
        ending.callback(NodeKeeper(cluster, hung_after_s).close)
        cluster.fence()
        there = replace(launch, master=cluster.master)
        # The mark: whatever happens to this process, the program ends with the cluster.
        own = with_own_folder(there.environment(python_environment()), ending.enter_context(guarded("submit")).folder)
        environment = {**own, RUN_MARK: cluster.run.run_id}
        return _run(there.command(replace(submit, started=cluster.master)), environment, file)


def _run(command: Sequence[str], environment: Mapping[str, str], file: Path | None) -> int:
    with ExitStack() as opened:
        to = None if file is None else opened.enter_context(file.open("ab"))
        program = subprocess.Popen(command, env=environment, stderr=to)

    def pass_on(number: int, _: FrameType | None) -> None:
        program.send_signal(number)

    # A terminal gives SIGINT to the program itself too.
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on), signal.SIGINT: signal.getsignal(signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = program.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _require_program(program: str, options: Sequence[Option]) -> None:
    is_jar = program.endswith(".jar")
    if not is_jar and any(name == "--class" for name, _ in options):
        raise BadInput(f"--class names the main class of a jar, and {program} is none: leave it out, or name the jar")
    require(is_jar or program.endswith(".py"), f"{_KINDS}, and {program} does not end with .py or .jar")
    require(Path(program).is_file(), f"there is no file {program}: name a program on this machine")


def _main_of(jar: Path) -> str:
    """The main class that a jar itself names."""
    try:
        with zipfile.ZipFile(jar) as opened:
            manifest = opened.read("META-INF/MANIFEST.MF").decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        manifest = ""
    found = re.search(r"^Main-Class:\s*(\S+)", manifest, re.MULTILINE)
    if found is None:
        raise BadInput(f"{jar} does not say which class is its main one: add --class NAME")
    return found[1]


def settings_of(options: Sequence[Option], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What spark-submit will take from its files and --conf; later ones win, as they do there."""
    files = [value for name, value in options if name == "--properties-file" and value]
    found: dict[str, str] = {}
    if not files or any(name == "--load-spark-defaults" for name, _ in options):
        found |= spark_defaults(conf_folder(pyspark_home(), environment))
    if files:
        found |= properties_of(Path(files[-1]))
    for name, value in options:
        if name == "--conf":
            key, equals, said = (value or "").partition("=")
            require(bool(equals), f"--conf needs KEY=VALUE, not {value!r}")
            found[key.strip()] = said
    return found
