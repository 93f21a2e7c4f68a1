# SPDX-License-Identifier: MIT
"""Runs a machine as a process of the host: its pipes, its signals and its end.

The machine and its children are one process group. This group is killed at the machine's end, and
also if the monitor's process dies.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from schedlab.base.host.parent_death import tied
from schedlab.base.host.supervision import end_group, signal_group, to_the_end

_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_REST_S = 0.002
"""Pause between reads (s), because machines write single characters."""


class MachineProcess:
    """A machine's process. `heard` receives its output from `start` until it has ended."""

    def __init__(self, heard: Callable[[bytes], object]) -> None:
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._output = -1
        self._resting: asyncio.TimerHandle | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, command: Sequence[str], folder: Path, inherited: Sequence[int]) -> None:
        """Starts the process. Raises OSError if that fails."""
        self._output, theirs = os.pipe()
        os.set_blocking(self._output, False)
        with suppress(OSError):  # the default size suffices
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *tied(),
                *command,
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=theirs,
                stderr=theirs,
                pass_fds=inherited,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(theirs)
        self._listen()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Writes to the machine's console; does nothing if the machine has ended."""
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process group."""
        signal_group(self.pid, number)

    def kill(self) -> None:
        """Kills the machine immediately; `wait` returns its status."""
        self.signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Returns the exit status (negative for a signal) after all output was received."""
        assert self._process
        status = await self._process.wait()
        signal_group(self.pid, signal.SIGKILL)  # remaining children
        self._hear_the_rest()
        return status

    async def end(self) -> None:
        """Ends the machine, by force if necessary, even if it is stopped."""
        assert self._process
        self.signal(signal.SIGCONT)
        await to_the_end(end_group(self._process))

    # --- output

    def _listen(self) -> None:
        self._resting = None
        if self._output >= 0:
            self._loop.add_reader(self._output, self._read)

    def _read(self) -> None:
        self._loop.remove_reader(self._output)
        if self._read_once():
            self._resting = self._loop.call_later(_REST_S, self._listen)

    def _read_once(self) -> bool:
        """Returns False at the end of the output."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return True
        if data:
            self._heard(data)
        return bool(data)

    def _hear_the_rest(self) -> None:
        """Reads the remaining output; the machine's end of the pipe is closed."""
        if self._output < 0:
            return
        self._loop.remove_reader(self._output)
        if self._resting:
            self._resting.cancel()
        with suppress(BlockingIOError):
            while data := os.read(self._output, _READ_BYTES):
                self._heard(data)
        os.close(self._output)
        self._output = -1
