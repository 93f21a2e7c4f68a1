# SPDX-License-Identifier: MIT
"""Runs a machine as a process of the host: its pipes, its signals and its end.

The machine and its children are one process group. This group is killed at the machine's end, and
also if the monitor's process dies.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from schedlab.base.host.isolated import complete_prefix
from schedlab.base.host.supervision import await_completely, end_group, signal_group

_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_READ_PAUSE_S = 0.002
"""Pause between reads (s), because machines write single characters."""


class MachineProcess:
    """The process of a machine. Calls `heard` with each piece of its output."""

    def __init__(self, heard: Callable[[bytes], object]) -> None:
        self._on_output = heard
        self._loop = asyncio.get_running_loop()
        self._output = -1
        self._read_timer: asyncio.TimerHandle | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, command: Sequence[str], folder: Path, inherited: Sequence[int]) -> None:
        """Starts the process. Raises OSError if that fails."""
        self._output, machine_end = os.pipe()
        os.set_blocking(self._output, False)
        with suppress(OSError):  # the default size suffices
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *complete_prefix(),
                *command,
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=machine_end,
                stderr=machine_end,
                pass_fds=inherited,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(machine_end)
        self._await_output()

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
        self._read_rest()
        return status

    async def end(self) -> None:
        """Ends the machine, by force if necessary, even if it is stopped."""
        assert self._process
        self.signal(signal.SIGCONT)
        await await_completely(end_group(self._process))

    # --- output

    def _await_output(self) -> None:
        """Reads again as soon as there is output."""
        self._read_timer = None
        if self._output >= 0:
            self._loop.add_reader(self._output, self._read)

    def _read(self) -> None:
        self._loop.remove_reader(self._output)
        if self._read_once():
            self._read_timer = self._loop.call_later(_READ_PAUSE_S, self._await_output)

    def _read_once(self) -> bool:
        """Returns False at the end of the output."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return True
        if data:
            self._on_output(data)
        return bool(data)

    def _read_rest(self) -> None:
        """Reads output that is still in the pipe after the machine has closed its end."""
        if self._output < 0:
            return
        self._loop.remove_reader(self._output)
        if self._read_timer:
            self._read_timer.cancel()
        with suppress(BlockingIOError):
            while data := os.read(self._output, _READ_BYTES):
                self._on_output(data)
        os.close(self._output)
        self._output = -1
