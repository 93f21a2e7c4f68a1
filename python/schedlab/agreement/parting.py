# SPDX-License-Identifier: MIT
"""Where two runs of the same work begin to differ: the first process that only one of them picks.

Both machines number processes in the order of their forks, so that PIDs mean the same. For each
CPU, the processes that it switched to are compared one by one, from the window's begin on; what
idles in between is left out. The earliest difference over all CPUs is where the runs part: what
comes later may follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.trace import Trace
from schedlab.trace.format import Kind, MarkKind, mark_text

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pick:
    """A CPU switched to a process; times count from the window's begin."""

    time_ns: int
    pid: int
    group: str


@dataclass(frozen=True)
class Parting:
    """The first difference. None: that machine's CPU picks no process any more."""

    cpu: int
    kernel: Pick | None
    simulator: Pick | None
    same: int
    """Switches that this CPU made alike before."""

    @property
    def time_ns(self) -> int:
        """The earlier of the two."""
        return min(pick.time_ns for pick in (self.kernel, self.simulator) if pick)

    def __str__(self) -> str:
        return (
            f"after {self.same} switches alike, CPU {self.cpu} turns to {_told(self.kernel)} on the"
            f" kernel, to {_told(self.simulator)} in the simulator"
        )


def _told(pick: Pick | None) -> str:
    if pick is None:
        return "none"
    return f"{pick.group or 'process'} ({pick.pid}) at {pick.time_ns / 1e6:.3f} ms"


def parting(kernel: Trace, simulator: Trace) -> Parting | None:
    """Returns where the two part, or None if all CPUs switched to the same processes in the same order."""
    found = [
        each
        for cpu in range(kernel.header.cpus)
        if (each := _on_cpu(cpu, _picks(kernel, cpu), _picks(simulator, cpu))) is not None
    ]
    return min(found, key=lambda each: each.time_ns, default=None)


def _on_cpu(cpu: int, kernel: list[Pick], simulator: list[Pick]) -> Parting | None:
    length = min(len(kernel), len(simulator))
    same = next((i for i in range(length) if kernel[i].pid != simulator[i].pid), length)
    if same == len(kernel) == len(simulator):
        return None
    return Parting(
        cpu,
        kernel[same] if same < len(kernel) else None,
        simulator[same] if same < len(simulator) else None,
        same,
    )


def _picks(trace: Trace, cpu: int) -> list[Pick]:
    """Each pick from the window's begin to its end, except those of the process that idles."""
    begin, end, groups = _window(trace)
    kinds, times = trace.column("kind"), trace.column("time_ns")
    processes = trace.column("process")
    rows = np.flatnonzero((kinds == Kind.SWITCH) & (trace.column("cpu") == cpu) & (processes != 0))
    rows = rows[(rows > begin) & (rows < end)]
    origin = int(times[begin])
    return [
        Pick(int(times[row]) - origin, pid, groups.get(pid, ""))
        for row in rows.tolist()
        for pid in (int(processes[row]),)
    ]


def _window(trace: Trace) -> tuple[int, int, dict[int, str]]:
    """Rows of the first MARK_BEGIN and MARK_END, and each process's group."""
    marks = trace.rows(Kind.MARK)
    first, second = trace.column("first"), trace.column("second")
    processes = trace.column("process")
    begins = marks[first[marks] == MarkKind.BEGIN]
    ends = marks[first[marks] == MarkKind.END]
    groups = {
        int(processes[row]): mark_text(int(second[row]))
        for row in marks[first[marks] == MarkKind.GROUP].tolist()
    }
    begin = int(begins[0]) if len(begins) else 0
    return begin, int(ends[0]) if len(ends) else len(trace.events), groups
