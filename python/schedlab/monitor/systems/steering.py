# SPDX-License-Identifier: MIT
"""Sends commands to the program `steer` (user/programs/steer.c) of a machine, over its console.

Only one command is pending at a time, so that a timeout can be attributed to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from schedlab.monitor.system import Refused
from schedlab.monitor.systems.console import Answer, Console, Done, Failed, Line, Ready
from schedlab.monitor.systems.guest_errors import GuestError

PATIENCE_S = 20.0
"""Host seconds without an answer while the machine runs."""
PAUSED_PATIENCE_S = 2.0
"""Host seconds without an answer while the machine is paused."""
COMMAND_MAX = 120
"""Characters of a command; the kernel accepts lines of 127."""
UNANSWERED_MAX = 8
"""Maximum number of unanswered commands, which together must fit the console's buffer of 4,096 characters."""
_LOOK_S = 0.25


class Stopwatch:
    """Measures the host time during which the machine ran."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._paused_s = 0.0
        self._paused_since: float | None = None

    @property
    def ran_s(self) -> float:
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
class _Pending:
    """A pending command."""

    number: int
    done: asyncio.Future[Done]
    heard_s: float
    """Stopwatch time of the last sign of life: an answer line, or the command itself."""
    lines: list[str] = field(default_factory=list)


class Steering:
    """The commands of one machine.

    `write` passes bytes to its console without waiting; `refusal` translates its kernel's error
    numbers.
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
        self._turn = asyncio.Lock()
        self._pending: _Pending | None = None
        self._typed = 0
        """Number of the last command."""
        self._answered = 0
        """Number of the last answered command."""
        self._over = ""
        self.stopwatch = Stopwatch()
        self.explain_silence: Callable[[], str] = lambda: ""
        """Returns why a machine does not answer, for error messages."""
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()

    def heard(self, data: bytes) -> None:
        """Receives console output."""
        for answer in self._console.feed(data):
            self._take(answer)

    def fail(self, why: str) -> None:
        """Fails the pending command and all later ones, because the machine has ended."""
        self._over = self._over or why
        if self._pending and not self._pending.done.done():
            self._pending.done.set_exception(Refused(why))
        if not self._ready.done():
            self._ready.set_exception(Refused(why))
            self._ready.exception()  # avoids a warning if no task waits

    async def wait_ready(self, timeout_s: float) -> Ready:
        """Waits until `steer` accepts commands.

        Raises Refused if the machine ends or after `timeout_s` seconds.
        """
        await asyncio.wait([self._ready], timeout=timeout_s)
        if not self._ready.done():
            raise Refused(f"its program `steer` did not start within {timeout_s:.0f} s")
        return self._ready.result()

    async def read(self, file: str) -> str:
        """Returns the text of sched_status or sched_tunables."""
        pending = await self._ask(f"read {file}", f"{file} cannot be read")
        return "".join(f"{line}\n" for line in pending.lines)

    async def execute(self, command: str, what: str) -> int | None:
        """Executes a command and returns the number in its answer, if any.

        Raises GuestError if the guest rejects the command, and Refused if the command cannot be
        sent or is not answered. The message begins with `what`.
        """
        pending = await self._ask(command, what)
        return pending.done.result().value

    def type_end(self) -> None:
        """Requests the machine's end; no answer follows."""
        if not self._over:
            self._type("end")

    # --- sending a command

    async def _ask(self, command: str, what: str) -> _Pending:
        if len(command) > COMMAND_MAX or not (command.isascii() and command.isprintable()):
            raise Refused(
                f"{what}: {command[:COMMAND_MAX]!r} cannot be sent: it is too long or has "
                "characters that are not printable"
            )
        try:
            await asyncio.wait_for(self._turn.acquire(), PATIENCE_S)
        except (TimeoutError, asyncio.TimeoutError):
            raise Refused(f"{what}: earlier commands are not answered yet; try again") from None
        try:
            return await self._ask_in_turn(command, what)
        finally:
            self._turn.release()

    async def _ask_in_turn(self, command: str, what: str) -> _Pending:
        if self._over:
            raise Refused(f"{what}: {self._over}")
        if self._typed - self._answered >= UNANSWERED_MAX:
            raise Refused(f"{what}: the last {UNANSWERED_MAX} commands are not answered")
        done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        pending = _Pending(self._type(command), done, self.stopwatch.ran_s)
        self._pending = pending
        try:
            await self._await(pending, what)
        except GuestError as error:
            raise self._refusal(what, error.number, error.words) from None
        finally:
            self._pending = None
        return pending

    def _type(self, command: str) -> int:
        self._typed += 1
        self._write(f"@@ {self._typed} {command}\n".encode())
        return self._typed

    async def _await(self, pending: _Pending, what: str) -> None:
        while not pending.done.done():
            await asyncio.wait([pending.done], timeout=_LOOK_S)
            if pending.done.done():
                break
            if self.stopwatch.paused_s > PAUSED_PATIENCE_S:
                raise Refused(
                    f"{what}: the machine is paused and will execute the command when it resumes"
                )
            if self.stopwatch.ran_s - pending.heard_s > PATIENCE_S:
                silence = f"it has not answered for {PATIENCE_S:.0f} s, and may do it later"
                raise Refused(
                    "; ".join(filter(None, (f"{what}: {silence}", self.explain_silence())))
                )
        pending.done.result()

    # --- receiving the answer

    def _take(self, answer: Answer) -> None:
        """Handles an answer; answers to abandoned commands are dropped."""
        if isinstance(answer, Ready):
            if not self._ready.done():
                self._ready.set_result(answer)
            return
        if not isinstance(answer, Line):
            self._answered = max(self._answered, min(answer.number, self._typed))
        pending = self._pending
        if pending and pending.number == answer.number and not pending.done.done():
            pending.heard_s = self.stopwatch.ran_s
            self._complete(pending, answer)

    def _complete(self, pending: _Pending, answer: Line | Done | Failed) -> None:
        if isinstance(answer, Line):
            pending.lines.append(answer.text)
        elif isinstance(answer, Done):
            pending.done.set_result(answer)
        else:
            pending.done.set_exception(self._refusal("", answer.error, answer.words))
