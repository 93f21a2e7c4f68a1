# SPDX-License-Identifier: MIT
"""Tests recordings by perf and trace-cmd as runs: their content, against the tools' figures."""

from __future__ import annotations

import lzma
import random
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Command
from perf_recordings import RECORDINGS, TICK_NS, TOOLS, imported, unpacked
from schedlab import metrics, trace
from schedlab.commands.metric_tables import tables
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.recordings import reader
from schedlab.recordings.convert import convert
from schedlab.recordings.events import Loss, Switch, Wakeup
from schedlab.recordings.text import parse
from schedlab.recordings.trace_builder import TraceBuilder
from schedlab.trace import BlockReason, Kind, PreemptReason, ProcessState, Trace
from trace_simulator import PATIENT


def trace_of(text: str, folder: Path) -> Trace:
    """Returns the sound trace of a text of events."""
    story = TraceBuilder(parse(text), 2, TICK_NS, "fair")
    story.write(folder / "trace.bin")
    read = trace.read(folder / "trace.bin")
    trace.validate(read)
    return read


def rows(read: Trace, kind: Kind, *columns: str) -> list[Any]:
    """Returns the records of a kind."""
    selected = read.events.filter(pl.col("kind") == kind).select(columns)
    return selected.to_series().to_list() if len(columns) == 1 else selected.rows()


# --- against the tools' figures

_TIMEHIST = re.compile(
    r"^ *[\d.]+ \[\d+\]  .*?\[(-?\d+)(?:/-?\d+)?\] +[\d.]+ +([\d.]+) +([\d.]+) *$", re.MULTILINE
)
"""A line of `perf sched timehist`: thread, delay and run time in ms, truncated after the
third digit.
"""
CUT_OFF_NS = 1000
RECORDER = 115


def test_figures_are_those_of_perf_sched_timehist(tmp_path: Path) -> None:
    """Compares the length of each stay on a CPU, and the delay from the preceding wake-up or
    fork.
    """
    made = imported("sched.data", tmp_path)
    timehist_text = lzma.decompress(
        (RECORDINGS / "sched.data.timehist.txt.xz").read_bytes()
    ).decode()
    theirs: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for pid, waited, ran in _TIMEHIST.findall(timehist_text):
        theirs[int(pid)].append((float(waited) * 1e6, float(ran) * 1e6))
    ours = _stays(trace.read(made.folder / "trace.bin"))
    # An ended process has no PID for perf, which therefore attributes its last stay to -1.
    (ended,) = theirs.pop(-1)
    # perf moved to the second CPU when it had enabled recording only on the first.
    del theirs[RECORDER]
    compared = 0
    for pid, stays in theirs.items():
        mine = ours[pid]
        expected_stays = [*stays, ended] if len(mine) == len(stays) + 1 else stays
        for one, other in zip(mine, expected_stays, strict=True):
            assert all(0 <= a - b < CUT_OFF_NS for a, b in zip(one, other, strict=True)), pid
            compared += 1
    assert compared == 266


def _stays(read: Trace) -> dict[int, list[tuple[int, int]]]:
    """Returns, for each thread, the delay and the length of each completed stay on a CPU."""
    states = metrics.state_intervals(read).with_columns(
        length=pl.col("end_ns") - pl.col("begin_ns")
    )
    woken = (pl.col("state") == "runnable") & pl.col("cause").is_in(["woken", "forked"])
    delay = pl.when(woken).then("length").otherwise(0).shift(1, fill_value=0).over("life")
    running_states = states.with_columns(delay=delay).filter(
        (pl.col("state") == "running") & pl.col("end_row").is_not_null()
    )
    stays = running_states.group_by("pid", maintain_order=True).agg(pl.struct("delay", "length"))
    return {pid: [tuple(row.values()) for row in rows] for pid, rows in stays.iter_rows()}


def test_a_wakeup_just_before_the_switch_off_has_a_delay_all_the_same(tmp_path: Path) -> None:
    """Another CPU woke a kernel thread 455 ns before it left its own CPU; it waited 1.414095
    ms afterwards. (From a recording on Linux 6.18; `perf sched timehist` prints 0.000 for
    its delay.)
    """
    idle, by, after = "swapper/1:0 [120]", "python:603 [120]", "bash:616 [120]"
    text = f"""
        x 11 [001] 39107.811859535: sched_switch: {idle} R ==> rcu_preempt:15 [120]
        x 12 [000] 39107.811860000: sched_switch: swapper/0:0 [120] R ==> {by}
        x 12 [000] 39107.811870867: sched_waking: comm=rcu_preempt pid=15 prio=120 target_cpu=001
        x 15 [001] 39107.811871322: sched_switch: rcu_preempt:15 [120] I ==> {after}
        x 16 [001] 39107.813285417: sched_switch: {after} R ==> rcu_preempt:15 [120]
        x 15 [001] 39107.813296453: sched_switch: rcu_preempt:15 [120] I ==> {after}
    """
    assert _stays(trace_of(text, tmp_path))[15] == [(0, 11787), (1_414_095, 11036)]


