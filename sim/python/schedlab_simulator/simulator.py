# SPDX-License-Identifier: MIT
"""Provides the simulated machine to Python programs; docs/simulator.md describes its behaviour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fsencode
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from schedlab_simulator.declarations import (
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
"""The latest possible time (ns) in the C library."""
LIMIT_NS = 60_000_000_000
"""Default time limit of run(), as in the program schedlab-sim."""
_NEVER = 2**64 - 1
_FIRST_PIECE = 10_000_000
"""Length (ns) of the first piece of a run; later lengths are adapted to _PATIENCE_S."""
_LONGEST_PIECE = 100_000_000
"""Longest piece (ns) of a run with a time limit, because many events may follow an idle time."""
_PATIENCE_S = 0.1
"""Host seconds per piece of a run. Between pieces, Ctrl-C is handled, which cannot interrupt C."""


class Simulator:
    """A machine with some CPUs under a policy, which runs a workload. Times are in nanoseconds.

    `workload`: text, a file (a Path) or a Workload. `policy`: "name" or "name:preset", with its
    `tunables`. `costs`: "kernel" (measured costs of the schedlab kernel on Spike), "none" (only
    computing takes time), or either with changes: "kernel,fork=20000". `shape`: the machine's shape
    in the format of policies/support/shape_text.h; "": all CPUs are alike. `processes`: the most
    simultaneous processes.

    `trace`: the file for the event trace; `trace_queues` adds a record each time a process is
    queued. `added_steps`: capacity for add_workload(). `policy_clock`: offset of all times that the
    policy sees; `policy_run_time`: offset of each run time that it sees.

    The same arguments and actions give the same run and the same trace. Several machines may be
    used at once, each by one thread at a time. Other threads continue while a machine runs. Use it
    in a `with` statement, or call close() to complete the trace.

    Raises SetupRefused, WorkloadRefused, ActRefused or RunFailed, with the C library's message.

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
                _settings_text(tunables).encode(),
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
                "cpus, processes, tick_ns, seed, added_steps, policy_clock, policy_run_time: use whole"
                f" numbers in range: {error}"
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
        """Restores a machine that save() stored in a file.

        The restored machine continues exactly as the saved machine would have.

        `workload`: the machine's workload; only needed for fork() by a program's name. `trace`: the
        file for further trace records; None: no further trace. Restoring repeats the run, so it
        takes as long as the run did.

        """
        self = cls.__new__(cls)
        self._begin(workload)
        name = self._ffi.NULL if trace is None else self._ffi.new("char[]", fsencode(trace))
        self._pointer = self._c.simulator_restore(fsencode(path), name, self._error)
        self._check(self._pointer, SetupRefused)
        self._reached = self.now
        return self

    # ---- running

    def run(self, until_ns: int | None = None) -> Status:
        """Runs until this time, or (None) until the first process has ended.

        May be called repeatedly. Many small steps give the same result as one large step. Raises
        RunFailed if the run cannot continue. Without a time, it also raises RunFailed if the first
        process has not ended after LIMIT_NS. An endless workload would otherwise fill the disk with
        its trace.
        """
        if until_ns is not None:
            return self._run_to(until_ns)
        limit = self.now + LIMIT_NS
        if self._run_to(limit) is not Status.DONE:
            raise RunFailed(
                f"the first process has not ended at {limit} ns; for a longer workload, or one"
                " without an end, give the last time: run(until_ns)"
            )
        return Status.DONE

    def _run_to(self, until: int) -> Status:
        """Runs to a time in short pieces, so that Ctrl-C is answered."""
        piece = _FIRST_PIECE
        while until > self._reached + piece:
            begin = monotonic()
            status = self._go_on(self._reached + piece)
            if status is Status.DONE:
                return status
            piece = piece * 2 if monotonic() - begin < _PATIENCE_S else max(piece // 2, 1)
        return self._go_on(until)

    def advance(self, until_ns: int, timeout_s: float) -> Status:
        """Runs until this time, or returns earlier after about `timeout_s` seconds of real time.

        All records so far are then in the trace's file. Raises RunFailed if the run cannot
        continue.
        """
        end = monotonic() + timeout_s
        status = Status.TIME
        while self._reached < until_ns and status is Status.TIME:
            begin = monotonic()
            if begin >= end:
                break
            status = self._go_on(min(self._reached + self._piece, until_ns))
            hasty = monotonic() - begin < timeout_s / 8
            self._piece = min(
                max(self._piece * 2 if hasty else self._piece // 2, 1), _LONGEST_PIECE
            )
        self.flush()
        return status

    def next_time(self) -> int | None:
        """Returns the time of the next event, or None if there is none or the run has ended."""
        time = self._c.simulator_next(self._open())
        return None if time == _NEVER else int(time)

    def _go_on(self, until: int) -> Status:
        status = self._c.simulator_run(self._open(), until, self._error)
        if status == self._c.SIMULATOR_FAILED:
            raise RunFailed(self._library.message(self._error))
        self._reached = max(until, self._reached)
        return Status(status)

    def sample(self, times_ns: Iterable[int]) -> npt.NDArray[np.void]:
        """Runs from time to time, and returns the counts at each: a fast way to take many small steps.

        Returns one row for each time, with the columns of Counts. If the first process ends,
        sampling ends early, and the last row has the counts at this end.
        """
        times = np.fromiter(times_ns, np.uint64)
        rows = np.zeros(len(times), self._library.counts)
        pointer, error = self._open(), self._error
        run, count = self._c.simulator_run, self._c.simulator_count
        targets = self._ffi.cast("struct simulator_counts *", rows.ctypes.data)
        for index, until in enumerate(times.tolist()):
            status = run(pointer, until, error)
            count(pointer, targets + index)
            if status:
                if status == self._c.SIMULATOR_FAILED:
                    raise RunFailed(self._library.message(error))
                rows = rows[: index + 1]
                break
        if len(rows):
            self._reached = max(self._reached, int(rows["now"][-1]))
        return rows

    # ---- state

    def counts(self) -> Counts:
        """Returns the counts so far."""
        self._c.simulator_count(self._open(), self._counts)
        return Counts(*(getattr(self._counts, field) for field in Counts._fields))

    @property
    def now(self) -> int:
        """The machine's current time in ns."""
        self._c.simulator_count(self._open(), self._counts)
        return int(self._counts.now)

    def processes(self) -> npt.NDArray[np.void]:
        """Returns the processes that have not been reaped, including init.

        One row each, in the order of their slots, with the columns of struct simulator_process
        (sim/control.h): pid, parent, place (a Place), cpu, program (its number; 2**32 - 1: init),
        priority, tickets, weight, run_time (ns until now).

        """
        self._c.simulator_count(self._open(), self._counts)
        rows = np.zeros(self._counts.processes, self._library.process)
        target = self._ffi.cast("struct simulator_process *", rows.ctypes.data)
        count = self._c.simulator_processes(self._pointer, target, len(rows))
        return rows[:count]

    def text(self, file: str) -> str:
        """Returns the content of the schedlab kernel's file "sched_status", "sched_tunables" or "sched_policies"."""
        name, size = file.encode(), 0
        while True:
            buffer = self._ffi.new("char[]", size + 1)
            length = self._c.simulator_text(self._open(), name, buffer, size + 1)
            if length > _LATEST:
                raise ActRefused(
                    f"{file}: unknown; choose sched_status, sched_tunables or sched_policies"
                )
            if length <= size:
                return bytes(self._ffi.buffer(buffer, length)).decode(errors="replace")
            size = length

    def status(self) -> str:
        """Returns sched_status: the policy, and a line for each process."""
        return self.text("sched_status")

    def tunables(self) -> str:
        """Returns sched_tunables: a line for each tunable of the policy."""
        return self.text("sched_tunables")

    def flush(self) -> None:
        """Writes all records so far to the trace's file. Raises RunFailed if it cannot be written."""
        self._check(self._c.simulator_flush(self._open(), self._error), RunFailed)

    def audit(self) -> None:
        """Checks that each process is in exactly one place, and that all counts agree. Raises AuditFailed."""
        self._check(self._c.simulator_audit(self._open(), self._error), AuditFailed)

    def drain(self) -> None:
        """Dequeues all processes from the policy; the machine can then no longer run.

        Raises AuditFailed if these are not exactly the queued processes.
        """
        self._check(self._c.simulator_drain(self._open(), self._error), AuditFailed)

    # ---- actions from outside (sim/control.h): they happen at the current time, and are not those
    # of a process. CPUs react to them in the next run()

    def add_workload(self, workload: str | Path | Workload, tick_ns: int = 1_000_000) -> int:
        """Adds a workload's programs to the existing programs.

        Returns the number of the first added program, for fork(). Added and existing programs
        cannot refer to each other. Times in the added programs count from now. `tick_ns`: the
        length of a tick in a text. The machine must have enough `added_steps` left.
        """
        raw, keep_alive = _workload(workload, tick_ns).c_structure()
        first = self._c.simulator_add_workload(self._open(), raw, self._error)
        del keep_alive
        self._check(first != self._c.SIMULATOR_NO_PROGRAM, ActRefused)
        return int(first)

    def fork(self, program: str | int) -> int:
        """Forks a child of init that runs a program; returns its PID."""
        if isinstance(program, str) and self.workload is None:
            raise ActRefused("a restored machine knows no names of programs: give it its workload")
        number = self.workload.number(program) if self.workload else int(program)
        pid = self._c.simulator_fork(self._open(), number, self._error)
        self._check(pid, ActRefused)
        return int(pid)

    def kill(self, pid: int) -> None:
        """Ends a process when it next runs. A blocked process is woken to end."""
        self._act(self._c.simulator_kill, pid)

    def wake(self, pid: int) -> None:
        """Ends a process's sleep, or its wait for a channel or child, as if the event had happened."""
        self._act(self._c.simulator_wake, pid)

    def migrate(self, pid: int, cpu: int) -> None:
        """Moves a queued process to another CPU's queue."""
        self._act(self._c.simulator_migrate, pid, cpu)

    def give(self, channel: int, count: int = 1) -> None:
        """Adds items to a channel."""
        self._act(self._c.simulator_give, channel, count)

    def set_attribute(self, pid: int, attribute: Attribute, value: int) -> None:
        """Sets an attribute of a process."""
        self._act(self._c.simulator_set_attribute, pid, int(attribute), value % 2**64)

    def command(self, file: str, line: str) -> None:
        """Writes a line to one of the schedlab kernel's files: command("sched_status", "mlfq")."""
        self._act(self._c.simulator_command, file.encode(), line.encode())

    def set_policy(self, policy: str) -> None:
        """Switches to another policy: "name" or "name:preset"."""
        self._act(self._c.simulator_set_policy, policy.encode())

    def set_tunable(self, name: str, value: int) -> None:
        """Sets a tunable of the policy. The policy restarts with the new value."""
        self._act(self._c.simulator_set_tunable, f"{name}={value}".encode())

    def save(self, path: FilePath) -> None:
        """Saves the machine's state to a file, for restore() by the same library.

        All records so far are then in the trace's file.
        """
        self._act(self._c.simulator_save, fsencode(path))

    # ---- the end

    def finish(self) -> None:
        """Completes the trace; the machine can then no longer run. Raises RunFailed."""
        self._check(self._c.simulator_finish(self._open(), self._error), RunFailed)

    def close(self) -> None:
        """Completes the trace and frees all memory. May be called twice."""
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
        """Prevents copies, because the C library's machine has one owner."""
        raise TypeError("a machine cannot be copied; save() it, and restore() the file")

    def __del__(self) -> None:
        # Nothing to release if the constructor failed early.
        if getattr(self, "_pointer", None):
            self._release()

    # ---- helpers

    def _open(self) -> Any:
        if self._pointer == self._ffi.NULL:
            raise SimulatorError("the machine is closed; create another one")
        return self._pointer

    def _check(self, success: Any, refusal: type[SimulatorError]) -> None:
        if not success:
            raise refusal(self._library.message(self._error))

    def _act(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the library. Raises ActRefused with its reason if it fails."""
        try:
            succeeded = function(self._open(), *arguments, self._error)
        except OverflowError as error:
            raise ActRefused(str(error)) from None
        self._check(succeeded, ActRefused)


def _workload(workload: str | Path | Workload, tick_ns: int) -> Workload:
    if isinstance(workload, Workload):
        return workload
    if isinstance(workload, Path):
        return Workload.load(workload, tick_ns)
    return Workload.read(workload, tick_ns)


def _settings_text(tunables: Mapping[str, int] | str) -> str:
    if isinstance(tunables, str):
        return tunables
    return ",".join(f"{name}={value}" for name, value in tunables.items())
