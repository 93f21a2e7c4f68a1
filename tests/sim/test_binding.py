# SPDX-License-Identifier: MIT
"""Tests the simulator's Python binding in the source tree: each call, each refusal, and that it
matches the C headers.
"""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from schedlab import trace
from schedlab.base.toolchain.tools import require_compiler
from schedlab.paths import ROOT
from schedlab_simulator import (
    LibraryUnusable,
    RunFailed,
    SetupRefused,
    Simulator,
    Status,
    Workload,
    WorkloadRefused,
    declarations,
    step_kind,
    step_type,
)
from schedlab_simulator.library import Library, library, opened
from simulator_command import built, simulate

MS = 1_000_000
LIBRARY = "sim/libschedlab-sim.so"

TWO = """
program root
  fork worker
  fork worker
  wait
  wait
program worker
  run 30ms
"""

SLEEPING = f"{TWO}  sleep 2ticks\n"

IDLE = """
channel door 0
program root
  loop
    sleep 1s
  end
program worker
  run 1000s
program reader
  run 1ms
  take door
  run 1ms
  exit 3
program sleeper
  sleep 500s
"""
"""A workload without activity; all activity comes from external acts."""


@pytest.fixture(autouse=True, scope="module")
def _library() -> None:
    built(LIBRARY)


def machine(text: str = IDLE, **options: object) -> Simulator:
    return Simulator(text, costs="none", **options)  # type: ignore[arg-type]


def test_threads_that_open_the_library_at_once_have_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two openings have incompatible types: one thread's workload was refused."""
    both = threading.Barrier(2)
    load, libraries = declarations.load, []

    def slowly(path: str) -> object:
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return load(path)

    monkeypatch.setattr(declarations, "load", slowly)
    opened.cache_clear()
    threads = [threading.Thread(target=lambda: libraries.append(library())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert libraries[0] is libraries[1]


# --- a run


def test_it_is_what_the_command_runs(tmp_path: Path) -> None:
    """The trace equals the command's, byte for byte: in one run, in small steps, and sampled."""
    options = ("--policy", "lottery:thesis", "--cpus", "2", "--seed", "7", "--set", "slice=2")
    path = tmp_path / "command.bin"
    assert simulate(tmp_path, TWO, *options, "--trace", str(path)).returncode == 0
    expected = path.read_bytes()
    for steps in ([10**9], range(0, 100 * MS, 7777), None):
        binding_trace = tmp_path / "binding.bin"
        with Simulator(
            TWO, policy="lottery:thesis", cpus=2, seed=7, tunables={"slice": 2}, trace=binding_trace
        ) as simulator:
            if steps is None:
                simulator.sample(range(0, 10**9, MS))
            for until in steps or []:
                simulator.run(until)
        assert binding_trace.read_bytes() == expected


# --- workloads


def test_workloads_are_steps() -> None:
    workload = Workload.read(TWO)
    assert list(workload.programs) == ["root", "worker"]
    assert workload.programs["worker"]["kind"].tolist() == [step_kind("run"), step_kind("exit")]
    assert workload.programs["worker"]["value"].tolist() == [30 * MS, 0]
    workload.programs["worker"]["value"][0] = 5 * MS
    with machine(TWO) as text, Simulator(workload, costs="none") as changed:
        text.run()
        changed.run()
        assert changed.now == 10 * MS
        assert text.now == 60 * MS


# --- external acts


def test_pieces_with_patience_are_one_run(tmp_path: Path) -> None:
    """After each piece, the file contains every traced event."""
    traces = [tmp_path / "one.bin", tmp_path / "pieces.bin"]
    with Simulator(TWO, trace=traces[0]) as simulator:
        simulator.run()
    with Simulator(TWO, trace=traces[1]) as simulator:
        assert simulator.advance(10**15, 0) is Status.TIME and simulator.now == 0
        time = 0
        while simulator.advance(time := time + 777_777, 60) is Status.TIME:
            assert simulator.now == time
            size = 64 + 32 * simulator.counts().records
            assert traces[1].stat().st_size == size
        assert simulator.advance(10**15, 60) is Status.DONE
    assert traces[0].read_bytes() == traces[1].read_bytes()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_machine_has_one_owner(copied: Callable[[Simulator], object]) -> None:
    """Two owners would free its memory twice."""
    with Simulator("program root\n run 1ms\n") as simulator:
        with pytest.raises(TypeError, match="cannot be copied; save"):
            copied(simulator)
        assert simulator.run() is Status.DONE


def test_save_and_restore(tmp_path: Path) -> None:
    """The restored machine continues exactly as the original would; the two traces are one."""
    full_path, first, second = (
        tmp_path / name for name in ("whole.bin", "first.bin", "second.bin")
    )
    saved = tmp_path / "saved"
    workload = Workload.read(IDLE)

    def begin(path: Path) -> Simulator:
        simulator = Simulator(workload, policy="lottery", cpus=2, trace=path)
        for _ in range(5):
            simulator.fork("worker")
        simulator.run(33_333_333)
        return simulator

    with begin(full_path) as simulator:
        simulator.run(70 * MS)
    with begin(first) as simulator:
        simulator.save(saved)
        first_part = first.read_bytes()  # without an end
    simulator = Simulator.restore(saved, workload=workload, trace=second)
    with simulator:
        assert simulator.now == 33_333_333
        simulator.run(70 * MS)
        assert simulator.fork("worker") == 8
    second.write_bytes(first_part + second.read_bytes())
    one, both = trace.read(full_path).events, trace.read(second).events
    assert len(both) > len(one) > 100, "the second has a fork more"
    assert both[: len(one) - 2].equals(one[:-2]), "except the ends of both CPUs"


# --- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "fifo"}, "policy fifo: no such policy"),
        ({"cpus": 1025}, "1025 CPUs: out of range; use 1 to 1024"),
        (
            {"cpus": -1},
            "policy_run_time: use whole numbers in range: can't convert negative",
        ),
        (
            {"cpus": 2**40},
            "policy_run_time: use whole numbers in range: ",
        ),
        (
            {"cpus": "two"},
            "policy_run_time: use whole numbers in range: ",
        ),
        ({"tunables": {"slice": 0}}, "tunable slice=0 of policy rr"),
        ({"tunables": "pace=1"}, "tunable pace=1 of policy rr"),
        ({"costs": "free"}, "cost free: expected kernel, none or textbook"),
        ({"trace": "/nowhere/trace.bin"}, "the trace /nowhere/trace.bin cannot be created"),
    ],
)
def test_refused_setups(options: dict[str, object], words: str) -> None:
    with pytest.raises(SetupRefused, match=re.escape(words)):
        Simulator(TWO, **options)  # type: ignore[arg-type]


