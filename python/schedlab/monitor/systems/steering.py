# SPDX-License-Identifier: MIT
"""Sends commands over a guest's console to its program `steer` (user/programs/steer.c).

Only one command is pending at a time, so that a timeout belongs to a known command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from schedlab.monitor.system import Records, Refused
from schedlab.monitor.systems.console import (
    Answer,
    CommandDone,
    CommandFailed,
    Console,
    SteerReady,
    TextLine,
)
from schedlab.trace.format import Kind

EPERM = 1
ENOENT = 2
ESRCH = 3
EINVAL = 22
ERANGE = 34
EPOLICY = 160
ETUNABLE = 161

_ERROR_TEXTS = {
    EPERM: "it is not permitted",
    ENOENT: "there is no such file",
    ESRCH: "there is no such process",
    4: "the control program was interrupted",
    5: "its disk failed",
    7: "there are too many arguments",
    8: "the file is not a program of this machine",
    11: "its process table is full; end a process first",
    12: "it is out of memory; end a process first",
    EINVAL: "invalid argument",
    24: "the control program has too many open files",
    28: "its disk is full",
    ERANGE: "the value is out of range",
    36: "a name is too long",
    38: "it has no such system call",
    EPOLICY: "it has no such policy or preset",
    ETUNABLE: "its policy has no such tunable",
}


class GuestError(Refused):
    """The guest rejected a command; `number` is an error number of abi/errors.h."""

    def __init__(self, action: str, number: int, words: str = "") -> None:
        self.number = number
        self.words = _ERROR_TEXTS.get(number) or words or f"error {number}"
        super().__init__(self.words, what=action)
        self.args = (action, number, words)  # pickle passes these to the constructor


ANSWER_TIMEOUT_S = 20.0
"""Host seconds to wait for an answer while the machine runs."""
PAUSED_ANSWER_TIMEOUT_S = 2.0
"""Host seconds to wait for an answer while the machine is paused."""
COMMAND_CHARACTERS_MAX = 120
"""Characters of a command; the kernel accepts lines of 127."""
UNANSWERED_COMMANDS_MAX = 8
"""Maximum number of unanswered commands; together they must fit the console's 4,096 characters."""
_POLL_S = 0.25


