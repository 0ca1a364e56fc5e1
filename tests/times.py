"""A pytest plugin: where the time of a run went, by test file, at its end."""

from collections import defaultdict

import pytest

SHOWN = 10


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
        slowest = sorted(self.spent_s.items(), key=lambda each: -each[1])[:SHOWN]
        title = f"time by test file: slowest {len(slowest)} of {len(self.spent_s)}, {total_s:.1f} s in all"
        terminalreporter.section(title)
        for file, seconds in slowest:
            terminalreporter.line(f"{seconds:8.2f} s  {file} ({self.tests[file]} tests)")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FileTimes(), "file times")
