# SPDX-License-Identifier: MIT
"""Installs the tools of the other commands while the demo's page is open."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

_GRACE_S = 5
_LINES_SHOWN = 40
"""Lines shown of a failed installation."""
_FIRST_RUN = ("run", "--cpus", "1", "--workload", "cpu-bound -n 1")


class Installation:
    """Installs and builds the tools by making a first run, which also proves that they work."""

    def __init__(self, launcher: Path) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="schedlab-")
        self.lines = ["schedlab: checking installed tools"]
        self._process = subprocess.Popen(
            [str(launcher), *self._words()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _words(self) -> Sequence[str]:
        return (*_FIRST_RUN, "--out", str(Path(self.place.name) / "run"))

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self.lines.append(line.rstrip())
        status = self._process.wait()
        if status == 0:
            print("schedlab: the tools are installed: ./schedlab run", flush=True)
        elif status > 0:
            lines = "\n".join(self.lines[1:][-_LINES_SHOWN:])
            print(f"schedlab: the tools could not be installed:\n{lines}", flush=True)

    def progress(self) -> dict[str, object]:
        """Returns the last output line and the exit status. The status is None while the run lasts."""
        return {"line": self.lines[-1], "status": self._process.poll()}

    def end(self) -> None:
        """Ends the run with all its child processes, by SIGKILL after `_GRACE_S` seconds."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join(_GRACE_S)
        self.place.cleanup()
