# SPDX-License-Identifier: MIT
"""The story that the records tell, one after another: who lives, runs, waits, and where.

What is sequential is done here, with a short method for each kind of record; all that can wait goes
into flat arrays of numbers (`spells`, `latencies` …), of which the rest of the model takes hundreds
of thousands at once. A record that cannot be, since others were lost, is taken as well as it can.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from itertools import islice

from schedlab.display.names import visible_line
from schedlab.monitor.frames import Decision, Mark
from schedlab.monitor.model.policy import PolicyNow
from schedlab.monitor.model.processes import (
    BLOCKED,
    EXPIRED,
    FORKED,
    FOUND,
    GOES_ON,
    MOVED,
    NEVER,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    STOPPED_BLOCKED,
    STOPPED_ENDED,
    STOPPED_PREEMPTED,
    STOPPED_YIELDED,
    WOKEN,
    YIELDED,
    Process,
    Slots,
)
from schedlab.monitor.model.spells import RUN, WAIT
from schedlab.toolchain.policy_answers import Standing
from schedlab.trace.follow import Records, TextReader
from schedlab.trace.format import (
    AttributeKind,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
    is_kind,
    mark_text,
)

DECISIONS_KEPT = 500
MARKS_KEPT = 700
LIVES_MARKED = 300
"""Marks of processes that started or ended: a fork storm must not push out the others."""
CANDIDATES_MOST = 16
QUEUE_SUMMED_MOST = 256
"""Tickets of a longer queue are not added up for the text of a decision."""
DETAILED_DECISIONS = 64
"""So many of a batch's last decisions are kept with all that belongs to them."""
_LEVEL_MOST = (1 << 31) - 1

Handler = Callable[[int, int, int, int, int], None]
"""Time, CPU, process, first, second."""


