# SPDX-License-Identifier: MIT
"""Converts a recorded trace to a workload: one program per process, in the simulator's text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from schedlab.runs.replay.charged_costs import Charges
from schedlab.runs.replay.external_events import NO_EXTERNAL_EVENTS
from schedlab.runs.replay.recorded_facts import RecordedFacts
from schedlab.runs.replay.text import NAME_MAX, replace_repetitions, safe_name
from schedlab.runs.replay.writer import GROUP_MAX, IMMEDIATE_START_NS, ProgramWriter
from schedlab.trace import Trace, TraceError, check_records


@dataclass(frozen=True)
class ReplayChanges:
    """How processes of a replay differ from the recorded ones.

    Keys are indices of processes in the table of schedlab.metrics.lives.
    """

    idle: frozenset[int] = frozenset()
    """Processes that do not compute.

    They still wake and fork other processes, which may depend on that.
    """
    attributes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Attributes that processes have from the start; recorded changes of these attributes are omitted."""

    def body(self, life: int, lines: list[str]) -> list[str]:
        """Returns the lines of a process's program with the changes applied."""
        attributes = self.attributes.get(life, {})
        if life in self.idle:
            lines = [line for line in lines if not line.startswith("run ")]
        remaining = [line for line in lines if _attribute_set_by(line) not in attributes]
        return [*(f"{name} {value}" for name, value in attributes.items()), *remaining]


AS_RECORDED = ReplayChanges()


def _attribute_set_by(line: str) -> str:
    """Returns the attribute that a program line sets for its own process; "" if it sets none."""
    words = line.split()
    return words[0] if len(words) == 2 else ""


_STARTING_STEPS = ("fork", "arrive")
"""Steps that start another process."""
STARTER = "start"
"""The program that forks processes without a parent in the trace."""


@dataclass(frozen=True)
class Replayed:
    """The workload derived from a recording."""

    text: str
    """The workload in the simulator's text format."""
    processes: int
    notes: tuple[str, ...]
    """Notes about what the workload omits, and why."""


def derive_workload(
    trace: Trace,
    charges: Charges,
    keep_switches: bool = False,
    change: ReplayChanges = AS_RECORDED,
) -> Replayed:
    """Converts a trace to a workload.

    `charges`: costs that the recorded machine charged. `keep_switches`: includes changes of the
    policy and of tunables. `change`: changes of processes. Raises TraceError if a record is
    invalid, or if a process began before its parent. Records are not checked for consistency.
    """
    check_records(trace)
    facts = RecordedFacts(trace, charges, keep_switches)
    _check_parents(facts)
    order = [int(life) for life in np.argsort(facts.life_table.fork_row, kind="stable")]
    order = [life for life in order if life != facts.init]
    root_lives = [life for life in order if facts.life_table.parent[life] in (-1, facts.init)]
    alone = facts.outside.creator >= 0 or not facts.outside.arrivals
    first_life = (
        root_lives[0]
        if len(root_lives) == 1 and facts.life_table.fork_row[root_lives[0]] >= 0 and alone
        else None
    )
    writer = ProgramWriter(facts, first_life)
    # Children come first: processes with equal programs, children included, share one program.
    bodies = {life: change.body(life, writer.body(life)) for life in reversed(order)}
    programs = _Programs(facts, bodies)
    ordered_programs = list(programs.in_order(order))
    if first_life is None:
        ordered_programs.insert(0, (STARTER, _starter_lines(facts, root_lives, programs, writer)))
    lines: list[str] = []
    for name, steps in ordered_programs:
        lines += ["", f"program {name}", *(f"  {line}" for line in replace_repetitions(steps))]
    return Replayed("\n".join(lines[1:]) + "\n", len(order) + 2, tuple(facts.notes))


def _check_parents(facts: RecordedFacts) -> None:
    """Raises TraceError if a process began before its parent."""
    life_table = facts.life_table
    child = np.flatnonzero(life_table.parent >= 0)
    parent = life_table.parent[child]
    late = life_table.fork_row[parent] >= life_table.fork_row[child]
    if late.any():
        latest = int(late.argmax())
        raise TraceError(
            f"{facts.trace.path}: process {life_table.pid[child[latest]]} was forked by process"
            f" {life_table.pid[parent[latest]]}, which came later: the trace is damaged; record the run again"
        )