class Stopwatch:
    """Measures for how long (host seconds) the machine has run, without its pauses."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._paused_s = 0.0
        self._paused_since: float | None = None

    @property
    def run_time_s(self) -> float:
        return time.monotonic() - self._begin - self._paused_s - self.paused_s

    @property
    def paused_s(self) -> float:
        """Time (s) since the machine was paused; 0 while the machine runs."""
        return 0.0 if self._paused_since is None else time.monotonic() - self._paused_since

    def pause(self) -> None:
        if self._paused_since is None:
            self._paused_since = time.monotonic()

    def resume(self) -> None:
        self._paused_s += self.paused_s
        self._paused_since = None


@dataclass
class _PendingCommand:
    """A command that was sent but not answered."""

    number: int
    answer: asyncio.Future[CommandDone]
    last_answer_s: float
    """Stopwatch time of the last sign of life: an answer line, or the command itself."""
    lines: list[str] = field(default_factory=list)


class Steering:
    """Sends commands to one machine and matches their answers.

    `write` passes bytes to the machine's console without waiting. `refusal` is the exception class
    that translates its kernel's error numbers.
    """

    def __init__(
        self,
        console: Console,
        write: Callable[[bytes], None],
        refusal: type[GuestError] = GuestError,
    ) -> None:
        self._console = console
        self._write = write
        self._refusal = refusal
        self._command_lock = asyncio.Lock()
        self._pending: _PendingCommand | None = None
        self._sent_commands = 0
        """Number of the last command."""
        self._answered_commands = 0
        """Number of the last answered command."""
        self._end_reason = ""
        self.stopwatch = Stopwatch()
        self.explain_silence: Callable[[], str] = lambda: ""
        """Returns why a machine does not answer, for error messages."""
        self._ready: asyncio.Future[SteerReady] = asyncio.get_running_loop().create_future()

    def receive(self, data: bytes) -> None:
        """Receives console output."""
        for answer in self._console.feed(data):
            self._receive_answer(answer)

    def fail(self, why: str) -> None:
        """Fails the pending command, and all later ones, with the reason `why`."""
        self._end_reason = self._end_reason or why
        if self._pending and not self._pending.answer.done():
            self._pending.answer.set_exception(Refused(why))
        if not self._ready.done():
            self._ready.set_exception(Refused(why))
            self._ready.exception()  # prevents Python's warning about an exception that no task awaits

    async def wait_ready(self, timeout_s: float) -> SteerReady:
        """Waits until `steer` accepts commands.

        Raises Refused if the machine ends or after `timeout_s` seconds.
        """
        await asyncio.wait([self._ready], timeout=timeout_s)
        if not self._ready.done():
            raise Refused(
                f"its program `steer` did not start within {timeout_s:.0f} s; restart this system"
            )
        return self._ready.result()

    async def read(self, file: str) -> str:
        """Returns the text of sched_status or sched_tunables."""
        pending = await self._execute(f"read {file}", f"{file} cannot be read")
        return "".join(f"{line}\n" for line in pending.lines)

    async def execute(self, command: str, action: str) -> int | None:
        """Executes a command, and returns the number in its answer, if any.

        Raises GuestError if the guest rejects the command, and Refused if the command cannot be
        sent or is not answered. `action` describes the action at the start of error messages.
        """
        pending = await self._execute(command, action)
        return pending.answer.result().value

    def request_end(self) -> None:
        """Asks `steer` to end the machine; there is no answer."""
        if not self._end_reason:
            self._send("end")

    # --- sending a command

    async def _execute(self, command: str, action: str) -> _PendingCommand:
        if len(command) > COMMAND_CHARACTERS_MAX or not (
            command.isascii() and command.isprintable()
        ):
            raise Refused(
                f"{action}: {command[:COMMAND_CHARACTERS_MAX]!r} cannot be sent; use at most {COMMAND_CHARACTERS_MAX} "
                "printable ASCII characters"
            )
        try:
            await asyncio.wait_for(self._command_lock.acquire(), ANSWER_TIMEOUT_S)
        except (TimeoutError, asyncio.TimeoutError):
            raise Refused(f"{action}: earlier commands are not answered yet; try again") from None
        try:
            return await self._execute_in_turn(command, action)
        finally:
            self._command_lock.release()

    async def _execute_in_turn(self, command: str, action: str) -> _PendingCommand:
        if self._end_reason:
            raise Refused(f"{action}: {self._end_reason}")
        if self._sent_commands - self._answered_commands >= UNANSWERED_COMMANDS_MAX:
            raise Refused(
                f"{action}: the last {UNANSWERED_COMMANDS_MAX} commands are not answered; restart this system"
            )
        done: asyncio.Future[CommandDone] = asyncio.get_running_loop().create_future()
        pending = _PendingCommand(self._send(command), done, self.stopwatch.run_time_s)
        self._pending = pending
        try:
            await self._await_answer(pending, action)
        except GuestError as error:
            raise self._refusal(action, error.number, error.words) from None
        finally:
            self._pending = None
        return pending

    def _send(self, command: str) -> int:
        self._sent_commands += 1
        self._write(f"@@ {self._sent_commands} {command}\n".encode())
        return self._sent_commands

    async def _await_answer(self, pending: _PendingCommand, action: str) -> None:
        while not pending.answer.done():
            await asyncio.wait([pending.answer], timeout=_POLL_S)
            if pending.answer.done():
                break
            if self.stopwatch.paused_s > PAUSED_ANSWER_TIMEOUT_S:
                raise Refused(
                    f"{action}: the machine is paused; resume it, and it will execute the command"
                )
            if self.stopwatch.run_time_s - pending.last_answer_s > ANSWER_TIMEOUT_S:
                silence = f"no answer for {ANSWER_TIMEOUT_S:.0f} s; wait, or restart this system"
                raise Refused(
                    "; ".join(filter(None, (f"{action}: {silence}", self.explain_silence())))
                )
        pending.answer.result()

    # --- receiving the answer

    def _receive_answer(self, answer: Answer) -> None:
        """Passes an answer to the pending command; drops answers to commands that timed out."""
        if isinstance(answer, SteerReady):
            if not self._ready.done():
                self._ready.set_result(answer)
            return
        if not isinstance(answer, TextLine):
            self._answered_commands = max(
                self._answered_commands, min(answer.number, self._sent_commands)
            )
        pending = self._pending
        if pending and pending.number == answer.number and not pending.answer.done():
            pending.last_answer_s = self.stopwatch.run_time_s
            self._complete_command(pending, answer)

    def _complete_command(
        self, pending: _PendingCommand, answer: TextLine | CommandDone | CommandFailed
    ) -> None:
        if isinstance(answer, TextLine):
            pending.lines.append(answer.text)
        elif isinstance(answer, CommandDone):
            pending.answer.set_result(answer)
        else:
            pending.answer.set_exception(self._refusal("", answer.error, answer.words))


CPU_SHARE_MAX = 0.02
"""Fraction of one CPU that `steer` may use."""
REQUEST_TIME_SHARE_MAX = 0.25
"""Fraction of the host's time that may be spent on status requests, because they delay commands."""
PERIOD_RANGE_S = (1.0, 60.0)
"""Minimum and maximum interval (host seconds) between status requests."""


