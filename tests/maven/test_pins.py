"""The jars that are pinned."""

from pathlib import Path

import pytest

from barograph.maven.pins import PINS, Jar, pinned
from barograph.model import BadInput

SHA = "0" * 64


def test_every_pinned_group_can_be_read() -> None:
    (console,) = pinned("junit-console")
    assert (console.group, console.artifact) == ("org.junit.platform", "junit-platform-console-standalone")
    assert console.file_name == f"{console.artifact}-{console.version}.jar"


def test_no_repository_is_named() -> None:
    texts = {p.name: p.read_text(encoding="utf-8") for p in PINS.parent.iterdir() if p.suffix in (".py", ".toml")}
    assert {PINS.name, "pins.py", "jars.py"} <= set(texts)
    assert [name for name, text in texts.items() if "://" in text] == []


def test_an_unknown_name_lists_those_there_are(tmp_path: Path) -> None:
    pins = tmp_path / "pins.toml"
    pins.write_text(f'[[a]]\ngroup="g"\nartifact="x"\nversion="1"\nsha256="{SHA}"\n[[b]]\n')
    assert pinned("a", pins) == (Jar("g", "x", "1", SHA),)
    with pytest.raises(BadInput, match="there are a, b"):
        pinned("c", pins)


@pytest.mark.parametrize(
    ("group", "artifact", "version", "sha256"),
    [
        ("g", "../x", "1", SHA),
        ("g<x/>", "x", "1", SHA),
        ("g", "x", "1/2", SHA),
        ("g", "x", "", SHA),
        ("g", "x", "1", "ABC"),
    ],
)
def test_what_is_no_jar(group: str, artifact: str, version: str, sha256: str) -> None:
    with pytest.raises(BadInput):
        Jar(group, artifact, version, sha256)
