# SPDX-License-Identifier: MIT
"""The kernel's program `play` acts workloads out as the simulator does: each kind of step, in the
same order of events; and on Linux, what does not depend on the policy."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from built_once import build_once
from guest_machine import TICK_NS
from played import play, played, simulated
from schedlab import metrics, trace
from schedlab.paths import BUILD
from simulator_command import built

Change = Callable[[bytes], bytes]
LINUX_TICKS_NS = (20_000_000, 200_000_000, 1_000_000_000)
"""On a host that is so busy that it changes the order of what is a tick apart, a longer one is
tried."""


TOLD = {
    trace.Kind.FORK: ("first",),
    trace.Kind.MARK: ("first", "second"),
    trace.Kind.BLOCK: ("first",),
    trace.Kind.YIELD: (),
    trace.Kind.ATTRIBUTE: ("first", "second"),
    trace.Kind.EXIT: ("first",),
}
"""What a story has of each event, besides the process."""


def story(events: trace.Trace) -> list[tuple[object, ...]]:
    """What processes do, in order, from the mark that begins the window to the one that ends it."""
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
    found = events.events.filter((pl.col("kind") == trace.Kind.MARK) & (pl.col("first") == 4))
    return [int(value) for value in found["second"]]


def note_times(events: trace.Trace) -> dict[int, int]:
    """When each note was made, ns after the window's begin."""
    marks = events.events.filter(pl.col("kind") == trace.Kind.MARK)
    begin = int(marks.filter(pl.col("first") == 1)["time_ns"][0])
    found = marks.filter(pl.col("first") == 4)
    return {
        int(value): int(time) - begin
        for value, time in found.select("second", "time_ns").iter_rows()
    }


