"""Variants: fields set by path, one by one or as a matrix of values; and what strict reading refuses."""

import pytest

from barograph.engines.sim import parse_scenario
from barograph.engines.sim.scenario.read import variant_names
from barograph.model import BadInput, MigrationMode

PLAIN = """
name = "x"
title = "x"
duration_s = 10
nodes = [{name = "n", count = 2, cpu_pct = 100}]
reassign = {every_s = 5, instances = 1}
[[topologies]]
name = "t"
operators = [{name = "s", parallelism = 1, load = "constant 5", cost_ms = 1}]
"""
ONE = (
    PLAIN
    + """
[[variants]]
name = "v"
set = {"nodes.0.count" = 5}
"""
)
MATRIX = (
    PLAIN
    + """
[[matrix]]
name = "{mode}-m{moved}"
axes = {mode = ["cut", "worker"], moved = [1, 2]}
set = {"reassign.mode" = "{mode}", "reassign.instances" = "{moved}", "duration_s" = 20}
[[matrix]]
name = "{system}"
[matrix.axes.system]
pushed = {"reassign.mode" = "boundary"}
asked = {"sync" = {node_s = 10, worker_s = 3}, "reassign.delay_s" = 2}
"""
)


def test_a_variant_sets_fields_by_path() -> None:
    assert len(parse_scenario(ONE, "x", "v").nodes) == 5
    assert parse_scenario(ONE, "x", "v").name == "x/v"
    with pytest.raises(BadInput, match="has no variant 'w'; it has v"):
        parse_scenario(ONE, "x", "w")
    with pytest.raises(BadInput, match=r"variant v: there is no field 'nodes.9.count'"):
        parse_scenario(ONE.replace("nodes.0", "nodes.9"), "x", "v")


def test_a_matrix_is_every_combination() -> None:
    assert variant_names(MATRIX, "x") == ("cut-m1", "cut-m2", "worker-m1", "worker-m2", "pushed", "asked")
    found = parse_scenario(MATRIX, "x", "worker-m2")
    assert found.reassign is not None
    assert (found.reassign.mode, found.reassign.instances, found.duration_s) == (MigrationMode.WORKER, 2, 20)


def test_an_axis_of_tables_sets_fields_of_its_own() -> None:
    pushed, asked = (parse_scenario(MATRIX, "x", name) for name in ("pushed", "asked"))
    assert pushed.reassign is not None
    assert asked.reassign is not None
    assert (pushed.reassign.mode, pushed.sync) == (MigrationMode.BOUNDARY, None)
    assert asked.sync is not None
    assert (asked.sync.node_s, asked.sync.worker_s, asked.reassign.delay_s) == (10, 3, 2)


# what of the matrix is replaced, by what, and the sentence
WRONG = {
    "a name that a variant has": (
        "[[matrix]]",
        '[[variants]]\nname = "cut-m1"\nset = {}\n[[matrix]]',
        "x: variants names 'cut-m1' twice",
    ),
    "an axis that is not in the name": (
        '"{mode}-m{moved}"',
        '"m{moved}"',
        "x: matrix[0]: the name 'm{moved}' does not have {mode} in it",
    ),
    "an axis without values": ("moved = [1, 2]", "moved = []", "x: matrix[0]: axis moved must be a list of values"),
    "an axis of numbers by name": (
        'pushed = {"reassign.mode" = "boundary"}',
        "pushed = 3",
        "x: matrix[1]: axis system must be a list",
    ),
    "no axes": ('axes = {mode = ["cut", "worker"], moved = [1, 2]}', "axes = {}", "x: matrix[0]: axes is empty"),
    "an unknown field": (
        'name = "{mode}-m{moved}"',
        'name = "{mode}-m{moved}"\nspeed = 3',
        "x: matrix[0]: unknown field 'speed'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_matrix_is_refused_even_if_no_variant_is_run(case: str) -> None:
    part, other, sentence = WRONG[case]
    assert part in MATRIX
    with pytest.raises(BadInput) as error:
        parse_scenario(MATRIX.replace(part, other, 1), "x")
    assert str(error.value).startswith(sentence)
