"""The plugin that prints the time by test file, in a run of pytest of its own."""

from pathlib import Path

import pytest

from tests.times import FileTimes

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]

SLOW_TO_SET_UP = """
import time
import pytest

@pytest.fixture
def ready():
    time.sleep(0.3)
    yield
    time.sleep(0.3)

def test_one(ready):
    pass

def test_two():
    pass
"""


def test_files_are_listed_by_the_time_of_all_their_phases(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    quick = {f"test_quick_{i}": "def test_it(): pass" for i in range(11)}
    pytester.makepyfile(**quick, test_zz_slow=SLOW_TO_SET_UP)
    run = pytester.runpytest_subprocess("-p", "tests.times")
    run.assert_outcomes(passed=13)
    run.stdout.fnmatch_lines(
        ["*time by test file, * s in all*", "* s  test_zz_slow.py (2 tests)", "* s  11 other files"]
    )
    listed = [line for line in run.outlines if line.endswith(" tests)")]
    assert [float(line.split()[0]) >= 0.4 for line in listed] == [True]


def test_this_very_run_has_the_plugin(request: pytest.FixtureRequest) -> None:
    assert isinstance(request.config.pluginmanager.get_plugin("file times"), FileTimes)
