# SPDX-License-Identifier: MIT
"""Tests the sched_ext engine: our own schedulers give the schedules that Linux's rules imply."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from schedlab import trace
from schedlab.analysis.explanation.explained_waits import WaitQuery, explain
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.sched_ext.extraction import ObjectFile
from schedlab.sched_ext.loading import load_object
from schedlab.sched_ext.user_space import MachineFacts
from schedlab.trace import Trace
from schedlab.trace.format import Kind
from schedlab.workload.binary_steps import encode_workload_text
from scx_objects import compiled, object_file
from simulator_command import play

FAULTY = ROOT / "tests" / "sched_ext" / "faulty" / "faulty.bpf.c"
MISTAKEN = ROOT / "tests" / "sched_ext" / "faulty" / "mistaken.bpf.c"
HELPERS = ROOT / "tests" / "sched_ext" / "faulty" / "helpers.bpf.c"
FAST, SAFE = "sim/schedlab-sim", "sim-safe/schedlab-sim"
SETTINGS: Mapping[str, Mapping[str, str]] = {"central": {"cpu_count": "CPUS"}}

SHARES = """
program root
  group root
  mark begin
{forks}
  sleep 3s
  mark end

program a
  nice 0
  run 1000s

program b
  nice -3
  run 1000s

program c
  nice -6
  run 1000s
"""


@cache
def faulty() -> ObjectFile:
    return ObjectFile("faulty", FAULTY, compiled(FAULTY))


@cache
def mistaken() -> ObjectFile:
    return ObjectFile("mistaken", MISTAKEN, compiled(MISTAKEN))


def image(folder: Path, file: ObjectFile, cpus: int, settings: Mapping[str, str]) -> Path:
    """Writes the image of a scheduler."""
    given = {name: value.replace("CPUS", str(cpus)) for name, value in settings.items()}
    path = folder / f"{file.name}-{cpus}.image"
    path.write_bytes(load_object(file, MachineFacts.of_equal_cpus(cpus), given).image)
    return path


def run_steps(
    folder: Path, scheduler: Path, cpus: int, steps: str, *options: str, program: str = FAST
) -> subprocess.CompletedProcess[str]:
    arguments = ("--policy", f"scx:{scheduler}", "--cpus", str(cpus), *options)
    return play(folder, encode_workload_text(steps, 1_000_000), *arguments, program=program)


def traced(
    folder: Path, name: str, cpus: int, steps: str, *options: str, program: str = FAST
) -> Trace:
    """Runs a workload under one of our schedulers. Returns the trace, which is valid."""
    path = folder / "trace.bin"
    scheduler = image(folder, object_file(name), cpus, SETTINGS.get(name, {}))
    result = run_steps(
        folder, scheduler, cpus, steps, "--trace", str(path), *options, program=program
    )
    assert result.returncode == 0, result.stderr
    events = trace.read(path)
    trace.validate(events)
    return events


def switches(events: Trace) -> pl.DataFrame:
    """Returns the switches of CPUs to other processes; the process is 0 for an idle CPU."""
    return events.events.filter(pl.col("kind") == int(Kind.SWITCH))


def cpu_times(events: Trace, end_ns: int) -> dict[int, int]:
    """Returns the CPU time (ns) of each process until a time, on one CPU."""
    rows = switches(events).select("time_ns", "process").rows()
    times: dict[int, int] = {}
    for (begin, pid), (end, _) in zip(rows, [*rows[1:], (end_ns, 0)], strict=True):
        times[pid] = times.get(pid, 0) + end - begin
    return times


def test_virtual_time_shares_by_weight(tmp_path: Path) -> None:
    """Six tasks with weights 100, 194 and 381 twice on one CPU."""
    forks = "\n".join(f"  fork {name}" for name in "aabbcc")
    events = traced(tmp_path, "vtime", 1, SHARES.format(forks=forks), "--costs", "none")
    total = 3_000_000_000
    times = cpu_times(events, total)
    for pid, weight in zip(range(3, 9), (100, 100, 194, 194, 381, 381), strict=True):
        ideal = total * weight / (2 * (100 + 194 + 381))
        assert times[pid] == pytest.approx(ideal, abs=25_000_000)


def test_first_in_first_out(tmp_path: Path) -> None:
    """Tasks that never sleep take turns in the order of their forks, for a slice each."""
    steps = "program root\n loop 5\n fork work\n end\n wait all\nprogram work\n run 95ms\n"
    events = traced(tmp_path, "fifo", 1, steps, "--costs", "none")
    rows = switches(events).filter(pl.col("process") > 2)
    assert rows["process"].to_list() == [3, 4, 5, 6, 7] * 5
    times = rows["time_ns"].to_list()[:21]
    assert [second - first for first, second in pairwise(times)] == [20_000_000] * 20


MIXED = """
channel lock 1

