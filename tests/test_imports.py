"""Imports point one way: model <- config <- stages <- policy <- control <- experiments, cli; engines import the model.

There is a rule for every package. A package that is not listed fails, so that a new one gets its rule when it is made.
"""

import ast
from pathlib import Path

import pytest

import barograph

ROOT = Path(barograph.__file__).parent
STAGES = {"forecast", "scale", "allot", "place", "limit", "migrate"}
ALL = {"model", "config", "policy", "control", "priority", "engines", "engines.sim", "engines.spark", "history"}
ALL |= {"recordings", "logs", "maven", "guardian", "kafka", "workloads", "experiments", "report", "testing", "cli"}
ALL |= STAGES | {"submit"}
# package -> what it may import besides itself
MAY_IMPORT: dict[str, set[str]] = {
    "logs": {"config"},
    "model": set(),
    "config": {"model"},
    **{stage: {"model"} for stage in STAGES},
    "data": set(),
    "recordings": {"model"},
    "maven": {"model"},
    "guardian": {"model", "engines.spark"},
    "kafka": {"model", "maven", "guardian", "engines.spark"},
    "engines": {"model", "config"},
    "engines.sim": {"model", "config", "engines", "recordings"},
    "engines.spark": {"model", "config", "engines", "logs"},
    "history": {"model", "config", "engines.sim", "logs"},
    "policy": {"model", "config"} | STAGES,
    "control": {"model", "config", "policy", "engines", "engines.sim", "engines.spark", "history", "logs"},
    "priority": {"model", "config", "control", "engines", "engines.spark", "logs"},
    "submit": {"model", "config", "control", "engines.spark", "history", "logs", "priority"},
    "workloads": {"model", "config", "engines.spark"},
    "report": {"model", "config", "history", "experiments"},
    "experiments": ALL - {"cli", "testing"},
    "testing": ALL - {"cli"},
    "cli": ALL,
    "__init__": {"config", "control", "engines", "engines.spark", "priority", "submit"},  # the public API
}
MODULES = sorted(ROOT.rglob("*.py"))


def room(parts: tuple[str, ...]) -> str:
    """The package that a dotted name below barograph belongs to; engines are told apart."""
    first = parts[0].removesuffix(".py")
    if first == "engines" and len(parts) > 1 and parts[1] in ("sim", "spark"):
        return f"engines.{parts[1]}"
    return first


def imported_rooms(module: Path) -> set[str]:
    """The packages of barograph that a module imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; imports name the whole way"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {room(tuple(name.split(".")[1:])) for name in names if name.startswith("barograph.")}
    return found - {"__version__"}


def room_of(module: Path) -> str:
    return room(module.relative_to(ROOT).parts)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_imports_point_one_way(module: Path) -> None:
    here = room_of(module)
    assert here in MAY_IMPORT, f"{here} has no rule here: say what it may import"
    wrong = imported_rooms(module) - MAY_IMPORT[here] - {here}
    assert not wrong, f"{module.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_there_is_something_to_check() -> None:
    assert {room_of(m) for m in MODULES} >= set(MAY_IMPORT)
    assert imported_rooms(ROOT / "control" / "decide.py") == {"model", "policy"}


@pytest.mark.parametrize("folder", sorted({m.parent for m in MODULES}), ids=lambda f: str(f.relative_to(ROOT.parent)))
def test_no_folder_has_more_than_fifteen_modules(folder: Path) -> None:
    assert len([m for m in folder.glob("*.py") if m.name != "__init__.py"]) <= 15


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_no_module_has_more_than_three_hundred_lines(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 300


def test_every_class_has_a_name_of_its_own() -> None:
    """One word, one meaning: a reader who meets a class name need not ask which of two is meant."""
    names: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names.setdefault(node.name, []).append(str(module.relative_to(ROOT)))
    assert {name: where for name, where in names.items() if len(where) > 1} == {}


def reached_into(module: Path) -> set[str]:
    """What a module calls of the Spark engine through a name that no interface types: ``x.engine.y``."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        inner = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and isinstance(inner, ast.Attribute) and inner.attr == "engine":
            owner = inner.value
            if not (isinstance(owner, ast.Name) and owner.id == "self"):  # typed where it is set
                found.add(ast.unparse(node))
    return found


@pytest.mark.parametrize("package", ["experiments", "priority"])
def test_other_packages_use_the_spark_engine_by_its_interfaces(package: str) -> None:
    """``interfaces.py`` says what they need; mypy checks each name that has such a type."""
    modules = sorted((ROOT / package).rglob("*.py"))
    assert {str(m.relative_to(ROOT)): names for m in modules if (names := reached_into(m))} == {}
    naming = {m.name for m in modules if "import SparkEngine" in m.read_text(encoding="utf-8")}
    assert naming <= {"run.py", "warm_up.py"}, "these make an engine; others are given one"
