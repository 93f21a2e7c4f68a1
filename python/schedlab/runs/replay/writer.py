# SPDX-License-Identifier: MIT
"""Converts the actions of one recorded process to the lines of a simulator program."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schedlab.runs.replay.actions import KILLED_STATUS, ActionKind
from schedlab.runs.replay.external_events import Arrival
from schedlab.runs.replay.recorded_facts import READY_STATES, RecordedFacts
from schedlab.runs.replay.text import safe_name
from schedlab.trace import AttributeKind, BlockReason, GroupField, Kind, MarkKind, mark_text
from schedlab.trace.format import signed
from schedlab.workload.groups import set_group_line
from schedlab.workload.model import ATTRIBUTES

IMMEDIATE_START_NS = 100_000
"""If the first process begins within this time (ns), its program does not wait for its start."""
GROUP_MAX = 8
_STATUS_MAX = 2**31 - 1
_STEP_IF_BLOCKED_AT_END = {BlockReason.SLEEP: "sleep 1000000s", BlockReason.CHILD: "wait"}
"""Last program line of a process that was still blocked when the trace ended."""


@dataclass
class _ProgramText:
    """The program of one process while it is written.

    `spent`: the total cost (ns) that the simulator will charge for the lines. `done`: the computing
    time (ns) in the lines.
    """

    lines: list[str] = field(default_factory=list)
    spent: int = 0
    done: int = 0

    def run(self, computed: int, cost: int = 0) -> None:
        """Adds a computing step, so that the process's CPU time becomes `computed` ns.

        `cost`: what the simulator charges for the next line (ns). The step is shorter by this cost.
        """
        self.spent += cost
        missing_ns = computed - self.spent - self.done
        if missing_ns > 0:
            self.lines.append(f"run {missing_ns}ns")
            self.done += missing_ns

    def run_until(self, time: int, computed: int) -> None:
        """Adds a step that computes until the time `time` (ns).

        `computed`: CPU time (ns) that the recorded process had used at that time.
        """
        self.lines.append(f"run until {max(time, 0)}ns")
        self.done = max(self.done, computed - self.spent)


class ProgramWriter:
    """Writes the program of each process.

    A `fork` line has the child's index, which `_Programs` replaces by the name of a program.
    """

    def __init__(self, facts: RecordedFacts, first: int | None) -> None:
        self.facts = facts
        self.first = first
        self.window_end = facts.window.end_ns
        acts = facts.acts
        columns = (acts.row, acts.time_ns, acts.computed_ns, acts.other, acts.detail, acts.number)
        self.action_kinds = acts.action_kind.tolist()
        self.rows = acts.row.tolist()
        self.joined = acts.joined.tolist()
        self.parameters = list(zip(*(values.tolist() for values in columns), strict=True))
        self.wakes = self._wakes()

    def _wakes(self) -> Mapping[int, list[int]]:
        """Returns the rows where other processes or external events wake each process, in order."""
        wakeups: dict[int, list[int]] = {}
        acts = self.facts.acts
        gives = np.flatnonzero(acts.action_kind == ActionKind.GIVE)
        gives = gives[np.argsort(acts.row[gives])]
        for life, row in zip(acts.other[gives].tolist(), acts.row[gives].tolist(), strict=True):
            wakeups.setdefault(life, []).append(row)
        for arrival in self.facts.outside.arrivals:
            if not arrival.is_process:
                insort(wakeups.setdefault(arrival.life, []), arrival.row)
        return wakeups

    def body(self, life: int) -> list[str]:
        """Returns the program lines of a process."""
        self.life = life
        self.program = _ProgramText()
        arrived = self.facts.outside.processes
        self.children = [
            child for child in self.facts.forked_by.get(life, []) if child[1] not in arrived
        ]
        self.arrivals = (
            list(self.facts.outside.arrivals) if life == self.facts.outside.creator else []
        )
        self.await_all = bool(self.arrivals)
        self.waited = 0
        self.waiting = False
        self.splits = life in self.facts.at_end
        self._add_start()
        self.act = int(self.facts.first_act[life])
        end_act = int(self.facts.first_act[life + 1])
        while self.act < end_act:
            self._add_action()
        if self.facts.life_table.exit_row[life] < 0:
            self._add_survival()
        return self.program.lines

    def _add_step(self, line: str) -> None:
        """Adds a step, and before it a computing step up to the current action's recorded CPU time."""
        self.program.run(self.computed, self._step_cost(line))
        self.program.lines.append(line)

    def _step_cost(self, line: str) -> int:
        """Returns what the simulator charges (ns) for a step."""
        charges = self.facts.charges
        word = line.partition(" ")[0]
        fork = charges.fork + charges.fork_new * (self.rows[self.act] in self.facts.new_slots)
        costs = {"sleep": charges.sleep, "take": charges.pipe, "give": charges.pipe, "fork": fork}
        return charges.exit if word == "exit" else costs.get(word, charges.call)

    def _add_waits(self, count: int, then: int = 0) -> None:
        """Adds `count` wait steps. The last step waits for a child that is still running.

        `then`: cost (ns) of the step that follows.
        """
        charges = self.facts.charges
        call_or_reap = charges.call + charges.reap
        self.program.run(self.computed - then, (count - 1) * call_or_reap + charges.call)
        self.program.lines += ["wait"] * count
        self.program.spent += charges.reap

    def _add_start(self) -> None:
        """Adds what happens before the first action, and accounts for the cost of the first run."""
        facts, lines = self.facts, self.program.lines
        begin = facts.begin_ns(self.life)
        start = facts.first_wait.get(self.life)
        if self.life == self.first and begin > IMMEDIATE_START_NS:
            lines.append(f"sleep until {begin}ns")
        elif start is None and self.life in facts.started:
            self.program.spent = facts.charges.first_run
        if start is not None:
            until = f"sleep until {start.number}ns"
            lines.append(
                until
                if start.action_kind == ActionKind.SLEEP_UNTIL
                else f"take {self._channel(-1)}"
            )

    def _channel(self, row: int) -> str:
        """Returns the channel of a wait that begins at a row."""
        wakes = self.wakes.get(self.life, [])
        at = bisect_left(wakes, row)
        together = self.facts.channel_of.get((self.life, wakes[at])) if at < len(wakes) else None
        return together or self.channel_name_of(self.life)

    def arrival_step(self, arrival: Arrival) -> str:
        """Returns the step that makes an external event happen."""
        event = (
            f"arrive {arrival.life}"
            if arrival.is_process
            else f"deliver {self.channel_name_of(arrival.life)}"
        )
        return f"{event} {arrival.time_ns}ns"

    def channel_name_of(self, life: int) -> str:
        return f"wake.{self.facts.life_table.pid[life]}.{life}"

    # --- actions

    def _add_action(self) -> None:
        """Adds the current action, and advances to the next one."""
        action_kind = self.action_kinds[self.act]
        row, self.time, self.computed, other, detail, number = self.parameters[self.act]
        taken = 1
        self._add_arrivals(row)
        self._split_at_window_end(row)
        if action_kind == ActionKind.EXIT:
            self._add_exit(row, number)
        elif action_kind == ActionKind.WAIT:
            self._add_wait(row, other)
        elif action_kind == ActionKind.GIVE:
            taken = self._add_wakeups(other)
        elif action_kind == ActionKind.FORK:
            self._add_fork(row, other)
        elif action_kind == ActionKind.MARK and detail == MarkKind.END:
            self._add_past_waits(row, "mark end", in_any_case=True)
            self._add_step("mark end")
        else:
            line = self._single_step(action_kind, row, other, detail, number)
            if action_kind == ActionKind.SLEEP and not self._is_voluntary(row):
                self._add_device_wait(number)
            elif (
                action_kind in (ActionKind.SLEEP, ActionKind.SLEEP_TICKS)
                and self._sleeps_for_arrivals()
            ):
                self._add_arrivals(self._next_row(), self._step_cost("sleep"))
            elif other == self.life and row in self.facts.set_at_arrival:
                self.program.lines.append(line)
            elif line:
                self._add_step(line)
        self.act += taken

    def _next_row(self) -> int:
        """Returns the row of the process's next action; the trace's length after the last one."""
        after = self.act + 1
        has_next = after < int(self.facts.first_act[self.life + 1])
        return self.rows[after] if has_next else len(self.facts.trace)

    def _sleeps_for_arrivals(self) -> bool:
        """Returns whether this process must create an arrival before its next action.

        It then sleeps only until the arrival.
        """
        return bool(self.arrivals) and self.arrivals[0].row < self._next_row()

    def _add_arrivals(self, row: int, taken: int = 0) -> None:
        """Adds the steps for external events before a row.

        `taken`: the cost (ns) of the sleep that precedes the first of them.
        """
        while self.arrivals and self.arrivals[0].row < row:
            self.program.run(self.computed, taken)
            self.program.lines.append(self.arrival_step(self.arrivals.pop(0)))
            taken = 0

    def _is_voluntary(self, row: int) -> bool:
        """Returns whether the process itself requested the sleep that begins at a row."""
        return bool(self.facts.trace.column("first")[row] == BlockReason.SLEEP)

    def _add_device_wait(self, number: int) -> None:
        """Adds a wait for a device that ends at the recorded time, even if the process is late."""
        self.program.run(self.computed, self._step_cost("sleep"))
        late = self.program.done + self.program.spent - self.computed
        early = min(max(late, 0), number - 1)
        self.program.spent -= early
        self.program.lines.append(f"sleep {number - early}ns")

    def _add_fork(self, row: int, child: int) -> None:
        charges = self.facts.charges
        self._add_past_waits(row, "fork")
        self.waiting = False
        self._add_step(f"fork {child}")
        if charges.fork_return:
            self.program.spent += charges.fork_return

    def _single_step(self, action_kind: int, row: int, other: int, detail: int, number: int) -> str:
        """Returns the step for an action that is a single step; "" for other actions."""
        if action_kind == ActionKind.SLEEP:
            return f"sleep {number}ns"
        if action_kind == ActionKind.SLEEP_TICKS:
            return f"sleep {number}ticks"
        if action_kind == ActionKind.TAKE:
            return f"take {self._channel(row)}"
        if action_kind == ActionKind.FOREVER:
            return _STEP_IF_BLOCKED_AT_END.get(self.facts.trace.column("first")[row], "take never")
        if action_kind == ActionKind.YIELD:
            return "yield"
        if action_kind == ActionKind.MARK:
            return _mark_line(detail, number)
        if action_kind == ActionKind.ATTRIBUTE:
            return self._attribute(other, detail, number)
        if action_kind == ActionKind.SETGROUP:
            known = detail in set(GroupField)
            return set_group_line(other, GroupField(detail).name.lower(), number) if known else ""
        if action_kind == ActionKind.SWITCH:
            return self._switch(row, number)
        return ""

    def _attribute(self, other: int, detail: int, number: int) -> str:
        """Returns the line that sets an attribute; "" if it cannot be replayed."""
        if other < 0 or detail not in set(AttributeKind):
            return ""
        name = AttributeKind(detail).name.lower()
        limits = ATTRIBUTES[name]
        line = limits.line(name, min(max(signed(number), limits.least), limits.most))
        return line if other == self.life else f"{line} @{other}"

    def _switch(self, row: int, number: int) -> str:
        """Returns the line that switches the policy or a tunable; "" if it is not replayed."""
        if not self.facts.keep_switches:
            return ""
        text = self.facts.texts.get(row, "")
        if safe_name(text, len(text)) != text:
            return ""  # schedlab has no policy or tunable with this name
        if self.facts.trace.column("kind")[row] == Kind.POLICY:
            return f"policy {text}"
        return f"set {text}={signed(number)}"

    def _add_wakeups(self, other: int) -> int:
        """Adds the wake-up of one process, or of several together. Returns the number of actions handled."""
        together = self.facts.groups.get(self.act)
        if together:
            name, count = together
            self._add_step(f"give {name} {count}")
            return count
        channel = self.channel_name_of(other)
        after = self.act + 1
        last = int(self.facts.first_act[self.life + 1])
        if (
            after < last
            and self.joined[after]
            and self.action_kinds[after] in (ActionKind.TAKE, ActionKind.FOREVER)
        ):
            row, _, _, other, detail, number = self.parameters[after]
            wait = self._single_step(self.action_kinds[after], row, other, detail, number)
            if wait.startswith("take "):
                self._add_step(f"{wait} releasing {channel}")
                return 2
        self._add_step(f"give {channel}")
        return 1

    def _add_wait(self, row: int, waker: int) -> None:
        """Adds a wait for a child.

        It blocks only if the program has already waited for all children that have ended.
        """
        if waker in self.facts.outside.processes:
            self._add_wait_for_all()
            return
        before = bisect_left(self.children, (row, -1))
        if any(child == waker for _, child in self.children[self.waited : before]):
            before -= 1  # the child's exit was in progress on another CPU
        self._add_waits(max(before + 1 - self.waited, 1))
        self.waited = max(before + 1, self.waited + 1)
        self.waiting = True

    def _add_wait_for_all(self) -> None:
        """Adds a wait for all children, including arrivals; the child that ends last wakes the process."""
        self._add_step("wait all")
        self.await_all = False

    def _add_past_waits(self, row: int, then: str, in_any_case: bool = False) -> None:
        """Adds waits for children that have ended, just before another action.

        The trace does not record such waits, because they do not block.
        """
        if in_any_case and self.await_all and self._all_ended(row):
            self._add_wait_for_all()
        if self.life in self.facts.left_children or not (self.waiting or in_any_case):
            return
        ended = bisect_left(self.children, (row, -1))
        if ended > self.waited:
            self._add_waits(ended - self.waited, self._step_cost(then) + self.facts.charges.reap)
            self.waited = ended

    def _all_ended(self, row: int) -> bool:
        """Returns whether all arrived processes had ended before a row."""
        ended = self.facts.life_table.exit_row[list(self.facts.outside.processes)]
        return bool(((ended >= 0) & (ended < row)).all())

    def _split_at_window_end(self, row: int) -> None:
        """If the measured window ends during a computing step, splits the step there."""
        end_row = self.facts.window.end_row
        if not self.splits or row < end_row:
            return
        self.splits = False
        taken = self._step_cost("mark end") if row == end_row else 0
        self.program.run_until(self.window_end - taken, self.facts.at_end[self.life] - taken)

    def _add_exit(self, row: int, status: int) -> None:
        self._add_past_waits(row, "exit", in_any_case=True)
        taken = self._step_cost("exit")
        if status == KILLED_STATUS:
            self.program.run_until(self.time - taken, self.computed - taken)
        else:
            self.program.run(self.computed, taken)
        self.program.lines.append("exit 1" if status > _STATUS_MAX else f"exit {status}")

    def _add_survival(self) -> None:
        """Continues a process that was alive at the trace's end.

        If it was ready, it computes on; if it was blocked, it is never woken.
        """
        steps = self.facts.life_table.steps
        last = int(np.searchsorted(steps.life, self.life, side="right")) - 1
        if self.splits:
            self._split_at_window_end(self.facts.window.end_row + 1)
        if steps.after[last] in READY_STATES:
            self.program.lines += ["loop", "  run 1s", "end"]
        elif self.act == self.facts.first_act[self.life]:
            self.program.lines.append("take never")


def _mark_line(mark_kind: int, number: int) -> str:
    """Returns the line that repeats a recorded mark."""
    if mark_kind == MarkKind.BEGIN:
        return "mark begin"
    if mark_kind == MarkKind.GROUP:
        return f"group {safe_name(mark_text(number), GROUP_MAX)}"
    return f"mark note {number}"
