"""The settings of a user's program with those of Barograph added. Pure: it only compares and joins values.

What the program sets itself is kept. Lists get our entry at their end; a hook that can hold only one value and holds
another one stays as it is, and is reported.
"""

import re
from collections.abc import Mapping

EXTENSIONS, PLUGINS, JARS = "spark.sql.extensions", "spark.plugins", "spark.jars"
DEPLOY_MODE = "spark.submit.deployMode"
LISTS = (EXTENSIONS, PLUGINS, JARS)
ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck"
OWN_ALLOWLIST = "spark.barograph.allowlistCheck"
# Hooks with one value -> what does not work if another class has them.
HOOKS = {
    "spark.shuffle.manager.incremental": "rows between instances are not counted, so that no policy can steer",
    "spark.sql.streaming.checkpointFileManagerClass": "a second driver on the same checkpoint is not kept out",
}


def added(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """What must be set so that a program with the settings ``theirs`` gets ours too."""
    found = {key: value for key, value in ours.items() if key not in theirs}
    for key in LISTS:
        if key in ours and key in theirs:
            found[key] = joined(theirs[key], ours[key])
    if ALLOWLIST in ours and ALLOWLIST in theirs:
        # Spark's own check refuses our plan nodes. Ours makes the same check, unless the program wants none.
        found[ALLOWLIST] = ours[ALLOWLIST]
        if theirs[ALLOWLIST].strip().lower() != "true" and OWN_ALLOWLIST not in theirs:
            found[OWN_ALLOWLIST] = "false"
    return found


def joined(first: str, then: str) -> str:
    """Two comma-separated lists as one, each entry once. A file is the same by its path and by its URL."""
    found: dict[str, str] = {}
    for entry in f"{first},{then}".split(","):
        plain = entry.strip()
        if plain:
            found.setdefault(re.sub("^file:/+", "/", plain), plain)
    return ",".join(found.values())


def left_out(present: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """One sentence for each hook that did not get in. present: the settings of the session."""
    said = []
    for key in (EXTENSIONS, PLUGINS):
        missing = set(ours[key].split(",")) - {entry.strip() for entry in present.get(key, "").split(",")}
        if missing:
            said.append(f"{key} is {present.get(key, 'not set')!r}, without {', '.join(sorted(missing))}")
    for key, lost in HOOKS.items():
        if present.get(key) != ours[key]:
            said.append(f"{key} is {present.get(key, 'not set')!r}, not {ours[key]}: {lost}; leave that setting out")
    return said
