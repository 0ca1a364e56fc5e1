"""The two programs that can fetch a jar: Maven where ``mvn`` is installed, else the Ivy that pyspark carries.

Each gets a description of the jars and puts exactly these, without their dependencies, into a folder. Which repository
they come from, through which proxy and with which password, is up to the machine's own settings (Maven's settings.xml,
``~/.ivy2/ivysettings.xml``, Java's options in JAVA_TOOL_OPTIONS): nothing of that is known here. Checksums are not
compared here.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from barograph.maven.pins import Jar

TIMEOUT_S = 600.0
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
IVY_MAIN = "org.apache.ivy.Main"


class FetchFailed(Exception):  # noqa: N818  # as StartFailed and RunFailed
    """A jar could not be fetched; one sentence."""


@dataclass(frozen=True, slots=True)
class Maven:
    """command: mvn."""

    command: Path

    def fetch(self, jars: Sequence[Jar], into: Path) -> None:
        pom = into / "pom.xml"
        pom.write_text(_pom(jars), encoding="utf-8")
        # -B: it asks no questions. -ntp: it shows no progress.
        _run("mvn", jars, [
            str(self.command), "-B", "-q", "-ntp", "-f", str(pom), COPY, f"-DoutputDirectory={into}",
        ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ivy:
    """java: a Java command. jar: Ivy's own jar."""

    java: Path
    jar: Path

    @classmethod
    def among(cls, java: Path, jars: Iterable[Path]) -> "Ivy":
        """The Ivy among Spark's jars."""
        found = sorted(jar for jar in jars if jar.name.startswith("ivy-") and jar.suffix == ".jar")
        if not found:
            raise FetchFailed(
                "neither mvn nor Ivy among Spark's jars was found: install Maven, or pyspark with its jars"
            )
        return cls(java, found[-1])

    def fetch(self, jars: Sequence[Jar], into: Path) -> None:
        described = into / "ivy.xml"
        described.write_text(_ivy(jars), encoding="utf-8")
        settings = Path.home() / ".ivy2" / "ivysettings.xml"
        # A cache of its own, because Ivy's usual one must not be written by two processes at once.
        _run("Ivy", jars, [
            str(self.java), "-cp", str(self.jar), IVY_MAIN, "-ivy", str(described), "-cache", str(into / "ivy-cache"),
            *(["-settings", str(settings)] if settings.is_file() else []),
            "-warn", "-retrieve", str(into / "[artifact]-[revision].[ext]"),
        ])  # fmt: skip


Tool = Maven | Ivy


def find_maven() -> Maven | None:
    command = shutil.which("mvn")
    return None if command is None else Maven(Path(command))


def _run(tool: str, jars: Sequence[Jar], command: Sequence[str]) -> None:
    what = f"{tool} could not fetch {', '.join(map(str, jars))}"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
            text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise FetchFailed(f"{what}: {command[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"{what} within {TIMEOUT_S:.0f} s: check whether a repository can be reached") from None
    if done.returncode != 0:
        raise FetchFailed(f"{what}: {_cause(done.stdout)}")


def _cause(output: str) -> str:
    """The most informative line: the first with an error of Maven or of Ivy, or else the last one."""
    lines = [stripped for line in output.splitlines() if re.search(r"\w", stripped := line.strip())]
    for pattern in (r"\[ERROR\]", "Server access error", ": not found", "Exception"):
        if found := next((line for line in lines if re.search(pattern, line)), None):
            return found
    return lines[-1] if lines else "it printed nothing"


def _pom(jars: Sequence[Jar]) -> str:
    wanted = "".join(
        f"<dependency><groupId>{j.group}</groupId><artifactId>{j.artifact}</artifactId><version>{j.version}</version>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for j in jars
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>barograph</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _ivy(jars: Sequence[Jar]) -> str:
    """``master`` is a Maven artifact's own jar, without its dependencies, sources and documentation."""
    wanted = "".join(
        f'<dependency org="{j.group}" name="{j.artifact}" rev="{j.version}" conf="default->master" transitive="false"/>'
        for j in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="barograph" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )
