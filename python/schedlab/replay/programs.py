# SPDX-License-Identifier: MIT
"""From acts to a workload: a program for each process, in the simulator's form."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schedlab.metrics.lives import Lives, descendants, labels, lives, names
from schedlab.metrics.window import measured_window
from schedlab.replay import acts as deeds
from schedlab.replay.acts import KILLED, Acts, Deed
from schedlab.replay.charges import Charges
from schedlab.replay.progress import Stays, life_of, stays
from schedlab.replay.text import NAME_MAX, safe_name, with_loops
from schedlab.trace import (
    AttributeKind,
    BlockReason,
    Kind,
    MarkKind,
    ProcessState,
    Trace,
    mark_text,
)
from schedlab.trace.model import Integers

INIT = 1
"""PID of the process that the simulator has of itself."""
STARTER = "start"
"""Forks those processes that nobody in the trace forks."""
_GROUP_MAX = 8
_STATUS_MAX = 2**31 - 1
_GROUPS_MAX = 20_000
"""Of processes that are woken at once: each takes a channel, which the simulator has to find."""
_AT_ONCE_NS = 100_000
"""A first process that begins so early needs not be told when."""
_FOREVER = {BlockReason.SLEEP: "sleep 1000000s", BlockReason.CHILD: "wait"}
"""What those do that were not woken until the trace ended."""
_LIMITS = {
    AttributeKind.PRIORITY: (0, 10),
    AttributeKind.TICKETS: (1, 10**6),
    AttributeKind.WEIGHT: (1, 10),
}
"""policies/policy.h."""


@dataclass(frozen=True)
class Replayed:
    """What a recording's processes wanted."""

    text: str
    """In the simulator's form."""
    processes: int
    notes: tuple[str, ...]
    """What of the recording is not in it, and why."""


def workload_of(trace: Trace, charges: Charges, keep_switches: bool = False) -> Replayed:
    """Takes a trace for a workload. `charges`: of the machine that it was recorded on.

    `keep_switches`: whoever switched the policy or a tunable does so again.
    """
    return _Recording(trace, charges, keep_switches).replayed()


@dataclass
class _Program:
    """What one process does. `spent`: of its time, what acts took; `done`: what is said of the
    rest."""

    lines: list[str] = field(default_factory=list)
    spent: int = 0
    done: int = 0

    def run(self, computed: int, cost: int = 0) -> None:
        """Computes until its time on the CPU is this, the cost of the next act included."""
        self.spent += cost
        left = computed - self.spent - self.done
        if left > 0:
            self.lines.append(f"run {left}ns")
            self.done += left

    def run_until(self, time: int, computed: int, cost: int = 0) -> None:
        """Computes until a time, by when it had computed so much in the recording."""
        self.spent += cost
        self.lines.append(f"run until {max(time - cost, 0)}ns")
        self.done = max(self.done, computed - self.spent)


