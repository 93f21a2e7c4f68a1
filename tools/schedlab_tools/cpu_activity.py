# SPDX-License-Identifier: MIT
"""Extracts the activity of CPUs between visits to the scheduler from a trace of the kernel.

The activity of a process between two visits is a *stay*; its length is measured by the CPU's cycle
counter. If the machine's clock counts executed instructions, it is exact to the cycle; otherwise
the clock is used.
"""

from dataclasses import dataclass, field

from schedlab.trace import Kind, MarkKind, Trace

Event = tuple[Kind, int]
"""Kind and time in ns."""


@dataclass(frozen=True)
class Stay:
    """A stay of a process, or of the idle loop (pid 0), on a CPU between two visits to the scheduler."""

    pid: int
    note: int
    """The current part of the program; 0: before the first."""
    begin_ns: int
    end_ns: int
    cycles: int
    new: bool
    """True for the process's first stay."""
    again: bool
    """True if the process was picked again in the visit before."""
    events: tuple[Event, ...]

    @property
    def cause(self) -> Kind | None:
        """The last event, which explains why the stay ended; None if an interrupt ended it."""
        return self.events[-1][0] if self.events else None

    def count(self, kind: Kind) -> int:
        """Returns the number of its events of the kind."""
        return sum(1 for kind_of_event, _ in self.events if kind_of_event == kind)

    def time_of(self, kind: Kind) -> int:
        """Returns the time of its first event of the kind."""
        return next(time for kind_of_event, time in self.events if kind_of_event == kind)


@dataclass(frozen=True)
class Visit:
    """A CPU's visit to the scheduler, between two stays."""

    note: int
    begin_ns: int
    end_ns: int
    cycles: int
    before: int
    """PIDs before and after; 0: idle."""
    after: int
    cause: Kind | None
    """The cause of the previous stay."""


@dataclass
class Observed:
    """The contents of a trace, in the order of its records."""

    tick_ns: int
    cycles_per_second: int
    by_cycles: bool
    """True if the clock is derived from cycles, which are then more precise."""
    stays: list[Stay] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    called: list[tuple[int, Stay]] = field(default_factory=list)
    """Idle CPUs that another CPU had work for: the time when it woke a process (ns), and the idle stay."""

    def work(self, item: Stay | Visit) -> float:
        """Returns the length in nanoseconds."""
        if self.by_cycles:
            return item.cycles * 1e9 / self.cycles_per_second
        return item.end_ns - item.begin_ns

    def quiet(self, note: int) -> list[Stay]:
        """Returns the stays of processes without ticks, in a part of the program."""
        return [
            stay
            for stay in self.stays
            if stay.note == note and stay.pid and not self.ticks_in(stay.begin_ns, stay.end_ns)
        ]

    def ticks_in(self, begin_ns: int, end_ns: int) -> int:
        """Returns the number of ticks within the interval."""
        return end_ns // self.tick_ns - begin_ns // self.tick_ns


@dataclass
class _Cpu:
    """The state of a CPU while its records are read."""

    began: tuple[int, int] | None = None
    """Time and cycles of the last SCHEDULER_EXIT or ENTER."""
    pid: int = 0
    cause: Kind | None = None
    again: bool = False
    note: int = 0
    called_ns: int = -1
    events: list[Event] = field(default_factory=list)


def observe(trace: Trace, by_cycles: bool) -> Observed:
    """Returns the stays and visits in a trace. `by_cycles`: the clock is derived from cycles."""
    header = trace.header
    observed = Observed(header.tick_ns, header.cycles_per_second, by_cycles)
    _Reader(observed, header.cpus).read(trace)
    return observed


class _Reader:
    """Reads the records of a trace in order."""

    def __init__(self, observed: Observed, cpus: int) -> None:
        """Prepares to read. `cpus`: the number of CPUs."""
        self.observed = observed
        self.cpus = [_Cpu() for _ in range(cpus)]
        self.seen: set[int] = set()
        self.note = 0

    def read(self, trace: Trace) -> None:
        columns = ("time_ns", "cpu", "kind", "process", "first", "second")
        for time, cpu, kind, process, first, second in trace.events.select(columns).iter_rows():
            self.record(self.cpus[cpu], Kind(kind), (time, process, first, second))

    def record(self, cpu: _Cpu, kind: Kind, values: tuple[int, int, int, int]) -> None:
        """Updates the state of a CPU by one record."""
        time, process, first, second = values
        if kind == Kind.SCHEDULER_ENTER:
            self.enter(cpu, time, second)
        elif kind == Kind.SCHEDULER_EXIT:
            self.leave(cpu, time, process, second)
        else:
            if kind == Kind.MARK and first == MarkKind.NOTE:
                self.note = second
            if kind == Kind.WAKEUP and self.cpus[second] is not cpu:
                self.cpus[second].called_ns = time
            cpu.events.append((kind, time))

    def enter(self, cpu: _Cpu, time: int, cycles: int) -> None:
        """Ends a stay: the CPU enters the scheduler."""
        events = tuple(cpu.events)
        if cpu.began:
            began, before = cpu.began
            is_new = cpu.pid not in self.seen
            self.seen.add(cpu.pid)
            stay = Stay(cpu.pid, cpu.note, began, time, cycles - before, is_new, cpu.again, events)
            self.observed.stays.append(stay)
            if cpu.called_ns >= 0 and not cpu.pid:
                self.observed.called.append((cpu.called_ns, stay))
        cpu.called_ns = -1
        cpu.cause = events[-1][0] if events else None
        cpu.began = (time, cycles)
        cpu.events = []

    def leave(self, cpu: _Cpu, time: int, process: int, cycles: int) -> None:
        """Ends a visit: the CPU leaves the scheduler with a process."""
        if cpu.began:
            began, before = cpu.began
            self.observed.visits.append(
                Visit(self.note, began, time, cycles - before, cpu.pid, process, cpu.cause)
            )
        cpu.again = process == cpu.pid
        cpu.pid, cpu.note = process, self.note
        cpu.began = (time, cycles)
        cpu.events = []
