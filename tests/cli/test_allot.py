"""`barograph allot`: the thesis's tables through the command line, and bad input in one sentence."""

import json

import pytest

from barograph.cli.main import main

# scheduler, nodes, desired, minimum, level, given
TABLE = [
    ("sps", 16, "8,8,4,4", "4,4,2,2", "1,1,2,2", [6, 6, 2, 2]),
    ("sps", 20, "16,8", "8,4", "1,2", [13, 7]),
    ("dps", 16, "8,8,4,4", None, "2,2,2,2", [5, 5, 3, 3]),
    ("dps", 16, "8,8,4,4", None, "1,1,2,2", [8, 8, 0, 0]),
    ("dps", 20, "16,8", None, "2,2", [13, 7]),
    ("dps", 20, "16,8", None, "1,2", [16, 4]),
    ("sps", 24, "8,8,4,4", "4,4,2,2", "1,1,2,2", [8, 8, 4, 4]),
    ("dps", 24, "8,8,4,4", "4,4,2,2", "1,1,2,2", [8, 8, 4, 4]),
    ("sps", 8, "4,4,2,2", "2,2,1,1", "1,1,2,2", [3, 3, 1, 1]),
    ("sps", 7, "8,8,4,4", "4,4,2,2", "1,1,2,2", [4, 0, 2, 0]),
    ("sps", 18, "10,6,8,4", "3,2,2,1", "1,2,2,3", [6, 4, 5, 3]),
    ("dps", 18, "10,6,8,4", None, "1,2,2,3", [10, 3, 5, 0]),
    ("sps", 11, "2,2,2,2,4,4", "1,1,1,1,2,2", "1,1,1,1,2,2", [2, 2, 2, 1, 2, 2]),
    ("sps", 5, "3,3,3,3", "1,1,1,1", "1,1,1,2", [2, 1, 1, 1]),
    ("dps", 10, "5,5,5", None, "2,2,2", [4, 3, 3]),
    ("dps", 10, "7,7,7,7", None, "2,2,2,2", [3, 3, 2, 2]),
]


def command(scheduler: str, nodes: object, desired: str, minimum: str | None, level: str) -> list[str]:
    words = ["allot", "--scheduler", scheduler, "--nodes", str(nodes), "--desired", desired, "--level", level]
    return words if minimum is None else [*words, "--min", minimum]


@pytest.mark.parametrize(("scheduler", "nodes", "desired", "minimum", "level", "given"), TABLE)
def test_the_table(
    scheduler: str,
    nodes: int,
    desired: str,
    minimum: str | None,
    level: str,
    given: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(command(scheduler, nodes, desired, minimum, level)) == 0
    found = json.loads(capsys.readouterr().out)
    starved = [i for i, n in enumerate(given) if n == 0]
    assert found == {"given": given, "starved": starved, "idle": nodes - sum(given)}


def test_minimums_that_do_not_fit_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("sps", 7, "8,8,4,4", "4,4,2,2", "1,1,2,2")) == 0
    assert "the minimums need 12 nodes and there are 7" in capsys.readouterr().err


BAD = {
    "minimum above desired": (("sps", 9, "4,4", "5,1", "1,1"), "minimum 5 of topology 0"),
    "minimum above desired, dps": (("dps", 9, "4,4", "5,1", "1,1"), "minimum 5 of topology 0"),
    "level 0": (("dps", 9, "4,4", None, "1,0"), "level of topology 1"),
    "empty cluster": (("dps", 0, "4,4", None, "1,1"), "nodes"),
    "zero desired": (
        ("dps", 9, "4,0", None, "1,1"),
        "desired of topology 1",
    ),
    "negative desired": (("dps", 9, "-4,4", None, "1,1"), "desired of topology 0"),
    "negative minimum": (("sps", 9, "4,4", "-1,2", "1,1"), "minimum of topology 0"),
    "levels missing": (("dps", 9, "4,4", None, "1"), "2 desired numbers and 1 levels"),
    "no minimum": (("sps", 9, "4,4", None, "1,1"), "needs --min"),
    "no number": (("dps", 9, "4,x", None, "1,1"), "--desired takes whole numbers, not 'x'"),
    "NaN": (("dps", "nan", "4,4", None, "1,1"), "--nodes takes whole numbers, not 'nan'"),
    "nothing": (("dps", 9, "4,", None, "1,1"), "--desired takes whole numbers, not ''"),
    "no such scheduler": (("fair", 9, "4,4", None, "1,1"), "sps or dps"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, culprit = BAD[case]
    assert main(command(*words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert culprit in printed.err
    assert printed.err.count("\n") == 1


def test_a_missing_option_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["allot", "--scheduler", "dps", "--nodes", "3", "--level", "1"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "barograph allot: the following arguments are required: --desired\n"
