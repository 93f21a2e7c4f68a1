# SPDX-License-Identifier: MIT
"""Writes what one process of a recording did as lines of a program."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schedlab.replay.acts import KILLED, Deed
from schedlab.replay.story import READY, Story
from schedlab.replay.text import safe_name
from schedlab.trace import AttributeKind, BlockReason, Kind, MarkKind, mark_text

AT_ONCE_NS = 100_000
"""A first process that begins so early needs not be told when."""
GROUP_MAX = 8
_STATUS_MAX = 2**31 - 1
_FOREVER = {BlockReason.SLEEP: "sleep 1000000s", BlockReason.CHILD: "wait"}
"""What those do that were not woken until the trace ended."""
_LIMITS = {
    AttributeKind.PRIORITY: (0, 10),
    AttributeKind.TICKETS: (1, 10**6),
    AttributeKind.WEIGHT: (1, 10),
}
"""policies/policy.h."""


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


class Writer:
    """Writes the bodies of programs. A fork is `fork` and the child's life: names come later."""

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

    def _call(self, computed: int, *lines: str) -> None:
        """Steps that each cost a call, the last of which was done when it had computed so much."""
        self.program.run(computed, self.of.charges.call * len(lines))
        self.program.lines += lines

    def _begin(self) -> None:
        of = self.of
        begin = of.begin_ns(self.life)
        if self.life == self.first and begin > AT_ONCE_NS:
            self._call(0, f"sleep until {begin}ns")
        start = of.first_wait.get(self.life)
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
        deed = self.deeds[self.act]
        row, time, computed, other, detail, number = self.facts[self.act]
        taken = 1
        self._windows_end(row)
        if deed == Deed.EXIT:
            self._exit(row, time, computed, number)
        elif deed == Deed.WAIT:
            self._wait(row, computed, other)
        elif deed == Deed.GIVE:
            taken = self._give(computed, other)
        elif deed == Deed.FORK:
            self._reap(row, computed - self.of.charges.fork)
            self.waiting = False
            self.program.run(computed, self.of.charges.fork)
            self.program.lines.append(f"fork {other}")
        elif deed == Deed.MARK and detail == MarkKind.END:
            self._reap(row, computed - self.of.charges.call, in_any_case=True)
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
        last = int(self.of.first_act[self.life + 1])
        if after < last and self.joined[after] and self.deeds[after] in (Deed.TAKE, Deed.FOREVER):
            row, _, _, other, detail, number = self.facts[after]
            wait = self._line(self.deeds[after], row, other, detail, number)
            if wait.startswith("take "):
                self._call(computed, f"{wait} releasing {channel}")
                return 2
        self._call(computed, f"give {channel}")
        return 1

    def _wait(self, row: int, computed: int, waker: int) -> None:
        """It blocks only if no child has ended that it has not waited for."""
        before = bisect_left(self.children, (row, -1))
        if any(child == waker for _, child in self.children[self.waited : before]):
            before -= 1  # on its way to its end, on another CPU
        self._call(computed, *["wait"] * max(before + 1 - self.waited, 1))
        self.waited = max(before + 1, self.waited + 1)
        self.waiting = True

    def _reap(self, row: int, computed: int, in_any_case: bool = False) -> None:
        """Waits for children that have ended already are not in a trace: they are done before this
        row, when it had computed so much."""
        if self.life in self.of.left_children or not (self.waiting or in_any_case):
            return
        ended = bisect_left(self.children, (row, -1))
        if ended > self.waited:
            self._call(computed, *["wait"] * (ended - self.waited))
            self.waited = ended

    def _windows_end(self, row: int) -> None:
        """What was going on when the window ended had not come to its end by itself."""
        end_row = self.of.window.end_row
        if not self.splits or row < end_row:
            return
        self.splits = False
        own = row == end_row
        cost = self.of.charges.call if own else 0
        self.program.run_until(self.window_end - cost, self.of.at_end[self.life] - cost)

    def _exit(self, row: int, time: int, computed: int, status: int) -> None:
        self._reap(row, computed - self.of.charges.exit, in_any_case=True)
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
