"""Some hostile inputs of every kind: a value or a sentence. ``make bench ONLY=hostile`` runs a million."""

import pytest
from bench.hostile import KINDS, attempt, shares


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_inputs_give_a_value_or_a_sentence(kind: str) -> None:
    found = attempt(kind, 0, 300)
    assert found.failures == []
    assert found.valid + found.refused == 300
    assert found.refused > 30 and found.valid > 3, "inputs are spoilt, but not all of them beyond recognition"


def test_every_kind_gets_a_tenth() -> None:
    found = shares(1_000_000)
    assert sum(found.values()) == 1_000_000 and min(found.values()) == 100_000