class _Recording:
    """A trace, and what is known of its processes."""

    def __init__(self, trace: Trace, charges: Charges, keep_switches: bool) -> None:
        self.trace, self.charges, self.keep_switches = trace, charges, keep_switches
        self.who: Lives = lives(trace)
        self.on_cpu: Stays = stays(trace, self.who, charges)
        self.init = self._init()
        self.omitted = np.array([self.init] if self.init >= 0 else [], np.int64)
        self.acts: Acts = deeds.acts(trace, self.who, self.on_cpu, charges, self.omitted)
        self.first_act = np.searchsorted(self.acts.life, np.arange(len(self.who) + 1))
        self.texts = deeds.texts(trace)
        self.name = names(trace, self.who)
        self.label = labels(trace, self.who)
        self.exit_status = self._exit_status()
        self.notes: list[str] = []
        self.window = measured_window(trace)
        self.at_end = self._at_windows_end()
        self.groups = self._woken_together()
        self.forked_by = self._children()
        self.left_children = self._left_children()

    # --- what is known of processes

    def _init(self) -> int:
        """The life that the simulator's own first process stands for; -1: there is none."""
        first = np.flatnonzero(
            (self.who.pid == INIT) & (self.who.fork_row >= 0) & (self.who.parent < 0)
        )
        return int(first[0]) if len(first) else -1

    def _exit_status(self) -> Integers:
        row = self.who.exit_row
        status = self.trace.column("first")[np.maximum(row, 0)].astype(np.int64)
        return np.where(row >= 0, status, -1) if len(self.trace.events) else row

    def _children(self) -> dict[int, list[tuple[int, int]]]:
        """Of each life: the rows where children ended, with the child, in order."""
        found: dict[int, list[tuple[int, int]]] = {}
        for child in np.argsort(self.who.exit_row, kind="stable").tolist():
            parent, row = int(self.who.parent[child]), int(self.who.exit_row[child])
            if parent >= 0 and row >= 0:
                found.setdefault(parent, []).append((row, child))
        return found

    def _left_children(self) -> frozenset[int]:
        """Who ended without having waited for all children that had: init wakes for them."""
        if self.init < 0:
            return frozenset()
        row = self.trace.rows(Kind.WAKEUP)
        row = row[self.trace.column("process")[row] == self.who.pid[self.init]]
        waker = life_of(self.who, self.trace.column("first")[row].astype(np.int64), row)
        known = waker >= 0
        row, waker = row[known], waker[known]
        ended = (self.who.exit_row[waker] >= 0) & (self.who.exit_row[waker] < row)
        return frozenset(waker[ended & (self.who.parent[waker] != self.init)].tolist())

    def _at_windows_end(self) -> dict[int, int]:
        """Who of the workload computes or could when the window ends, and what it had computed."""
        marks = self.trace.rows(Kind.MARK)
        ends = self.trace.column("first")[marks] == MarkKind.END
        if not bool((marks[ends] == self.window.end_row).any()):
            return {}
        root_pid = np.array([self.window.root_pid or 0], np.int64)
        root = int(life_of(self.who, root_pid, np.array([self.window.begin_row]))[0])
        steps = self.who.steps
        key = (steps.life << 40) | steps.row
        everyone = np.arange(len(self.who))
        at = np.searchsorted(key, (everyone << 40) | self.window.end_row) - 1
        ready = (ProcessState.RUNNABLE, ProcessState.RUNNING)
        computes = (at >= 0) & (steps.life[at] == everyone) & np.isin(steps.after[at], ready)
        who = np.flatnonzero(computes & descendants(self.who, root))
        computed = self.on_cpu.computed(who, np.full(len(who), self.window.end_row))
        return dict(zip(who.tolist(), computed.tolist(), strict=True))

    def _woken_together(self) -> dict[int, tuple[str, int]]:
        """By act that wakes the first of several in one: their channel, and how many they are.

        By the negative of its row, for those that wait: their channel is in `channel_of`.
        """
        gives = self.acts.deed == Deed.GIVE
        follows = gives & self.acts.joined & np.append(False, gives[:-1])
        found: dict[int, tuple[str, int]] = {}
        self.channel_of: dict[tuple[int, int], str] = {}
        starts = np.flatnonzero(gives & ~follows & np.append(follows[1:], False))
        if len(starts) > _GROUPS_MAX:
            self.notes.append("processes that were woken at once are woken one after another")
            return found
        for number, start in enumerate(starts.tolist()):
            end = start + 1
            while end < len(follows) and follows[end]:
                end += 1
            found[start] = (f"together.{number}", end - start)
            for act in range(start, end):
                key = (int(self.acts.other[act]), int(self.acts.row[act]))
                self.channel_of[key] = f"together.{number}"
        return found

    # --- the text

    def replayed(self) -> Replayed:
        order = self._in_order_of_forks()
        tops = self._tops(order)
        first = tops[0] if len(tops) == 1 and self._is_simple(tops[0]) else None
        writer = _Writer(self, first)
        bodies = {life: writer.body(life) for life in reversed(order)}
        # Parents' names come before their children's; children are alike if they do the same.
        programs = _Programs(self, bodies)
        head = [] if first is not None else [(STARTER, self._starter(tops, programs))]
        body = programs.in_order(order if first is None else [first, *order])
        channels = [f"channel {name} 0" for name in ()]
        lines = list(channels)
        for name, steps in [*head, *body]:
            lines += ["", f"program {name}", *(f"  {line}" for line in with_loops(steps))]
        room = len(order) + 2
        return Replayed("\n".join(lines[1:]) + "\n", room, tuple(self.notes))

    def _in_order_of_forks(self) -> list[int]:
        order = np.argsort(self.who.fork_row, kind="stable")
        return [int(life) for life in order if life != self.init]

    def _tops(self, order: Sequence[int]) -> list[int]:
        """Those that nobody in the trace forks, but the first process."""
        return [life for life in order if self.who.parent[life] in (-1, self.init)]

    def _is_simple(self, top: int) -> bool:
        """Can it be the simulator's first process?"""
        return bool(self.who.fork_row[top] >= 0)

    def begin_ns(self, life: int) -> int:
        """When it was forked; the trace's begin, if it was there before."""
        row = int(self.who.fork_row[life])
        return int(self.trace.column("time_ns")[row]) if row >= 0 else self.trace.begin_ns

    def _starter(self, tops: Sequence[int], programs: _Programs) -> list[str]:
        lines: list[str] = []
        time = 0
        for life in tops:
            begin = self.begin_ns(life)
            if begin > max(time, _AT_ONCE_NS):
                time = begin
                lines.append(f"sleep until {time}ns")
            lines.append(f"fork {programs.name_of(life)}")
        ended = [life for life in tops if self.who.exit_row[life] >= 0]
        lines += ["wait"] * len(ended)
        if len(ended) < len(tops):
            lines.append(f"sleep until {self.trace.end_ns}ns")
        return lines


