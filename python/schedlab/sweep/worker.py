# SPDX-License-Identifier: MIT
"""What a worker holds of a sweep, and how it does a run.

The programs come with the sweep, so that all workers run the same, whatever is built where they
are; the code that measures must be the same there, and is checked.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schedlab.machines import machine_named
from schedlab.runs import results
from schedlab.sweep.make import Make, measuring
from schedlab.sweep.one_run import Result, Task, end, perform
from schedlab.toolchain.measuring import Facts


class Unfit(Exception):
    """A worker that would measure something else."""


class Stopped(Exception):
    """The sweep was ended."""


class Laboratory:
    """A worker's laboratory for one sweep."""

    def __init__(self, make: Make, kept: Path | None) -> None:
        """`kept`: where the folders of runs go; it must be the same folder for all workers."""
        self.make = make
        self.kept = kept

    def set_up(self, where: str, scratch: Path) -> None:
        """Makes it ready on the worker `where`, in a folder that no other user may write to. Raises Unfit."""
        check_same(where, self.make.measuring, measuring())
        for name, facts in self.make.machines.items():
            version = machine_named(name).release().version
            check_same(where, {name: facts["machine_version"]}, {name: version})
        if self.kept and not self.kept.is_dir():
            raise Unfit(f"{where}: there is no folder {self.kept}, where traces are to be kept")
        self.folder = Path(tempfile.mkdtemp(prefix="worker-", dir=scratch))
        self.programs = {name: self.write(name) for name in self.make.programs}
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopping = False

    def tear_down(self) -> None:
        """Ends what is under way, and leaves nothing of it."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str) -> Path:
        path = self.folder / name
        path.write_bytes(self.make.programs[name])
        path.chmod(0o755)
        return path

    def stop(self) -> None:
        """Ends what is under way; nothing begins after it."""
        with self.lock:
            self.stopping = True
            running = list(self.running)
        for process in running:
            end(process)

    def perform(self, task: Task) -> Result:
        def started(process: subprocess.Popen[bytes]) -> None:
            with self.lock:
                self.running.add(process)
            if self.stopping:
                end(process)

        def ended(process: subprocess.Popen[bytes]) -> None:
            with self.lock:
                self.running.discard(process)

        with self.place(task) as folder:
            result = perform(task, self.programs, folder, (started, ended), self.kept is not None)
            if self.stopping:
                raise Stopped
            if self.kept:
                results.write_json(folder / results.MANIFEST, self.manifest(task, result))
        return result

    @contextmanager
    def place(self, task: Task) -> Iterator[Path]:
        """A folder for a run: kept, or gone after the block."""
        if self.kept:
            with results.new_folder(self.kept / f"{task.run.name}-{task.key[:8]}") as folder:
                yield folder
            return
        folder = self.folder / f"run-{threading.get_ident()}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def manifest(self, task: Task, result: Result) -> dict[str, Any]:
        return {
            **task.manifest,
            "host_seconds": round(result.seconds, 3),
            "status": result.outcome.status,
            "message": result.outcome.message,
        }


def check_same(where: str, wanted: Facts, found: Facts) -> None:
    """Raises Unfit if the worker has something else than is wanted."""
    for name, value in wanted.items():
        other = found.get(name)
        if other != value:
            raise Unfit(
                f"{where} has another {name.removesuffix('_sha256')}: {_shown(other)} there,"
                f" {_shown(value)} here. Start it in the same version of schedlab:"
                " ./schedlab dask worker"
            )


def _shown(value: str | None) -> str:
    text = str(value)
    return text if len(text) < 32 else f"{text[:12]}…"
