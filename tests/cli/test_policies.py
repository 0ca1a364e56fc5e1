"""`barograph policies`: every policy with one line and its paper."""

import json

import pytest

from barograph.cli.main import main
from barograph.policy.registry import POLICIES


def test_the_table_names_every_policy_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for policy in POLICIES.values():
        (line,) = (one for one in lines if one[2:].startswith(f"{policy.name} "))
        assert policy.paper in line
        assert policy.line in line


def test_json_has_stages_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "--format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(POLICIES)
    assert [name for name, row in rows.items() if row["default"]] == ["adaptive"]
    assert rows["liu"]["options"]["theta_pct"] == 20
    assert rows["liu"]["options"]["phi"] == 5
    assert rows["liu"]["stages"]["forecaster"] == "TrendOrParents"
