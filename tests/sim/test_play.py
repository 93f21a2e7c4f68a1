# SPDX-License-Identifier: MIT
"""Tests that the kernel's program `play` performs workloads as the simulator does: each kind of
step, in the same order of events. On Linux, it tests what does not depend on the policy.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from built_once import build_once
from played import play, played, simulated
from schedlab import metrics, trace
from schedlab.paths import BUILD_FOLDER, ROOT
from simulator_command import write_workload

Change = Callable[[bytes], bytes]
LINUX_TICKS_NS = (20_000_000, 200_000_000, 1_000_000_000)
"""Ticks to try, shortest first: a very busy host changes the order of events a tick apart."""


TOLD = {
    trace.Kind.FORK: ("first",),
    trace.Kind.MARK: ("first", "second"),
    trace.Kind.BLOCK: ("first",),
    trace.Kind.YIELD: (),
    trace.Kind.ATTRIBUTE: ("first", "second"),
    trace.Kind.EXIT: ("first",),
}
"""The fields of an event that a story contains, in addition to the process."""


def story(events: trace.Trace) -> list[tuple[object, ...]]:
    """Returns the actions of processes in order, between the marks that open and close the
    window.
    """
    marks = events.events.filter(pl.col("kind") == trace.Kind.MARK)
    begin, end = (int(marks.filter(pl.col("first") == kind)["time_ns"][0]) for kind in (1, 2))
    within = events.events.filter(
        pl.col("time_ns").is_between(begin, end) & pl.col("kind").is_in(list(TOLD))
    )
    return [
        (trace.Kind(row["kind"]).name, row["process"], *(row[name] for name in TOLD[row["kind"]]))
        for row in within.iter_rows(named=True)
    ]


def notes(events: trace.Trace) -> list[int]:
    """The values of the marks that are notes, in order."""
    note_events = events.events.filter((pl.col("kind") == trace.Kind.MARK) & (pl.col("first") == 4))
    return [int(value) for value in note_events["second"]]


ORDERS = {path.stem: path for path in sorted((ROOT / "tests" / "sim" / "orders").glob("*.txt"))}
"""Workloads; the second line of each lists the expected notes in order."""


def order(name: str) -> tuple[str, list[int]]:
    """A workload, and its notes."""
    text = ORDERS[name].read_text()
    return text, [int(word) for word in text.splitlines()[1].removeprefix("# notes:").split()]


on_spike = pytest.mark.spike


@on_spike
@pytest.mark.parametrize("name", ORDERS)
def test_the_kernel_does_what_the_simulator_does(tmp_path: Path, name: str) -> None:
    """Both have the same events in the same order, including PIDs."""
    text, expected = order(name)
    simulated_trace, kernel_trace = simulated(tmp_path, text), play(tmp_path, text)
    assert notes(simulated_trace) == expected
    assert notes(kernel_trace) == expected
    assert story(kernel_trace) == story(simulated_trace)


@pytest.mark.parametrize("name", ORDERS)
def test_linux_does_so_too(tmp_path: Path, name: str) -> None:
    text, expected = order(name)
    attempts = []
    for tick_ns in LINUX_TICKS_NS:
        attempts.append(noted_on_linux(tmp_path, text, tick_ns))
        if attempts[-1] == expected:
            return
    assert attempts[-1] == expected, attempts


def noted_on_linux(folder: Path, text: str, tick_ns: int) -> list[int] | str:
    """The notes; or why there are none."""
    try:
        result = played_on_linux(folder, text, tick_ns)
    except subprocess.TimeoutExpired:
        return "it does not end"
    marks = [line.split() for line in result.stderr.splitlines()]
    notes = [int(words[3]) for words in marks if words[2] == "note"]
    return notes if result.returncode == 0 else result.stderr


@pytest.mark.spike
@pytest.mark.parametrize("machine", [simulated, play])
def test_a_sleep_of_ticks_gives_up_the_cpu(
    tmp_path: Path, machine: Callable[[Path, str], trace.Trace]
) -> None:
    """This holds wherever in a tick the sleep begins, even if the tick ends while the kernel counts
    ticks.
    """
    works = range(997_900, 998_300, 2)  # around the end of a tick, on either machine
    text = "program edge\n" + "".join(f"run {ns}ns\nsleep 1ticks\n" for ns in works)
    events = machine(tmp_path, text).events
    sleeps = events.filter(kind=trace.Kind.BLOCK, first=trace.BlockReason.SLEEP)
    assert max(sleeps["process"].value_counts()["count"].to_list()) >= len(works)


def played_on_linux(
    folder: Path, text: str, tick_ns: int = LINUX_TICKS_NS[0]
) -> subprocess.CompletedProcess[str]:
    return play_on_linux(write_workload(folder, text, tick_ns), tick_ns)


def play_on_linux(compiled: Path, tick_ns: int) -> subprocess.CompletedProcess[str]:
    build_once("build/linux/play")
    marks = {"WORKLOAD_MARKS": "1", "WORKLOAD_TICK_US": str(tick_ns // 1000)}
    return subprocess.run(
        [BUILD_FOLDER / "linux" / "play", compiled],
        env=os.environ | marks,
        capture_output=True,
        text=True,
        timeout=10 + 40 * tick_ns / 1e9,
        check=False,
    )


SCHEDULING = """
program root
  group root
  priority 0
  mark begin
  fork worker
  tickets 7 worker
  weight 3 worker
  priority 2 worker
  fork another-name-of-more-than-15
  priority 4 worker            # the first one, still
  fork worker
  priority 1 worker            # the second
  priority 9 nobody
  yield
  policy mlfq:allotment-boost
  set boost=100
  loop 3
    wait
  end
  priority 8 worker            # both have ended
  mark end