class SteeringCost:
    """Sums the running time of the process `steer`, which is on one CPU at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._left_ns = 0
        """Sum of its leaving times minus the sum of its entering times on CPUs (ns)."""
        self._running = False
        self._now_ns = 0
        self._last_request: _StatusRequest | None = None
        self._period_s = 0.0
        """The interval (s) that follows from SHARE_MAX alone."""
        self._answer_s = 0.0
        """Duration (s) of the last answer."""

    def feed(self, records: Records) -> None:
        """Adds records of the trace."""
        if len(records) == 0:
            return
        self._now_ns = max(self._now_ns, int(records["time"][-1]))
        switches = records[records["kind"] == Kind.SWITCH]
        enters = switches["process"] == self._pid
        leaves = switches["first"] == self._pid
        times = switches["time"].astype(np.int64)
        self._left_ns += int(times[leaves].sum()) - int(times[enters].sum())
        rows = np.flatnonzero(enters | leaves)
        if len(rows):
            self._running = bool(enters[rows[-1]])

    @property
    def run_time_ns(self) -> int:
        return self._left_ns + (self._now_ns if self._running else 0)

    @property
    def period_s(self) -> float:
        """Minimum interval (host seconds) between status requests, which observes SHARE_MAX and BUSY_MAX."""
        needed_s = max(self._period_s, self._answer_s / REQUEST_TIME_SHARE_MAX)
        return min(max(needed_s, PERIOD_RANGE_S[0]), PERIOD_RANGE_S[1])

    def note_request(self) -> None:
        """Notes a status request, and computes `period_s` from the cost of the previous request.

        The cost of an answer does not depend on the rate. So twice the interval costs half the
        share.
        """
        now = _StatusRequest(time.monotonic(), self._now_ns, self.run_time_ns)
        last, self._last_request = self._last_request, now
        if last and now.guest_ns > last.guest_ns:
            share = (now.run_time_ns - last.run_time_ns) / (now.guest_ns - last.guest_ns)
            needed_s = (now.host_s - last.host_s) * share / CPU_SHARE_MAX
            self._period_s = min(max(needed_s, self._period_s / 2), PERIOD_RANGE_S[1])

    def note_answer(self) -> None:
        """Notes the arrival of the answer."""
        if self._last_request:
            self._answer_s = time.monotonic() - self._last_request.host_s


@dataclass(frozen=True)
class _StatusRequest:
    """Host and guest times at a status request."""

    host_s: float
    guest_ns: int
    run_time_ns: int
    """CPU time (ns) that `steer` has used."""