def test_refused_workloads(tmp_path: Path) -> None:
    with pytest.raises(WorkloadRefused, match="workload:2: walk: expected program"):
        Simulator("program a\n walk 3\n")
    with pytest.raises(WorkloadRefused, match=r"cannot be read: .*No such file"):
        Simulator(tmp_path / "none.txt")
    with pytest.raises(WorkloadRefused, match="character NUL"):
        Simulator("program a\0")
    with pytest.raises(WorkloadRefused, match="unknown step walk; choose from affinity, "):
        step_kind("walk")
    with pytest.raises(WorkloadRefused, match="program a: steps must be"):
        Workload({"a": np.zeros((2, 2), step_type())})
    with pytest.raises(SetupRefused, match="program a, step 0: "):
        Simulator(Workload({"a": np.full(1, 77, step_type())}))
    with pytest.raises(SetupRefused, match="the workload has no program"):
        Simulator(Workload({}))


@pytest.mark.parametrize("tick_ns", [0, 5, -1, 2**63, 2**64, "1ms"])
def test_a_tick_is_checked_wherever_it_is_given(tick_ns: int) -> None:
    with pytest.raises(WorkloadRefused, match="tick"):
        Workload.read(SLEEPING, tick_ns)
    with pytest.raises(WorkloadRefused, match="tick"):
        Simulator(SLEEPING, tick_ns=tick_ns)
    with pytest.raises(SetupRefused, match="tick"):
        Simulator(Workload.read(SLEEPING), tick_ns=tick_ns)
    with machine(added_steps=10) as simulator, pytest.raises(WorkloadRefused, match="tick"):
        simulator.add_workload(SLEEPING, tick_ns)


EXTREME = """
from schedlab_simulator import Simulator, SimulatorError, Workload

def machine():
    made = Simulator(TWO, cpus=2, processes=64, added_steps=4)
    made.run(1_000_000)
    machines.append(made)
    return made

CALLS = [
    *(lambda number, name=name: Simulator(TWO, **{name: number})
      for name in ("cpus", "seed", "processes", "added_steps", "tick_ns")),
    lambda number: Workload.read(TWO, number),
    lambda number: machine().run(number),
    lambda number: machine().sample([number]),
    lambda number: machine().advance(number, 0.01),
    *(lambda number, name=name: getattr(machine(), name)(number)
      for name in ("kill", "wake", "fork", "give")),
    lambda number: machine().give(0, number),
    lambda number: machine().migrate(1, number),
    lambda number: machine().migrate(number, 0),
    *(lambda number, kind=kind: machine().set_attribute(1, kind, number) for kind in range(11)),
    lambda number: machine().set_attribute(1, number, 1),
    lambda number: machine().set_tunable("slice", number),
    lambda number: machine().command("sched_status", str(number)),
]
machines = []
for place, call in enumerate(CALLS):
    for number in (-(2**63), -1, 0, 1, 2**31, 2**32 - 1, 2**32, 2**61, 2**63, 2**64 - 1, 2**64):
        print(place, number, flush=True)
        try:
            call(number)
        except (SimulatorError, OverflowError):
            pass
        while machines:
            with machines.pop() as made:
                made.audit()
print("all")
"""


