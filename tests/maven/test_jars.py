"""Fetching with a fake mvn and a fake Ivy, and, in the slow tests, with the real ones."""

import hashlib
import multiprocessing
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.maven import FetchFailed, Ivy, Jar, fetch, jars, pinned
from barograph.maven import tools as maven_tools
from barograph.maven.tools import Maven, find_maven

CONTENT, ANOTHER = b"a jar\n", b"another jar\n"
ONE = Jar("org.one", "one", "1.0", hashlib.sha256(CONTENT).hexdigest())
TWO = Jar("org.two", "two", "2.0", hashlib.sha256(CONTENT).hexdigest())


def no_ivy() -> Ivy:
    raise AssertionError("Ivy is asked for only without mvn")


def real_ivy() -> Ivy:
    return Ivy.among(find_java().command, spark_jars())


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for fake programs; the machine's own mvn is not found."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr(jars, "find_maven", lambda: Maven(folder / "mvn") if (folder / "mvn").exists() else None)
    return folder


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def false_mvn(tools: Path, content: bytes = CONTENT, has: tuple[Jar, ...] = (ONE, TWO)) -> Path:
    """It records each call, and writes the jars to the given folder."""
    source = tools / "content"
    source.write_bytes(content)
    copies = "\n".join(f'grep -q "<artifactId>{j.artifact}<" "$pom" && cp {source} "$out/{j.file_name}"' for j in has)
    return script(
        tools / "mvn",
        f"""echo called >> {tools}/calls
while [ $# -gt 0 ]; do case "$1" in -f) pom="$2";; -DoutputDirectory=*) out="${{1#*=}}";; esac; shift; done
{copies}
exit 0""",
    )


def calls(tools: Path) -> int:
    return len((tools / "calls").read_text().splitlines()) if (tools / "calls").exists() else 0


def test_jars_are_fetched_once(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools)
    kept = tmp_path / "kept"
    assert fetch([TWO, ONE], kept, no_ivy) == (kept / "two-2.0.jar", kept / "one-1.0.jar")
    assert (kept / "one-1.0.jar").read_bytes() == CONTENT
    assert fetch([ONE], kept, no_ivy) == (kept / "one-1.0.jar",)
    assert calls(tools) == 1
    assert sorted(p.name for p in kept.iterdir()) == [".lock", "one-1.0.jar", "two-2.0.jar"], "nothing else is left"


def test_only_what_is_missing_is_fetched(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools, has=(ONE,))
    fetch([ONE], tmp_path, no_ivy)
    false_mvn(tools, has=(TWO,))
    fetch([ONE, TWO], tmp_path, no_ivy)
    assert (tmp_path / TWO.file_name).read_bytes() == CONTENT


def test_a_spoiled_jar_is_replaced(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools)
    (tmp_path / ONE.file_name).write_bytes(b"half a")
    fetch([ONE], tmp_path, no_ivy)
    assert (tmp_path / ONE.file_name).read_bytes() == CONTENT


def test_a_jar_with_another_checksum_is_refused_and_not_kept(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools, ANOTHER)
    (tmp_path / ONE.file_name).write_bytes(b"half a")
    with pytest.raises(FetchFailed, match=rf"instead of the pinned {ONE.sha256}") as refused:
        fetch([ONE], tmp_path, no_ivy)
    assert str(refused.value).startswith(f"{ONE} has the SHA-256 {hashlib.sha256(ANOTHER).hexdigest()}")
    assert list(tmp_path.rglob("*.jar")) == []


def test_one_wrong_jar_keeps_the_others_out_too(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools)
    with pytest.raises(FetchFailed, match=r"org\.two:two:2\.0"):
        fetch([ONE, Jar(TWO.group, TWO.artifact, TWO.version, "0" * 64)], tmp_path, no_ivy)
    assert list(tmp_path.rglob("*.jar")) == []


