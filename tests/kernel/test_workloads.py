# SPDX-License-Identifier: MIT
"""Tests that the studies' suites do what the studies state, by their traces and output."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from built_once import build_once
from guest_machine import ROUND_NS, run_guest, sound_trace
from schedlab import metrics, trace
from schedlab.paths import BUILD_FOLDER, ROOT

TICK_NS = 100_000
WORK = "-w 10000"
"""Iterations that fill one tick; all work is a hundredth of the studies' size."""

OVERHEAD_NS = 100_000
"""Upper bound for a process without work, and for three sleeps with a file."""

STUDY_WORK = 4.3e-7
"""Ticks per iteration in study 1: 86 ticks for ten times 20 million (table 1)."""


@dataclass(frozen=True)
class Members:
    """Work of each process of a group."""

    processes: int
    work: float = 0
    """CPU time in ticks."""
    sleeps: int = 0
    ticks: int = 0
    """Length of each sleep in ticks."""
    priority: int | None = None
    at_once: int | None = None
    """Maximum number of processes alive at the same time."""


def study_1(
    priorities: bool = False, io: Mapping[str, Members] | None = None
) -> dict[str, dict[str, Members]]:
    """Returns the groups of each test, as in sections 4.1 and 4.2; the I/O-bound test differs."""

    def level(priority: int) -> int | None:
        return priority if priorities else None

    return {
        "cpu-heavy": {"cpu": Members(10, 20e6 * STUDY_WORK)},
        "switch": {"switch": Members(200, at_once=1)},
        "io-bound": dict(io or {"sleep": Members(100, sleeps=1, ticks=10, at_once=50)}),
        "mixed": {
            "mix-io": Members(5, sleeps=1, ticks=50, priority=level(10)),
            "mix-cpu": Members(5, 50e6 * STUDY_WORK, priority=level(0)),
        },
        "creation": {"create": Members(50)},
        "short": {"short": Members(200, 10e3 * STUDY_WORK, at_once=50)},
        "starvation": {
            "light": Members(1, 50e3 * STUDY_WORK, priority=level(0)),
            "heavy": Members(5, 20e6 * STUDY_WORK, priority=level(10)),
        },
    }


def interactive_halves() -> dict[str, Members]:
    """Returns the groups of section 4.2: the first 25 with priority 5, the last 25 with 0."""
    burst = 100e3 * STUDY_WORK
    return {
        f"io-{priority}": Members(25, 10 * burst, 10, 1, priority=priority) for priority in (5, 0)
    }


SUITES = {
    "timingtests": study_1(),
    "prioritytest": study_1(priorities=True, io=interactive_halves()),
    "timingtests -v 2": study_1() | {"switch": {"switch": Members(500, at_once=1)}},
    "prioritytest -v 2": study_1(priorities=True),
}


@dataclass(frozen=True)
class Ran:
    """A run: console output after the boot, trace, and the workload's processes."""

    lines: list[str]
    events: trace.Trace
    processes: pl.DataFrame
    values: pl.DataFrame
    summary: dict[str, Any]

    def reported_values(self, name: str, group: str = "root") -> list[int]:
        """Returns the values of this name that a group's processes reported, in order."""
        of_name = self.values.filter((pl.col("name") == name) & (pl.col("group") == group))
        return of_name["value"].to_list()


def run(folder: Path, command: str, cpus: int, arguments: str = "") -> Ran:
    """Boots, runs the command and reads the results; requires a valid trace."""
    boot = f"tick={TICK_NS}ns seed=1 {arguments}"
    guest = run_guest(folder, command, cpus=cpus, arguments=boot, traced=True)
    assert guest.status == 0, guest.console
    events = sound_trace(guest.trace)
    measured = metrics.compute(events)
    processes = measured.processes.filter(pl.col("role") == "workload")
    assert processes["pid"].is_unique().all()
    assert (processes["status"] == 0).all()
    lines = guest.console.split("policy ", 1)[1].splitlines()[1:]
    return Ran(
        [line for line in lines if line],
        events,
        processes,
        measured.values,
        measured.summary.to_dicts()[0],
    )


def most_at_once(members: pl.DataFrame) -> int:
    """Returns the maximum number of live processes; an exit at the time of a fork counts first."""
    changes = [(time, 1) for time in members["fork_ns"]]
    changes += [(time, -1) for time in members["exit_ns"]]
    most = alive = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def sleeps_of(ran: Ran, members: pl.DataFrame) -> dict[int, list[int]]:
    """Returns, per PID, the time in ns from the start of each sleep to its wake-up."""
    sleeps: dict[int, list[int]] = {pid: [] for pid in members["pid"]}
    sleep_starts: dict[int, int] = {}
    events = ran.events.events.filter(pl.col("kind").is_in([trace.Kind.BLOCK, trace.Kind.WAKEUP]))
    for pid, kind, reason, time in events.select("process", "kind", "first", "time_ns").iter_rows():
        if kind == trace.Kind.WAKEUP and pid in sleep_starts:
            sleeps[pid].append(time - sleep_starts.pop(pid))
        elif kind == trace.Kind.BLOCK and reason == trace.BlockReason.SLEEP and pid in sleeps:
            sleep_starts[pid] = time
    return sleeps


def check_sleeps(ran: Ran, members: pl.DataFrame, count: int, ticks: int) -> None:
    """Checks the number of sleeps and their lengths.

    A sleep starts within a tick and ends at the last tick's end, where other processes also wake. A
    sleep that starts in the last instructions of a tick counts from the next tick. A sleep of one
    tick may then not happen at all.
    """
    sleeps = sleeps_of(ran, members)
    counts = Counter(len(lengths) for lengths in sleeps.values())
    assert max(counts) == count
    assert counts[count] + (counts[count - 1] if ticks == 1 else 0) == len(sleeps)
    assert counts[count] >= 0.9 * len(sleeps)
    for length in (length for lengths in sleeps.values() for length in lengths):
        assert (ticks - 1) * TICK_NS - ROUND_NS < length < (ticks + 0.5) * TICK_NS


def priorities_of(ran: Ran, members: pl.DataFrame) -> set[int | None]:
    """Returns the priorities that a group's processes received; None means that none was set."""
    chosen = ran.events.events.filter(
        (pl.col("kind") == trace.Kind.ATTRIBUTE)
        & (pl.col("first") == trace.AttributeKind.PRIORITY)
        & pl.col("process").is_in(members["pid"].to_list())
    )
    return set(chosen["second"].to_list()) if len(chosen) else {None}


def check_group(ran: Ran, label: str, expected: Members) -> None:
    """Checks that processes, work, sleeps and priority of a group match the study."""
    members = ran.processes.filter(pl.col("group") == label)
    assert len(members) == expected.processes, label
    check_sleeps(ran, members, expected.sleeps, expected.ticks)
    assert priorities_of(ran, members) == {expected.priority}, label
    assert most_at_once(members) <= (expected.at_once or expected.processes), label
    work = expected.work * TICK_NS
    running = members["running_ns"].to_numpy()
    assert running.min() >= work - 10_000, label
    assert running.max() <= 1.1 * work + OVERHEAD_NS * (1 + expected.sleeps / 3), label


def rows_of(lines: list[str]) -> dict[str, list[list[float]]]:
    """Returns, per test, its rows of figures: the runs, then their mean."""
    rows: dict[str, list[list[float]]] = {}
    for line in lines:
        match = re.fullmatch(r"(\S+) +(?:\d+|mean) +([\d.]+) +([\d.]+) +([\d.]+)", line)
        if match:
            rows.setdefault(match[1], []).append([float(number) for number in match.groups()[1:]])
    return rows


@pytest.mark.spike
@pytest.mark.parametrize(("command", "cpus"), [*zip(SUITES, (1, 2, 2, 1), strict=True)])
def test_suites_of_study_1_start_the_stated_processes(
    tmp_path: Path, command: str, cpus: int
) -> None:
    """The trace has the stated processes of each test."""
    ran = run(tmp_path, f"{command} {WORK}", cpus, "policy=priority")
    groups = {label: group for test in SUITES[command].values() for label, group in test.items()}
    for label, expected in groups.items():
        check_group(ran, label, expected)
    assert set(ran.processes["group"]) == set(groups)
    assert list(rows_of(ran.lines)) == list(SUITES[command])
    assert ran.lines.count("hi") == (50 if command == "timingtests -v 2" else 0)
    assert ran.reported_values("test") == [1, 2, 3, 4, 5, 6, 7]
    printed = [row for row, _ in rows_of(ran.lines).values()]
    columns = [ran.reported_values(name) for name in ("ticks", "complete", "switches")]
    assert [list(row) for row in zip(*columns, strict=True)] == printed


@pytest.mark.spike
@pytest.mark.parametrize(
    ("workload", "cpu", "io"), [("cpu", 40, 0), ("io", 0, 40), ("mixed", 34, 16)]
)
def test_workloads_of_study_3(tmp_path: Path, workload: str, cpu: int, io: int) -> None:
    """The tests have 40, 40 and 50 processes; two of three in the mixed test compute."""
    ran = run(tmp_path, f"study3 {workload} {WORK}", 2)
    if cpu:
        check_group(ran, "cpu", Members(cpu, 2.9))
    files = ran.processes.filter(pl.col("group") == "io")
    assert len(ran.processes) == cpu + io
    assert len(files) == io
    disk = {trace.BlockReason.DISK, trace.BlockReason.JOURNAL, trace.BlockReason.LOCK}
    blocks = ran.events.events.filter(
        (pl.col("kind") == trace.Kind.BLOCK) & pl.col("first").is_in([int(pid) for pid in disk])
    )
    assert set(files["pid"]) <= set(blocks["process"])
    assert ran.lines == []


def number_after(lines: list[str], pattern: str) -> list[float]:
    """Returns the numbers of the only line that matches."""
    (match,) = (match for line in lines if (match := re.fullmatch(pattern, line)))
    return [float(number) for number in match.groups()]


@pytest.mark.spike
def test_priority_inversion_makes_the_reader_wait_for_all_others(tmp_path: Path) -> None:
    """Under strict priorities, the writer runs after all hogs, so the reader waits for them too."""
    waits = {}
    for hogs in (0, 4):
        ran = run(
            tmp_path,
            f"study3 inversion -c {hogs} {WORK}",
            1,
            "policy=priority set=aging_interval=0",
        )
        counts = Counter(ran.processes["group"])
        assert counts == Counter({"reader": 1, "writer": 1} | ({"hog": hogs} if hogs else {}))
        mean, longest = number_after(
            ran.lines, r"reader waits: mean ([\d.]+) ticks, longest (\d+) ticks"
        )
        assert mean <= longest
        waits[hogs] = longest
        printed_waits = ran.reported_values("wait", "reader")
        assert (len(printed_waits), max(printed_waits)) == (5, longest)
        assert mean == pytest.approx(sum(printed_waits) / 5, abs=0.1)
        in_ticks = [time / TICK_NS for time in ran.reported_values("wait_ns", "reader")]
        assert in_ticks == pytest.approx(printed_waits, abs=1)
        reader = ran.processes.filter(pl.col("group") == "reader")
        check_sleeps(ran, reader, 5, 1)
    assert 4 <= waits[0] <= 7
    assert waits[4] >= 4 * 50 - 10


PRINTED = r" +(\d+), mean +([\d.]+) ticks, longest +(\d+) ticks"


@pytest.mark.spike
def test_experiments_of_study_4(tmp_path: Path) -> None:
    """The trace test has three processes; the others include two that write and sleep twenty
    times.

    Each sleep takes 5 ticks.
    """
    ran = run(tmp_path, f"study4 trace {WORK}", 2)
    check_group(ran, "cpu", Members(3, 344))
    ran = run(tmp_path, f"study4 mixed -c 4 {WORK}", 2)
    check_group(ran, "cpu", Members(4, 61))
    check_group(ran, "inter", Members(2, sleeps=20, ticks=5))
    for label, what in (("inter", "interactive"), ("cpu", "CPU-bound")):
        count, mean, longest = number_after(ran.lines, f"{what}: finished{PRINTED}")
        times = ran.processes.filter(pl.col("group") == label)["turnaround_ns"].to_numpy() / TICK_NS
        assert count == len(times)
        assert mean == pytest.approx(times.mean(), abs=2)
        assert longest == pytest.approx(times.max(), abs=2)
        finish_times = ran.reported_values("finished", label)
        assert (len(finish_times), max(finish_times)) == (count, longest)
        assert mean == pytest.approx(sum(finish_times) / count, abs=0.06)