ORDERS = {
    "fork and wait": (
        """
        program root
          mark begin
          fork child
          wait
          mark note 3
          wait                # nobody is left: it goes on
          mark note 4
          mark end
        program child
          mark note 1
          sleep 3ticks
          mark note 2
        """,
        [1, 2, 3, 4],
    ),
    "loops": (
        """
        program root
          mark begin
          loop 2
            mark note 1
            loop 3
              mark note 2
            end
            mark note 3
          end
          mark note 4
          mark end
        """,
        [1, 2, 2, 2, 3, 1, 2, 2, 2, 3, 4],
    ),
    "a loop for ever": (
        """
        program root
          mark begin
          fork child
          sleep 7ticks
          mark note 9
          mark end
        program child
          loop
            mark note 1
            sleep 3ticks
          end
        """,
        [1, 1, 1, 9],
    ),
    "sleeps": (
        """
        program root
          mark begin
          fork first
          fork second
          fork third
          loop 3
            wait
          end
          mark end
        program first
          sleep 2ticks
          mark note 2
          sleep 4ticks
          mark note 6
        program second
          sleep until 5ticks
          mark note 5
          sleep until 3ticks   # that is over
          mark note 5
        program third
          sleep 7ticks
          mark note 7
          run until 9ticks
          mark note 9
          run until 9ticks     # that is over
          mark note 9
        """,
        [2, 5, 5, 6, 7, 9, 9],
    ),
    "timers": (
        """
        program root
          mark begin
          fork relative
          fork absolute
          wait
          wait
          mark end
        program relative
          timer 0 4ticks
          mark note 4
          sleep 6ticks
          timer 0 3ticks       # was due at 7 of 10: it counts from now on
          mark note 10
          timer 0 4ticks
          mark note 14
        program absolute
          timer 7 5ticks absolute
          mark note 5
          sleep 6ticks
          timer 7 2ticks absolute  # was due at 7 of 11
          mark note 11
          timer 7 5ticks absolute  # 12
          mark note 12
        """,
        [4, 5, 10, 11, 12, 14],
    ),
    "channels": (
        """
        channel full 2
        program root
          mark begin
          fork taker
          sleep 2ticks
          fork taker
          sleep 2ticks
          fork other
          sleep 2ticks
          mark note 10
          give empty           # to the first that waits
          sleep 2ticks
          mark note 11
          give empty waiting   # to the second
          sleep 2ticks
          give empty waiting   # nobody waits: lost
          give empty 3
          loop 3
            take empty
          end
          mark note 12
          loop 3
            wait
          end
          mark end
        program taker
          take full
          mark note 1
          take empty
          mark note 2
          give full
        program other
          mark note 3
          take full            # two were in it
          mark note 4
        """,
        [1, 1, 3, 10, 2, 4, 11, 2, 12],
    ),
    "all that wait": (
        """
        program root
          mark begin
          loop 3
            fork waiter
            sleep 1tick
          end
          mark note 9
          give gate all
          loop 3
            wait
          end
          fork late
          sleep 2ticks
          mark note 8
          give gate
          wait
          mark end
        program waiter
          take gate
          mark note 1
        program late
          take gate
          mark note 2
        """,
        [9, 1, 1, 1, 8, 2],
    ),
    "a condition and its lock": (
        """
        channel lock 1
        program root
          mark begin
          fork waiter
          sleep 2ticks
          take lock            # the waiter has released it
          mark note 1
          give condition waiting
          sleep 2ticks
          mark note 2
          give lock
          wait
          mark end
        program waiter
          take lock
          take condition releasing lock
          take lock
          mark note 3
          give lock
        """,
        [1, 2, 3],
    ),
    "processes that meet": (
        """
        program root
          mark begin
          fork one
          sleep 1tick
          fork two
          sleep 5ticks
          mark note 8
          meet point 3
          mark note 9
          sleep 2ticks
          mark note 10
          meet point 3         # the second time: both are there
          wait
          wait
          mark note 11
          mark end
        program one
          mark note 1
          meet point 3
          sleep 1tick
          mark note 3
          meet point 3
        program two
          mark note 2
          meet point 3
          meet point 3
        """,
        [1, 2, 8, 9, 3, 10, 11],
    ),
    "a timer that two share": (
        """
        program root
          mark begin
          fork first
          sleep 1tick
          fork second
          wait
          wait
          mark end
        program first          # at 3, 9
          timer shared 3ticks
          mark note 3
          timer shared 3ticks
          mark note 9
        program second         # at 6, 12
          sleep 1tick
          timer shared 3ticks
          mark note 6
          timer shared 3ticks
          mark note 12
        """,
        [3, 6, 9, 12],
    ),
    "kills": (
        """
        program root
          mark begin
          kill victim          # there is none
          fork victim
          sleep 1tick
          fork victim
          sleep 2ticks
          kill victim          # the latest, at its third tick
          wait
          mark note 9
          sleep 2ticks
          give gate            # who was killed does not stand in line any more
          wait
          mark end
        program victim
          mark note 1
          take gate
          mark note 2
        """,
        [1, 1, 9, 2],
    ),
    "orphans": (
        """
        program root
          mark begin
          fork middle
          wait
          mark note 1
          take done
          mark note 3
          mark end
        program middle
          fork last
        program last
          sleep 3ticks
          mark note 2
          give done
        """,
        [1, 2, 3],
    ),
}
"""Workloads, and the notes that must come of them in this order."""


on_spike = pytest.mark.spike


@on_spike
@pytest.mark.parametrize("name", ORDERS)
def test_the_kernel_does_what_the_simulator_does(tmp_path: Path, name: str) -> None:
    """All events are the same ones in the same order, the processes' numbers included."""
    text, expected = ORDERS[name]
    here, there = simulated(tmp_path, text), play(tmp_path, text)
    assert notes(here) == expected
    assert notes(there) == expected
    assert story(there) == story(here)


@pytest.mark.parametrize("name", ORDERS)
def test_linux_does_so_too(tmp_path: Path, name: str) -> None:
    text, expected = ORDERS[name]
    found = []
    for tick_ns in LINUX_TICKS_NS:
        found.append(noted_on_linux(tmp_path, text, tick_ns))
        if found[-1] == expected:
            return
    assert found[-1] == expected, found


def noted_on_linux(folder: Path, text: str, tick_ns: int) -> list[int] | str:
    """The notes; or why there are none."""
    try:
        done = played_on_linux(folder, text, tick_ns)
    except subprocess.TimeoutExpired:
        return "it does not end"
    marks = [line.split() for line in done.stderr.splitlines()]
    notes = [int(words[3]) for words in marks if words[2] == "note"]
    return notes if done.returncode == 0 else done.stderr