class Story:
    """Takes records in order. All times are nanoseconds of the trace."""

    def __init__(self, cpus: int, policy: PolicyNow) -> None:
        self.cpus = cpus
        self.policy = policy
        self.slots = Slots()
        self.by_pid: dict[int, Process] = {}
        self.running: list[Process | None] = [None] * cpus
        self.since = [0] * cpus
        """The time when each CPU began to run its process, or to idle."""
        self.started_at = [NEVER] * cpus
        self.ended_at = [NEVER] * cpus
        self.queues: list[dict[int, Process]] = [{} for _ in range(cpus)]
        """Each queue's processes, in the order in which they came."""
        self._shared = policy.shared_queue
        self.in_the_middle = False
        """The trace begins in the middle of things: it has found a process."""
        self.tells_queues = False
        self.tells_visits = False
        self.attributes_used: set[int] = set()
        self.lost = 0
        # What others take over, in flat arrays.
        self.spells = array("q")
        self.latencies = array("q")
        """Rows of: when it was woken, how long until it ran, slot."""
        self.responses = array("q")
        """Rows of: when it ran first, how long after its fork, slot."""
        self.turnarounds = array("q")
        """Rows of: when it ended, how long after its fork (-1: it was found), slot."""
        self.wakeups = array("q")
        self.migrations = array("q")
        """Rows of: time, slot."""
        self.switches = array("q")
        """Times of switches from a process to another."""
        # For the time that CPUs idle while somebody waits at another one.
        self.clock = 0
        """The latest time so far; unlike records' times it never goes back."""
        self.idle_since = [-1] * cpus
        """-1: it does not idle, or is not there yet."""
        self.idle_spells = array("q")
        """Rows of: CPU, begin, end."""
        self.occupied = 0
        """The number of queues with a process in them."""
        self.occupied_sum = 0
        """The sum of their numbers: if there is but one, which it is."""
        self.occupancy = array("q")
        """Rows of: from when on, so many queues are occupied, the only one (-1: none, or several)."""
        # What is told in words.
        self.marks: deque[tuple[int, Mark]] = deque(maxlen=MARKS_KEPT)
        self.life_marks: deque[tuple[int, Mark]] = deque(maxlen=LIVES_MARKED)
        self.mark_count = 0
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS_KEPT)
        self.decision_count = 0
        self._detail_from = 0
        self._decided: list[Process | None] = [None] * cpus
        self._texts = TextReader()
        self._text_goes_to: dict[int, Callable[[str], None]] = {}
        self._first = True
        """No process was forked or found yet."""
        self._handlers = self._all_handlers()

    def take(self, records: Records) -> None:
        """The next records."""
        kinds = records["kind"]
        wanted = (
            (kinds != Kind.SCHEDULER_ENTER) & (kinds < len(self._handlers))
            & (records["cpu"] < self.cpus)
        )  # fmt: skip
        records = records[wanted]
        self._plan_details(records)
        handlers = self._handlers
        for time, process, kind, cpu, first, second in zip(
            records["time"].tolist(),
            records["process"].tolist(),
            records["kind"].tolist(),
            records["cpu"].tolist(),
            records["first"].tolist(),
            records["second"].tolist(),
            strict=True,
        ):
            handlers[kind](time, cpu, process, first, second)

    def reach(self, time: int) -> None:
        """It is at least so late."""
        if time > self.clock:
            self.clock = time

    def _all_handlers(self) -> list[Handler]:
        found: dict[Kind, Handler] = {
            Kind.START: self._start,
            Kind.END: self._end,
            Kind.LOST: self._lose,
            Kind.FORK: self._fork,
            Kind.EXEC: self._exec,
            Kind.TEXT: self._text,
            Kind.EXIT: self._exit,
            Kind.WAKEUP: self._wakeup,
            Kind.BLOCK: self._block,
            Kind.SWITCH: self._switch,
            Kind.YIELD: self._yield,
            Kind.PREEMPT: self._preempt,
            Kind.MIGRATE: self._migrate,
            Kind.POLICY: self._policy,
            Kind.TUNABLE: self._tunable,
            Kind.ATTRIBUTE: self._attribute,
            Kind.SCHEDULER_EXIT: self._scheduler_exit,
            Kind.DECISION: self._decision,
            Kind.MARK: self._mark,
            Kind.FOUND: self._found,
            Kind.QUEUED: self._queued,
        }
        return [_nothing, *(found.get(kind, _nothing) for kind in Kind)]

    def _plan_details(self, records: Records) -> None:
        """Chooses the time from which on decisions are kept with their details: only the last are
        shown."""
        kinds = records["kind"]
        choices = (kinds == Kind.DECISION).nonzero()[0]
        if len(choices) < DETAILED_DECISIONS:
            choices = is_kind(kinds, Kind.DECISION, Kind.SWITCH).nonzero()[0]
        early = len(choices) <= DETAILED_DECISIONS
        self._detail_from = 0 if early else int(records["time"][choices[-DETAILED_DECISIONS]])

    # --- a CPU changes to another process

    def _switch(self, time: int, cpu: int, pid: int, left: int, state: int) -> None:
        current = self.running[cpu]
        if (current.pid if current is not None else 0) != left:
            current = self._mend(left, time, cpu)
        if current is not None:
            self._leave(current, time, cpu, state)
        else:
            self._stop_idling(cpu, time)
        self.since[cpu] = time
        if pid:
            process = self.by_pid.get(pid) or self._appear(pid, time, RUNNABLE, cpu)
            if process.state == RUNNING:
                self._take_off(process, time)
            self.running[cpu] = process
            self._enter(process, time, cpu)
            if left:
                self.switches.append(time)
        else:
            self.running[cpu] = None
            self.idle_since[cpu] = self.clock if self.clock > time else time

    def _mend(self, left: int, time: int, cpu: int) -> Process | None:
        """Records were lost: the process that was taken to run here has left, and this one has come."""
        current = self.running[cpu]
        if current is not None:
            self._take_off(current, time)
        if not left:
            return None
        process = self.by_pid.get(left)
        if process is None:
            return self._appear(left, time, RUNNING, cpu)
        if process.state == RUNNING:
            self._take_off(process, time)
        self._stop_idling(cpu, time)
        self._enter(process, time, cpu)
        return process

    def _take_off(self, process: Process, time: int) -> None:
        """Records were lost: the process has left its CPU, at a time and in a state that are not
        known."""
        cpu = process.cpu
        self.running[cpu] = None
        self.since[cpu] = time
        self.idle_since[cpu] = self.clock if self.clock > time else time
        ended = ProcessState.ZOMBIE if process.exited else ProcessState.BLOCKED
        self._leave(process, max(time, process.since), cpu, ended)

    def _leave(self, process: Process, time: int, cpu: int, state: int) -> None:
        """The process's run is over."""
        begin = process.since
        stops = process.stops
        process.run_ns += time - begin
        process.since = time
        if state == ProcessState.RUNNABLE:
            if stops == 0:
                stops, process.why = STOPPED_PREEMPTED, PREEMPTED
            self.spells.extend((process.slot, RUN, cpu, process.level, stops, begin, time))
            process.level = process.next_level
            process.state = RUNNABLE
            process.wait_since = time
            process.sure = True
            if not process.told:
                process.queue = 0 if self.policy.shared_queue else cpu
            self._enqueue(process, process.queue, time)
        elif state == ProcessState.BLOCKED:
            self.spells.extend(
                (process.slot, RUN, cpu, process.level, STOPPED_BLOCKED, begin, time)
            )
            process.state = BLOCKED
        else:
            self.spells.extend((process.slot, RUN, cpu, process.level, STOPPED_ENDED, begin, time))
            self._bury(process, time)

    def _enter(self, process: Process, time: int, cpu: int) -> None:
        """The process's wait is over."""
        queue, begin = process.queue, process.since
        if process.state == RUNNABLE:
            self._dequeue(process, time)
            if not process.sure:
                queue = cpu
            elif queue != cpu and process.told and not self.policy.shared_queue:
                self.policy.shared_seen = True
            end = time if time > begin else begin
            self.spells.extend((process.slot, WAIT, queue, process.level, process.why, begin, end))
            process.waiting_ns += end - process.wait_since if end > process.wait_since else 0
        if process.woken_at >= 0:
            latency = time - process.woken_at
            self.latencies.extend((process.woken_at, latency if latency > 0 else 0, process.slot))
            process.woken_at = -1
        if not process.ran:
            process.ran = True
            if process.forked_at >= 0:
                response = time - process.forked_at
                self.responses.extend((time, response if response > 0 else 0, process.slot))
        decided = self._decided
        if decided[cpu] is not process:
            self._silent_choice(process, time, cpu)
        decided[cpu] = process if self.tells_visits else None
        process.level = process.next_level
        process.state = RUNNING
        process.since = process.picked_at = time
        process.cpu = cpu
        process.sure = True
        process.told = False
        process.stops = 0
        process.picks += 1

    def _scheduler_exit(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        self.tells_visits = True
        process = self.running[cpu]
        if process is not None:
            process.selections += 1
            process.picked_at = time
            process.stops = 0
            if self._decided[cpu] is not process and self._level_is_0():
                process.next_level = 0
            if process.next_level != process.level:
                self._change_level(process, time, cpu)
        self._decided[cpu] = None

    def _change_level(self, process: Process, time: int, cpu: int) -> None:
        """It goes on, at another level."""
        begin = process.since
        self.spells.extend((process.slot, RUN, cpu, process.level, GOES_ON, begin, time))
        process.run_ns += time - begin
        process.since = time
        process.level = process.next_level

    def _level_is_0(self) -> bool:
        """A choice without DECISION is one whose remark is 0."""
        return self.policy.remark_is_level and not self.tells_queues

    def _block(self, time: int, cpu: int, pid: int, reason: int, second: int) -> None:
        process = self.by_pid.get(pid)
        if process is not None:
            process.blocked_for = reason

    def _yield(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        process = self.by_pid.get(pid)
        if process is not None:
            process.stops, process.why = STOPPED_YIELDED, YIELDED

    def _preempt(self, time: int, cpu: int, pid: int, reason: int, second: int) -> None:
        process = self.by_pid.get(pid)
        if process is not None:
            process.stops = STOPPED_PREEMPTED
            process.why = EXPIRED if reason == PreemptReason.SLICE else PREEMPTED

    # --- queues

    def _wakeup(self, time: int, cpu: int, pid: int, by: int, place: int) -> None:
        process = self.by_pid.get(pid) or self._appear(pid, time, BLOCKED, cpu)
        self.wakeups.extend((time, process.slot))
        if process.state != BLOCKED:
            return
        process.state = RUNNABLE
        process.since = process.wait_since = process.woken_at = time
        process.why = WOKEN
        process.sure = True
        self._enqueue(process, 0 if self.policy.shared_queue else place % self.cpus, time)

    def _queued(self, time: int, cpu: int, pid: int, queue: int, level: int) -> None:
        process = self.by_pid.get(pid)
        if process is None or queue >= self.cpus:
            return
        self.tells_queues = True
        if level:
            self.policy.see_level()
            level = level if level < _LEVEL_MOST else _LEVEL_MOST
        process.next_level = level
        if process.state == RUNNABLE:
            process.level = level
            self._move(process, queue, time)
        else:
            process.queue = queue
        process.sure = process.told = True

    def _migrate(self, time: int, cpu: int, pid: int, come_from: int, to: int) -> None:
        process = self.by_pid.get(pid)
        if process is None:
            return
        self.migrations.extend((time, process.slot))
        if self.policy.shared_queue or to >= self.cpus:
            return
        if process.state != RUNNABLE:
            process.queue = to
            return
        if not process.sure and come_from < self.cpus:
            self._move(process, come_from, time)
            process.sure = True
        if process.queue != to:
            self._move(process, to, time)

    def _move(self, process: Process, queue: int, time: int) -> None:
        """A waiting process comes into another queue, or to the end of its own."""
        if process.queue != queue and process.sure:
            begin = process.since
            end = time if time > begin else begin
            row = (process.slot, WAIT, process.queue, process.level, process.why, begin, end)
            self.spells.extend(row)
            process.since = end
            process.why = MOVED
        self._dequeue(process, time)
        self._enqueue(process, queue, time)

    def _enqueue(self, process: Process, queue: int, time: int) -> None:
        process.queue = queue
        waiting = self.queues[queue]
        if not waiting:
            self._occupy(queue, 1, time)
        waiting[process.pid] = process

    def _dequeue(self, process: Process, time: int) -> None:
        waiting = self.queues[process.queue]
        if waiting.pop(process.pid, None) is not None and not waiting:
            self._occupy(process.queue, -1, time)

    def _occupy(self, queue: int, change: int, time: int) -> None:
        """The queue has a process in it now (1), or none any more (-1)."""
        if time < self.clock:
            time = self.clock
        else:
            self.clock = time
        self.occupied += change
        self.occupied_sum += change * queue
        only = self.occupied_sum if self.occupied == 1 else -1
        self.occupancy.extend((time, self.occupied, -1 if self.policy.shared_queue else only))

    def _stop_idling(self, cpu: int, time: int) -> None:
        begin = self.idle_since[cpu]
        if begin < 0:
            return
        if time < self.clock:
            time = self.clock
        else:
            self.clock = time
        self.idle_since[cpu] = -1
        if time > begin:
            self.idle_spells.extend((cpu, begin, time))

    def _rearrange(self, time: int) -> None:
        """Another policy, or another tunable: perhaps there is one queue now, or no longer one. If
        the trace tells of queues, it tells of that, too."""
        shared = self.policy.shared_queue
        if shared == self._shared or self.tells_queues:
            return
        self._shared = shared
        for queue in self.queues:
            for process in list(queue.values()):
                place = 0 if shared else max(process.cpu, 0)
                if process.queue != place:
                    self._move(process, place, time)

    # --- choices

    def _decision(self, time: int, cpu: int, pid: int, waited: int, remark: int) -> None:
        process = self.by_pid.get(pid)
        self.decision_count += 1
        self._decided[cpu] = process
        if process is None:
            return
        if self.policy.remark_is_level and not self.tells_queues:
            process.next_level = remark if remark < _LEVEL_MOST else _LEVEL_MOST
        if time >= self._detail_from:
            self._describe_choice(process, time, cpu, waited, remark)

    def _silent_choice(self, process: Process, time: int, cpu: int) -> None:
        """A choice of which the policy said nothing: its remark is 0."""
        self.decision_count += 1
        if self._level_is_0():
            process.next_level = 0
        if time >= self._detail_from:
            queue = self.queues[0 if self.policy.shared_queue else cpu]
            self._describe_choice(process, time, cpu, len(queue), 0)

    def _describe_choice(
        self, process: Process, time: int, cpu: int, waited: int, remark: int
    ) -> None:
        policy = self.policy
        queue = self.queues[0 if policy.shared_queue else cpu]
        others = list(islice(queue.values(), QUEUE_SUMMED_MOST + 1))
        others = [other for other in others if other is not process]
        running = self.running[cpu]
        if running is not None and running is not process and len(others) < waited:
            others.append(running)  # It was put back, but has not left its CPU yet.
        own, *standing = policy.standing([process, *others], time)
        self.decisions.append(
            {
                "number": self.decision_count,
                "time_ns": time,
                "cpu": cpu,
                "pid": process.pid,
                "name": process.name,
                "waited": waited,
                "remark": remark,
                "text": policy.in_words(
                    remark, process.next_level, self._tickets_in_draw(own, standing, waited)
                ),
                "candidates": [
                    (other.pid, its.tickets if policy.tells_tickets else its.level)
                    for other, its in zip(others[:CANDIDATES_MOST], standing, strict=False)
                ],
            }
        )

    def _tickets_in_draw(self, winner: Standing, others: list[Standing], waited: int) -> int | None:
        """The tickets of all processes among which was drawn; None: not all of them are known."""
        if len(others) != waited:
            return None
        by_level = self.policy.draws_by_level
        same = (each for each in others if not by_level or each.level == winner.level)
        return winner.tickets + sum(each.tickets for each in same)

    # --- beginnings and ends

    def _start(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        self.started_at[cpu] = self.since[cpu] = time
        self.idle_since[cpu] = max(self.clock, time)

    def _end(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        self.ended_at[cpu] = time
        self._stop_idling(cpu, time)

    def _lose(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        self.lost += second
        if second:
            self._add_mark(time, "lost", f"{second:,} records were lost", 0)

    def _fork(self, time: int, cpu: int, pid: int, child: int, thread_of: int) -> None:
        parent = self.by_pid.get(pid)
        process = self._add(child, time, parent, cpu)
        process.thread_of = thread_of
        process.forked_at = time
        # Who is forked from outside, by nobody, is taken in by the first process.
        process.kin = parent.kin if parent is not None else self._first or pid == 0
        if self.in_the_middle:
            self.slots.outside[process.slot] = process.name.startswith("[")
        else:
            self.slots.outside[process.slot] = self._first or not process.kin
        if parent is not None:
            self.slots.tickets[process.slot] = self.slots.tickets[parent.slot]
            self.slots.weight[process.slot] = self.slots.weight[parent.slot]
        process.why = FORKED
        self._enqueue(process, 0 if self.policy.shared_queue else cpu, time)
        self._first = False
        self._add_life_mark(time, "started", f"{process.name} {child}", child)

    def _found(self, time: int, cpu: int, pid: int, state: int, thread_of: int) -> None:
        self._first = False
        self.in_the_middle = True
        states = {ProcessState.RUNNING: RUNNING, ProcessState.BLOCKED: BLOCKED}
        process = self._appear(pid, time, states.get(ProcessState(state), RUNNABLE), cpu)
        process.thread_of = thread_of

        def name(text: str) -> None:
            self._call(process, text)

        self._begin_text(cpu, Kind.FOUND, 0, 0, name)

    def _appear(self, pid: int, time: int, state: int, cpu: int) -> Process:
        """A process appears whose beginning is not in the trace: it was found, or records were
        lost."""
        process = self._add(pid, time, None, cpu)
        process.why = FOUND
        process.state = state
        if state == RUNNABLE:
            self._enqueue(process, 0 if self.policy.shared_queue else cpu, time)
        elif state == RUNNING:
            self._stop_idling(cpu, time)
            process.cpu = cpu
            process.ran = True
            self.running[cpu] = process
            self.since[cpu] = time
        return process

    def _add(self, pid: int, time: int, parent: Process | None, cpu: int) -> Process:
        before = self.by_pid.get(pid)
        if before is not None:  # How it ended was lost.
            self._dequeue(before, time)
            self._bury(before, time)
        process = Process(pid, self.slots.take(pid, time), time, parent)
        process.sure = self.policy.shared_queue
        self.by_pid[pid] = process
        return process

    def _exit(self, time: int, cpu: int, pid: int, status: int, second: int) -> None:
        process = self.by_pid.get(pid)
        if process is None:
            return
        process.exited = True
        self.slots.exit_at[process.slot] = time
        forked = process.forked_at
        self.turnarounds.extend((time, max(time - forked, 0) if forked >= 0 else -1, process.slot))
        number = status - (1 << 32) if status >> 31 else status
        kind, how = ("killed", "killed") if number == -1 else ("ended", f"status {number}")
        self._add_life_mark(time, kind, f"{process.name} {pid}: {how}", pid)

    def _bury(self, process: Process, time: int) -> None:
        """It has left its CPU for the last time."""
        del self.by_pid[process.pid]
        self.slots.end(process.slot, time, process.name)

    # --- names and settings

    def _exec(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        process = self.by_pid.get(pid)

        def name(text: str) -> None:
            if process is not None:
                self._call(process, text)

        self._begin_text(cpu, Kind.EXEC, first, second, name)

    def _call(self, process: Process, name: str) -> None:
        process.name, process.named = name, True
        if self.in_the_middle:
            self.slots.outside[process.slot] = process.outside or name.startswith("[")

    def _begin_text(
        self, cpu: int, kind: Kind, first: int, second: int, goes_to: Callable[[str], None]
    ) -> None:
        self._text_goes_to[cpu] = goes_to
        text = self._texts.begin(cpu, kind, first, second)
        if text:
            goes_to(text)

    def _text(self, time: int, cpu: int, pid: int, first: int, second: int) -> None:
        goes_to = self._text_goes_to.get(cpu)
        if goes_to is not None:
            goes_to(self._texts.go_on(cpu, first, second))

    def _policy(self, time: int, cpu: int, shares_by: int, first: int, second: int) -> None:
        mark = self._add_mark(time, "policy", "", 0)

        def name(text: str) -> None:
            mark["text"] = text
            self.policy.start(text, shares_by)
            self._rearrange(time)

        self._begin_text(cpu, Kind.POLICY, first, second, name)

    def _tunable(self, time: int, cpu: int, shares_by: int, first: int, second: int) -> None:
        value = second - (1 << 64) if second >> 63 else second
        mark = self._add_mark(time, "tunable", "", 0)
        before: list[str] = []

        def name(text: str) -> None:
            if before:
                self.policy.tunables.pop(before.pop(), None)
            before.append(text)
            mark["text"] = f"{text} = {value}"
            self.policy.set(text, value, shares_by)
            self._rearrange(time)

        self._begin_text(cpu, Kind.TUNABLE, 0, 0, name)

    def _attribute(self, time: int, cpu: int, pid: int, kind: int, value: int) -> None:
        self.attributes_used.add(kind)
        process = self.by_pid.get(pid)
        if process is None:
            return
        process.attributes[kind] = value
        if kind == AttributeKind.PRIORITY:
            process.priority = value
        elif kind == AttributeKind.TICKETS:
            process.tickets = value
            self.slots.tickets[process.slot] = value
        elif kind == AttributeKind.WEIGHT:
            process.weight = value
            self.slots.weight[process.slot] = value
        word = AttributeKind(kind).name.lower() if kind in set(AttributeKind) else "attribute"
        self._add_mark(time, "attribute", f"{word} of {process.name} {pid} = {value}", pid)

    def _mark(self, time: int, cpu: int, pid: int, kind: int, value: int) -> None:
        process = self.by_pid.get(pid)
        name = process.name if process is not None else f"process {pid}"
        if kind == MarkKind.BEGIN:
            root = self.by_pid.get(value, process)
            if root is not None:
                root.outside = True
                self.slots.outside[root.slot] = True
            self._add_mark(time, "begin", f"{name} {pid} begins to measure", pid)
        elif kind == MarkKind.END:
            self._add_mark(time, "end", f"{name} {pid} has measured", pid)
        elif kind == MarkKind.GROUP:
            if process is not None:
                process.label = visible_line(mark_text(value))
        elif kind == MarkKind.NOTE:
            self._add_mark(time, "note", f"{name} {pid}: {visible_line(mark_text(value))}", pid)

    def _add_mark(self, time: int, kind: str, text: str, pid: int) -> Mark:
        return self._keep_mark(self.marks, time, kind, text, pid)

    def _add_life_mark(self, time: int, kind: str, text: str, pid: int) -> Mark:
        return self._keep_mark(self.life_marks, time, kind, text, pid)

    def _keep_mark(
        self, where: deque[tuple[int, Mark]], time: int, kind: str, text: str, pid: int
    ) -> Mark:
        self.mark_count += 1
        mark: Mark = {"time_ns": time, "kind": kind, "text": text, "pid": pid}
        where.append((self.mark_count, mark))
        return mark


def _nothing(time: int, cpu: int, process: int, first: int, second: int) -> None:
    """A record that changes nothing here."""