def test_no_number_ends_the_program() -> None:
    """In C, such a number would raise a signal. Each machine is audited afterwards."""
    script = [sys.executable, "-c", f"TWO = {SLEEPING!r}{EXTREME}"]
    result = subprocess.run(script, capture_output=True, text=True, check=False)
    assert result.stdout.splitlines()[-1] == "all", (
        f"{result.stdout.splitlines()[-1]}: {result.stderr}"
    )


def test_a_run_without_an_end_is_ended() -> None:
    """Its trace would fill the disk. With a time limit, the run continues."""
    with machine("program root\n loop\n  sleep 1s\n end\n") as simulator:
        for begin in (0, 60_000 * MS):
            limit = begin + 60_000 * MS
            with pytest.raises(RunFailed, match=f"has not ended at {limit} ns; for a longer"):
                simulator.run()
            assert simulator.now == limit
        assert simulator.run(130_000 * MS) is Status.TIME


def test_failed_runs() -> None:
    with machine("program a\n take c\n") as simulator:
        with pytest.raises(RunFailed, match="all processes wait"):
            simulator.run()
        with pytest.raises(RunFailed, match="all processes wait"):
            simulator.sample([10**12])


@contextmanager
def broken_trace(folder: Path) -> Iterator[Simulator]:
    """Returns a started machine whose trace cannot be written any more."""
    path = folder / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with machine(TWO, trace=path) as simulator:
        os.close(reader)
        yield simulator


def test_unwritable_trace_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SetupRefused, match="cannot be written: No space left on device"):
        machine(TWO, trace="/dev/full")
    with (
        pytest.raises(RunFailed, match="the trace cannot be written: Broken pipe"),
        broken_trace(tmp_path) as simulator,
    ):
        simulator.run()


# --- the binding matches the headers


def library_of(folder: Path, headers: str) -> Path:
    """Returns a library that contains these declarations and nothing else."""
    source = folder / "declarations.S"
    (folder / "headers.h").write_text(headers)
    source.write_text(
        ".section .rodata\n.globl simulator_declarations\n.type simulator_declarations, @object\n"
        f'simulator_declarations:\n.incbin "{folder}/headers.h"\n.byte 0\n'
        ".size simulator_declarations, . - simulator_declarations\n"
        '.section .note.GNU-stack, "", @progbits\n'
    )
    path = folder / f"{abs(hash(headers))}.so"  # an open library is not reopened
    subprocess.run([*require_compiler().host, "-shared", source, "-o", path], check=True)
    return path


def header_text() -> str:
    names = re.findall(r'"(.*\.h)"', (ROOT / "sim/declarations.S").read_text())
    assert len(names) == 5
    return "".join((ROOT / name).read_text() for name in names)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("uint64_t decisions;", "uint64_t picks;", "the library's struct simulator_counts is"),
        ("uint64_t run_time; /* ns", "uint64_t ran; /* ns", "struct simulator_process"),
        ("SIMULATOR_QUEUED = 1", "SIMULATOR_QUEUED = 2", "the library's enum simulator_place is"),
        ("SIMULATOR_DONE", "SIMULATOR_OVER", "the library's enum simulator_status is"),
        ("ATTRIBUTE_WEIGHT", "ATTRIBUTE_LOAD", "the library's enum attribute_kind is"),
        ("struct simulator_process {", "struct simulator_row {", "simulator_process is set()"),
        ("struct simulator_counts {", "struct simulator_counts [", "cannot be read"),
    ],
)
def test_drift_is_detected(tmp_path: Path, old: str, new: str, words: str) -> None:
    headers = header_text()
    assert old in headers
    path = library_of(tmp_path, headers.replace(old, new))
    with pytest.raises(LibraryUnusable, match=re.escape(words)):
        Library(path)


def test_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(declarations.CHOICE, raising=False)
    with pytest.raises(LibraryUnusable, match="not a library of the simulator"):
        Library("/nowhere.so")
    monkeypatch.setattr(declarations, "__file__", str(tmp_path / "a/b/c/d.py"))
    with pytest.raises(LibraryUnusable, match="is missing: pip install puts it there"):
        declarations.find()


# --- its documentation


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                     capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """The example in docs/simulator.md prints the output shown there, and its trace is sound."""
    text = (ROOT / "docs/simulator.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[0][0], "docs/simulator.md", "exec"), {})
    assert capsys.readouterr().out == blocks[0][1]
    trace.validate(trace.read(tmp_path / "trace.bin"))
