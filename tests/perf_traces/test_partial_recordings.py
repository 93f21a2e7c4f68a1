# SPDX-License-Identifier: MIT
"""Tests recordings of some CPUs or some threads: unrecorded activity is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perf_recordings import TICK_NS
from schedlab import metrics, trace
from schedlab.analysis.tables import TraceTables
from schedlab.recordings.convert import Imported, convert
from schedlab.recordings.events import Seen
from schedlab.recordings.text import parse
from schedlab.runs.recording import read_recording


def switch(time: int, cpu: int, previous: int, state: str, following: int) -> str:
    fields = f"p{previous}:{previous} [120] {state} ==> p{following}:{following} [120]"
    return f" x {previous} [{cpu:03}] {time}.000000: sched_switch: {fields}\n"


def made_of(text: str, folder: Path) -> Imported:
    path = folder / "text.txt"
    path.write_text(text)
    made = convert(path, folder / "run", "fair", TICK_NS)
    trace.validate(trace.read(made.folder / "trace.bin"))
    return made


def states(made: Imported, pid: int) -> list[tuple[Any, ...]]:
    """Returns state, begin and end in microseconds of a thread's known states."""
    intervals = metrics.state_intervals(trace.read(made.folder / "trace.bin"))
    rows = intervals.filter(intervals["pid"] == pid).select("state", "begin_ns", "end_ns").rows()
    return [(state, begin / 1000, end / 1000) for state, begin, end in rows if end > begin]


def process(made: Imported, name: str) -> dict[str, Any]:
    assert made.metrics is not None
    processes = made.metrics.processes
    (row,) = processes.filter(processes["name"] == name).to_dicts()
    return row


ONE_CPU = """\
 alpha 101 [001] 5.000000: sched_switch: alpha:101 [120] S ==> beta:102 [120]
  beta 102 [001] 5.001000: sched_waking: comm=gamma pid=103 prio=120 target_cpu=003
  beta 102 [001] 5.050000: sched_switch: beta:102 [120] S ==> swapper/1:0 [120]
"""


def test_a_thread_woken_for_a_cpu_that_was_not_recorded_does_not_wait(tmp_path: Path) -> None:
    made = made_of(ONE_CPU, tmp_path)
    assert states(made, 103) == [("blocked", 0, 1000)]
    assert process(made, "gamma")["waiting_ns"] is None
    assert process(made, "beta")["waiting_ns"] == 0
    tables = TraceTables(trace.read(made.folder / "trace.bin"))
    assert tables.processes.filter(tables.processes["name"] == "gamma")["waiting_ns"][0] is None
    assert not tables.waits.filter(tables.waits["name"] == "gamma").height


def test_a_cpu_that_was_not_recorded_does_not_idle(tmp_path: Path) -> None:
    made = made_of(ONE_CPU, tmp_path)
    assert made.manifest["recording"]["cpus_unrecorded"] == [0, 2, 3]
    assert made.metrics is not None
    assert made.metrics.cpus["idle_ns"].to_list() == [0, 0, 0, 0]
    assert made.metrics.cpus["running_ns"].to_list() == [0, 50_000_000, 0, 0]
    intervals = metrics.cpu_intervals(trace.read(made.folder / "trace.bin"))
    assert set(intervals.filter(intervals["end_ns"] > intervals["begin_ns"])["cpu"]) == {1}
    assert made.metrics.processes["ideal_share"].null_count() == 3
    (unknown,) = made.metrics.said["last"]
    assert "150.000 ms of the CPUs' time (75.0 %)" in unknown


def test_a_thread_out_of_sight_sleeps_in_the_replay_until_it_is_back(tmp_path: Path) -> None:
    back = " gamma 103 [001] 5.060000: sched_switch: gamma:103 [120] S ==> swapper/1:0 [120]\n"
    text = read_recording(made_of(ONE_CPU + back, tmp_path).folder).replayed.text
    assert "sleep until 60000000ns" in text


def test_the_header_of_an_event_shows_who_ran(tmp_path: Path) -> None:
    made = made_of(
        """\
 recorder 500 [000] 7.000100: sched_switch: recorder:500 [120] R ==> migration/0:12 [0]
migration 12 [000] 7.000102: sched_migrate_task: comm=recorder pid=500 prio=120 orig_cpu=0 dest_cpu=1
migration 12 [000] 7.000110: sched_switch: migration/0:12 [0] S ==> swapper/0:0 [120]
 recorder 500 [001] 7.000210: sched_waking: comm=migration/1 pid=22 prio=0 target_cpu=001
 recorder 500 [001] 7.000310: sched_switch: recorder:500 [120] R ==> migration/1:22 [0]
migration 22 [001] 7.000320: sched_switch: migration/1:22 [0] S ==> swapper/1:0 [120]
""",
        tmp_path,
    )
    # The CPU has no other known activity when the thread arrives.
    assert process(made, "recorder")["running_ns"] == 200_000
    assert made.metrics is not None
    assert made.metrics.cpus["idle_ns"].to_list() == [210_000, 0]