program root
  setgroup 1 weight 300
  setgroup 2 parent 1
  loop 6
    fork worker
    fork sleeper
  end
  fork mover
  wait all

program worker
  nice 3
  taskgroup 1
  loop 20
    run 3ms
    lock lock
    run 200us
    give lock
  end

program sleeper
  taskgroup 2
  loop 50
    run 400us
    sleep 3ticks
    yield
  end

program mover
  loop 10
    cpus 0
    run 5ms
    nice 5
    taskgroup 1
    cpus 0-3
    run 2ms
    nice 0
    taskgroup 0
  end
"""
OURS = ("fifo", "vtime", "five", "groups", "central")


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("cpus", [1, 4])
def test_run_time_and_idle_time_add_up(tmp_path: Path, name: str, cpus: int) -> None:
    """Without costs, tasks run for exactly their work, and the CPUs idle otherwise."""
    path = tmp_path / "trace.bin"
    scheduler = image(tmp_path, object_file(name), cpus, SETTINGS.get(name, {}))
    options = ("--costs", "none", "--trace", str(path))
    result = run_steps(tmp_path, scheduler, cpus, MIXED, *options)
    assert result.returncode == 0, result.stderr
    counts = dict(line.split() for line in result.stdout.splitlines())
    work = 6 * 20 * 3_200_000 + 6 * 50 * 400_000 + 10 * 7_000_000
    assert int(counts["time_ns"]) * cpus == work + int(counts["idle_time_ns"])
    trace.validate(trace.read(path))


@pytest.mark.parametrize("name", OURS)
def test_same_trace_again_and_under_another_compiler(tmp_path: Path, name: str) -> None:
    """The pinned compiler and clang with sanitizers give the same bytes."""
    contents = []
    for number, program in enumerate((FAST, FAST, SAFE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        traced(folder, name, 4, MIXED, "--seed", "3", program=program)
        contents.append((folder / "trace.bin").read_bytes())
    assert contents[0] == contents[1] == contents[2]
    assert len(contents[0]) > 100_000


LOCAL = 3 << 62
"""SCX_DSQ_LOCAL_ON: with a CPU's number, the ID of its local queue."""


@pytest.mark.parametrize("name", OURS)
def test_a_task_runs_on_the_cpu_of_its_local_queue(tmp_path: Path, name: str) -> None:
    """The trace says where each task waits, so a CPU switches only to tasks in its local queue."""
    events = traced(tmp_path, name, 4, MIXED)
    columns = events.events.select("kind", "cpu", "process", "second")
    queue: dict[int, int] = {}
    picked = 0
    for kind, cpu, pid, second in columns.iter_rows():
        if kind == Kind.DISPATCH:
            queue[pid] = second
        elif kind == Kind.SWITCH and pid > 1:
            assert queue.pop(pid) == LOCAL | cpu
            picked += 1
    assert picked > 300


@pytest.mark.parametrize(
    ("name", "queue"), [("fifo", "the global DSQ"), ("vtime", "DSQ 0x0"), ("five", "")]
)
def test_explain_names_the_queue_of_a_wait(tmp_path: Path, name: str, queue: str) -> None:
    """The parts sum to the wait, and enqueue() put most tasks into the scheduler's queue."""
    events = traced(tmp_path, name, 1, MIXED)
    answer = explain(events, WaitQuery(worst=10_000), {})
    longest = [wait for wait in answer.longest if wait.name.startswith(("worker", "sleeper"))]
    for explained in longest:
        total = sum(place.duration_ns for place in explained.places)
        assert total == explained.wait.duration_ns
    first = longest[0].places
    assert max((place.duration_ns, place.queue, place.callback) for place in first)[1:] == (
        queue,
        "enqueue",
    )
    texts = ("in no DSQ: enqueue() took it", f"in {queue}, where enqueue() put it")
    assert any(first[0].describe().endswith(text) for text in texts)


