# SPDX-License-Identifier: MIT
"""The CPU seconds that `--cpu-seconds` tells are those of the tests, room by room."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from cpu_of_rooms import SHOWN, CpuOfRooms, cpu_seconds, room_of

BURN = "import time\nwhile time.process_time() < 0.2: pass"


def report_of(name: str, plugin: CpuOfRooms) -> pytest.TestReport:
    """A report, as the plugin leaves it."""
    report = pytest.TestReport(name, ("", None, ""), {}, "passed", None, "call")
    hook = plugin.pytest_runtest_makereport()
    next(hook)
    with pytest.raises(StopIteration) as done:
        hook.send(report)
    found: pytest.TestReport = done.value.value
    assert found is report
    return report


def test_a_test_has_its_own_time_and_that_of_what_it_starts() -> None:
    plugin = CpuOfRooms()
    protocol = plugin.pytest_runtest_protocol()
    next(protocol)
    subprocess.run([sys.executable, "-c", BURN], check=True)
    plugin.pytest_runtest_logreport(report_of("tests/one/test_a.py::test_child", plugin))
    assert plugin.seconds["tests/one"] >= 0.2
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    plugin.pytest_runtest_logreport(report_of("tests/two/test_b.py::test_self", plugin))
    assert 0.09 <= plugin.seconds["tests/two"] < 0.2  # the child's is told once


def test_rooms_are_told_with_their_sum_and_the_dearest_tests() -> None:
    plugin = CpuOfRooms()
    cheap = {f"tests/one/test_a.py::test_{number}": 0.01 for number in range(SHOWN)}
    told = {"tests/one/test_a.py::test_b": 1.0, "tests/two/test_c.py::test_d": 1100.0, **cheap}
    for name, seconds in told.items():
        report = pytest.TestReport(name, ("", None, ""), {}, "passed", None, "call", cpu_s=seconds)
        plugin.pytest_runtest_logreport(report)
    rooms, _, tests = "\n".join(plugin.lines()).partition("\n\n")
    assert rooms.splitlines() == [
        "| `tests/two` | 1,100 |",
        "| `tests/one` | 2 |",
        "| all | 1,102 |",
    ]
    assert tests.splitlines()[:2] == [
        "1100.0 tests/two/test_c.py::test_d",
        "   1.0 tests/one/test_a.py::test_b",
    ]
    assert len(tests.splitlines()) == SHOWN


def test_a_room_is_a_folder_in_tests() -> None:
    assert room_of("tests/sim/deep/test_a.py::test_b[x/y]") == "tests/sim"
    assert cpu_seconds() > 0
