# SPDX-License-Identifier: MIT
"""Converts a trace to a workload: one program per process, in the simulator's text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from schedlab.runs.replay.charged_costs import Charges
from schedlab.runs.replay.external_events import NOTHING
from schedlab.runs.replay.recorded_facts import Story
from schedlab.runs.replay.text import NAME_MAX, safe_name, with_loops
from schedlab.runs.replay.writer import AT_ONCE_NS, GROUP_MAX, Writer
from schedlab.trace import Trace, TraceError, check_records


@dataclass(frozen=True)
class ReplayChanges:
    """Changes of processes in a replay.

    Keys are the numbers of processes (schedlab.metrics.lives).
    """

    idle: frozenset[int] = frozenset()
    """Processes that do not compute.

    They still perform all other actions, because other processes may wait for them.
    """
    attributes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Attributes that processes have from their fork.

    Recorded settings of the same attributes are ignored.
    """

    def body(self, life: int, lines: list[str]) -> list[str]:
        """Returns a process's lines with the changes applied."""
        attributes = self.attributes.get(life, {})
        if life in self.idle:
            lines = [line for line in lines if not line.startswith("run ")]
        remaining = [line for line in lines if _set_by(line) not in attributes]
        return [*(f"{name} {value}" for name, value in attributes.items()), *remaining]


AS_RECORDED = ReplayChanges()


def _set_by(line: str) -> str:
    """Returns the attribute that a line sets for the process itself; "" if it sets none."""
    words = line.split()
    return words[0] if len(words) == 2 else ""


_BEGIN = ("fork", "arrive")
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


def workload_of(
    trace: Trace,
    charges: Charges,
    keep_switches: bool = False,
    change: ReplayChanges = AS_RECORDED,
) -> Replayed:
    """Converts a trace to a workload. `charges`: costs of the recorded machine.

    `keep_switches`: repeats changes of the policy and of tunables. `change`: changes of processes.
    Raises TraceError if a record is invalid, or if a process was forked by a later process. The
    consistency of records is not checked.
    """
    check_records(trace)
    story = Story(trace, charges, keep_switches)
    _check_parents(story)
    order = [int(life) for life in np.argsort(story.life_table.fork_row, kind="stable")]
    order = [life for life in order if life != story.init]
    tops = [life for life in order if story.life_table.parent[life] in (-1, story.init)]
    alone = story.outside.by >= 0 or not story.outside.comings
    first = (
        tops[0] if len(tops) == 1 and story.life_table.fork_row[tops[0]] >= 0 and alone else None
    )
    writer = Writer(story, first)
    # Children before their parents, so that processes with equal behaviour can share a program.
    bodies = {life: change.body(life, writer.body(life)) for life in reversed(order)}
    programs = _Programs(story, bodies)
    parts = list(programs.in_order(order))
    if first is None:
        parts.insert(0, (STARTER, _starter(story, tops, programs, writer)))
    lines: list[str] = []
    for name, steps in parts:
        lines += ["", f"program {name}", *(f"  {line}" for line in with_loops(steps))]
    return Replayed("\n".join(lines[1:]) + "\n", len(order) + 2, tuple(story.notes))


def _check_parents(story: Story) -> None:
    life_table = story.life_table
    child = np.flatnonzero(life_table.parent >= 0)
    parent = life_table.parent[child]
    late = life_table.fork_row[parent] >= life_table.fork_row[child]
    if late.any():
        at = int(late.argmax())
        raise TraceError(
            f"{story.trace.path}: process {life_table.pid[child[at]]} was forked by process"
            f" {life_table.pid[parent[at]]}, which came later: the trace is damaged; record the run again"
        )


def _starter(story: Story, tops: Sequence[int], programs: _Programs, writer: Writer) -> list[str]:
    """Returns the starter's lines.

    The starter forks processes at their times. If no recorded process creates the arrivals, the
    starter creates them. It exits at the end of the recording.
    """
    outside = story.outside if story.outside.by < 0 else NOTHING
    forked = [life for life in tops if life not in outside.processes]
    timed = [(story.begin_ns(life), f"fork {programs.name_of(life)}") for life in forked]
    timed += [
        (coming.time_ns, programs.with_name(writer.coming(coming))) for coming in outside.comings
    ]
    lines: list[str] = []
    time = 0
    for begin, line in sorted(timed, key=itemgetter(0)):
        if line.startswith("fork") and begin > max(time, AT_ONCE_NS):
            lines.append(f"sleep until {begin}ns")
        time = max(time, begin)
        lines.append(line)
    ended = [life for life in forked if story.life_table.exit_row[life] >= 0]
    lines += ["wait"] * len(ended)
    if len(ended) < len(forked):
        lines.append(f"sleep until {story.trace.end_ns}ns")
    elif outside.processes:
        lines.append("wait all")
    return lines


class _Programs:
    """The programs, and the processes that run each program."""

    def __init__(self, story: Story, bodies: Mapping[int, list[str]]) -> None:
        self.of = story
        targets = {
            int(line.rpartition("@")[2])
            for lines in bodies.values()
            for line in lines
            if "@" in line
        }
        self.program: dict[int, int] = {}
        """For each life, the first life with the same behaviour."""
        known: dict[tuple[str, ...], int] = {}
        self.lines: dict[int, list[str]] = {}
        for life, lines in bodies.items():  # children before their parents
            program_lines = [self._with_program(line) for line in lines]
            key = (self.name(life), str(self.of.label[life]), *program_lines)
            if life in targets:
                key = (*key, str(life))
            self.program[life] = known.setdefault(key, life)
            self.lines.setdefault(self.program[life], program_lines)
        self.names = self._names()

    def _with_program(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        life, _, time = rest.partition(" ")
        return f"{word} {self.program[int(life)]} {time}".rstrip() if word in _BEGIN else line

    def with_name(self, line: str) -> str:
        """Replaces the number of a process in a line by the name of its program."""
        word, _, rest = line.partition(" ")
        life, _, time = rest.partition(" ")
        return f"{word} {self.name_of(int(life))} {time}".rstrip() if word in _BEGIN else line

    def name(self, life: int) -> str:
        return self.of.name[life] or "process"

    def _names(self) -> dict[int, str]:
        """Returns unique names of programs. The first program keeps the recording's name; others
        append the PID of their first process.
        """
        names: dict[int, str] = {}
        used = {STARTER}
        for life in sorted(self.program, key=lambda life: int(self.of.life_table.fork_row[life])):
            if self.program[life] in names:
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
            names[self.program[life]] = base_name
        return names

    def name_of(self, life: int) -> str:
        return self.names[self.program[life]]

    def in_order(self, order: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
        """Yields each program once: its name and lines."""
        done: set[int] = set()
        for life in order:
            program = self.program[life]
            if program not in done:
                done.add(program)
                yield self.names[program], [*self._group(program), *self._named(program)]

    def _group(self, program: int) -> list[str]:
        """Returns the line that sets the processes' group.

        Metrics group processes without a label by name, so a renamed program needs a label.
        """
        name = self.name(program)
        if self.of.label[program] is not None or self.names[program] == name:
            return []
        return [f"group {safe_name(name, GROUP_MAX)}"]

    def _named(self, program: int) -> Iterator[str]:
        for line in self.lines[program]:
            text, at, life = line.rpartition("@")
            yield text + self.name_of(int(life)) if at else self.with_name(line)