@pytest.mark.spike
@pytest.mark.parametrize("machine", [simulated, play])
def test_a_sleep_of_ticks_gives_up_the_cpu(
    tmp_path: Path, machine: Callable[[Path, str], trace.Trace]
) -> None:
    """Wherever in a tick it begins, even if that ends while the kernel counts ticks."""
    works = range(997_900, 998_300, 2)  # around the end of a tick, on either machine
    text = "program edge\n" + "".join(f"run {ns}ns\nsleep 1ticks\n" for ns in works)
    events = machine(tmp_path, text).events
    sleeps = events.filter(kind=trace.Kind.BLOCK, first=trace.BlockReason.SLEEP)
    assert max(sleeps["process"].value_counts()["count"].to_list()) >= len(works)


def played_on_linux(
    folder: Path, text: str, tick_ns: int = LINUX_TICKS_NS[0]
) -> subprocess.CompletedProcess[str]:
    build_once("build/linux/play", "build/sim/schedlab-sim")
    (folder / "workload.txt").write_text(text)
    compiled = compile_text(folder, tick_ns)
    assert compiled.returncode == 0, compiled.stderr
    environment = {
        **os.environ, "WORKLOAD_MARKS": "1", "WORKLOAD_TICK_US": str(tick_ns // 1000)
    }  # fmt: skip
    return subprocess.run(
        [BUILD / "linux" / "play", folder / "workload"],
        env=environment, capture_output=True, text=True, timeout=10 + 40 * tick_ns / 1e9, check=False,
    )  # fmt: skip


def compile_text(folder: Path, tick_ns: int = TICK_NS) -> subprocess.CompletedProcess[str]:
    command = [str(built("sim/schedlab-sim")), "--tick", str(tick_ns)]
    command += ["--compile", str(folder / "workload"), str(folder / "workload.txt")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


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
    here, there = (made(tmp_path, SCHEDULING, "priority") for made in (simulated, play))
    assert story(there) == story(here)
    assert [row for row in story(there) if row[0] == "ATTRIBUTE"] == [
        ("ATTRIBUTE", 3, 2, 7),
        ("ATTRIBUTE", 3, 3, 3),
        ("ATTRIBUTE", 3, 1, 2),
        ("ATTRIBUTE", 3, 1, 4),
        ("ATTRIBUTE", 5, 1, 1),
        ("ATTRIBUTE", 5, 3, 2),  # it has priority 1
        ("ATTRIBUTE", 3, 3, 2),
    ]
    found = [metrics.compute(events) for events in (here, there)]
    for measured in found:
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
        for events in (here, there)
    ]
    assert switched[0] == switched[1]


TIMES = """
program root
  mark begin
  fork worker
  wait
  mark end
program worker
  mark note 1
  run 3ms
  mark note 2
  sleep 1234us
  mark note 3
  run until 9ms
  mark note 4
  sleep until 12300us
  mark note 5
  timer 0 20500us
  mark note 6
"""


@on_spike
def test_times_are_those_of_the_file(tmp_path: Path) -> None:
    """To 50 us: a few system calls, ticks, and steps of the machine's clock."""
    for events in (simulated(tmp_path, TIMES), play(tmp_path, TIMES)):
        at = note_times(events)
        near = 50_000
        assert at[2] - at[1] == pytest.approx(3_000_000, abs=near)
        assert at[3] - at[2] == pytest.approx(1_234_000, abs=near)
        assert at[4] == pytest.approx(9_000_000, abs=near)
        assert at[5] == pytest.approx(12_300_000, abs=near)
        assert at[6] == pytest.approx(20_500_000, abs=near)


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
    """To 50 us, and in microseconds that a period has more or less: with the same misses."""
    here, there = (metrics.jobs(made(tmp_path, JOBS, "edf")) for made in (simulated, play))
    times = ("release_ns", "done_ns", "deadline_ns", "response_ns", "lateness_ns")
    for found in (here, there):
        begin = found["release_ns"].min()
        assert isinstance(begin, int)
        assert found["pid"].to_list() == [3, 3, 3, 4, 4, 5]
        released = [round((each - begin) / 1e6) for each in found["release_ns"].to_list()]
        assert released == [0, 5, 10, 7, 14, 0]
        assert (found["lateness_ns"] > 0).to_list() == [False] * 3 + [True] * 3
    for name in times[3:]:
        assert here[name].to_list() == pytest.approx(there[name].to_list(), abs=50_000)


def test_jobs_on_linux_are_released_a_period_apart(tmp_path: Path) -> None:
    done = played_on_linux(tmp_path, JOBS.replace("  fork first\n  fork once\n", ""))
    marks = [line.split() for line in done.stderr.splitlines()]
    released = [int(words[3]) for words in marks if words[2] == "job"]
    assert [each - released[0] for each in released[:4]] == [0, 5_000_000, 10_000_000, 15_000_000]
    assert released[4:] == [0]


@on_spike
@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("program root\n  mark begin\n  mark end\n  exit 4", 1, ""),
        (
            "program root\n  fork a\n  take gate\nprogram a\n  policy none",
            1,
            "workload: none: no such",
        ),
        ("program root\n  fork a\n  take gate\nprogram a\n  set no=1", 1, "workload: no=1: "),
    ],
    ids=["status", "policy", "tunable"],
)
def test_a_workload_that_fails_says_why(
    tmp_path: Path, text: str, status: int, message: str
) -> None:
    """Also when one of its processes fails and the first would wait for ever."""
    guest = played(tmp_path, text)
    assert guest.status == status
    assert message in guest.console


