# SPDX-License-Identifier: MIT
"""The simulator, with the kernel's costs, against the kernel on Spike: the same work, as a program
there and as a workload file here. For policies that draw nothing: where the n-th draw decides, one
decision more or less on the way there makes another schedule, as another seed does."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulator_command import simulate

from guest_machine import TICK_NS, traced
from schedlab import metrics, trace
from schedlab.metrics.window import measured_window

pytestmark = pytest.mark.spike

POLICIES = ("rr", "wrr", "priority", "mlfq", "stride")
NEARNESS = 0.02
"""Of a time; or else a tick."""

CPU_BOUND = """
program root
  group root
  mark begin
  loop 8
    fork worker
  end
  loop 8
    wait
  end
  mark end
program worker
  group cpu
  run 30ms
"""

LADDER = """
program root
  group root
  mark begin
  fork one
  fork two
  fork three
  fork four
  loop 4
    wait
  end
  mark end
""" + "".join(
    f"program {name}\n  group cpu\n  tickets {tickets}\n  sleep 1tick\n  run 30ms\n"
    for name, tickets in (("one", 10), ("two", 20), ("three", 30), ("four", 40))
)

WORK = {
    "cpu-bound -n 8 -i 3000000": CPU_BOUND,
    "ladder -n 4 -a 2 -f 10 -d 10 -i 3000000": LADDER,
}


def turnarounds(events: trace.Trace) -> list[int]:
    """Of the processes that compute, the shortest first."""
    processes = metrics.compute(events).processes.filter(group="cpu")
    return sorted(int(time) for time in processes["turnaround_ns"])


def begin_of(events: trace.Trace) -> int:
    """The kernel boots for a part of a tick; where in a tick all begins decides who is first."""
    return measured_window(events).begin_ns


def simulated(folder: Path, text: str, policy: str, cpus: int, begin_ns: int) -> trace.Trace:
    """Begins at this time, be it that the first process takes a while until it comes to that."""
    boots = booted(folder, text, policy, cpus, begin_ns)
    late = begin_of(boots) - begin_ns
    return booted(folder, text, policy, cpus, begin_ns - late)


def booted(folder: Path, text: str, policy: str, cpus: int, boot_ns: int) -> trace.Trace:
    path = folder / "simulated.bin"
    machine = ("--policy", policy, "--cpus", str(cpus), "--costs", f"kernel,boot={boot_ns}")
    done = simulate(folder, text, *machine, "--trace", str(path))
    assert done.returncode == 0, done.stderr
    events = trace.read(path)
    trace.validate(events)
    return events


def is_near(here: float, there: float) -> bool:
    return abs(here - there) <= max(NEARNESS * there, TICK_NS)


@pytest.mark.parametrize("cpus", [1, 2, 3])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("command", list(WORK), ids=["cpu-bound", "ladder"])
def test_completion_times(tmp_path: Path, command: str, policy: str, cpus: int) -> None:
    kernel = traced(tmp_path, command, cpus, f"policy={policy}")
    there = turnarounds(kernel)
    here = turnarounds(simulated(tmp_path, WORK[command], policy, cpus, begin_of(kernel)))
    assert len(here) == len(there)
    for what, one, other in (
        ("mean", sum(here) / len(here), sum(there) / len(there)),
        ("shortest", here[0], there[0]),
        ("longest", here[-1], there[-1]),
    ):
        print(f"{what}: simulator {one / 1e6:.3f} ms, kernel {other / 1e6:.3f} ms")
        assert is_near(one, other), what
