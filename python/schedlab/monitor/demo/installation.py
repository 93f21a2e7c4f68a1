# SPDX-License-Identifier: MIT
"""Runs commands that fetch tools, or build the playground, while the demo's page is open."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

_END_PATIENCE_S = 5
_FAILURE_LINES_MAX = 40
"""Lines shown of a failed installation."""
_FIRST_RUN = ("run", "--cpus", "1", "--workload", "cpu-bound -n 1")


class BackgroundCommand:
    """A command of schedlab that runs until it or the demo ends.

    `what` is installed by it. `success` is printed when it has succeeded.
    """

    def __init__(
        self, launcher: Path, arguments: Sequence[str], what: str, success: str = ""
    ) -> None:
        self.what = what
        self.success = success
        self.lines = ["schedlab: checking installed tools"]
        self.output = ""
        """The command's first line of results."""
        self._process = subprocess.Popen(
            [str(launcher), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        readers = (self._read_progress, self._read_results)
        self._readers = [Thread(target=reader, daemon=True) for reader in readers]
        for thread in self._readers:
            thread.start()

    def _read_progress(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self.lines.append(line.rstrip())
        status = self._process.wait()
        if status == 0 and self.success:
            print(f"schedlab: {self.success}", flush=True)
        elif status > 0:
            lines = "\n".join(self.lines[1:][-_FAILURE_LINES_MAX:])
            print(f"schedlab: {self.what} could not be installed:\n{lines}", flush=True)

    def _read_results(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.output = self.output or line.strip()

    def progress(self) -> dict[str, object]:
        """Returns the last output line, the exit status, which is None while the command runs, and its
        first result.
        """
        return {
            "line": self.lines[-1],
            "status": self._process.poll(),
            "result": self.output,
        }

    def end(self) -> None:
        """Ends the command with all its child processes, by SIGKILL after `_END_PATIENCE_S` seconds."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(_END_PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        for thread in self._readers:
            thread.join(_END_PATIENCE_S)


class Installation(BackgroundCommand):
    """Installs and builds the tools by making a first run, which also proves that they work."""

    def __init__(self, launcher: Path) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="schedlab-")
        arguments = (*_FIRST_RUN, "--out", str(Path(self.folder.name) / "run"))
        success = "the tools are installed: ./schedlab run"
        super().__init__(launcher, arguments, "the tools", success)

    def end(self) -> None:
        """Ends the run, and removes its folder."""
        super().end()
        self.folder.cleanup()
