# SPDX-License-Identifier: MIT
"""Executes runs on a worker: in a thread or process of this host, or in a cluster."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.host.disk import DiskWatch
from schedlab.base.host.parent_death import tied
from schedlab.base.host.supervision import supervise
from schedlab.base.toolchain.policies import attributes_ignored
from schedlab.errors import SchedlabError
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import MEASURED, Outcome, hung, read_console
from schedlab.machines.spec import Machine, RunSpec
from schedlab.runs import results

if TYPE_CHECKING:
    from schedlab.metrics import Metrics

WORKER_DIED = "worker-died"
"""The status of a run if the worker died at each attempt."""
_KILLED = -9


class Unfit(SchedlabError):
    """Raised if a worker would produce different measurements."""


class Stopped(Exception):
    """Raised if execution was stopped during a run. Such a run leaves no files."""


@dataclass(frozen=True)
class Task:
    """A run to execute."""

    key: str
    run: RunSpec
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Manifest entries known before the run begins."""
    place: Path | None = None
    """The run's folder, which must not exist; None: only the result of `Laboratory.digest` is kept."""


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    key: str
    outcome: Outcome
    seconds: float
    data: Any = None
    """The result of `Laboratory.digest` for the metrics; None if the run has no metrics."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The manifest in the run's folder; empty if the run has no folder."""


def _accept(address: str) -> None:
    pass


@dataclass
class Laboratory:
    """Everything that workers need for runs.

    It is sent to all workers, so that all execute the same programs.
    """

    programs: Mapping[str, Path | bytes]
    """Parts of machines, by the names of schedlab.runs.parts: files of this host, or their contents."""
    digest: Callable[[Metrics], Any]
    """Converts a run's metrics to the data to send back."""
    check: Callable[[str], None] = _accept
    """Raises Unfit if the worker `where` would produce different measurements."""
    stopping: bool = False
    """If true, runs in progress are stopped, and no further run begins."""
    busy: bool = False

    def set_up(self, place: str, scratch: Path) -> None:
        """Prepares the worker `place`. `scratch`: a folder that only this user may write to. Raises Unfit."""
        self.check(place)
        self.folder = Path(tempfile.mkdtemp(prefix="worker-", dir=scratch))
        self.parts = {
            name: self._written(name, part) if isinstance(part, bytes) else part
            for name, part in self.programs.items()
        }

    def _written(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o755)
        return path

    def tear_down(self) -> None:
        """Stops runs in progress, and removes all files that are not results."""
        self.stopping = True
        shutil.rmtree(self.folder, ignore_errors=True)

    def perform_all(self, tasks: Sequence[Task]) -> list[Result]:
        """Executes runs in order, and returns their results.

        If execution is stopped, returns the results of finished runs.
        """
        self.busy = True
        run_results: list[Result] = []
        try:
            for task in tasks:
                run_results.append(self.perform(task))
        except Stopped:
            pass
        finally:
            self.busy = False
        return run_results

    def perform(self, task: Task) -> Result:
        """Executes and measures a run. Raises Stopped."""
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        began = time.monotonic()
        with self._place(task) as folder:
            outcome = self._execute(task.run, folder)
            manifest = {
                **task.manifest,
                "started": started,
                "host_seconds": round(time.monotonic() - began, 3),
            }
            metrics, outcome = evaluate(folder, outcome, store=task.place is not None)
            if self.stopping:
                raise Stopped
            manifest.update(status=outcome.status, message=outcome.message)
            if outcome.note:
                manifest["mode"] = outcome.note
            if task.place:
                if metrics:
                    ignored = attributes_ignored(
                        task.run.policy, task.run.settings, metrics.attributes
                    )
                    manifest["attributes_ignored"] = ignored
                results.write_json(folder / results.MANIFEST, manifest)
        data = self.digest(metrics) if metrics else None
        seconds = time.monotonic() - began
        return Result(task.key, outcome, seconds, data, manifest if task.place else {})

    @contextmanager
    def _place(self, task: Task) -> Iterator[Path]:
        """Provides the folder of a run: permanent, or removed after the block."""
        if self.stopping:
            raise Stopped
        if task.place:
            with results.new_folder(task.place) as folder:
                yield folder
        else:
            with tempfile.TemporaryDirectory(dir=self.folder) as name:
                yield Path(name)

    def _execute(self, run: RunSpec, folder: Path) -> Outcome:
        run.write_files(folder)
        machine = run.machine
        seconds = machine.host_limit(run.cpus, run.limit_ns)
        console = folder / CONSOLE
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            scratch = Path(name)
            command = [*tied(), *machine.start(run, self.parts, folder, scratch)]
            disk = DiskWatch(folder, scratch)
            status = supervise(
                command, folder, console, seconds, lambda: self.stopping or disk.has_problem()
            )
            if self.stopping:
                raise Stopped
            return ended(machine, status, seconds, folder, scratch, console, disk.problem)


def worker_died(task: Task) -> Result:
    """Returns the result of a run whose worker died, and stores it in the run's folder."""
    message = "its worker died each time that it was run: of memory, perhaps, that it had not"
    manifest = {**task.manifest, "status": WORKER_DIED, "message": message}
    if task.place:
        with results.new_folder(task.place) as folder:
            (folder / CONSOLE).touch()
            results.write_json(folder / results.MANIFEST, manifest)
    return Result(task.key, Outcome(WORKER_DIED, message), 0.0, None, manifest)


def ended(
    machine: Machine,
    status: int | None,
    seconds: float,
    folder: Path,
    scratch: Path,
    console: Path,
    problem: str = "",
) -> Outcome:
    """Returns the outcome of a machine's process.

    `status`: the process's exit status; None if schedlab ended the process after `seconds` or
    because of `problem`.
    """
    outcome = machine.outcome(_KILLED if status is None else status, folder, scratch, console)
    if status is not None:
        return outcome
    if problem:
        return Outcome("disk", problem, outcome.note)
    return replace(hung(seconds, read_console(console)), note=outcome.note)


def evaluate(
    folder: Path, outcome: Outcome, place: Path | None = None, *, store: bool = True
) -> tuple[Metrics | None, Outcome]:
    """Checks the trace and computes the metrics, if the run left enough data.

    If `store`, writes the metrics to `place` (None: the run's folder).
    """
    if outcome.status not in MEASURED:
        return None, outcome
    from polars.exceptions import PanicException  # PanicException is not a subclass of Exception

    try:
        return measure(folder, place, store=store), outcome
    except (Exception, PanicException) as error:  # any kind of error: the other runs must continue
        words = traceback.format_exception_only(error)[-1].strip().replace(f"{folder}/", "")
        message = f"the trace could not be measured: {words}"
        return None, replace(outcome, status="unmeasured", message=message)


def measure(folder: Path, place: Path | None = None, *, store: bool = True) -> Metrics:
    """Checks a trace and computes its metrics. If `store`, writes them to `place`, or to the run's folder."""
    from schedlab import metrics

    computed = metrics.measure(folder / TRACE_FILE)
    if store:
        computed.write(place or folder / results.METRICS)
    return computed
