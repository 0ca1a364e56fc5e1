"""The scenarios that ship with the package, by name. A variant is written behind a slash: ``chain/stages-3``."""

from functools import cache
from importlib import resources
from pathlib import Path

from barograph.engines.sim.scenario.definition import Scenario
from barograph.engines.sim.scenario.read import parse_scenario, read_scenario, title, variant_names
from barograph.engines.sim.scenario.recorded import scenario_of
from barograph.model import BadInput
from barograph.model.checks import require
from barograph.recordings import Recording, names, read

_RECORDING = "recording:"


def shipped() -> dict[str, str]:
    """Name -> title; variants follow their scenario."""
    found: dict[str, str] = {}
    for name, text in sorted(_texts().items()):
        found[name] = title(text, name)
        for variant in variant_names(text, name):
            found[f"{name}/{variant}"] = found[name]
    return found


def find(name: str) -> Scenario:
    """A shipped scenario by its name, one in a file by its path (ending in .toml), or a recorded cluster.

    ``recording:CLUSTER`` is one that ships, ``FILE.json/CLUSTER`` one of a file, ``FILE.json`` the only one of a file.
    """
    if name.startswith(_RECORDING):
        return scenario_of(read(None, name.removeprefix(_RECORDING)))
    path, json, cluster = name.partition(".json")
    if json and cluster[:1] in ("", "/"):
        return scenario_of(_recording(Path(path + json), cluster.removeprefix("/")))
    path, _, variant = name.partition(".toml")
    if name.endswith(".toml") or (variant.startswith("/") and Path(path + ".toml").is_file()):
        return read_scenario(Path(path + ".toml"), variant.removeprefix("/"))
    base, _, variant = name.partition("/")
    text = _texts().get(base)
    if text is None:
        raise BadInput(
            f"there is no scenario {name!r}; barograph sim --list names those that ship, or name a .toml or .json file"
        )
    return parse_scenario(text, base, variant)


def _recording(file: Path, cluster: str) -> Recording:
    if cluster:
        return read(file, cluster)
    known = names(file)
    require(len(known) == 1, f"{file} has {len(known)} clusters; name one: {', '.join(f'{file}/{n}' for n in known)}")
    return read(file, known[0])


@cache
def _texts() -> dict[str, str]:
    folder = resources.files(__package__).joinpath("files")
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }
