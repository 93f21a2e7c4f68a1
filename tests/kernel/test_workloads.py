# SPDX-License-Identifier: MIT
"""The studies' suites do what the studies say: counted from traces, read from what they print."""

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
from schedlab.paths import BUILD, ROOT

TICK_NS = 100_000
WORK = "-w 10000"
"""The iterations that fill such a tick: all is a hundredth of the studies' size."""

OVERHEAD_NS = 100_000
"""More than the kernel takes for a process that does nothing, and for three sleeps with a file."""

STUDY_WORK = 4.3e-7
"""Ticks that an iteration of study 1 takes: 86 ticks for ten times 20 million, its table 1."""


@dataclass(frozen=True)
class Members:
    """What each process of a group does."""

    processes: int
    work: float = 0
    """In ticks."""
    sleeps: int = 0
    ticks: int = 0
    """The length of each sleep."""
    priority: int | None = None
    at_once: int | None = None
    """No more than this many live at the same time."""


def study_1(
    priorities: bool = False, io: Mapping[str, Members] | None = None
) -> dict[str, dict[str, Members]]:
    """Test to groups, as sections 4.1 and 4.2 list them; the I/O-bound test differs."""

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
    """Section 4.2: the first 25 at priority 5, the last 25 at 0."""
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
    """A run: its console after the boot, its trace, and the workload's processes."""

    lines: list[str]
    events: trace.Trace
    processes: pl.DataFrame
    values: pl.DataFrame
    summary: dict[str, Any]

    def told(self, name: str, group: str = "root") -> list[int]:
        """The figures of this name that processes of a group told, in order."""
        of_name = self.values.filter((pl.col("name") == name) & (pl.col("group") == group))
        return of_name["value"].to_list()


def run(folder: Path, command: str, cpus: int, arguments: str = "") -> Ran:
    """Boots, runs the command, and reads what it left; the trace must be sound."""
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
    """How many lived at the same time; a process that ends when another is forked does not count."""
    changes = [(time, 1) for time in members["fork_ns"]]
    changes += [(time, -1) for time in members["exit_ns"]]
    most = alive = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def sleeps_of(ran: Ran, members: pl.DataFrame) -> dict[int, list[int]]:
    """How long each sleep of each process of a group was until it was woken, ns."""
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
    """So many of each, from somewhere in a tick to the end of the last one, where others wake too.

    A process that asks for it in the last instructions of a tick sleeps from the next one on; if it is to sleep
    until that one, not at all.
    """
    sleeps = sleeps_of(ran, members)
    counts = Counter(len(lengths) for lengths in sleeps.values())
    assert max(counts) == count
    assert counts[count] + (counts[count - 1] if ticks == 1 else 0) == len(sleeps)
    assert counts[count] >= 0.9 * len(sleeps)
    for length in (length for lengths in sleeps.values() for length in lengths):
        assert (ticks - 1) * TICK_NS - ROUND_NS < length < (ticks + 0.5) * TICK_NS


def priorities_of(ran: Ran, members: pl.DataFrame) -> set[int | None]:
    """What priorities the processes of a group were given; None: none was set."""
    chosen = ran.events.events.filter(
        (pl.col("kind") == trace.Kind.ATTRIBUTE)
        & (pl.col("first") == trace.AttributeKind.PRIORITY)
        & pl.col("process").is_in(members["pid"].to_list())
    )
    return set(chosen["second"].to_list()) if len(chosen) else {None}


def check_group(ran: Ran, label: str, expected: Members) -> None:
    """Processes, work, sleeps and priority of a group are those of the study."""
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
    """Test to its rows of figures: the runs, then their mean."""
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
    """Counted from the trace, test by test."""
    ran = run(tmp_path, f"{command} {WORK}", cpus, "policy=priority")
    groups = {label: group for test in SUITES[command].values() for label, group in test.items()}
    for label, expected in groups.items():
        check_group(ran, label, expected)
    assert set(ran.processes["group"]) == set(groups)
    assert list(rows_of(ran.lines)) == list(SUITES[command])
    assert ran.lines.count("hi") == (50 if command == "timingtests -v 2" else 0)
    assert ran.told("test") == [1, 2, 3, 4, 5, 6, 7]
    printed = [row for row, _ in rows_of(ran.lines).values()]
    columns = [ran.told(name) for name in ("ticks", "complete", "switches")]
    assert [list(row) for row in zip(*columns, strict=True)] == printed


@pytest.mark.spike
@pytest.mark.parametrize(
    ("workload", "cpu", "io"), [("cpu", 40, 0), ("io", 0, 40), ("mixed", 34, 16)]
)
def test_workloads_of_study_3(tmp_path: Path, workload: str, cpu: int, io: int) -> None:
    """40, 40 and 50 processes; of the mixed, two of three compute."""
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
    """The numbers of the one line that matches."""
    (match,) = (match for line in lines if (match := re.fullmatch(pattern, line)))
    return [float(number) for number in match.groups()]


