"""Declarations agree with themselves, with the plug-in and with the values they are defaults of."""

import re
from collections import Counter
from pathlib import Path

import pytest

from barograph.config import OPTIONS, Kind, Option, default
from barograph.config.values import expected, in_toml, read, shown
from barograph.control.loop import Mode
from barograph.engines.spark.cluster.node_limit import LEAST_QUOTA_US, LONG_PERIOD_US
from barograph.engines.spark.cluster.settings import LEAST_MEMORY_MB, MOST_NODES
from barograph.policy.registry import DEFAULT

ROOT = Path(__file__).parents[2]
each = pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda o: o.name)


@each
def test_the_default_is_a_value_of_the_option(option: Option) -> None:
    if option.default is None:
        assert option.off or option.unset, "what happens without a value?"
    elif option.kind is not Kind.TEXTS:
        assert read(option, shown(option, option.default), text=True) == option.default


@each
def test_the_example_is_a_value_of_the_option(option: Option) -> None:
    if option.kind is not Kind.TEXTS and option.example:
        read(option, option.example, text=True)


@each
def test_it_is_explained(option: Option) -> None:
    assert option.meaning and not option.meaning.endswith(".")
    assert expected(option) and in_toml(option, option.default)
    assert re.fullmatch(r"([a-z]+\.)?[a-z]+(-[a-z][a-z0-9]*)*", option.name)


def test_flags_and_keys_are_unique() -> None:
    flags = Counter((c, o.flag_name) for o in OPTIONS.values() for c in o.commands)
    keys = Counter(o.key_name for o in OPTIONS.values() if o.key_name)
    assert max(flags.values()) == max(keys.values()) == 1


def test_the_plug_in_has_the_same_keys_and_defaults() -> None:
    """It cannot import them: it is Scala."""
    credit = (ROOT / "jvm" / "shuffle" / "Credit.scala").read_text(encoding="utf-8")
    files = (ROOT / "jvm" / "internals" / "FencedCheckpointFiles.scala").read_text(encoding="utf-8")
    planner = (ROOT / "jvm" / "planner" / "SteerRealTime.scala").read_text(encoding="utf-8")
    found = {k: re.search(rf'val {k} = "?([\w.]+?)"?L?\n', credit + planner + files) for k in (
        "Patience", "DefaultPatienceMs",
        "Setting", "DefaultMs", "DueColumn", "DueColumnDefault", "ReadColumn", "ReadColumnDefault",
    )}  # fmt: skip
    told = {k: m[1] for k, m in found.items() if m}
    in_flight, due, seen = (OPTIONS[n] for n in ("in-flight", "latency.column", "latency.read-column"))
    assert (told["Setting"], told["DefaultMs"]) == (in_flight.key_name, f"{1000 * default('in-flight'):g}")
    lease = OPTIONS["lease.patience"]
    assert (told["Patience"], told["DefaultPatienceMs"]) == (lease.key_name, f"{1000 * default(lease.name):g}")
    assert (told["DueColumn"], told["DueColumnDefault"]) == (due.key_name, due.default)
    assert (told["ReadColumn"], told["ReadColumnDefault"]) == (seen.key_name, seen.default)
    way = (ROOT / "jvm" / "enforce" / "Way.scala").read_text(encoding="utf-8")
    ways = dict(re.findall(r'val (\w+) = "([\w.]+)"', way))
    wishes = re.search(r"val Wishes = Seq\(([\w, ]+)\)", way)
    enforce = OPTIONS["enforce"]
    assert wishes is not None and tuple(ways[name] for name in wishes[1].split(", ")) == enforce.choices
    assert (ways["Setting"], ways["Auto"]) == (enforce.key_name, enforce.default)
    assert f'"{OPTIONS["allowlist-check"].key_name}", defaultValue = true' in planner


def test_the_plug_in_reads_no_key_that_is_not_declared() -> None:
    found = {
        key
        for file in (ROOT / "jvm").rglob("*.scala")
        if "tests" not in file.parts
        for key in re.findall(r'"(spark\.barograph\.[\w.]+)"', file.read_text(encoding="utf-8"))
    }
    assert len(found) > 5
    assert found - {"spark.barograph.answers"} <= {o.key_name for o in OPTIONS.values()}, "answers: a name in messages"


def test_bounds_and_choices_are_those_of_the_values() -> None:
    assert OPTIONS["mode"].choices == tuple(Mode)
    assert f" {DEFAULT}" in OPTIONS["policy"].unset
    assert OPTIONS["cluster.nodes"].most == MOST_NODES
    assert OPTIONS["cluster.memory"].least == LEAST_MEMORY_MB
    assert OPTIONS["run.node-cpu"].least == LEAST_QUOTA_US / LONG_PERIOD_US
