"""Policies of other packages: one that is really installed, and packages that cannot be used."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import barograph
from barograph.model import BadInput
from barograph.policy.registry import POLICIES, listing, named

EXAMPLE = Path(__file__).parent / "example_package"
PAGE = Path(__file__).parents[2] / "docs" / "add-a-policy.md"
SHORT = """
name = "short"
title = "a short run"
duration_s = 20
nodes = [{name = "n", count = 2, cpu_pct = 200, seats = 4}]
[[topologies]]
name = "t"
operators = [
  {name = "s", parallelism = 2, load = "constant 200", cost_ms = 0.5},
  {name = "k", parallelism = 2, cost_ms = 1},
]
edges = [{source = "s", target = "k"}]
"""
GOOD = """
from dataclasses import replace
from barograph.policy.registry import POLICIES
policy = replace(POLICIES["even"], name="{name}")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, installed by pip into a folder of its own."""
    source = tmp_path_factory.mktemp("source") / "package"  # building writes beside the sources
    shutil.copytree(EXAMPLE, source)
    target = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-build-isolation", "--no-deps"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``barograph`` in a process of its own that has the folder on its import path."""
    path = os.pathsep.join([str(Path(barograph.__file__).parents[1]), str(folder)])
    return subprocess.run(
        [sys.executable, "-m", "barograph.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_an_installed_policy_is_listed_with_its_package(folder: Path) -> None:
    done = command(folder, "policies", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert list(rows) == [*POLICIES, "roomiest"]
    assert rows["roomiest"]["package"] == "barograph-roomiest"
    assert rows["roomiest"]["options"]["spare_seats"] == 0
    assert {rows[name]["package"] for name in POLICIES} == {"barograph"}
    table = command(folder, "policies").stdout
    assert re.search(r"^  roomiest +barograph-roomiest +example +new instances go to", table, re.MULTILINE)


def test_an_installed_policy_runs_in_the_simulator_with_its_options(folder: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "short.toml"
    scenario.write_text(SHORT, encoding="utf-8")
    words = ("sim", str(scenario), "--policy", "roomiest", "--option", "spare_seats=1", "--format", "json")
    done = command(folder, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["policy"] == "roomiest"
    assert report["completed_rows"] > 3000
    assert report["lost_rows"] == 0


def test_the_page_shows_the_code_of_the_package() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```(python|toml)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert shown["python"] == (EXAMPLE / "roomiest.py").read_text(encoding="utf-8")
    assert shown["toml"] == (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


def install(folder: Path, package: str, entries: str, code: str = "") -> None:
    """A package as pip leaves it, without running pip: one module, its metadata and its entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[barograph.policies]\n{entries}\n", encoding="utf-8")


# entry points, code of the module, the name that is asked for, what the sentence says
BROKEN = {
    "its import fails": (
        "bad-a = bad_import:policy",
        "import no_such_thing",
        "bad-a",
        "ModuleNotFoundError: No module",
    ),
    "it ends the process": ("bad-b = bad_exit:policy", "raise SystemExit('no')", "bad-b", "SystemExit: no"),
    "it lacks the attribute": ("bad-c = bad_attribute:policy", "", "bad-c", "AttributeError"),
    "it is no policy": ("bad-d = bad_value:policy", "policy = 3", "bad-d", "must be a Policy, not a int"),
    "it has another name": (
        "bad-e = bad_name:policy",
        GOOD.format(name="other"),
        "bad-e",
        "its Policy, 'other', differs",
    ),
    "a stage is missing": (
        "bad-f = bad_stage:policy",
        GOOD.format(name="bad-f") + "policy = replace(policy, placer=None)",
        "bad-f",
        "its placer cannot be called",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_package_that_cannot_be_used_costs_one_sentence(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from barograph.cli.main import main

    entries, code, name, words = BROKEN[case]
    package = entries.split("= ")[1].partition(":")[0].replace("_", "-")
    install(tmp_path, package, entries, code)
    install(tmp_path, "good-beside", "good = good_beside:policy", GOOD.format(name="good"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as error:
        named(name)
    assert str(error.value).startswith(f"policy {name!r} of package {package} ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert named("good").name == "good"
    assert main(["policies", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [row["name"] for row in json.loads(out)] == [*POLICIES, "good"]
    assert err == f"{error.value}\n"


def test_a_name_that_two_packages_bring_is_used_by_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("twin-a", "twin-b"):
        install(tmp_path, package, f"twin = {package.replace('-', '_')}:policy", GOOD.format(name="twin"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match=r"policy 'twin' is brought by twin-. and twin-.; uninstall all but one of them"):
        named("twin")
    found = listing()
    assert len(found.problems) == 1
    assert [policy.name for policy, _ in found.policies] == list(POLICIES)


def test_a_package_cannot_replace_a_policy_of_barograph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "false-liu", "liu = false_liu:policy", GOOD.format(name="liu"))
    monkeypatch.syspath_prepend(tmp_path)
    assert named("liu") is POLICIES["liu"]
    assert [p for p in listing().problems if "Barograph has a policy of that name" in p] == list(listing().problems)
    assert len(listing().problems) == 1


def test_entry_points_that_cannot_be_read_keep_no_other_policy_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "torn", "this line has no value")
    install(tmp_path, "good-besides", "good = good_besides:policy", GOOD.format(name="good"))
    monkeypatch.syspath_prepend(tmp_path)
    assert named("good").name == "good"
    found = listing()
    assert [package for _, package in found.policies if package != "barograph"] == ["good-besides"]
    assert len(found.problems) == 1
    assert "of package torn " in found.problems[0]


def test_nothing_is_imported_for_another_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "lazy-one", "lazy = lazy_one:policy", GOOD.format(name="lazy"))
    install(tmp_path, "lazy-two", "lazier = lazy_two:policy", GOOD.format(name="lazier"))
    monkeypatch.syspath_prepend(tmp_path)
    named("adaptive")
    assert "lazy_one" not in sys.modules
    named("lazy")
    assert "lazy_one" in sys.modules
    assert "lazy_two" not in sys.modules
    with pytest.raises(BadInput, match=r"there is no policy 'best'; there are adaptive, .*lazy"):
        named("best")


def test_a_second_copy_of_a_package_is_not_a_second_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        install(folder, "copied", "copied = copied:policy", GOOD.format(name="copied"))
        monkeypatch.syspath_prepend(folder)
    assert named("copied").name == "copied"
    assert listing().problems == ()