def test_threads_are_of_their_process_whatever_they_are_called(tmp_path: Path) -> None:
    made = imported("threads.data", tmp_path)
    read = trace.read(made.folder / "trace.bin")
    leaders = {leader for _, leader in rows(read, Kind.FORK, "first", "second")}
    assert made.metrics is not None
    named = {row["name"]: row for row in made.metrics.processes.to_dicts()}
    assert leaders == {named["threads"]["pid"]}
    threads = [named["one\ntwo"], named["worker [0] 1.0:"]]
    assert all(thread["exit_ns"] is not None for thread in threads)
    assert all(thread["parent"] == named["threads"]["pid"] for thread in threads)
    assert not any("unknown format" in note for note in made.notes)


def test_a_root_has_its_descendants_measured_while_it_lives(tmp_path: Path) -> None:
    path = unpacked("perf-7.3.txt", tmp_path)
    made = convert(path, tmp_path / "run", "fair", TICK_NS, root="storm")
    assert made.metrics is not None
    (root,) = made.metrics.processes.filter(pl.col("role") == "root").to_dicts()
    workload = made.metrics.processes.filter(pl.col("role") == "workload")
    assert root["name"] == "storm"
    assert workload.height == 12
    assert set(workload["parent"]) == {root["pid"]}
    ends = dict(rows(trace.read(made.folder / "trace.bin"), Kind.EXIT, "process", "time_ns"))
    assert made.metrics.summary["end_ns"][0] == ends[root["pid"]]
    with pytest.raises(WrongUsage, match=r"root=.*99999.*has no process of this name or PID"):
        convert(path, tmp_path / "another", "fair", TICK_NS, root="99999")
    assert not (tmp_path / "another").exists()


@pytest.mark.parametrize("name", ["few.data", "sched.dat", "ftrace.txt", "perf-7.3.txt"])
def test_recordings_are_sound(name: str, tmp_path: Path) -> None:
    made = imported(name, tmp_path)
    assert made.outcome.succeeded, made.outcome
    assert made.metrics is not None
    summary = made.metrics.summary.row(0, named=True)
    assert summary["policy"] == "fair"
    assert summary["cpus"] == 2
    assert summary["overhead_share"] is None  # no event comes from inside the scheduler
    busy = summary["running_ns"] + summary["root_running_ns"] + summary["other_running_ns"]
    known = busy + summary["idle_ns"]
    assert 0.98 * 2 * summary["elapsed_ns"] < known <= 2 * summary["elapsed_ns"]
    # A CPU's state is unknown before recording is enabled on it and after it is disabled.
    assert (known == 2 * summary["elapsed_ns"]) == made.metrics.said.is_empty()


@pytest.mark.parametrize("name", ["lost.data", "lost.dat"])
def test_losses_are_counted_and_shown(name: str, tmp_path: Path) -> None:
    made = imported(name, tmp_path)
    assert made.outcome.succeeded, made.outcome
    assert made.manifest["recording"]["lost"] > 0
    assert made.manifest["recording"]["mended"] > 0
    assert "has lost" in made.notes[0]
    assert made.metrics is not None
    lost = made.metrics.summary["lost_records"][0]
    assert lost == made.manifest["recording"]["lost"]
    overall_table = tables([("fair", made.metrics)])[0]
    assert f"{lost:,} records of fair were lost" in str(overall_table.caption)


# --- text formats