@pytest.mark.parametrize("switched_from", [7, 8])
def test_headers_count_only_if_those_of_switches_are_right(switched_from: int) -> None:
    """In a container, perf's PIDs differ from those in the kernel's events."""
    text = f"""
 a 7 [000] 1.000000: sched_switch: a:{switched_from} [120] S ==> b:9 [120]
 c 5 [000] 2.000000: sched_waking: comm=d pid=6 prio=120 target_cpu=000
"""
    seen = [event for event in parse(text).events if isinstance(event, Seen)]
    assert seen == ([Seen(2_000_000_000, 0, 5)] if switched_from == 7 else [])


def leaves(state: str, between: str = "") -> str:
    """Returns the events of a thread that leaves its CPU 30 µs after it was woken, and is
    back after 30 µs.
    """
    return f"""
 <idle>-0 [004] 9.000000: sched_switch: swapper/4:0 [120] R ==> reader:71 [120]
writer-70 [001] 9.001000: sched_waking: comm=reader pid=71 prio=120 target_cpu=004
{between}
reader-71 [004] 9.001030: sched_switch: reader:71 [120] {state} ==> swapper/4:0 [120]
 <idle>-0 [004] 9.001060: sched_switch: swapper/4:0 [120] R ==> reader:71 [120]
"""


def test_a_thread_that_leaves_while_it_is_woken_was_blocked(tmp_path: Path) -> None:
    made = made_of(leaves("R"), tmp_path)
    read = trace.read(made.folder / "trace.bin")
    states = metrics.state_intervals(read)
    (wait,) = states.filter((states["pid"] == 71) & (states["cause"] == "woken")).to_dicts()
    assert (wait["begin_ns"], wait["end_ns"]) == (1_030_000, 1_060_000)
    assert process(made, "reader")["preemptions"] == 0
    assert process(made, "reader")["wakeup_latency_max_ns"] == 30_000


def test_of_threads_alone_only_what_they_show_is_known(tmp_path: Path) -> None:
    """`perf record -t 7` records, of each stay on a CPU, the last moment and the thread's
    actions.
    """
    begins = range(1, 41, 3)
    text = "".join(
        f" x 7 [001] {time}.000000000: sched_waking: comm=y pid=9 prio=120 target_cpu=001\n"
        f" x 7 [001] {time + 1}.000000000: sched_switch: x:7 [120] S ==> z:{time + 100} [120]\n"
        for time in begins
    )
    made = made_of(text, tmp_path)
    assert made.manifest["recording"]["by_thread"]
    assert process(made, "x")["running_ns"] == len(begins) * 1_000_000_000
    assert made.metrics is not None
    assert made.metrics.cpus["idle_ns"].sum() == 0
    assert made.metrics.cpus["running_ns"].sum() == len(begins) * 1_000_000_000


def test_a_wait_for_a_cpu_that_was_not_recorded_is_not_known(tmp_path: Path) -> None:
    """The thread is woken on CPU 0, which is not recorded, and moves to CPU 1 unseen."""
    woken = " p7 7 [001] 2.000000: sched_waking: comm=p5 pid=5 prio=120 target_cpu=000\n"
    text = switch(1, 1, 6, "S", 7) + woken + switch(4, 1, 7, "S", 5) + switch(5, 1, 5, "S", 0)
    made = made_of(text, tmp_path)
    assert [state for state, *_ in states(made, 5)] == ["blocked", "running"]
    assert process(made, "p5")["wakeup_latency_max_ns"] is None


def test_a_thread_woken_out_of_sight_is_not_blocked_all_the_time(tmp_path: Path) -> None:
    woken = " p5 5 [001] 1.000000: sched_waking: comm=p9 pid=9 prio=120 target_cpu=001\n"
    text = woken + switch(1, 1, 5, "S", 6) + switch(4, 1, 6, "S", 5)
    made = made_of(text, tmp_path)
    assert process(made, "p5")["blocked_ns"] is None
    assert made.manifest["recording"]["mended"] == 1
