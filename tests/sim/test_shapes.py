# SPDX-License-Identifier: MIT
"""Tests machines with unequal CPUs: the duration of work on them, that no work is lost, and that
nothing changes without a shape.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from schedlab import trace
from schedlab.trace import Kind
from schedlab.workload.shapes.model import CAPACITY_FULL, Model, Shape, number_groups
from schedlab.workload.shapes.reading import builtin_shapes, find_shape
from schedlab_simulator import SetupRefused, Simulator, Status
from simulator_command import built, simulate

US, MS = 1_000, 1_000_000
FULL = CAPACITY_FULL * 1000
"""Units of work per nanosecond of the fastest CPU on its own."""


@pytest.fixture(autouse=True, scope="module")
def _library() -> None:
    built("sim/libschedlab-sim.so")


def ends(text: str, shape: str, cpus: int, **options: object) -> int:
    """When the first process ends."""
    with Simulator(text, shape=shape, cpus=cpus, costs="none", **options) as machine:  # type: ignore[arg-type]
        assert machine.run() is Status.DONE
        machine.audit()
        return machine.now


# --- invariants


CHILD = """
program root
  fork child
  wait
program child
  cpus 1
  run 1ms
  cpus 0-1
  run 20ms
"""


def test_a_policy_takes_what_runs_to_a_faster_cpu() -> None:
    """The child may leave the slow CPU after 2 ms, and does so at its next tick."""
    shape = "kind0.1,speed1024:512"
    assert ends(CHILD, shape, 2) == 42 * MS
    assert ends(CHILD, shape, 2, policy="amps", tunables={"moves": 0}) == 42 * MS
    assert ends(CHILD, shape, 2, policy="amps") == 3 * MS + 19_500 * US


def test_nothing_is_lost_if_a_step_ends_within_a_nanosecond() -> None:
    """A thousand steps take as long as one step with all of the work, although they end 0.7 ns
    after each other.
    """
    steps = "program root\n  cpus 1\n  loop 1000\n    run 1ns\n  end\n"
    assert ends(steps, "kind0.1,speed1024:600", 2) == -(-1000 * 1024 // 600)


def test_levels_follow_what_a_cpu_has_to_do() -> None:
    """A tick is 1 ms. After a long idle period the CPU begins at its lowest level. It is busy for
    whole ticks, and takes the lowest level with a quarter more capacity.
    """
    text = "program root\n  sleep 100ms\n  run 4ms\n  sleep 100ms\n  run 100us\n"
    shape = "speed1024.700.400.200,demand"
    with Simulator(text, shape=shape, costs="none") as machine:
        machine.run()
        left = 4 * MS * FULL - 1 * MS * (200 + 400 + 700) * 1000
        first = -(-left // FULL)
        ahead = first * FULL - left  # the last nanosecond was computed for the next step
        second = -(-(100 * US * FULL - ahead) // 200_000)
        assert machine.now == 103 * MS + first + 100 * MS + second
    assert ends(text, "speed1024.700.400.200", 1) == 204_100 * US


def random_shape(draw: random.Random) -> Shape:
    """Returns a shape of up to 16 CPUs, in any order of their numbers."""
    cpus = draw.randint(1, 16)
    order = draw.sample(range(cpus), cpus)
    threads, cores, caches = draw.choice([1, 2, 3]), draw.choice([1, 2]), draw.choice([1, 2])
    core = tuple(place // threads for place in order)
    cache = tuple(core_number // cores for core_number in core)
    node = number_groups([cache_number // caches for cache_number in cache])
    of_core = {core_number: draw.randrange(2) for core_number in set(core)}
    kinds = [(1024,), (draw.randint(100, 1023),)]
    nodes = max(node) + 1
    distances = tuple(
        tuple(10 if one == other else draw.randint(10, 40) for other in range(nodes))
        for one in range(nodes)
    )
    first = core[0]
    kind = tuple(0 if core_number == first else of_core[core_number] for core_number in core)
    threads_left = (draw.randint(300, 1000), draw.randint(200, 300))
    cold = tuple(draw.randint(0, 30_000) for _ in range(3))
    return Shape(number_groups(core), number_groups(cache), node, kind, tuple(kinds), distances,
                 Model(threads_left, cold))  # type: ignore[arg-type]  # fmt: skip


def random_text(draw: random.Random) -> tuple[str, dict[str, int]]:
    """Returns processes that compute and sleep alternately, and the work of each by name."""
    work: dict[str, int] = {}
    lines = []
    for number in range(draw.randint(1, 12)):
        name = f"p{number}"
        run, rounds = draw.randint(1, 3 * MS), draw.randint(1, 12)
        lines += [f"program {name}", f"  group {name}", f"  loop {rounds}", f"    run {run}ns"]
        lines += [f"    sleep {draw.randint(1, 2 * MS)}ns", "  end"]
        work[name] = run * rounds
    root = ["program root", *(f"  fork {name}" for name in work), *["  wait"] * len(work)]
    return "\n".join([*root, *lines]), work


@dataclass
class Done:
    """The work that a process has done."""

    units: int = 0
    """Units of work done, without `cold`."""
    cold: int = 0
    """Units of work still to be done for a cold cache."""
    cpu: int = -1
    moves: int = 0

    def compute(self, units: int) -> None:
        """Continues computing."""
        warming = min(units, self.cold)
        self.cold -= warming
        self.units += units - warming

    def enter(self, cpu: int, shape: Shape) -> None:
        """Puts the process on a CPU. Remaining cold-cache work of another CPU is dropped."""
        lost = cold(shape, self.cpu, cpu) if self.cpu >= 0 else 0
        if lost:
            self.cold = lost * FULL
            self.moves += 1
        self.cpu = cpu


def done_by(shape: Shape, events: trace.Trace, end: int) -> dict[int, Done]:
    """Returns each process's work in the trace, computed from the definition, interval by interval.
    Steps other than computing take no time here.
    """
    done: dict[int, Done] = defaultdict(Done)
    now, running = 0, dict[int, int]()
    switches = events.events.filter(kind=Kind.SWITCH).select("time_ns", "cpu", "process")
    for time, cpu, process in [*switches.iter_rows(), (end, 0, 0)]:
        busy = [shape.core[cpu] for cpu in running]
        for busy_cpu, pid in running.items():
            others = busy.count(shape.core[busy_cpu]) - 1
            share = (1000, *shape.model.busy_siblings)[min(others, 2)]
            done[pid].compute((time - now) * shape.kinds[shape.kind[busy_cpu]][0] * share)
        now = time
        running.pop(cpu, None)
        if process:
            running[cpu] = process
            done[process].enter(cpu, shape)
    return done


def cold(shape: Shape, before: int, cpu: int) -> int:
    """Returns the nanoseconds of work."""
    if before == cpu:
        return 0
    core, cache, node = shape.model.cold_ns
    if shape.core[before] == shape.core[cpu]:
        return core
    if shape.cache[before] == shape.cache[cpu]:
        return cache
    return node * shape.distances[shape.node[cpu]][shape.node[before]] // 10


@pytest.mark.parametrize("policy", ["lottery", "edf:global", "hsfq"])
def test_all_work_is_done_and_no_more(policy: str, tmp_path: Path) -> None:
    """Work is exact to one nanosecond for a process's last step. Each move adds up to one
    nanosecond, because remaining cold-cache work is counted in whole ones.
    """
    for seed in range(4):
        draw = random.Random(f"{policy} {seed}")
        shape, (text, work) = random_shape(draw), random_text(draw)
        file = tmp_path / "trace.bin"
        with Simulator(
            text, policy=policy, shape=shape.text(), cpus=shape.cpus, costs="none", trace=file
        ) as machine:
            assert machine.run() is Status.DONE
            machine.audit()
            end = machine.now
        events = trace.read(file)
        trace.validate(events)
        names = events.events.filter(kind=Kind.MARK, first=3)
        done = done_by(shape, events, end)
        assert len(names) == len(work)
        for pid, label in names.select("process", "second").iter_rows():
            name = label.to_bytes(8, "little").rstrip(b"\0").decode()
            error = done[pid].units - work[name] * FULL
            assert abs(error) < FULL * (1 + done[pid].moves), (seed, name)
            assert error >= 0 or done[pid].moves


# --- nothing else changes


def test_a_machine_of_cpus_that_are_alike_is_as_one_without_a_shape(tmp_path: Path) -> None:
    draw = random.Random(7)
    for policy in ("rr", "eevdf"):
        text, _ = random_text(draw)
        traces = []
        for shape in ((), ("--shape", "core/1"), ("--shape", "cache/2,speed1024.500")):
            file = tmp_path / "trace.bin"
            options = ("--policy", policy, "--cpus", "4", *shape, "--trace", str(file))
            assert simulate(tmp_path, text, *options).returncode == 0
            traces.append(file.read_bytes())
        assert traces[0] == traces[1] == traces[2]


def test_a_run_is_put_aside_and_continued_with_its_shape(tmp_path: Path) -> None:
    draw = random.Random(3)
    text, _ = random_text(draw)
    shape = find_shape("fast-and-slow").text() + ",demand,core/2,threads600"
    full_path, parts, saved = (tmp_path / name for name in ("whole", "parts", "saved"))
    options = ("--policy", "cfs", "--cpus", "8", "--shape", shape)
    assert simulate(tmp_path, text, *options, "--trace", str(full_path)).returncode == 0
    save = ("--save", str(saved), "--at", "3333333", "--trace", str(parts))
    assert simulate(tmp_path, text, *options, *save, "--limit", "3333333").returncode == 0
    with Simulator.restore(saved, trace=tmp_path / "rest") as machine:
        machine.run()
    assert parts.read_bytes() + (tmp_path / "rest").read_bytes() == full_path.read_bytes()


MANY = """
program root
  loop {count}
    fork hog
  end
  loop {count}
    wait
  end
program hog
  run 2ms
"""


@pytest.mark.parametrize("name", ["1024", [*builtin_shapes()][-1]])
def test_large_machines_run(name: str) -> None:
    shape = "core%512/1,cache%512/8,node%512/128,distance10.20.20.20:20.10.20.20:20.20.10.20:20.20.20.10"
    cpus = 1024
    if name in builtin_shapes():
        chosen = find_shape(name)
        shape, cpus = chosen.text(), chosen.cpus
    assert ends(MANY.format(count=2 * cpus), shape, cpus) > 3 * MS


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ("core0.1.2", "there is more in it than was expected"),
        ("speed512", "no CPU has the capacity 1024, which the fastest has"),
    ],
)
def test_what_is_no_shape_is_refused(shape: str, why: str, tmp_path: Path) -> None:
    text = "program root\n  run 1ms\n"
    with pytest.raises(SetupRefused, match=f"shape for 2 CPUs: {why}"):
        Simulator(text, shape=shape, cpus=2)
    result = simulate(tmp_path, text, "--no-trace", "--cpus", "2", "--shape", shape)
    assert result.returncode == 2