program worker
  group cpu
  weight 2
  run 2ms
  exit 3
program another-name-of-more-than-15
  group other
  sleep 2ticks
program nobody
"""


@on_spike
def test_attributes_policies_names_and_statuses(tmp_path: Path) -> None:
    simulated_trace, kernel_trace = (
        made(tmp_path, SCHEDULING, "priority") for made in (simulated, play)
    )
    assert story(kernel_trace) == story(simulated_trace)
    assert [row for row in story(kernel_trace) if row[0] == "ATTRIBUTE"] == [
        ("ATTRIBUTE", 3, 2, 7),
        ("ATTRIBUTE", 3, 3, 3),
        ("ATTRIBUTE", 3, 1, 2),
        ("ATTRIBUTE", 3, 1, 4),
        ("ATTRIBUTE", 5, 1, 1),
        ("ATTRIBUTE", 5, 3, 2),  # it has priority 1
        ("ATTRIBUTE", 3, 3, 2),
    ]
    metric_sets = [metrics.compute(events) for events in (simulated_trace, kernel_trace)]
    for measured in metric_sets:
        rows = measured.processes.filter(pl.col("pid") >= 2)
        assert rows["group"].to_list() == ["root", "cpu", "other", "cpu"]
        assert rows["status"].to_list()[1:] == [3, 0, 3]
        assert [name[:15] for name in rows["name"]] == [
            "root", "worker", "another-name-of", "worker"
        ]  # fmt: skip
    switched = [
        events.events.filter(pl.col("kind").is_in([trace.Kind.POLICY, trace.Kind.TUNABLE]))
        .select("kind", "second")
        .rows()[-2:]
        for events in (simulated_trace, kernel_trace)
    ]
    assert switched[0] == switched[1]


JOBS = """
program root
  mark begin
  fork last
  fork first
  fork once
  loop 3
    wait
  end
  mark end
program last
  runtime 1ms
  period 5ms
  job 0 0ns absolute
  loop 3
    run 800us
    job 0 5ms absolute
    timer 0 5ms absolute
  end
  job none
program first
  runtime 1ms
  deadline 1ms
  period 7ms
  loop 2
    job 1 7ms
    timer 1 7ms
    run 2ms
  end
program once
  runtime 1ms
  period 500us
  job 0 0ns absolute
  run 1ms
"""


@on_spike
def test_jobs_are_those_of_the_file(tmp_path: Path) -> None:
    """Jobs match to 50 us, even if a period has extra microseconds; the misses are the same."""
    simulated_jobs, kernel_jobs = (
        metrics.jobs(made(tmp_path, JOBS, "edf")) for made in (simulated, play)
    )
    times = ("release_ns", "done_ns", "deadline_ns", "response_ns", "lateness_ns")
    for job_table in (simulated_jobs, kernel_jobs):
        begin = job_table["release_ns"].min()
        assert isinstance(begin, int)
        assert job_table["pid"].to_list() == [3, 3, 3, 4, 4, 5]
        released = [
            round((release_ns - begin) / 1e6) for release_ns in job_table["release_ns"].to_list()
        ]
        assert released == [0, 5, 10, 7, 14, 0]
        assert (job_table["lateness_ns"] > 0).to_list() == [False] * 3 + [True] * 3
    for name in times[3:]:
        assert simulated_jobs[name].to_list() == pytest.approx(
            kernel_jobs[name].to_list(), abs=50_000
        )


def test_linux_jobs_are_released_one_period_after_another(tmp_path: Path) -> None:
    result = played_on_linux(tmp_path, JOBS.replace("  fork first\n  fork once\n", ""))
    marks = [line.split() for line in result.stderr.splitlines()]
    released = [int(words[3]) for words in marks if words[2] == "job"]
    assert [release_ns - released[0] for release_ns in released[:4]] == [
        0,
        5_000_000,
        10_000_000,
        15_000_000,
    ]
    assert released[4:] == [0]


@on_spike
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program root\n  mark begin\n  mark end\n  exit 4", ""),
        ("program root\n  fork a\n  take gate\nprogram a\n  policy none", "workload: none: "),
    ],
)
def test_failing_workload_gives_its_reason(tmp_path: Path, text: str, message: str) -> None:
    """This holds even if the first process would wait forever for the failing one."""
    guest = played(tmp_path, text)
    assert guest.status == 1
    assert message in guest.console


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_on_linux_all_end_with_the_one_that_was_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    text = "program root\n group here\n fork a\n take gate\nprogram a\n group here\n take gate\n"
    workload = write_workload(tmp_path, text)
    build_once("build/linux/play")
    started = subprocess.Popen(
        [BUILD_FOLDER / "linux" / "play", workload],
        env={**os.environ, "WORKLOAD_MARKS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr
    for _ in range(2):
        assert started.stderr.readline().endswith("group here\n")
    started.send_signal(number)
    assert started.stderr.read() == ""  # no writer remains
    assert started.wait(60) in (-number, 128 + number)


@pytest.mark.parametrize(
    "change",
    [
        lambda good: b"",
        lambda good: b"X" + good[1:],
        lambda good: good[:8] + bytes([good[8] + 1]) + good[9:],
        lambda good: good[:-1],
        lambda good: good + b"\0",
        lambda good: good[:80] + b"\1" + good[81:],
        lambda good: good[:33] + b"\1" + good[34:],
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: Change) -> None:
    """Empty, of another kind or version, of a wrong size or checksum, for another tick."""
    path = write_workload(tmp_path, "program root\n run 1us", LINUX_TICKS_NS[0])
    path.write_bytes(change(path.read_bytes()))
    result = play_on_linux(path, LINUX_TICKS_NS[0])
    assert result.returncode == 2
    assert result.stderr
