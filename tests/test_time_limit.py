"""The plugin that limits the time of tests, in a run of pytest of its own whose tests hang."""

from pathlib import Path

import pytest

from tests.time_limit import SLOW_S, SPARK_S, UNIT_S, limit_s

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]

HANGING = """
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

CLEANED = Path(__file__).parent / "cleaned"
FOREVER = threading.Event()
pytestmark = pytest.mark.limit(30)
short = pytest.mark.limit(0.5)


def cleaned(what):
    with CLEANED.open("a") as file:
        print(what, file=file)


@contextmanager
def cluster(name):
    try:
        yield
    finally:
        cleaned(name)


@pytest.fixture(scope="module")
def shared():
    with cluster("shared cluster"):
        yield


@pytest.fixture
def own():
    with cluster("own cluster"):
        yield


@pytest.fixture(scope="module")
def never_up():
    with cluster("cluster that never came up"):
        cleaned("tried once")
        FOREVER.wait()
        yield


@pytest.fixture
def never_down():
    with cluster("cluster that hung when it was stopped"):
        yield
        FOREVER.wait()


def wait_in_a_thread():
    FOREVER.wait()


@short
def test_call(shared, own):
    threading.Thread(target=wait_in_a_thread, name="another thread", daemon=True).start()
    try:
        FOREVER.wait()
    except Exception:
        cleaned("must not be caught")


@short
def test_setup(shared, never_up):
    cleaned("must not run")


@short
def test_setup_again(never_up):
    cleaned("must not run")


@short
def test_teardown(shared, own, never_down):
    pass


@short
def test_cleanup_that_hangs_too(shared):
    try:
        FOREVER.wait()
    finally:
        FOREVER.wait()


@short
def test_that_loses_the_exception():
    try:
        FOREVER.wait()
    except BaseException:
        pass


@short
@given(st.integers())
def test_hypothesis(number):
    cleaned("example")
    FOREVER.wait()


def test_that_is_quick(shared):
    pass


@pytest.mark.limit(0)
def test_zero():
    cleaned("must not run")


@pytest.mark.limit("1")
def test_text():
    cleaned("must not run")
"""


@pytest.mark.limit(120)
def test_tests_that_hang_fail_and_clean_up(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    monkeypatch.setenv("COLUMNS", "200")  # so that pytest does not shorten its summary
    file = pytester.makepyfile(test_hanging=HANGING)
    options = ("-p", "tests.time_limit", "-p", "no:cacheprovider", "--strict-markers")
    run = pytester.runpytest_subprocess(*options, file, timeout=100.0)
    # passed: the quick one, and the call of the one whose teardown hangs; errors of wrong markers come twice
    run.assert_outcomes(passed=2, failed=4, errors=7)
    for phase, test in (
        ("call", "call"),
        ("call", "cleanup_that_hangs_too"),
        ("call", "that_loses_the_exception"),
        ("call", "hypothesis"),
    ):
        run.stdout.fnmatch_lines_random(
            f"FAILED test_hanging.py::test_{test} - *the {phase} of this test exceeded * 0.5 s"
        )
    for phase, test in (("setup", "setup"), ("setup", "setup_again"), ("teardown", "teardown")):
        run.stdout.fnmatch_lines_random(
            f"ERROR test_hanging.py::test_{test} - *the {phase} of this test exceeded * 0.5 s"
        )
    for test in ("zero", "text"):
        run.stdout.fnmatch_lines_random(f"ERROR test_hanging.py::test_{test} - *write the limit as limit(seconds)*")
    run.stdout.fnmatch_lines(
        [
            "*Captured stacks of all threads call*",
            "thread MainThread:",
            "*in test_call",
            "thread another thread:",
            "*in wait_in_a_thread",
        ]
    )
    assert (pytester.path / "cleaned").read_text().splitlines() == [
        "own cluster",
        "tried once",
        "cluster that never came up",
        "cluster that hung when it was stopped",
        "own cluster",
        "example",
        "shared cluster",
    ]


@pytest.mark.parametrize(("marks", "seconds"), [((), UNIT_S), (("spark",), SPARK_S), (("spark", "slow"), SLOW_S)])
def test_the_limit_depends_on_the_kind_of_test(
    request: pytest.FixtureRequest, marks: tuple[str, ...], seconds: float
) -> None:
    for mark in marks:
        request.node.add_marker(mark)
    assert limit_s(request.node) == seconds
    request.node.add_marker(pytest.mark.limit(7))
    assert limit_s(request.node) == 7


def test_this_very_run_has_the_plugin(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.has_plugin("tests.time_limit")
