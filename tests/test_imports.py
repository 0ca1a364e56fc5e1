"""Imports point one way: model <- stages and engines <- policies, controller <- experiments, cli, dashboard."""

import ast
from pathlib import Path

import pytest

import barograph

ROOT = Path(barograph.__file__).parent
STAGES = {"forecast", "scale", "allot", "place", "migrate"}
LOOP = {"guards", "epochs", "loop", "loop_process", "priority", "rehearsal", "replay"}
ABOVE = {"policies", "controller", "experiments", "cli", "dashboard"} | LOOP
MODULES = sorted(ROOT.rglob("*.py"))


def room(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(module: Path) -> set[str]:
    """The parts of barograph that a module imports, by their first name, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; imports name the whole way"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("barograph.")}
    return found


def forbidden(here: str) -> set[str]:
    if here == "model":
        return STAGES | ABOVE | {"engines", "history", "workloads", "recordings"}
    if here in STAGES:
        return (STAGES - {here}) | ABOVE | {"engines", "history", "workloads"}
    if here == "engines":
        return STAGES | ABOVE
    if here in ("policies", "controller"):
        return {"experiments", "cli", "dashboard"} | LOOP
    if here in LOOP | {"history"}:
        return {"experiments", "cli", "dashboard"}
    return set()


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_imports_point_one_way(module: Path) -> None:
    wrong = imported_rooms(module) & forbidden(room(module))
    assert not wrong, f"{module.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_there_is_something_to_check() -> None:
    assert {room(m) for m in MODULES} >= STAGES | {"model", "engines", "policies", "controller", "cli"}
    assert imported_rooms(ROOT / "controller.py") == {"model", "policies"}