def test_kicks_are_recorded(tmp_path: Path) -> None:
    """CPU 0 schedules for all CPUs: they kick it to preempt, and it kicks idle CPUs."""
    events = traced(tmp_path, "central", 4, MIXED)
    kicks = TraceTables(events).kicks
    to_center = kicks.filter(pl.col("flags") == "preempt", pl.col("callback") == "dispatch")
    assert set(to_center["kicked_cpu"]) == {0}
    assert set(to_center["cpu"]) == {1, 2, 3}
    to_idle = kicks.filter(pl.col("flags") == "idle", pl.col("callback") == "dispatch")
    assert set(to_idle["kicked_cpu"]) == {1, 2, 3}
    assert kicks.filter(pl.col("callback") == "other").is_empty()  # no slice ends
    longer = "program root\n loop 8\n fork work\n end\n wait all\nprogram work\n run 90ms\n"
    by_timer = TraceTables(traced(tmp_path, "central", 4, longer)).kicks.filter(
        pl.col("callback") == "other"
    )
    assert set(by_timer["flags"]) == {"preempt"}
    assert TraceTables(traced(tmp_path, "fifo", 4, MIXED)).kicks.is_empty()


HOTPLUG = """
channel lock 1

program root
  loop 6
    fork worker
  end
  fork bound
  fork plug
  wait all

program worker
  loop 40
    run 3ms
    sleep 1ms
  end

program bound
  cpus 2
  loop 50
    run 1ms
    sleep 500us
  end

program plug
  cpus 0
  loop 4
    sleep 7ms
    offline 2
    sleep 1ms
    offline 3
    offline 3
    sleep 12ms
    online 3
    sleep 3ms
    online 2
  end
"""


def test_no_task_runs_on_an_offline_cpu(tmp_path: Path) -> None:
    path, callbacks = tmp_path / "trace.bin", tmp_path / "callbacks"
    scheduler = image(tmp_path, mistaken(), 4, {"mistake": "0"})
    options = ("--trace", str(path), "--callbacks", str(callbacks))
    result = run_steps(tmp_path, scheduler, 4, HOTPLUG, *options, program=SAFE)
    assert result.returncode == 0, result.stderr
    events = trace.read(path)
    trace.validate(events)
    offline: set[int] = set()
    changes = 0
    texts = dict(events.texts.iter_rows())
    columns = events.events.with_row_index("row").select("row", "kind", "cpu", "process")
    for row, kind, cpu, pid in columns.iter_rows():
        if change := re.fullmatch(r"CPU (\d) goes (on|off)line", texts.get(row, "")):
            (offline.add if change[2] == "off" else offline.remove)(int(change[1]))
            changes += 1
        elif kind == Kind.SWITCH and pid:
            assert cpu not in offline
    assert changes == 16
    lines = [line.split()[1:3] for line in callbacks.read_text().splitlines()]
    called = [(name, cpu) for cpu, name in lines if name.startswith("cpu_o")]
    assert called[:4] == [
        *(("cpu_offline", "2"), ("cpu_offline", "3")),
        *(("cpu_online", "3"), ("cpu_online", "2")),
    ]
    assert len(called) == 16
    bound = next(pid for pid, cpus in affinities(events) if cpus == 0b100)
    assert (bound, 0b1111) in affinities(events), "a task without a CPU gets all"


def affinities(events: Trace) -> list[tuple[int, int]]:
    """Returns the PIDs and the sets of CPUs of all changes, in order."""
    changes = events.events.filter(pl.col("kind") == int(Kind.AFFINITY))
    return list(changes.select("process", "second").iter_rows())