SWITCHES = [
    "prev_comm=a b prev_pid=7 prev_prio=120 prev_state=D|K ==> next_comm=x ==> y next_pid=8 next_prio=98",
    "a b:7 [120] D|K ==> x ==> y:8 [98]",
    "prev_comm=a b prev_pid=7 prev_prio=120 prev_state=D|K next_comm=x ==> y next_pid=8 next_prio=98",
]
WAKINGS = [
    ("sched_waking", "comm=a b pid=7 prio=120 target_cpu=001"),
    ("sched_waking", "comm=a b pid=7 prio=120 success=1 target_cpu=001"),
    ("sched_wakeup", "a b:7 [120] CPU:001"),
    ("sched_wakeup", "a b:7 [120] success=1 CPU:001"),
]
LINES = [
    "   12 [001]    33.000000005:       sched:{what}: {rest}",
    "   -1 [001]    33.000000005: sched:{what}: {rest}",
    "a b    12 [001]    33.000000005: sched:{what}: {rest}",
    "           a b-12    [001]    33.000000005: {what}:         {rest}",
    "           a b-12    [001] d.s2.    33.000000005: {what}:         {rest}",
    "     a-1 3-12       1d.s2.    33.000000005: {what}:         {rest}",
    "          <idle>-0     (-----) [001] d.s2.    33.000000005: {what}: {rest}",
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("rest", SWITCHES)
def test_switches_are_read_in_all_their_forms(line: str, rest: str) -> None:
    (event,) = parse(line.format(what="sched_switch", rest=rest)).events
    assert event == Switch(33_000_000_005, 1, 7, "a b", 120, "D|K", 8, "x ==> y", 98)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("what", "rest"), WAKINGS)
def test_wakeups_are_read_in_all_their_forms(line: str, what: str, rest: str) -> None:
    (event,) = parse(line.format(what=what, rest=rest)).events
    assert event == Wakeup(33_000_000_005, 1, 7, "a b", 1, ".s2." in line)


def test_names_may_have_line_feeds() -> None:
    fields = "prev_comm=a\nb prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c\n\nd next_pid=8"
    text = LINES[3].format(what="sched_switch", rest=f"{fields} next_prio=98")
    (event,) = parse(f"{text}\nsomething else\n").events
    assert isinstance(event, Switch)
    assert (event.previous_name, event.next_name) == ("a\nb", "c\n\nd")
    (event,) = parse(LINES[0].format(what="sched_wakeup", rest="a\nb:7 [120] CPU:001")).events
    assert isinstance(event, Wakeup)
    assert event.name == "a\nb"


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("CPU:1 [EVENTS DROPPED]", 1),
        ("CPU:1 [LOST 5 EVENTS]", 5),
        ("    0 [001]     0.000000000: PERF_RECORD_LOST lost 5", 5),
    ],
)
def test_losses_are_read(line: str, lost: int) -> None:
    assert parse(line).events == [Loss(0, 1, lost)]


# --- from events to a trace


def line(time: int, cpu: int, what: str, rest: str) -> str:
    return f" x-1 [{cpu:03}] {time}.000000000: {what}: {rest}\n"


def switch(
    time: int, cpu: int, previous: int, state: str, following: int, priority: int = 120
) -> str:
    rest = f"p{previous}:{previous} [{priority}] {state} ==> p{following}:{following} [{priority}]"
    return line(time, cpu, "sched_switch", rest)


def waking(time: int, cpu: int, pid: int) -> str:
    return line(time, cpu, "sched_waking", f"comm=p{pid} pid={pid} prio=120 target_cpu={cpu:03}")


def fork(time: int, cpu: int, parent: int, child: int) -> str:
    rest = f"comm=p{parent} pid={parent} child_comm=p{parent} child_pid={child}"
    return line(time, cpu, "sched_process_fork", rest)


def test_reasons_to_leave_a_cpu(tmp_path: Path) -> None:
    text = (
        switch(1, 0, 5, "D", 6)
        + switch(2, 0, 6, "S", 7)
        # 8 has waited for longer than 7 has run: the time slice has expired
        + switch(3, 0, 7, "R", 8)
        + waking(4, 0, 6)
        + switch(5, 0, 8, "R+", 6)
        + switch(6, 0, 6, "X", 0)
        + fork(7, 1, 9, 10)
        + switch(8, 1, 9, "R", 10)
    )
    read = trace_of(text, tmp_path)
    assert rows(read, Kind.BLOCK, "process", "first") == [
        (5, BlockReason.DISK),
        (6, BlockReason.OTHER),
    ]
    assert rows(read, Kind.PREEMPT, "process", "first") == [
        (7, PreemptReason.SLICE),
        (8, PreemptReason.WAKEUP),
        (9, PreemptReason.WAKEUP),
    ]
    assert rows(read, Kind.EXIT, "process") == [6]
    assert rows(read, Kind.FORK, "process", "first") == [(9, 10)]


