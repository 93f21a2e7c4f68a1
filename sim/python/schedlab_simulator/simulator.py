# SPDX-License-Identifier: MIT
"""A simulated machine, for Python programs; docs/simulator.md says how it behaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fsencode
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from schedlab_simulator.errors import (
    ActRefused,
    AuditFailed,
    RunFailed,
    SetupRefused,
    SimulatorError,
)
from schedlab_simulator.library import Attribute, Counts, Status, library
from schedlab_simulator.workload import Workload

FilePath = str | PathLike[str]

_LATEST = 2**61
"""The last time that the C library knows; no text is as long."""
LIMIT_NS = 60_000_000_000
"""How long run() goes on if it is told no time: as the program schedlab-sim."""
_NEVER = 2**64 - 1
_FIRST_PIECE = 10_000_000
_LONGEST_PIECE = 100_000_000
"""Of what needs patience: after a time in which nothing happened, much may."""
_PATIENCE_S = 0.1
"""C cannot be interrupted: a run is made in pieces of about this length, so that Ctrl-C is heard."""


class Simulator:
    """A machine of some CPUs under a policy, which plays a workload.

    `workload`: text, a file (a Path) or a Workload. `policy`: "name" or "name:preset", with
    `tunables` of its own. `costs`: "kernel" (as our kernel on Spike), "none" (only computing takes
    time), or either and changes: "kernel,fork=20000". `shape`: of the machine, as
    policies/support/shape_text.h has it; "": all CPUs are alike. `processes`: that may live at once, at most.
    `trace`: the file that the event trace is written to; with `trace_queues` it says, too, each time
    that a process was queued. `added_steps`: room for add_workload(). `policy_clock`: added to all
    times that the policy sees; `policy_run_time`: to the run time of each process that it sees. Times are nanoseconds.

    The same arguments and acts give the same run and the same trace. Several may be used at
    once, each by one thread at a time; while one runs, other threads go on. Use it in a `with`
    statement, or call close(): this writes the rest of the trace.

    What cannot be done raises SetupRefused, WorkloadRefused, ActRefused or RunFailed, with the C
    library's message.
    """

    def __init__(
        self,
        workload: str | Path | Workload,
        *,
        policy: str = "rr",
        cpus: int = 1,
        tick_ns: int = 1_000_000,
        seed: int = 1,
        tunables: Mapping[str, int] | str = "",
        costs: str = "kernel",
        shape: str = "",
        processes: int = 4096,
        trace: FilePath | None = None,
        trace_queues: bool = False,
        added_steps: int = 0,
        policy_clock: int = 0,
        policy_run_time: int = 0,
    ) -> None:
        programs = _workload(workload, tick_ns)
        self._begin(programs)
        ffi = self._ffi
        setup = ffi.new("struct simulator_setup *")
        keep_alive = [
            ffi.new("char[]", text)
            for text in (
                policy.encode(),
                _settings(tunables).encode(),
                fsencode(trace or ""),
                shape.encode(),
            )
        ]
        try:
            setup.policy, setup.tunables = keep_alive[0], keep_alive[1]
            setup.shape = keep_alive[3]
            setup.cpus, setup.processes = cpus, processes
            setup.tick_ns, setup.seed = tick_ns, seed
            setup.trace = ffi.NULL if trace is None else keep_alive[2]
            setup.trace_queues, setup.added_steps = trace_queues, added_steps
            setup.policy_clock, setup.policy_run_time = policy_clock, policy_run_time
        except (OverflowError, TypeError) as error:
            raise SetupRefused(
                "cpus, processes, tick_ns, seed, added_steps, policy_clock, policy_run_time:"
                f" {error}"
            ) from None
        cost_address = ffi.addressof(setup, "costs")
        self._check(
            self._c.simulator_read_costs(cost_address, costs.encode(), self._error), SetupRefused
        )
        raw, steps = programs.c_structure()
        self._pointer = self._c.simulator_create(setup, raw, self._error)
        del steps
        self._check(self._pointer, SetupRefused)

    def _begin(self, workload: Workload | None) -> None:
        lib = library()
        self._library = lib
        self._ffi: Any = lib.ffi
        self._c: Any = lib.c
        self._error = self._ffi.new("struct simulator_error *")
        self._counts = self._ffi.new("struct simulator_counts *")
        self._pointer = self._ffi.NULL
        self._reached = 0
        self._piece = _FIRST_PIECE
        self.workload = workload

    @classmethod
    def restore(
        cls, path: FilePath, *, workload: Workload | None = None, trace: FilePath | None = None
    ) -> Simulator:
        """A machine that was put into a file by save(), to go on as that one would have.

        `workload`: the one that it plays; only for fork() by a program's name. `trace`: the file
        that is written from now on; None: nothing more is traced. It takes as long as the run took
        until it was saved, for it is run again.
        """
        self = cls.__new__(cls)
        self._begin(workload)
        name = self._ffi.NULL if trace is None else self._ffi.new("char[]", fsencode(trace))
        self._pointer = self._c.simulator_restore(fsencode(path), name, self._error)
        self._check(self._pointer, SetupRefused)
        self._reached = self.now
        return self

    # ---- time goes on

    def run(self, until_ns: int | None = None) -> Status:
        """Goes on to this time, or (None) until the first process has ended.

        May be called again and again; a thousand small steps give what one large one gives.
        RunFailed: it cannot go on; or no time was named, and the first process has not ended after
        LIMIT_NS. A workload without an end would fill the disk with its trace.
        """
        if until_ns is not None:
            return self._run_to(until_ns)
        limit = self.now + LIMIT_NS
        if self._run_to(limit) is not Status.DONE:
            raise RunFailed(
                f"the first process has not ended at {limit} ns: name the time to which a workload"
                " without an end, or a longer one, is to go on, as run(until_ns)"
            )
        return Status.DONE

    def _run_to(self, until: int) -> Status:
        piece = _FIRST_PIECE
        while until > self._reached + piece:
            begin = monotonic()
            status = self._go_on(self._reached + piece)
            if status is Status.DONE:
                return status
            piece = piece * 2 if monotonic() - begin < _PATIENCE_S else max(piece // 2, 1)
        return self._go_on(until)

    def advance(self, until_ns: int, patience_s: float) -> Status:
        """Goes on to this time, or returns before it after about so much of our time.

        What is traced so far is in the trace's file then. RunFailed: it cannot go on.
        """
        end = monotonic() + patience_s
        status = Status.TIME
        while self._reached < until_ns and status is Status.TIME:
            begin = monotonic()
            if begin >= end:
                break
            status = self._go_on(min(self._reached + self._piece, until_ns))
            hasty = monotonic() - begin < patience_s / 8
            self._piece = min(
                max(self._piece * 2 if hasty else self._piece // 2, 1), _LONGEST_PIECE
            )
        self.flush()
        return status

    def next_time(self) -> int | None:
        """Returns when something happens next, or None if nothing does or the run is over."""
        time = self._c.simulator_next(self._open())
        return None if time == _NEVER else int(time)

    def _go_on(self, until: int) -> Status:
        status = self._c.simulator_run(self._open(), until, self._error)
        if status == self._c.SIMULATOR_FAILED:
            raise RunFailed(self._library.message(self._error))
        self._reached = max(until, self._reached)
        return Status(status)

    def sample(self, times_ns: Iterable[int]) -> npt.NDArray[np.void]:
        """Goes on from time to time, and counts at each.

        Gives one row for each time, with the columns of Counts: the fast way to take many small
        steps. It ends early if the first process does; that row is the last.
        """
        times = np.fromiter(times_ns, np.uint64)
        rows = np.zeros(len(times), self._library.counts)
        pointer, error = self._open(), self._error
        run, count = self._c.simulator_run, self._c.simulator_count
        targets = self._ffi.cast("struct simulator_counts *", rows.ctypes.data)
        for place, until in enumerate(times.tolist()):
            status = run(pointer, until, error)
            count(pointer, targets + place)
            if status:
                if status == self._c.SIMULATOR_FAILED:
                    raise RunFailed(self._library.message(error))
                rows = rows[: place + 1]
                break
        if len(rows):
            self._reached = max(self._reached, int(rows["now"][-1]))
        return rows

    # ---- what there is to see

    def counts(self) -> Counts:
        """What has happened so far."""
        self._c.simulator_count(self._open(), self._counts)
        return Counts(*(getattr(self._counts, field) for field in Counts._fields))

    @property
    def now(self) -> int:
        """The time at which the machine stands."""
        self._c.simulator_count(self._open(), self._counts)
        return int(self._counts.now)

    def processes(self) -> npt.NDArray[np.void]:
        """The processes that live or have not been reaped, init among them.

        One row each, in the order of their slots, with the columns of struct simulator_process
        (sim/control.h): pid, parent, place (a Place), cpu, program (its number; 2**32 - 1: init),
        priority, tickets, weight, run_time (ns, until now).
        """
        self._c.simulator_count(self._open(), self._counts)
        rows = np.zeros(self._counts.processes, self._library.process)
        target = self._ffi.cast("struct simulator_process *", rows.ctypes.data)
        count = self._c.simulator_processes(self._pointer, target, len(rows))
        return rows[:count]

    def text(self, file: str) -> str:
        """Returns what our kernel's file says: "sched_status", "sched_tunables" or "sched_policies"."""
        name, size = file.encode(), 0
        while True:
            buffer = self._ffi.new("char[]", size + 1)
            length = self._c.simulator_text(self._open(), name, buffer, size + 1)
            if length > _LATEST:
                raise ActRefused(f"{file}: there is no such text")
            if length <= size:
                return bytes(self._ffi.buffer(buffer, length)).decode(errors="replace")
            size = length

    def status(self) -> str:
        """sched_status: the policy, and a line for each process."""
        return self.text("sched_status")

    def tunables(self) -> str:
        """sched_tunables: a line for each tunable of the policy."""
        return self.text("sched_tunables")

    def flush(self) -> None:
        """What was traced so far is in the trace's file. RunFailed: it cannot be written."""
        self._check(self._c.simulator_flush(self._open(), self._error), RunFailed)

    def audit(self) -> None:
        """Is each process in exactly one place, and does every count agree? AuditFailed: no."""
        self._check(self._c.simulator_audit(self._open(), self._error), AuditFailed)

    def drain(self) -> None:
        """Takes all queued processes out of the policy's hands; nothing can be run after it.

        AuditFailed: they are not those that are queued.
        """
        self._check(self._c.simulator_drain(self._open(), self._error), AuditFailed)

    # ---- acts from outside (sim/control.h): at this time, by no process; CPUs that are concerned
    # hear of it in the next run()

    def add_workload(self, workload: str | Path | Workload, tick_ns: int = 1_000_000) -> int:
        """Adds programs to those that are there; returns the first one's number, for fork().

        They know nothing of the others; what counts from the machine's begin counts from now.
        `tick_ns`: what a tick is in a text. The machine must have `added_steps` left.
        """
        raw, keep_alive = _workload(workload, tick_ns).c_structure()
        first = self._c.simulator_add_workload(self._open(), raw, self._error)
        del keep_alive
        self._check(first != self._c.SIMULATOR_NO_PROGRAM, ActRefused)
        return int(first)

    def fork(self, program: str | int) -> int:
        """Forks a child of init that plays a program; returns its PID."""
        if isinstance(program, str) and self.workload is None:
            raise ActRefused("a restored machine knows no names of programs: give it its workload")
        number = self.workload.number(program) if self.workload else int(program)
        pid = self._c.simulator_fork(self._open(), number, self._error)
        self._check(pid, ActRefused)
        return int(pid)

    def kill(self, pid: int) -> None:
        """Ends a process when it is on a CPU next; if it is blocked, it is woken for that."""
        self._act(self._c.simulator_kill, pid)

    def wake(self, pid: int) -> None:
        """Ends a process's sleep, or its waiting for a channel or a child, as if that had come."""
        self._act(self._c.simulator_wake, pid)

    def migrate(self, pid: int, cpu: int) -> None:
        """Moves a queued process to another CPU's queue."""
        self._act(self._c.simulator_migrate, pid, cpu)

    def give(self, channel: int, count: int = 1) -> None:
        """Puts things into a channel."""
        self._act(self._c.simulator_give, channel, count)

    def set_attribute(self, pid: int, attribute: Attribute, value: int) -> None:
        """Sets an attribute of a process."""
        self._act(self._c.simulator_set_attribute, pid, int(attribute), value % 2**64)

    def command(self, file: str, line: str) -> None:
        """Writes a line to one of our kernel's files: command("sched_status", "mlfq")."""
        self._act(self._c.simulator_command, file.encode(), line.encode())

    def set_policy(self, policy: str) -> None:
        """Switches to another policy: "name" or "name:preset"."""
        self._act(self._c.simulator_set_policy, policy.encode())

    def set_tunable(self, name: str, value: int) -> None:
        """Sets a tunable of the policy, which begins anew with it."""
        self._act(self._c.simulator_set_tunable, f"{name}={value}".encode())

    def save(self, path: FilePath) -> None:
        """Puts all that makes the machine what it is into a file, for restore() by the same library.

        All that was traced so far is in the trace's file then.
        """
        self._act(self._c.simulator_save, fsencode(path))

    # ---- the end

    def finish(self) -> None:
        """Writes what is left of the trace, and its end; nothing can be run after it."""
        self._check(self._c.simulator_finish(self._open(), self._error), RunFailed)

    def close(self) -> None:
        """Finishes, and gives all memory back. May be called twice."""
        if self._pointer == self._ffi.NULL:
            return
        try:
            self.finish()
        finally:
            self._release()

    def _release(self) -> None:
        self._c.simulator_destroy(self._pointer)
        self._pointer = self._ffi.NULL

    def __enter__(self) -> Simulator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except RunFailed:
            if error is None:
                raise

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuses a copy: the C library's machine has one owner."""
        raise TypeError("a machine cannot be copied so: save() it, and restore() the file")

    def __del__(self) -> None:
        # A constructor that failed early has left nothing.
        if getattr(self, "_pointer", None):
            self._release()

    # ---- help

    def _open(self) -> Any:
        if self._pointer == self._ffi.NULL:
            raise SimulatorError("the machine is closed")
        return self._pointer

    def _check(self, success: Any, refusal: type[SimulatorError]) -> None:
        if not success:
            raise refusal(self._library.message(self._error))

    def _act(self, function: Any, *arguments: Any) -> None:
        try:
            done = function(self._open(), *arguments, self._error)
        except OverflowError as error:
            raise ActRefused(str(error)) from None
        self._check(done, ActRefused)


def _workload(workload: str | Path | Workload, tick_ns: int) -> Workload:
    if isinstance(workload, Workload):
        return workload
    if isinstance(workload, Path):
        return Workload.load(workload, tick_ns)
    return Workload.read(workload, tick_ns)


def _settings(tunables: Mapping[str, int] | str) -> str:
    if isinstance(tunables, str):
        return tunables
    return ",".join(f"{name}={value}" for name, value in tunables.items())
