"""What a user's program sets itself is kept; ours is added, and what did not get in is said."""

import pytest

from barograph.engines.spark.conf import plugin_settings
from barograph.submit.settings import EXTENSIONS, HOOKS, JARS, PLUGINS, added, joined, left_out

OURS = plugin_settings(ship=True)


def test_without_settings_of_its_own_a_program_gets_all_of_ours() -> None:
    assert added({}, OURS) == OURS


@pytest.mark.parametrize("key", [EXTENSIONS, PLUGINS, JARS])
def test_lists_are_kept_and_ours_is_appended(key: str) -> None:
    assert added({key: "theirs, more"}, OURS)[key] == f"theirs,more,{OURS[key]}"


def test_an_entry_that_is_there_is_not_there_twice() -> None:
    assert joined("a,b", "b,c") == "a,b,c"
    assert joined("file:///one.jar,file:/two.jar", "/one.jar,/two.jar,/three.jar") == (
        "file:///one.jar,file:/two.jar,/three.jar"
    )
    assert added({PLUGINS: OURS[PLUGINS]}, OURS)[PLUGINS] == OURS[PLUGINS]


def test_other_values_of_the_program_stand() -> None:
    theirs = {"spark.locality.wait": "1s", **dict.fromkeys(HOOKS, "their.Class")}
    assert not theirs.keys() & added(theirs, OURS).keys()


@pytest.mark.parametrize(("theirs", "own"), [("true", None), ("FALSE", "false")])
def test_the_check_of_operators_is_ours_and_as_strict_as_theirs(theirs: str, own: str | None) -> None:
    key = "spark.sql.streaming.realTimeMode.allowlistCheck"
    found = added({key: theirs}, OURS)
    assert found[key] == "false"
    assert found.get("spark.barograph.allowlistCheck") == own


def test_hooks_that_got_in_need_no_word() -> None:
    theirs = {EXTENSIONS: "a.Rule", PLUGINS: "b.Plugin"}
    assert left_out({**theirs, **added(theirs, OURS)}, OURS) == []


@pytest.mark.parametrize("key", HOOKS)
def test_a_hook_that_is_taken_is_said_with_what_it_costs(key: str) -> None:
    theirs = {key: "their.Class"}
    (said,) = left_out({**theirs, **added(theirs, OURS)}, OURS)
    assert said.startswith(f"{key} is 'their.Class', not {OURS[key]}: ")
    assert HOOKS[key] in said


def test_a_session_without_the_plug_in_is_said() -> None:
    said = left_out({**OURS, PLUGINS: "b.Plugin"}, OURS)
    assert said == [f"spark.plugins is 'b.Plugin', without {OURS[PLUGINS]}"]
