"""TOML of others is a value or a sentence, within a second."""

import time

import pytest

from barograph.config.toml_text import MOST_CHARACTERS, parse_toml
from barograph.model import BadInput

HOSTILE = {
    "lists": ("x = " + "[" * 100_000, "nested too deeply"),
    "tables in line": ("x = " + "{a = " * 100_000, "nested too deeply|Invalid"),
    "a dotted key": ("x" + ".x" * 20_000 + " = 1", "more than 32 parts"),
    "a dotted key with blanks": ("x" + " . 'x'" * 20_000 + " = 1", "more than 32 parts"),
    "a dotted table": ("[" + ".".join(['"x"'] * 20_000) + "]", "more than 32 parts"),
    "a dotted key in a table": ("y = {x" + ".x" * 20_000 + " = 1}", "more than 32 parts"),
    "a long word": ("x" * 900_000, "Expected"),
    "a long number": ("x = " + "1" * 900_000, "digits"),
    "too long": ("#" * (MOST_CHARACTERS + 1), "too long"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_is_refused_at_once(case: str) -> None:
    text, sentence = HOSTILE[case]
    began = time.process_time()
    with pytest.raises(BadInput, match=sentence):
        parse_toml(text, "x.toml")
    assert time.process_time() - began < 1.0


def test_texts_with_dots_are_values() -> None:
    assert parse_toml('host = "a.b.c.d"\nx.y.z = 1.5\n["a.b"]\nc = "1. 2. 3."', "x") == {
        "host": "a.b.c.d",
        "x": {"y": {"z": 1.5}},
        "a.b": {"c": "1. 2. 3."},
    }