@pytest.mark.parametrize("seed", range(12))
def test_random_hotplug_under_sanitizers(tmp_path: Path, seed: int) -> None:
    """CPUs change among random workloads, whose arrivals are urgent processes."""
    draw = random.Random(seed)
    cpus = draw.choice((2, 4, 16))
    scheduler = image(tmp_path, mistaken(), cpus, {"mistake": "0"})
    changes = "".join(
        f" {draw.choice(('on', 'off'))}line {draw.randrange(1, cpus)}\n sleep {draw.randrange(3000)}us\n"
        for _ in range(20)
    )
    arrivals = "".join(f" arrive leaf {draw.randrange(60)}ms\n" for _ in range(20))
    steps = random_workload(draw, cpus) + f"program plug\n loop 10\n{changes} end\n"
    steps = steps.replace(" deliver ", f" fork plug\n{arrivals} deliver ")
    path = tmp_path / "trace.bin"
    options = ("--trace", str(path), "--limit", "2000000000", "--seed", str(seed))
    result = run_steps(tmp_path, scheduler, cpus, steps, *options, program=SAFE)
    assert result.returncode in (0, 3), result.stderr
    trace.validate(trace.read(path))


def test_instructions_cost_time(tmp_path: Path) -> None:
    """The CPU is busy for the tasks' work and the programs' instructions, and nothing else costs time."""
    steps = "program root\n loop 4\n fork work\n end\n wait all\nprogram work\n loop 20\n run 3ms\n yield\n end\n"
    scheduler = image(tmp_path, object_file("vtime"), 1, {})

    def busy(cost: int) -> int:
        """Returns the time when the CPU does not idle."""
        options = ("--no-trace", "--costs", f"none,instructions={cost}")
        result = run_steps(tmp_path, scheduler, 1, steps, *options)
        assert result.returncode == 0, result.stderr
        counts = dict(line.split() for line in result.stdout.splitlines())
        return int(counts["time_ns"]) - int(counts["idle_time_ns"])

    work = 4 * 20 * 3_000_000
    assert busy(0) == work
    cheap, dear = busy(1000) - work, busy(10_000) - work
    assert 80 * 40 < cheap < 80 * 400, "1 ns for each instruction: about 70 in each of 80 turns"
    assert dear == pytest.approx(10 * cheap, rel=0.1)