def test_on_linux_nobody_of_a_failed_workload_is_left(tmp_path: Path) -> None:
    done = played_on_linux(
        tmp_path, "program root\n fork a\n fork b\n take gate\nprogram a\n sleep 1tick\n policy rr\n"
        "program b\n take gate",
    )  # fmt: skip
    assert done.returncode == 1  # and the pipe of its errors was closed by all of them
    assert done.stderr == "workload: rr: Function not implemented\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_on_linux_all_end_with_the_one_that_was_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "workload.txt").write_text(
        "program root\n group here\n fork a\n take gate\nprogram a\n group here\n take gate\n"
    )
    assert compile_text(tmp_path).returncode == 0
    build_once("build/linux/play")
    started = subprocess.Popen(
        [BUILD / "linux" / "play", tmp_path / "workload"],
        env={**os.environ, "WORKLOAD_MARKS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr
    for _ in range(2):
        assert started.stderr.readline().endswith("group here\n")
    started.send_signal(number)
    assert started.stderr.read() == ""  # nobody is left who could write
    assert started.wait(60) in (-number, 128 + number)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda good: b"", "it is empty"),
        (lambda good: b"text", "it is no workload file"),
        (lambda good: b"X" + good[1:], "it is no workload file"),
        (lambda good: good[:8] + bytes([good[8] + 1]) + good[9:], "it is of another version"),
        (lambda good: good[:-1], "its size is wrong"),
        (lambda good: good + b"\0", "its size is wrong"),
        (lambda good: good[:80] + b"\1" + good[81:], "its checksum is wrong"),
        (lambda good: good[:33] + b"\1" + good[34:], "compiled for another tick"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: Change, message: str) -> None:
    assert played_on_linux(tmp_path, "program root\n run 1us").returncode == 0
    path = tmp_path / "workload"
    path.write_bytes(change(path.read_bytes()))
    done = subprocess.run(
        [BUILD / "linux" / "play", path],
        env={**os.environ, "WORKLOAD_TICK_US": str(LINUX_TICKS_NS[0] // 1000)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr


def test_what_cannot_be_compiled(tmp_path: Path) -> None:
    path = tmp_path / "workload.txt"
    path.write_text("program root\n  run 3m\n")
    done = compile_text(tmp_path)
    assert done.returncode == 2
    assert "workload.txt:2: 3m: expected a time" in done.stderr
    path.write_text("program root\n  run 3ms\n")
    program, place = str(built("sim/schedlab-sim")), str(tmp_path / "no" / "file")
    command = [program, "--compile", place, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot be written: No such file" in done.stderr


def test_the_same_text_gives_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "workload.txt").write_text(SCHEDULING)
    files = []
    for _ in range(2):
        assert compile_text(tmp_path).returncode == 0
        files.append((tmp_path / "workload").read_bytes())
    assert files[0] == files[1]
    assert b"mlfq:allotment-boost\0" in files[0]
