"""Shapes without state: what reaches the sink, row by row."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr
from tests.engines.spark.shapes.shape import Judgement, Result, Row


def stateless(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    return inputs[0].repartition(2).where("value % 2 = 0").selectExpr("concat_ws(' ', partition, k, value) as note")


def judge_stateless(result: Result) -> Judgement:
    due = {f"{r.partition} {r.k} {r.value}": r for r in result.rows if r.value % 2 == 0}
    return passed_on(due, result)


def passed_on(due: Mapping[str, Row], result: Result) -> Judgement:
    """Every row that is due reached the sink, once, or again for each death in its epoch or before it was committed.
    Rows that were read and not committed may have, too."""
    found = Judgement(len(due), repeats=sum(result.noted[text] - 1 for text in due if result.noted[text] > 1))
    found.contain("rows", due, result.noted)
    for text, row in due.items():
        if result.noted[text] > 1 + sum(epoch <= row.epoch.number for epoch in result.died):
            found.faults.append(f"{text} of epoch {row.epoch.number} came {result.noted[text]} times")
    return found


def union(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    first, second = (rows.selectExpr(f"{n} as input", "partition", "k", "value") for n, rows in enumerate(inputs))
    return first.union(second).repartition(2).selectExpr("concat_ws(' ', input, partition, k, value) as note")


def judge_union(result: Result) -> Judgement:
    return passed_on({f"{r.input} {r.partition} {r.k} {r.value}": r for r in result.rows}, result)


def joined(inputs: Sequence[DataFrame], table: DataFrame) -> DataFrame:
    found = inputs[0].repartition(2).join(broadcast(table), "value")
    return found.selectExpr("concat_ws(' ', partition, k, name) as note")


def judge_joined(result: Result) -> Judgement:
    """The table has a name for every third value."""
    due = {f"{r.partition} {r.k} name-{r.value}": r for r in result.rows if r.value % 3 == 0}
    found = passed_on(due, result)
    found.faults += [f"{line} has no partner" for line in result.noted if int(line.split("-")[1]) % 3 != 0][:5]
    return found


def lanes(inputs: Sequence[DataFrame], _: DataFrame) -> DataFrame:
    """Every row goes to both lanes: two operators in one stage, each with a range of its instances."""
    both = inputs[0].selectExpr("*", "explode(array(0, 1)) as lane").repartitionById(4, expr("int(lane * 2 + k % 2)"))
    number, value = "concat_ws(' ', 'number', partition, k)", "concat_ws(' ', 'value', partition, k, value)"
    return both.selectExpr(f"case lane when 0 then {number} else {value} end as note")


def judge_lanes(result: Result) -> Judgement:
    numbers = {f"number {r.partition} {r.k}": r for r in result.rows}
    return passed_on(numbers | {f"value {r.partition} {r.k} {r.value}": r for r in result.rows}, result)
