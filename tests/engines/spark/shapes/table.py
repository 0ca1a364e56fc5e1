"""The shapes of queries that are tested."""

from tests.engines.spark.shapes.shape import Shape
from tests.engines.spark.shapes.with_state import (
    deduplicated,
    distinct_counts,
    distinct_windows,
    global_count,
    in_one_stage,
    judge_deduplicated,
    judge_distinct_counts,
    judge_distinct_windows,
    judge_global,
    judge_in_one_stage,
    judge_plain,
    judge_windowed,
    plain,
    windowed,
)
from tests.engines.spark.shapes.without_state import (
    joined,
    judge_joined,
    judge_lanes,
    judge_stateless,
    judge_union,
    lanes,
    stateless,
    union,
)

GLOBAL = "a global grouping has exactly one instance"
BY_NUMBER = "its rows are sent to instances by number (repartitionById)"
COUNTED = ("source", "deal", "count")
TWICE = ("source", "deal", "once", "count")
DEAL = ("deal",)
SHAPES = (
    Shape("stateless", stateless, judge_stateless, ("source", "keep"), live=("keep",)),
    Shape("union", union, judge_union, ("source", "tag"), live=("tag",), inputs=2),
    Shape("broadcast join", joined, judge_joined, ("source", "join"), live=("join",)),
    Shape("lanes", lanes, judge_lanes, ("source", "lanes"), fixed=("lanes", BY_NUMBER)),
    Shape("aggregation", plain, judge_plain, COUNTED, DEAL, kept=("count",)),
    Shape("global aggregation", global_count, judge_global, COUNTED, DEAL, fixed=("count", GLOBAL)),
    Shape("windows", windowed, judge_windowed, COUNTED, DEAL, kept=("count",), late=True),
    Shape("deduplication", deduplicated, judge_deduplicated, ("source", "deal", "once"), DEAL, kept=("once",)),
    Shape("deduplication, then counts", distinct_counts, judge_distinct_counts, TWICE, DEAL, kept=("once", "count")),
    Shape("both in one stage", in_one_stage, judge_in_one_stage, ("source", "deal", "both"), DEAL, kept=("both",)),
    Shape(
        "deduplication, then windows",
        distinct_windows,
        judge_distinct_windows,
        TWICE,
        DEAL,
        kept=("once", "count"),
        late=True,
    ),
)
