# SPDX-License-Identifier: MIT
"""Simulates many short runs in one process, without a folder and a process for each run."""

from __future__ import annotations

import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from schedlab.base.host.disk import CHECK_INTERVAL_S, DiskWatch
from schedlab.base.host.parent_death import complete_prefix
from schedlab.base.host.supervision import signal_group
from schedlab.machines.folder import BINARY_WORKLOAD_FILE


class SimulatorProcess:
    """A process that simulates one run after the other (`schedlab-sim --batch`).

    It ends at wrong usage and at a crash. Such a run is then repeated alone, which explains the
    failure.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, is_stopped: Callable[[], bool]
    ) -> None:
        """`command` starts the process in `folder`, which must be empty."""
        self._command = [*complete_prefix(), *command]
        self.folder = folder
        self._is_stopped = is_stopped
        self._process: subprocess.Popen[bytes] | None = None
        self._workload: bytes | None = None

    def run(self, words: Sequence[str], workload: bytes, seconds: float) -> int | None:
        """Simulates a run with these arguments; returns its exit status.

        Returns None if the process ended, or if it was ended: when it took `seconds`, when the disk
        has a problem, or when the work is stopped.
        """
        if workload is not self._workload:
            (self.folder / BINARY_WORKLOAD_FILE).write_bytes(workload)
            self._workload = workload
        process = self._process or self._start()
        assert process.stdin and process.stdout
        request = b"".join(word.encode() + b"\0" for word in words) + b"\0"
        try:
            process.stdin.write(request)
            answer = process.stdout.readline() if self._has_answered(seconds) else b""
        except BrokenPipeError:
            answer = b""
        if answer.endswith(b"\n"):
            return int(answer)
        self.close()
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._command,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._answers = selectors.DefaultSelector()
        self._answers.register(self._process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        self._disk = DiskWatch(self.folder)
        return self._process

    def _has_answered(self, seconds: float) -> bool:
        """Waits for an answer, or for the end of the process; returns False if it took too long."""
        end_s = time.monotonic() + seconds
        while not self._answers.select(CHECK_INTERVAL_S):
            if self._is_stopped() or time.monotonic() > end_s or self._disk.has_problem():
                return False
        return True

    def close(self) -> None:
        """Ends the process. The next run starts another one."""
        if self._process:
            signal_group(self._process.pid, signal.SIGKILL)
            self._answers.close()
            with self._process:  # closes the pipes, and waits
                self._process = None
