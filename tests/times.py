"""A pytest plugin: where the time of a run went, by test file, at its end."""

from collections import defaultdict

import pytest

LEAST_S = 0.5  # of a file that has a line of its own


class FileTimes:
    """Adds up how long setup, call and teardown of the tests of each file took."""

    def __init__(self) -> None:
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self.tests: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.split("::")[0]
        self.spent_s[file] += report.duration
        self.tests[file] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.spent_s:
            return
        total_s = sum(self.spent_s.values())
        slowest = sorted(self.spent_s.items(), key=lambda each: -each[1])
        shown = [each for each in slowest if each[1] >= LEAST_S]
        terminalreporter.section(f"time by test file, {total_s:.1f} s in all")
        for file, seconds in shown:
            terminalreporter.line(f"{seconds:8.2f} s  {file} ({self.tests[file]} tests)")
        rest_s = sum(seconds for _, seconds in slowest[len(shown) :])
        terminalreporter.line(f"{rest_s:8.2f} s  {len(slowest) - len(shown)} other files")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FileTimes(), "file times")
