# SPDX-License-Identifier: MIT
"""Converts the actions of one recorded process to lines of a program."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schedlab.runs.replay.actions import KILLED, Deed
from schedlab.runs.replay.external_events import Coming
from schedlab.runs.replay.recorded_facts import READY, Story
from schedlab.runs.replay.text import safe_name
from schedlab.trace import AttributeKind, BlockReason, GroupField, Kind, MarkKind, mark_text
from schedlab.trace.format import signed
from schedlab.workload.groups import set_group_line
from schedlab.workload.model import ATTRIBUTES

AT_ONCE_NS = 100_000
"""If the first process begins within this time (ns), its program needs no start time."""
GROUP_MAX = 8
_STATUS_MAX = 2**31 - 1
_FOREVER = {BlockReason.SLEEP: "sleep 1000000s", BlockReason.CHILD: "wait"}
"""The last action of processes that were still blocked when the trace ended."""


@dataclass
class _Program:
    """The program of one process.

    `spent`: the cost (ns) of its actions. `done`: the computing time (ns) of its lines so far.
    """

    lines: list[str] = field(default_factory=list)
    spent: int = 0
    done: int = 0

    def run(self, computed: int, cost: int = 0) -> None:
        """Adds a step that computes until the total CPU time is `computed` (ns). `cost`: of the next action (ns)."""
        self.spent += cost
        left = computed - self.spent - self.done
        if left > 0:
            self.lines.append(f"run {left}ns")
            self.done += left

    def run_until(self, time: int, computed: int) -> None:
        """Adds a step that computes until `time` (ns).

        `computed`: the computing time (ns) of the recorded process at `time`.
        """
        self.lines.append(f"run until {max(time, 0)}ns")
        self.done = max(self.done, computed - self.spent)


class Writer:
    """Writes the bodies of programs.

    A fork contains the child's process number, which `_Programs` replaces by a program's name.
    """

    def __init__(self, story: Story, first: int | None) -> None:
        self.of = story
        self.first = first
        self.window_end = story.window.end_ns
        acts = story.acts
        columns = (acts.row, acts.time_ns, acts.computed_ns, acts.other, acts.detail, acts.number)
        self.deeds = acts.deed.tolist()
        self.rows = acts.row.tolist()
        self.joined = acts.joined.tolist()
        self.facts = list(zip(*(values.tolist() for values in columns), strict=True))
        self.wakes = self._wakes()

    def _wakes(self) -> Mapping[int, list[int]]:
        """Returns the rows where each process is woken by another process, in order."""
        wakeups: dict[int, list[int]] = {}
        acts = self.of.acts
        which = np.flatnonzero(acts.deed == Deed.GIVE)
        which = which[np.argsort(acts.row[which])]
        for life, row in zip(acts.other[which].tolist(), acts.row[which].tolist(), strict=True):
            wakeups.setdefault(life, []).append(row)
        for coming in self.of.outside.comings:
            if not coming.is_process:
                insort(wakeups.setdefault(coming.life, []), coming.row)
        return wakeups

    def body(self, life: int) -> list[str]:
        """Returns the lines of a process."""
        self.life = life
        self.program = _Program()
        arrived = self.of.outside.processes
        self.children = [
            child for child in self.of.forked_by.get(life, []) if child[1] not in arrived
        ]
        self.comings = list(self.of.outside.comings) if life == self.of.outside.by else []
        self.await_all = bool(self.comings)
        self.waited = 0
        self.waiting = False
        self.splits = life in self.of.at_end
        self._begin()
        self.act = int(self.of.first_act[life])
        last = int(self.of.first_act[life + 1])
        while self.act < last:
            self._one()
        if self.of.life_table.exit_row[life] < 0:
            self._outlive()
        return self.program.lines

    def _act(self, line: str) -> None:
        """Adds the step of the current action."""
        self.program.run(self.computed, self._taken(line))
        self.program.lines.append(line)

    def _taken(self, line: str) -> int:
        """Returns the cost (ns) of the step. It is deducted from the preceding computing time."""
        of = self.of.charges
        word = line.partition(" ")[0]
        fork = of.fork + of.fork_new * (self.rows[self.act] in self.of.new_slots)
        costs = {"sleep": of.sleep, "take": of.pipe, "give": of.pipe, "fork": fork}
        return of.exit if word == "exit" else costs.get(word, of.call)

    def _waits(self, count: int, then: int = 0) -> None:
        """Adds several waits.

        The last wait is for a child that is still running. `then`: the cost (ns) of the next step.
        """
        of = self.of.charges
        call_or_reap = of.call + of.reap
        self.program.run(self.computed - then, (count - 1) * call_or_reap + of.call)
        self.program.lines += ["wait"] * count
        self.program.spent += of.reap

    def _begin(self) -> None:
        """Adds the steps at the process's start, and accounts for the cost of its first run."""
        of, lines = self.of, self.program.lines
        begin = of.begin_ns(self.life)
        start = of.first_wait.get(self.life)
        if self.life == self.first and begin > AT_ONCE_NS:
            lines.append(f"sleep until {begin}ns")
        elif start is None and self.life in of.started:
            self.program.spent = of.charges.first_run
        if start is not None:
            until = f"sleep until {start.number}ns"
            lines.append(until if start.deed == Deed.SLEEP_UNTIL else f"take {self._channel(-1)}")

    def _channel(self, row: int) -> str:
        """Returns the channel for a wait that begins at a row."""
        wakes = self.wakes.get(self.life, [])
        at = bisect_left(wakes, row)
        together = self.of.channel_of.get((self.life, wakes[at])) if at < len(wakes) else None
        return together or self.channel_name_of(self.life)

    def coming(self, arrival: Coming) -> str:
        """Returns the step that creates an arrival."""
        what = (
            f"arrive {arrival.life}"
            if arrival.is_process
            else f"deliver {self.channel_name_of(arrival.life)}"
        )
        return f"{what} {arrival.time_ns}ns"

    def channel_name_of(self, life: int) -> str:
        return f"wake.{self.of.life_table.pid[life]}.{life}"

    # --- actions

    def _one(self) -> None:
        deed = self.deeds[self.act]
        row, self.time, self.computed, other, detail, number = self.facts[self.act]
        taken = 1
        self._let_come(row)
        self._windows_end(row)
        if deed == Deed.EXIT:
            self._exit(row, number)
        elif deed == Deed.WAIT:
            self._wait(row, other)
        elif deed == Deed.GIVE:
            taken = self._give(other)
        elif deed == Deed.FORK:
            self._fork(row, other)
        elif deed == Deed.MARK and detail == MarkKind.END:
            self._reap(row, "mark end", in_any_case=True)
            self._act("mark end")
        else:
            line = self._line(deed, row, other, detail, number)
            if deed == Deed.SLEEP and not self._by_itself(row):
                self._device(number)
            elif deed in (Deed.SLEEP, Deed.SLEEP_TICKS) and self._sleeps_for_comings():
                self._let_come(self._next_row(), self._taken("sleep"))
            elif other == self.life and row in self.of.set_at_arrival:
                self.program.lines.append(line)
            elif line:
                self._act(line)
        self.act += taken

    def _next_row(self) -> int:
        """Returns the row of the process's next action."""
        after = self.act + 1
        has_next = after < int(self.of.first_act[self.life + 1])
        return self.rows[after] if has_next else len(self.of.trace)

    def _sleeps_for_comings(self) -> bool:
        """True if an arrival, which this process creates, precedes its next action.

        The process then sleeps only until the arrival.
        """
        return bool(self.comings) and self.comings[0].row < self._next_row()

    def _let_come(self, row: int, taken: int = 0) -> None:
        """Adds the arrivals before a row.

        `taken`: the cost (ns) of the sleep before the first arrival.
        """
        while self.comings and self.comings[0].row < row:
            self.program.run(self.computed, taken)
            self.program.lines.append(self.coming(self.comings.pop(0)))
            taken = 0

    def _by_itself(self, row: int) -> bool:
        """True if the process sleeps voluntarily, and no other process ends the sleep."""
        return bool(self.of.trace.column("first")[row] == BlockReason.SLEEP)

    def _device(self, number: int) -> None:
        """Adds a wait for a device that ends at the recorded time, even if earlier costs delay the process."""
        self.program.run(self.computed, self._taken("sleep"))
        late = self.program.done + self.program.spent - self.computed
        early = min(max(late, 0), number - 1)
        self.program.spent -= early
        self.program.lines.append(f"sleep {number - early}ns")

    def _fork(self, row: int, child: int) -> None:
        of = self.of.charges
        self._reap(row, "fork")
        self.waiting = False
        self._act(f"fork {child}")
        if of.fork_return:
            self.program.spent += of.fork_return

    def _line(self, deed: int, row: int, other: int, detail: int, number: int) -> str:
        """Returns the line of an action that is a single step; "" for other actions."""
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
        if deed == Deed.SETGROUP:
            known = detail in set(GroupField)
            return set_group_line(other, GroupField(detail).name.lower(), number) if known else ""
        if deed == Deed.SWITCH:
            return self._switch(row, number)
        return ""

    def _attribute(self, other: int, detail: int, number: int) -> str:
        if other < 0 or detail not in set(AttributeKind):
            return ""
        name = AttributeKind(detail).name.lower()
        limits = ATTRIBUTES[name]
        line = limits.line(name, min(max(signed(number), limits.least), limits.most))
        return line if other == self.life else f"{line} @{other}"

    def _switch(self, row: int, number: int) -> str:
        if not self.of.keep_switches:
            return ""
        text = self.of.texts.get(row, "")
        if safe_name(text, len(text)) != text:
            return ""  # schedlab has no policy or tunable with this name
        if self.of.trace.column("kind")[row] == Kind.POLICY:
            return f"policy {text}"
        return f"set {text}={signed(number)}"

    def _give(self, other: int) -> int:
        """Wakes one process, or several together. Returns the number of actions."""
        together = self.of.groups.get(self.act)
        if together:
            name, count = together
            self._act(f"give {name} {count}")
            return count
        channel = self.channel_name_of(other)
        after = self.act + 1
        last = int(self.of.first_act[self.life + 1])
        if after < last and self.joined[after] and self.deeds[after] in (Deed.TAKE, Deed.FOREVER):
            row, _, _, other, detail, number = self.facts[after]
            wait = self._line(self.deeds[after], row, other, detail, number)
            if wait.startswith("take "):
                self._act(f"{wait} releasing {channel}")
                return 2
        self._act(f"give {channel}")
        return 1

    def _wait(self, row: int, waker: int) -> None:
        """Adds a wait for a child.

        The wait blocks only if no ended child remains to be waited for.
        """
        if waker in self.of.outside.processes:
            self._wait_for_all()
            return
        before = bisect_left(self.children, (row, -1))
        if any(child == waker for _, child in self.children[self.waited : before]):
            before -= 1  # the child was ending on another CPU
        self._waits(max(before + 1 - self.waited, 1))
        self.waited = max(before + 1, self.waited + 1)
        self.waiting = True

    def _wait_for_all(self) -> None:
        """Adds a wait for all children, including arrivals.

        The child that ends last wakes the process.
        """
        self._act("wait all")
        self.await_all = False

    def _reap(self, row: int, then: str, in_any_case: bool = False) -> None:
        """Adds waits for children that have already ended.

        The trace lacks these waits, so they are added just before the next action.
        """
        if in_any_case and self.await_all and self._all_ended(row):
            self._wait_for_all()
        if self.life in self.of.left_children or not (self.waiting or in_any_case):
            return
        ended = bisect_left(self.children, (row, -1))
        if ended > self.waited:
            self._waits(ended - self.waited, self._taken(then) + self.of.charges.reap)
            self.waited = ended

    def _all_ended(self, row: int) -> bool:
        """True if all arrivals ended before a row."""
        ended = self.of.life_table.exit_row[list(self.of.outside.processes)]
        return bool(((ended >= 0) & (ended < row)).all())

    def _windows_end(self, row: int) -> None:
        """Splits a computing step that was in progress at the window's end."""
        end_row = self.of.window.end_row
        if not self.splits or row < end_row:
            return
        self.splits = False
        taken = self._taken("mark end") if row == end_row else 0
        self.program.run_until(self.window_end - taken, self.of.at_end[self.life] - taken)

    def _exit(self, row: int, status: int) -> None:
        self._reap(row, "exit", in_any_case=True)
        taken = self._taken("exit")
        if status == KILLED:
            self.program.run_until(self.time - taken, self.computed - taken)
        else:
            self.program.run(self.computed, taken)
        self.program.lines.append("exit 1" if status > _STATUS_MAX else f"exit {status}")

    def _outlive(self) -> None:
        """Continues a process that was alive when the trace ended: it computes if it was ready, or never wakes up."""
        steps = self.of.life_table.steps
        last = int(np.searchsorted(steps.life, self.life, side="right")) - 1
        if self.splits:
            self._windows_end(self.of.window.end_row + 1)
        if steps.after[last] in READY:
            self.program.lines += ["loop", "  run 1s", "end"]
        elif self.act == self.of.first_act[self.life]:
            self.program.lines.append("take never")


def _mark(detail: int, number: int) -> str:
    if detail == MarkKind.BEGIN:
        return "mark begin"
    if detail == MarkKind.GROUP:
        return f"group {safe_name(mark_text(number), GROUP_MAX)}"
    return f"mark note {number}"