class _Writer:
    """Writes the bodies of programs. A fork is `fork` and the child's life: names come later."""

    def __init__(self, recording: _Recording, first: int | None) -> None:
        self.of = recording
        self.first = first
        self.window_end = recording.window.end_ns
        acts = recording.acts
        self.columns = [
            values.tolist()
            for values in (
                acts.deed,
                acts.row,
                acts.time_ns,
                acts.computed_ns,
                acts.other,
                acts.detail,
                acts.number,
                acts.joined,
            )
        ]
        self.wakes = self._wakes()

    def _wakes(self) -> Mapping[int, list[int]]:
        """Rows where each life is woken by another process, in order."""
        found: dict[int, list[int]] = {}
        acts = self.of.acts
        which = np.flatnonzero(acts.deed == Deed.GIVE)
        which = which[np.argsort(acts.row[which])]
        for life, row in zip(acts.other[which].tolist(), acts.row[which].tolist(), strict=True):
            found.setdefault(life, []).append(row)
        return found

    def body(self, life: int) -> list[str]:
        """What the process does, as lines."""
        self.life = life
        self.program = _Program()
        self.children = self.of.forked_by.get(life, [])
        self.waited = 0
        self.waiting = False
        self.splits = life in self.of.at_end
        self._begin()
        self.act = int(self.of.first_act[life])
        last = int(self.of.first_act[life + 1])
        while self.act < last:
            self._one()
        if self.of.who.exit_row[life] < 0:
            self._outlive()
        return self.program.lines

    def _call(self, computed: int, line: str) -> None:
        self.program.run(computed, self.of.charges.call)
        self.program.lines.append(line)

    def _begin(self) -> None:
        of = self.of
        begin = of.begin_ns(self.life)
        if self.life == self.first and begin > _AT_ONCE_NS:
            self._call(0, f"sleep until {begin}ns")
        start = deeds.first_wait(of.trace, of.who, self.life, of.omitted)
        if start is not None:
            until = f"sleep until {start.number}ns"
            self._call(0, until if start.deed == Deed.SLEEP_UNTIL else f"take {self._channel(-1)}")

    def _channel(self, row: int) -> str:
        """From which it takes when it waits from a row on."""
        wakes = self.wakes.get(self.life, [])
        at = bisect_left(wakes, row)
        together = self.of.channel_of.get((self.life, wakes[at])) if at < len(wakes) else None
        return together or self.own_channel(self.life)

    def own_channel(self, life: int) -> str:
        return f"wake.{self.of.who.pid[life]}.{life}"

    # --- acts

    def _one(self) -> None:
        columns = self.columns
        deed, row, time, computed, other, detail, number, _ = (each[self.act] for each in columns)
        taken = 1
        self._windows_end(row, deed, computed, detail)
        if deed == Deed.EXIT:
            self._exit(time, computed, number)
        elif deed == Deed.WAIT:
            self._wait(row, computed, other)
        elif deed == Deed.GIVE:
            taken = self._give(computed, other)
        elif deed == Deed.FORK:
            self._reap(row, computed)
            self.waiting = False
            self.program.run(computed, self.of.charges.fork)
            self.program.lines.append(f"fork {other}")
        elif deed == Deed.MARK and detail == MarkKind.END:
            self._reap(row, computed, in_any_case=True)
            self._call(computed, "mark end")
        else:
            line = self._line(deed, row, other, detail, number)
            if line:
                self._call(computed, line)
        self.act += taken

    def _line(self, deed: int, row: int, other: int, detail: int, number: int) -> str:
        """Of an act that is one step, whatever else there is. "": none."""
        if deed == Deed.SLEEP:
            return f"sleep {number}ns"
        if deed == Deed.SLEEP_TICKS:
            return f"sleep {number}ticks"
        if deed == Deed.TAKE:
            return f"take {self._channel(row)}"
        if deed == Deed.FOREVER:
            return _FOREVER.get(self.of.trace.column("first")[row], "take never")
        if deed == Deed.YIELD:
            return "yield"
        if deed == Deed.MARK:
            return _mark(detail, number)
        if deed == Deed.ATTRIBUTE:
            return self._attribute(other, detail, number)
        if deed == Deed.SWITCH:
            return self._switch(row, number)
        return ""

    def _attribute(self, other: int, detail: int, number: int) -> str:
        if other < 0 or detail not in _LIMITS:
            return ""
        kind = AttributeKind(detail)
        least, most = _LIMITS[kind]
        line = f"{kind.name.lower()} {min(max(number, least), most)}"
        return line if other == self.life else f"{line} @{other}"

    def _switch(self, row: int, number: int) -> str:
        if not self.of.keep_switches:
            return ""
        text = self.of.texts.get(row, "")
        if self.of.trace.column("kind")[row] == Kind.POLICY:
            return f"policy {text}"
        return f"set {text}={number - 2**64 if number >= 2**63 else number}"

    def _give(self, computed: int, other: int) -> int:
        """Wakes one, or several that are woken at once. How many acts it was."""
        together = self.of.groups.get(self.act)
        if together:
            name, count = together
            self._call(computed, f"give {name} {count}")
            return count
        channel = self.own_channel(other)
        after = self.act + 1
        deeds_of, joined = self.columns[0], self.columns[7]
        if after < self.of.first_act[self.life + 1] and joined[after]:
            if deeds_of[after] == Deed.TAKE:
                own = self._channel(self.columns[1][after])
                self._call(computed, f"take {own} releasing {channel}")
                return 2
        self._call(computed, f"give {channel}")
        return 1

    def _wait(self, row: int, computed: int, waker: int) -> None:
        """It blocks only if no child has ended that it has not waited for."""
        before = bisect_left(self.children, (row, -1))
        if any(child == waker for _, child in self.children[self.waited : before]):
            before -= 1  # on its way to its end, on another CPU
        for _ in range(max(before + 1 - self.waited, 1)):
            self._call(computed, "wait")
        self.waited = max(before + 1, self.waited + 1)
        self.waiting = True

    def _reap(self, row: int, computed: int, in_any_case: bool = False) -> None:
        """Waits for children that have ended already are not in a trace."""
        if self.life in self.of.left_children or not (self.waiting or in_any_case):
            return
        ended = bisect_left(self.children, (row, -1))
        for _ in range(ended - self.waited):
            self._call(computed, "wait")
        self.waited = max(self.waited, ended)

    def _windows_end(self, row: int, deed: int, computed: int, detail: int) -> None:
        """What was going on when the window ended had not come to its end by itself."""
        end_row = self.of.window.end_row
        if not self.splits or row < end_row:
            return
        self.splits = False
        own = row == end_row
        cost = self.of.charges.call if own else 0
        self.program.run_until(self.window_end - cost, self.of.at_end[self.life] - cost)

    def _exit(self, time: int, computed: int, status: int) -> None:
        row = self.columns[1][self.act]
        self._reap(row, computed, in_any_case=True)
        if status == KILLED:
            self.program.run_until(time, computed, self.of.charges.exit)
        else:
            self.program.run(computed, self.of.charges.exit)
        self.program.lines.append("exit 1" if status > _STATUS_MAX else f"exit {status}")

    def _outlive(self) -> None:
        """It was there when the trace ended: it computes on if it could, or never wakes."""
        steps = self.of.who.steps
        last = int(np.searchsorted(steps.life, self.life, side="right")) - 1
        if self.splits:
            self._windows_end(self.of.window.end_row + 1, 0, 0, 0)
        if steps.after[last] in (ProcessState.RUNNABLE, ProcessState.RUNNING):
            self.program.lines += ["loop", "  run 1s", "end"]
        elif self.act == self.of.first_act[self.life]:
            self.program.lines.append("take never")


