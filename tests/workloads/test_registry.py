"""Workloads are found by name; others come from installed packages, and an unusable one gives one sentence."""

import pickle
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from barograph.model import BadInput
from barograph.workloads import registry, wordcount


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    registry._known.cache_clear()
    yield
    registry._known.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint(name, value, group)])


@pytest.mark.parametrize("name", registry.names())
def test_a_workload_is_consistent(name: str) -> None:
    found = registry.workload(name)
    topology = found.topology(found.default_parallelism)
    assert found.name == topology.name == name
    assert {o.name: o.parallelism for o in topology.operators} == dict(found.default_parallelism)
    assert set(found.busy) <= set(found.default_parallelism)
    assert found.meaning and "\n" not in found.meaning
    assert pickle.loads(pickle.dumps(found)) == found  # the settings of a run go to its driver process


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="there is no workload 'wordcont'; there are wordcount, campaigns"):
        registry.workload("wordcont")


def test_a_package_can_offer_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "theirs", "barograph.workloads.wordcount:WORKLOAD")
    assert registry.names() == ("wordcount", "campaigns", "theirs")
    with pytest.raises(BadInput, match="is not a Workload of the name 'theirs'"):
        registry.workload("theirs")


def test_a_package_cannot_replace_one_that_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "wordcount", "barograph.workloads.campaigns:WORKLOAD")
    assert registry.workload("wordcount") is wordcount.WORKLOAD


def test_a_workload_that_cannot_be_imported_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "theirs", "no.such.module:WORKLOAD")
    with pytest.raises(BadInput, match=r"cannot be loaded from no\.such\.module"):
        registry.workload("theirs")
