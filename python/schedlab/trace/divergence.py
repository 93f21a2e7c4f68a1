# SPDX-License-Identifier: MIT
"""Finds where two runs of the same workload diverge.

For each CPU, the processes that it ran are compared one by one, beginning with the window,
ignoring idle times. The earliest difference over all CPUs is the divergence; later differences may
follow from it. PIDs are comparable, because machines number processes in the order of their forks.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.base.display.numbers import milliseconds
from schedlab.trace.format import Kind, MarkKind, mark_text
from schedlab.trace.model import Trace

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pick:
    """The start of a process on a CPU; the time is relative to the window's begin."""

    time_ns: int
    pid: int
    group: str

    def __str__(self) -> str:
        return f"{self.group or 'process'} ({self.pid}) at {milliseconds(self.time_ns)}"


@dataclass(frozen=True)
class Divergence:
    """The first difference between two runs.

    `one` and `other` are what a CPU of each run did; None: it runs no further process.
    """

    cpu: int
    one: Pick | None
    other: Pick | None
    same: int
    """Number of equal picks of this CPU before the difference."""

    @property
    def time_ns(self) -> int:
        """The earlier of the two times."""
        return min(pick.time_ns for pick in (self.one, self.other) if pick)

    def describe(self, one: str, other: str) -> str:
        """Returns the difference as text. `one` and `other`: names of the runs, such as "on the kernel"."""
        return (
            f"after {self.same} switches alike, CPU {self.cpu} turns to {_pick_text(self.one)} {one}, to"
            f" {_pick_text(self.other)} {other}"
        )


def _pick_text(pick: Pick | None) -> str:
    return str(pick) if pick else "none"


def first_divergence(one: Trace, other: Trace, timed: bool = False) -> Divergence | None:
    """Returns where two runs diverge, or None if all CPUs ran the same processes in the same order.

    `timed`: times must be equal, too. They are if the same machine made the same decisions.
    """
    differences = [
        difference
        for cpu in range(one.header.cpus)
        if (difference := _find_on_cpu(cpu, list_picks(one, cpu), list_picks(other, cpu), timed))
        is not None
    ]
    return min(differences, key=lambda difference: difference.time_ns, default=None)


def _find_on_cpu(cpu: int, one: list[Pick], other: list[Pick], timed: bool) -> Divergence | None:
    length = min(len(one), len(other))
    pairs = enumerate(zip(one, other, strict=False))
    common_count = next(
        (
            i
            for i, (left, right) in pairs
            if left.pid != right.pid or (timed and left.time_ns != right.time_ns)
        ),
        length,
    )
    if common_count == len(one) == len(other):
        return None
    return Divergence(
        cpu,
        one[common_count] if common_count < len(one) else None,
        other[common_count] if common_count < len(other) else None,
        common_count,
    )


def list_picks(trace: Trace, cpu: int) -> list[Pick]:
    """Returns what a CPU ran within the window, without idle times."""
    begin, end, groups = _find_window(trace)
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


def _find_window(trace: Trace) -> tuple[int, int, dict[int, str]]:
    """Returns the rows of the first MARK_BEGIN and MARK_END, and each process's group."""
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
