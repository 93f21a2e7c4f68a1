# SPDX-License-Identifier: MIT
"""A reference multi-level feedback queue for processes that only compute, on one CPU.

Written from the rules of studies 3 and 4, independently of the policy, and compared with the
kernel's trace tick by tick. Where the studies leave a choice, it follows docs/policy-interface.md
and first-come order. A process that enters a level is queued behind those already there. At a
boost, processes of the upper levels are queued first, and the running process last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """Ticks, from the top level down; None: no limit."""

    slices: tuple[int | None, ...]
    allotments: tuple[int | None, ...]
    boost: int | None


FOUR_QUANTA = Rules((1, 1, 1, 1), (1, 2, 4, None), None)
"""Study 3: levels 3 to 0; a process that has used its quantum is demoted by one; no boost.
Processes return to the scheduler at each tick.
"""

WHOLE_QUANTA = Rules((1, 2, 4, None), (1, 2, 4, None), None)
"""Study 3's other interpretation: processes return to the scheduler when their quantum ends."""

ALLOTMENT_BOOST = Rules((2, 4, 8, 32), (8, 16, 32, None), 480)
"""Study 4, section 3.2.1."""


@dataclass
class Process:
    """One process: its level, and its used time there."""

    pid: int
    down: int = 0
    of_allotment: int = 0
    of_slice: int = 0


@dataclass
class FeedbackQueue:
    """Call `tick` at each tick; `running` names the process that has the CPU until the next."""

    rules: Rules
    lines: list[deque[Process]] = field(default_factory=list)
    running: Process | None = None

    def begin(self, pids: list[int]) -> None:
        """Makes all processes ready at the top level, in this order."""
        self.lines = [deque() for _ in self.rules.slices]
        self.lines[0].extend(Process(pid) for pid in pids)
        self.pick()

    def level(self) -> int:
        """Returns the level of the running process; 0 is the lowest."""
        assert self.running
        return len(self.lines) - 1 - self.running.down

    def pick(self) -> None:
        line = next(line for line in self.lines if line)
        self.running = line.popleft()

    def tick(self, number: int) -> None:
        """Ends a tick; `number` counts ticks since the machine began."""
        assert self.running
        if self.rules.boost and number % self.rules.boost == 0:
            self.lift_all(self.running)
            return
        self.running.of_allotment += 1
        self.running.of_slice += 1
        if self.sinks(self.running) or self.slice_is_over(self.running):
            self.running.of_slice = 0
            self.lines[self.running.down].append(self.running)
            self.pick()

    def sinks(self, process: Process) -> bool:
        """Demotes the process by one level if its allotment is exhausted."""
        allotment = self.rules.allotments[process.down]
        if allotment is None or process.of_allotment < allotment:
            return False
        process.down += 1
        process.of_allotment = 0
        return True

    def slice_is_over(self, process: Process) -> bool:
        limit = self.rules.slices[process.down]
        return limit is not None and process.of_slice >= limit

    def lift_all(self, last: Process) -> None:
        ordered = [process for line in self.lines for process in line]
        self.begin([process.pid for process in (*ordered, last)])


def schedule(rules: Rules, pids: list[int], begin: int, end: int) -> list[tuple[int, int, int]]:
    """Returns tick, PID and level of the process that runs after each tick, from `begin` to
    before `end`.
    """
    queue = FeedbackQueue(rules)
    queue.begin(pids)
    rows = []
    for tick in range(begin, end):
        if tick > begin:
            queue.tick(tick)
        assert queue.running
        rows.append((tick, queue.running.pid, queue.level()))
    return rows