@pytest.mark.parametrize(
    ("body", "says"),
    {
        "an error": ("echo '[INFO] so far'; echo '[ERROR] not there'; echo '[ERROR] help'; exit 1", "not there$"),
        "Ivy's error": (
            "echo ':: UNRESOLVED ::'; echo ':: x: not found'; echo 'Server access error'; exit 1",
            "error$",
        ),
        "no words": ("exit 3", "it printed nothing"),
        "no jar": ("exit 0", "did not fetch org.one:one:1.0"),
    }.values(),
)
def test_what_mvn_says_is_told_in_one_line(tools: Path, tmp_path: Path, body: str, says: str) -> None:
    script(tools / "mvn", body)
    with pytest.raises(FetchFailed, match=says) as failed:
        fetch([ONE], tmp_path / "kept", no_ivy)
    assert "\n" not in str(failed.value)


def test_a_fetch_that_hangs_ends(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tools / "mvn", "exec sleep 60")
    monkeypatch.setattr(maven_tools, "TIMEOUT_S", 0.2)
    with pytest.raises(FetchFailed, match="check whether a repository can be reached"):
        fetch([ONE], tmp_path / "kept", no_ivy)


def test_mvn_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_maven() is None
    script(tmp_path / "mvn", "exit 0")
    assert find_maven() == Maven(tmp_path / "mvn")


def test_without_mvn_ivy_fetches(tools: Path, tmp_path: Path) -> None:
    (tools / "content").write_bytes(CONTENT)
    java = script(
        tools / "false-java",
        f"""[ "$3" = org.apache.ivy.Main ] || exit 9
while [ $# -gt 0 ]; do case "$1" in -retrieve) out="${{2%/*}}";; -ivy) described="$2";; esac; shift; done
grep -q 'org="org.one" name="one" rev="1.0"' "$described" && cp {tools}/content "$out/one-1.0.jar" """,
    )
    fetch([ONE], tmp_path / "kept", lambda: Ivy(java, tools / "ivy-9.jar"))
    assert (tmp_path / "kept" / ONE.file_name).read_bytes() == CONTENT


def test_a_java_that_cannot_be_run(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="cannot be run: No such file"):
        fetch([ONE], tmp_path / "kept", lambda: Ivy(tools / "no-java", tools / "ivy-9.jar"))


def test_the_newest_ivy_among_sparks_jars() -> None:
    spark = [Path("a/hive-ivy.jar"), Path("a/ivy-2.5.3.jar"), Path("a/scala.jar")]
    assert Ivy.among(Path("java"), spark).jar == Path("a/ivy-2.5.3.jar")
    with pytest.raises(FetchFailed, match="install Maven"):
        Ivy.among(Path("java"), spark[:1])


def test_a_folder_that_cannot_be_written(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools)
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchFailed, match="cannot be kept in"):
        fetch([ONE], tmp_path / "file" / "kept", no_ivy)


def _fetch_one(kept: Path) -> None:
    (path,) = fetch([ONE], kept, no_ivy)
    assert path.read_bytes() == CONTENT


def test_processes_that_fetch_at_once_share_one_fetch(tools: Path, tmp_path: Path) -> None:
    false_mvn(tools)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_fetch_one, args=(tmp_path / "kept",)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    assert calls(tools) == 1


def require_runnable(jar: Path) -> None:
    with zipfile.ZipFile(jar) as content:
        assert "org/junit/platform/console/ConsoleLauncher.class" in content.namelist()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="there is no mvn on this machine")
def test_the_real_mvn(tmp_path: Path) -> None:
    (jar,) = fetch(pinned("junit-console"), tmp_path, no_ivy)
    require_runnable(jar)


@pytest.mark.slow
def test_the_real_ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_maven", lambda: None)
    (jar,) = fetch(pinned("junit-console"), tmp_path, real_ivy)
    require_runnable(jar)
    said = subprocess.run([find_java().command, "-jar", jar, "--version"], capture_output=True, text=True, check=False)
    assert pinned("junit-console")[0].version in said.stdout