def test_initial_threads_do_what_their_first_event_shows(tmp_path: Path) -> None:
    text = waking(1, 0, 5) + switch(2, 0, 6, "S", 5) + fork(3, 0, 5, 8) + switch(4, 0, 5, "S", 7)
    read = trace_of(text, tmp_path)
    assert rows(read, Kind.FOUND, "process", "first", "time_ns") == [
        (6, ProcessState.RUNNING, 0),
        (5, ProcessState.BLOCKED, 0),
        (7, ProcessState.RUNNABLE, 0),
    ]
    # The process running there woke 5, although the trace records the wake-up later.
    assert rows(read, Kind.WAKEUP, "process", "first") == [(5, 6)]


def test_early_wakeup_counts_when_the_thread_has_left(tmp_path: Path) -> None:
    """One CPU puts the thread to sleep; another has already woken it."""
    begin = (
        switch(1, 0, 0, "R", 5)
        + switch(1, 1, 0, "R", 6)
        + waking(2, 1, 5)
        + switch(3, 0, 5, "S", 0)
    )
    early = trace_of(begin + switch(4, 0, 0, "R", 5), tmp_path)
    assert rows(early, Kind.WAKEUP, "process", "first", "time_ns") == [(5, 6, 2_000_000_000)]
    late = trace_of(begin + waking(5, 1, 5) + switch(6, 0, 0, "R", 5), tmp_path)
    assert rows(late, Kind.WAKEUP, "process", "first", "time_ns") == [(5, 6, 4_000_000_000)]


@PATIENT
@given(seed=st.integers(0, 2**32), part=st.floats(0, 0.9))
def test_whatever_is_lost_the_rest_is_a_sound_story(
    seed: int, part: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any lines of a real recording may be missing, without a notice."""
    text = lzma.decompress((RECORDINGS / "perf-7.3.txt.xz").read_bytes()).decode()
    source = random.Random(seed)
    remaining_lines = [line for line in text.splitlines() if source.random() >= part]
    if not any("sched_switch" in line for line in remaining_lines):
        return
    trace_of("\n".join(remaining_lines), tmp_path_factory.mktemp("lost"))


# --- refusals


def refused(path: Path, folder: Path) -> str:
    with pytest.raises(WrongUsage) as caught:
        convert(path, folder / "run", "fair", TICK_NS)
    assert not (folder / "run").exists()
    return str(caught.value)


@pytest.mark.parametrize("name", ["cycles.data", "forks.data"])
def test_foreign_recording_names_what_to_record(name: str, tmp_path: Path) -> None:
    message = refused(unpacked(name, tmp_path), tmp_path)
    assert "no sched_switch events" in message
    assert "perf sched record" in message


@pytest.mark.parametrize(("name", "part"), [("sched.data", 0.6), ("sched.dat", 0.02)])
def test_a_recording_that_was_cut_off_is_refused(name: str, part: float, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    message = refused(path, tmp_path)
    assert "cannot read it" in message
    assert "record it again" in message


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert "is empty" in refused(path, tmp_path)
    path.write_bytes(b"\x7fELF\0\0")
    assert "not a recording of perf, trace-cmd or Perfetto" in refused(path, tmp_path)
    path.write_text("What is this?\n")
    assert "no sched_switch events" in refused(path, tmp_path)
    path.write_text("x-1 [000] 1.000000: sched_switch: somebody to somebody else\n")
    assert "an unsupported format" in refused(path, tmp_path)
    assert "not a file" in refused(tmp_path, tmp_path)


def test_without_its_tool_a_recording_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpacked("sched.data", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = replace(TOOLS[path.suffix], elsewhere="")
    monkeypatch.setattr(reader, "PERF", tool)
    with pytest.raises(MachineUnfit, match=f"install {tool.packages[0]}.*>FILE.txt"):
        convert(path, tmp_path / "run", "fair", TICK_NS)


# --- the command


def test_the_command_makes_a_run_like_any_other(schedlab: Command, tmp_path: Path) -> None:
    path, out = unpacked("perf-7.3.txt", tmp_path), tmp_path / "out"
    result = schedlab("import", str(path), "-o", str(out), "--tick", "1ms")
    assert result.returncode == 0, result.stderr
    assert "hog ==> two" in result.stdout
    assert f"Kept in {out}" in result.stdout
    exported = schedlab("trace", str(out), "--format", "csv")
    assert exported.returncode == 0, exported.stderr
    assert "FOUND" in (out / "trace.csv").read_text()
    report = schedlab("report", str(out), "--format", "markdown", "--out", str(tmp_path / "report"))
    assert report.returncode == 0, report.stderr
    again = schedlab("import", str(path), "-o", str(out))
    assert again.returncode == 2
    assert "exists already" in again.stderr
