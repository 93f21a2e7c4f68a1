# SPDX-License-Identifier: MIT
"""CPU time of tests per directory, and of the most expensive tests: CPU seconds of pytest and of
all processes that it starts and awaits.

A pytest plugin for `--cpu-seconds`. Each pytest process sums its own times; the printing process
receives them in reports.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator, Iterator

import pytest

from warm_starts import warm_starts

_KEY = "cpu_s"
"""The key of a phase's report."""
SHOWN = 100
"""The number of most expensive tests listed."""


class CpuOfRooms:
    """CPU seconds by directory in tests/."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.of_tests: defaultdict[str, float] = defaultdict(float)
        self._last_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._last_s = cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now_s = cpu_seconds()
        vars(report)[_KEY] = now_s - self._last_s
        self._last_s = now_s
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        taken_s = vars(report).get(_KEY, 0.0)
        self.seconds[room_of(report.nodeid)] += taken_s
        self.of_tests[report.nodeid] += taken_s

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> Iterator[str]:
        """Returns the rows of a Markdown table, the largest first, then the sum, then the
        most expensive tests.
        """
        for room, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            yield f"| `{room}` | {seconds:,.0f} |"
        yield f"| all | {sum(self.seconds.values()):,.0f} |"
        yield ""
        for test, seconds in sorted(self.of_tests.items(), key=lambda item: -item[1])[:SHOWN]:
            yield f"{seconds:6.1f} {test}"


def room_of(name: str) -> str:
    """Returns a test's directory in tests/, by its name."""
    return "/".join(name.split("::")[0].split("/")[:2])


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its ended descendants."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + warm_starts.cpu_s
