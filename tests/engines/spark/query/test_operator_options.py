"""What is declared for operators: how it is written, which operators get it, and what is said about wrong texts."""

import pytest

from barograph.config.written.operators import InstanceRange, parse_ranges, ranges_as_text
from barograph.engines.spark.query.operator_options import EXCLUDED
from barograph.engines.spark.query.query_options import QueryOptions
from barograph.model import BadInput, Operator, Topology

WORDS = Topology("words", (Operator("source", 1, source=True, fixed_because="Kafka"), Operator("split", 2)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("split=1..8", {"split": InstanceRange(1, 8)}),
        ("split=2.., words/count=..4", {"split": InstanceRange(2, None), "words/count": InstanceRange(1, 4)}),
        ("split=3", {"split": InstanceRange(3, 3)}),
        ("", {}),
    ],
)
def test_ranges(text: str, found: dict[str, InstanceRange]) -> None:
    assert parse_ranges(text) == found


def test_ranges_of_a_mapping() -> None:
    assert ranges_as_text({"split": (1, 8), "count": (None, 4), "sink": (2, None)}) == "split=1..8,count=..4,sink=2.."
    for wrong in ({"split": 3}, {"split": (1, 2, 3)}, {3: (1, 2)}):
        with pytest.raises(BadInput, match=r"must be \(least, most\), for example \(1, 8\)"):
            ranges_as_text(wrong)  # type: ignore[arg-type]


def test_operators_get_what_is_declared_for_them() -> None:
    options = QueryOptions(
        instances="split=1..8", excluded="source", cpu="split=40", memory="words/split=256,split=1",
        quota_cpu_pct=150.0, quota_executors=2, workers=3, isolate_nodes=1,
    )  # fmt: skip
    found = options.of(WORDS)
    split, source = found.operator("split"), found.operator("source")
    assert (split.min_parallelism, split.max_parallelism, split.cpu_pct, split.memory_mb) == (1, 8, 40.0, 256.0)
    assert (split.excluded, split.fixed_because, split.parallelism) == (False, "", 2)
    assert (source.excluded, source.fixed_because) == (True, "Kafka")
    assert (found.quota_cpu_pct, found.quota_workers, found.workers, found.isolate_nodes) == (150.0, 2, 3, 1)
    assert QueryOptions(excluded="words/split").of(WORDS).operator("split").fixed_because == EXCLUDED
    assert not QueryOptions(excluded="other/split").of(WORDS).operator("split").excluded
    assert QueryOptions().of(WORDS) == WORDS


def test_names_that_no_operator_has_are_known() -> None:
    options = QueryOptions(instances="splt=1..8", excluded="split,other/sink", cpu="words/count=5")
    assert options.operators().unknown(WORDS) == ("splt", "words/count")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"instances": "split"}, "'split' is not OPERATOR=LEAST..MOST, for example split=1..8"),
        ({"instances": "split=8..1"}, "is not OPERATOR=LEAST..MOST"),
        ({"instances": "split=0..4"}, "is not OPERATOR=LEAST..MOST"),
        ({"instances": "split=.."}, "is not OPERATOR=LEAST..MOST"),
        ({"instances": "split=1..2,split=3"}, "names split twice"),
        ({"cpu": "split=fast"}, "query.cpu 'split=fast': 'split=fast' is not OPERATOR=NUMBER, for example split=40"),
        ({"memory": "split=0"}, "query.memory 'split=0': 'split=0' is not OPERATOR=NUMBER"),
        ({"excluded": "split=1"}, "must be names of operators"),
        ({"excluded": "split,,count"}, "nothing between two commas"),
        ({"quota_executors": 0}, "quota_executors must be a whole number of at least 1"),
    ],
)
def test_wrong_texts_are_one_sentence(fields: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        QueryOptions(**fields)  # type: ignore[arg-type]  # by name