def _mark(detail: int, number: int) -> str:
    if detail == MarkKind.BEGIN:
        return "mark begin"
    if detail == MarkKind.GROUP:
        return f"group {safe_name(mark_text(number), _GROUP_MAX)}"
    return f"mark note {number}"


class _Programs:
    """Which processes play one program, and what it is called."""

    def __init__(self, recording: _Recording, bodies: Mapping[int, list[str]]) -> None:
        self.of = recording
        meant = {
            int(line.rpartition("@")[2])
            for lines in bodies.values()
            for line in lines
            if "@" in line
        }
        self.program: dict[int, int] = {}
        """By life: the first life that does the same."""
        known: dict[tuple[str, ...], int] = {}
        self.lines: dict[int, list[str]] = {}
        for life, lines in bodies.items():  # children before their parents
            own = [self._with_program(line) for line in lines]
            key = (self.name(life), str(self.of.label[life]), *own)
            if life in meant:
                key = (*key, str(life))
            self.program[life] = known.setdefault(key, life)
            self.lines.setdefault(self.program[life], own)
        self.names = self._names()

    def _with_program(self, line: str) -> str:
        word, _, life = line.partition(" ")
        return f"fork {self.program[int(life)]}" if word == "fork" else line

    def name(self, life: int) -> str:
        return self.of.name[life] or "process"

    def _names(self) -> dict[int, str]:
        """A name that is the recording's where one program alone has it."""
        names: dict[int, str] = {}
        used = {STARTER}
        for program in sorted(self.lines):
            name = safe_name(self.name(program))
            if name in used:
                end = f".{self.of.who.pid[program]}"
                name = name[: NAME_MAX - len(end)] + end
            if name in used:
                end = f".{self.of.who.pid[program]}.{program}"
                name = name[: NAME_MAX - len(end)] + end
            used.add(name)
            names[program] = name
        return names

    def name_of(self, life: int) -> str:
        return self.names[self.program[life]]

    def in_order(self, order: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
        """Each program once: its name and lines."""
        done: set[int] = set()
        for life in order:
            program = self.program[life]
            if program not in done:
                done.add(program)
                yield self.names[program], [*self._group(program), *self._named(program)]

    def _group(self, program: int) -> list[str]:
        """Metrics go by the name of a process that has no label: it stays what it was."""
        name = self.name(program)
        if self.of.label[program] is not None or self.names[program] == name:
            return []
        return [f"group {safe_name(name, _GROUP_MAX)}"]

    def _named(self, program: int) -> Iterator[str]:
        for line in self.lines[program]:
            word, _, rest = line.partition(" ")
            if word == "fork":
                yield f"fork {self.names[int(rest)]}"
            elif "@" in line:
                text, _, life = line.rpartition("@")
                yield text + self.name_of(int(life))
            else:
                yield line