FAULTS = {
    1: r"watchdog: \S+\[\d+\] is runnable and has not run for 0\.5\d\d s; enqueue\(\) took it, and it"
    r" is in no DSQ, at ",
    2: r"program faulty_enqueue, instruction \d+ \(faulty\.bpf\.c:\d+\): executes more than \d+"
    r" instructions",
    3: r"program faulty_enqueue, instruction \d+ \(faulty\.bpf\.c:\d+\): store to invalid address",
    4: r"DSQ 0x8 does not exist; \S+\[\d+\] was dispatched to it",
    5: r"CPU 500 in SCX_DSQ_LOCAL_ON does not exist",
    6: r"\?\[31mgives up on 4",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_mistakes_end_the_run_with_their_place(tmp_path: Path, fault: int) -> None:
    scheduler = image(tmp_path, faulty(), 2, {"fault": str(fault)})
    steps = "program root\n loop 4\n fork work\n end\n wait all\nprogram work\n run 3s\n"
    result = run_steps(tmp_path, scheduler, 2, steps, "--no-trace")
    assert result.returncode == 1
    assert re.search(FAULTS[fault], result.stderr), result.stderr


def test_without_a_mistake_the_same_run_ends(tmp_path: Path) -> None:
    scheduler = image(tmp_path, faulty(), 2, {"fault": "0"})
    steps = "program root\n loop 4\n fork work\n end\n wait all\nprogram work\n run 3s\n"
    assert run_steps(tmp_path, scheduler, 2, steps, "--no-trace").returncode == 0


CHOSEN = {"chosen.first": "7", "chosen.list": [1, 2], "chosen.list[2]": "9"}


@pytest.mark.parametrize(("changed", "result"), [({}, 0), ({"chosen.list[1]": "3"}, 8)])
def test_dynptrs_clock_and_values_of_maps(
    tmp_path: Path, changed: Mapping[str, str], result: int
) -> None:
    """The program's init() checks records of a ring buffer, the clock, and a map's first value."""
    file = ObjectFile("helpers", HELPERS, compiled(HELPERS))
    machine = MachineFacts.of_equal_cpus(1)
    path = tmp_path / "helpers.image"
    path.write_bytes(load_object(file, machine, {**CHOSEN, **changed}).image)
    steps = "program root\n run 1ms\n"
    ended = run_steps(tmp_path, path, 1, steps, "--no-trace", program=SAFE)
    assert ("init() returned" in ended.stderr) == bool(result), ended.stderr
    assert not result or f"init() returned {result}," in ended.stderr


def random_step(draw: random.Random, cpus: int) -> str:
    first = draw.randrange(cpus)
    return draw.choice(
        (
            f"run {draw.choice((0, 1, 7, 50, 300, 1000, 5000, 20000))}us",
            f"sleep {draw.choice((1, 100, 999, 1000, 5000))}us",
            f"sleep {draw.randrange(1, 4)}ticks",
            "yield",
            f"lock lock\n run {draw.randrange(200)}us\n give lock",
            "give items",
            f"nice {draw.randrange(-20, 20)}",
            f"cpus {first}",
            f"cpus {first}-{cpus - 1}",
            f"taskgroup {draw.randrange(4)}",
            f"setgroup {draw.randrange(1, 4)} weight {draw.randrange(1, 1000)}",
            "fork leaf",
        )
    )


def random_workload(draw: random.Random, cpus: int) -> str:
    programs = draw.randrange(1, 4)
    forks = "".join(f" fork p{draw.randrange(programs)}\n" for _ in range(draw.randrange(1, 8)))
    text = (
        "channel lock 1\nprogram root\n setgroup 1 weight 300\n setgroup 2 parent 1\n"
        f"{forks} deliver items 1ms\n fork feeder\n wait all\nprogram leaf\n run 700us\n"
        "program feeder\n loop 30\n run 10us\n sleep 1ms\n give items 3\n end\n"
    )
    for number in range(programs):
        steps = "".join(f" {random_step(draw, cpus)}\n" for _ in range(draw.randrange(1, 8)))
        text += f"program p{number}\n loop {draw.randrange(1, 20)}\n{steps} run 3us\n end\n"
    return text


@pytest.mark.parametrize("name", OURS)
def test_random_workloads_under_sanitizers(tmp_path: Path, name: str) -> None:
    for seed in range(6):
        draw = random.Random(f"{name}-{seed}")
        cpus = draw.choice((1, 2, 4, 16))
        scheduler = image(tmp_path, object_file(name), cpus, SETTINGS.get(name, {}))
        options = (
            "--no-trace",
            "--limit",
            "2000000000",
            "--costs",
            draw.choice(("none", "kernel")),
        )
        steps = random_workload(draw, cpus)
        result = run_steps(tmp_path, scheduler, cpus, steps, *options, program=SAFE)
        assert result.returncode in (0, 3), f"seed {seed}: {result.stderr}"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_images_are_refused_or_end(tmp_path: Path, seed: int) -> None:
    """Sanitizers find no error, regardless of the changed bytes of an image."""
    draw = random.Random(seed)
    good = image(tmp_path, object_file("five"), 2, {}).read_bytes()
    steps = "program root\n fork work\n fork work\n wait all\nprogram work\n run 5ms\n sleep 1ms\n"
    for _ in range(15):
        damaged = bytearray(good)
        for _ in range(draw.choice((1, 2, 8))):
            damaged[draw.randrange(len(damaged))] = draw.choice((0, 1, 255, draw.randrange(256)))
        path = tmp_path / "damaged.image"
        path.write_bytes(damaged[: draw.choice((len(damaged), len(damaged), draw.randrange(400)))])
        result = run_steps(
            tmp_path, path, 2, steps, "--no-trace", "--limit", "50000000", program=SAFE
        )
        assert result.returncode in (0, 1, 2, 3), result.stderr
        assert "runtime error" not in result.stderr.replace('"runtime error"', "")
        assert "AddressSanitizer" not in result.stderr