@pytest.mark.spike
def test_the_sleeper_of_study_4(tmp_path: Path) -> None:
    """Round-robin runs all others before the sleeper: 20 ticks on one CPU."""
    ran = run(tmp_path, f"study4 sleeper -i 20 -r 2 {WORK}", 1)
    check_group(ran, "cpu", Members(20, 20))
    check_group(ran, "sleeper", Members(1, sleeps=2, ticks=5))
    count, mean, longest = number_after(ran.lines, f"sleeper: slept{PRINTED}")
    assert count == 2
    assert 20 <= mean <= longest <= 30
    sleep_times = ran.reported_values("slept", "sleeper")
    assert (len(sleep_times), max(sleep_times)) == (2, longest)


@pytest.mark.spike
@pytest.mark.parametrize(
    ("test", "policy"), [("basic", "wrr"), ("starve", "priority"), ("mixed", "rr")]
)
def test_lottery_test_window_has_its_stated_length(tmp_path: Path, test: str, policy: str) -> None:
    """Policies that starve the parent, which runs after the window, do not change its length."""
    ran = run(tmp_path, f"lotterytest {test} -t 50 -u 20 -w {TICK_NS // 10}", 2, f"policy={policy}")
    summary = ran.summary
    assert ran.reported_values("window") == [50 * TICK_NS]
    assert summary["elapsed_ns"] == pytest.approx(50 * TICK_NS, abs=TICK_NS / 2)
    assert summary["processes"] == (20 if test == "mixed" else 8)


# On Linux

WORKLOADS = sorted(path.stem for path in (ROOT / "workloads").glob("*.c"))
NAMED = {"lotterytest", "study3", "study4"}
"""Programs that need the name of a test."""


def linux(program: str, *arguments: str, status: int = 0) -> tuple[list[str], list[str]]:
    """Returns output and marks of a workload as a Linux program with a tick of 0.1 ms."""
    build_once("linux-workloads")
    result = subprocess.run(
        [BUILD_FOLDER / "linux" / program, *arguments],
        env={**os.environ, "WORKLOAD_TICK_US": "100", "WORKLOAD_MARKS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == status, result.stderr
    return result.stdout.splitlines(), result.stderr.splitlines()


def marked(marks: list[str]) -> Counter[str]:
    """Returns the number of processes of each group."""
    return Counter(mark.split()[-1] for mark in marks if " group " in mark)


@pytest.mark.parametrize("program", WORKLOADS)
def test_programs_have_help_and_refuse_unknown_options(program: str) -> None:
    """Status 0 for help and 2 for unknown options, as for commands."""
    help_lines, _ = linux(program, "--help")
    assert help_lines[0].startswith("usage: ")
    assert len(program) <= 14
    for words in (("-q", "1"), ("-s",), ("-s", "x"), ("nonesuch",), ("0",), ("99",)):
        lines, errors = linux(program, *words, status=2)
        assert lines + errors
    if program in NAMED - {"lotterytest"}:
        linux(program, status=2)


@pytest.mark.parametrize("command", SUITES)
def test_suites_run_on_linux(command: str) -> None:
    """The same source starts the same processes."""
    program, *words = command.split()
    lines, marks = linux(program, *words, "-w", "1000")
    groups = {label: group for test in SUITES[command].values() for label, group in test.items()}
    assert marked(marks) - Counter(["root"]) == {
        label: group.processes for label, group in groups.items()
    }
    for test, rows in rows_of(lines).items():
        assert test in SUITES[command]
        assert all(switches > 0 for _, _, switches in rows)


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("study3 cpu -w 1000", {"cpu": 40}),
        ("study3 io -w 1000", {"io": 40}),
        ("study3 mixed -w 1000", {"cpu": 34, "io": 16}),
        ("study3 inversion -w 1000", {"reader": 1, "writer": 1, "hog": 4}),
        ("study4 trace -w 1000", {"cpu": 3}),
        ("study4 mixed -c 6 -w 1000", {"cpu": 6, "inter": 2}),
        ("study4 sleeper -w 1000", {"cpu": 20, "sleeper": 1}),
        ("cpubench -n 2 -t 50 -p 1000", {"event": 2}),
        ("wakeups -m 2 -n 8 -c 1 -t 30 -i 100", {"cpu": 1, "message": 2, "worker": 16}),
    ],
)
def test_the_others_run_on_linux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, groups: dict[str, int]
) -> None:
    """The same source starts the same processes, and leaves no file."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, marks = linux(*command.split())
    assert marked(marks) - Counter(["root"]) == groups
    assert list(tmp_path.iterdir()) == []