@pytest.mark.spike
def test_priority_inversion_makes_the_reader_wait_for_all_others(tmp_path: Path) -> None:
    """Strict priorities: all that compute go before the writer. Alone, it takes its own work."""
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
        printed_waits = ran.told("wait", "reader")
        assert (len(printed_waits), max(printed_waits)) == (5, longest)
        assert mean == pytest.approx(sum(printed_waits) / 5, abs=0.1)
        in_ticks = [time / TICK_NS for time in ran.told("wait_ns", "reader")]
        assert in_ticks == pytest.approx(printed_waits, abs=1)
        reader = ran.processes.filter(pl.col("group") == "reader")
        check_sleeps(ran, reader, 5, 1)
    assert 4 <= waits[0] <= 7
    assert waits[4] >= 4 * 50 - 10


PRINTED = r" +(\d+), mean +([\d.]+) ticks, longest +(\d+) ticks"


@pytest.mark.spike
def test_experiments_of_study_4(tmp_path: Path) -> None:
    """Three for the trace; two that write a line and sleep 5 ticks twenty times, among others."""
    ran = run(tmp_path, f"study4 trace {WORK}", 2)
    check_group(ran, "cpu", Members(3, 350))
    ran = run(tmp_path, f"study4 mixed -c 4 {WORK}", 2)
    check_group(ran, "cpu", Members(4, 61))
    check_group(ran, "inter", Members(2, sleeps=20, ticks=5))
    for label, what in (("inter", "interactive"), ("cpu", "CPU-bound")):
        count, mean, longest = number_after(ran.lines, f"{what}: finished{PRINTED}")
        times = ran.processes.filter(pl.col("group") == label)["turnaround_ns"].to_numpy() / TICK_NS
        assert count == len(times)
        assert mean == pytest.approx(times.mean(), abs=2)
        assert longest == pytest.approx(times.max(), abs=2)
        finish_times = ran.told("finished", label)
        assert (len(finish_times), max(finish_times)) == (count, longest)
        assert mean == pytest.approx(sum(finish_times) / count, abs=0.06)


@pytest.mark.spike
def test_the_sleeper_of_study_4(tmp_path: Path) -> None:
    """Under round-robin it sleeps until all others have had their turn: 20 ticks of one CPU."""
    ran = run(tmp_path, f"study4 sleeper -i 20 -r 2 {WORK}", 1)
    check_group(ran, "cpu", Members(20, 20))
    check_group(ran, "sleeper", Members(1, sleeps=2, ticks=5))
    count, mean, longest = number_after(ran.lines, f"sleeper: slept{PRINTED}")
    assert count == 2
    assert 20 <= mean <= longest <= 30
    sleep_times = ran.told("slept", "sleeper")
    assert (len(sleep_times), max(sleep_times)) == (2, longest)


@pytest.mark.spike
@pytest.mark.parametrize(
    ("test", "policy"), [("basic", "wrr"), ("starve", "priority"), ("mixed", "rr")]
)
def test_lottery_test_window_has_its_stated_length(tmp_path: Path, test: str, policy: str) -> None:
    """Also under policies that starve the parent, whose turn comes after the window."""
    ran = run(tmp_path, f"lotterytest {test} -t 50 -u 20 -w {TICK_NS // 10}", 2, f"policy={policy}")
    summary = ran.summary
    assert ran.told("window") == [50 * TICK_NS]
    assert summary["elapsed_ns"] == pytest.approx(50 * TICK_NS, abs=TICK_NS / 2)
    assert summary["processes"] == (20 if test == "mixed" else 8)


# On Linux

WORKLOADS = sorted(path.stem for path in (ROOT / "workloads").glob("*.c"))
NAMED = {"lotterytest", "study3", "study4"}
"""Programs that need the name of a test."""


def linux(program: str, *words: str, status: int = 0) -> tuple[list[str], list[str]]:
    """Output and marks of a workload as a program of Linux, its tick a tenth of a millisecond."""
    build_once("linux-workloads")
    done = subprocess.run(
        [BUILD / "linux" / program, *words],
        env={**os.environ, "WORKLOAD_TICK_US": "100", "WORKLOAD_MARKS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


def marked(marks: list[str]) -> Counter[str]:
    """How many processes each group has."""
    return Counter(mark.split()[-1] for mark in marks if " group " in mark)


@pytest.mark.parametrize("program", WORKLOADS)
def test_programs_have_help_and_refuse_unknown_options(program: str) -> None:
    """As a command does: status 0 and 2."""
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
    """The same source, the same processes."""
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
    """The same source, the same processes, and no file is left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, marks = linux(*command.split())
    assert marked(marks) - Counter(["root"]) == groups
    assert list(tmp_path.iterdir()) == []