def _starter_lines(
    facts: RecordedFacts, root_lives: Sequence[int], programs: _Programs, writer: ProgramWriter
) -> list[str]:
    """Returns the program lines of the starter, which forks processes at their recorded times.

    If no recorded process creates the arrivals, the starter creates them. It exits at the end of
    the recording.
    """
    outside = facts.outside if facts.outside.creator < 0 else NO_EXTERNAL_EVENTS
    forked = [life for life in root_lives if life not in outside.processes]
    timed_lines = [(facts.begin_ns(life), f"fork {programs.name_of(life)}") for life in forked]
    timed_lines += [
        (arrival_step.time_ns, programs.with_name(writer.arrival_step(arrival_step)))
        for arrival_step in outside.arrivals
    ]
    lines: list[str] = []
    time = 0
    for begin, line in sorted(timed_lines, key=itemgetter(0)):
        if line.startswith("fork") and begin > max(time, IMMEDIATE_START_NS):
            lines.append(f"sleep until {begin}ns")
        time = max(time, begin)
        lines.append(line)
    ended = [life for life in forked if facts.life_table.exit_row[life] >= 0]
    lines += ["wait"] * len(ended)
    if len(ended) < len(forked):
        lines.append(f"sleep until {facts.trace.end_ns}ns")
    elif outside.processes:
        lines.append("wait all")
    return lines


class _Programs:
    """The different programs, and which processes run each of them."""

    def __init__(self, facts: RecordedFacts, bodies: Mapping[int, list[str]]) -> None:
        self.of = facts
        targets = {
            int(line.rpartition("@")[2])
            for lines in bodies.values()
            for line in lines
            if "@" in line
        }
        self.program_number: dict[int, int] = {}
        """For each life, the first life with the same behaviour."""
        number_by_program: dict[tuple[str, ...], int] = {}
        self.lines: dict[int, list[str]] = {}
        for life, lines in bodies.items():  # children before their parents
            program_lines = [self._with_program(line) for line in lines]
            key = (self.name(life), str(self.of.label[life]), *program_lines)
            if life in targets:
                key = (*key, str(life))
            self.program_number[life] = number_by_program.setdefault(key, life)
            self.lines.setdefault(self.program_number[life], program_lines)
        self.names = self._names()

    def _with_program(self, line: str) -> str:
        """Returns a line with the program's number instead of the process's index."""
        word, _, rest = line.partition(" ")
        life, _, time = rest.partition(" ")
        return (
            f"{word} {self.program_number[int(life)]} {time}".rstrip()
            if word in _STARTING_STEPS
            else line
        )

    def with_name(self, line: str) -> str:
        """Replaces the process's index in a `fork` line by the name of its program."""
        word, _, rest = line.partition(" ")
        life, _, time = rest.partition(" ")
        return (
            f"{word} {self.name_of(int(life))} {time}".rstrip() if word in _STARTING_STEPS else line
        )

    def name(self, life: int) -> str:
        return self.of.name[life] or "process"

    def _names(self) -> dict[int, str]:
        """Returns unique names for the programs.

        The first program with a name keeps it; others append the PID of their first process.
        """
        names: dict[int, str] = {}
        used = {STARTER}
        for life in sorted(
            self.program_number, key=lambda life: int(self.of.life_table.fork_row[life])
        ):
            if self.program_number[life] in names:
                continue
            name = safe_name(self.name(life))
            for end in (
                "",
                f".{self.of.life_table.pid[life]}",
                f".{self.of.life_table.pid[life]}.{life}",
            ):
                base_name = name[: NAME_MAX - len(end)] + end
                if base_name not in used:
                    break
            used.add(base_name)
            names[self.program_number[life]] = base_name
        return names

    def name_of(self, life: int) -> str:
        return self.names[self.program_number[life]]

    def in_order(self, order: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
        """Yields the name and the lines of each program, in the order of its first process."""
        done: set[int] = set()
        for life in order:
            number = self.program_number[life]
            if number not in done:
                done.add(number)
                yield self.names[number], [*self._group(number), *self._named(number)]

    def _group(self, program: int) -> list[str]:
        """Returns the line that sets the group of a program's processes; [] if none is needed.

        Metrics group processes without a label by name, so a renamed program needs a label.
        """
        name = self.name(program)
        if self.of.label[program] is not None or self.names[program] == name:
            return []
        return [f"group {safe_name(name, GROUP_MAX)}"]

    def _named(self, program: int) -> Iterator[str]:
        """Yields a program's lines with names instead of the indexes of processes."""
        for line in self.lines[program]:
            text, at, life = line.rpartition("@")
            yield text + self.name_of(int(life)) if at else self.with_name(line)
