# SPDX-License-Identifier: MIT
"""Executes runs on a worker: in a thread or process of this host, or in a cluster."""

from __future__ import annotations

import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.host.disk import CHECK_INTERVAL_S, DiskWatch
from schedlab.base.host.isolated import complete_prefix
from schedlab.base.host.supervision import signal_group, supervise
from schedlab.errors import SchedlabError
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import MEASURABLE_STATUSES, Outcome, hung_outcome, read_console
from schedlab.machines.published import ignored_attributes
from schedlab.machines.spec import Batching, Machine, RunSpec
from schedlab.runs import results
from schedlab.trace.joined import (
    JOINED_RECORDS_MAX,
    ShortTrace,
    group_traces,
    join_traces,
    read_short,
)

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.metrics.model import MeasuredRuns

WORKER_DIED = "worker-died"
"""Status of a run whose worker died at each attempt."""
_KILLED = -9
_WAITING_RECORDS_MAX = 4 * JOINED_RECORDS_MAX
"""Number of records (16 MiB) that wait to be measured together."""


class Unfit(SchedlabError):
    """This worker would produce different measurements than the others."""


class Stopped(Exception):
    """Execution was stopped during a run, which leaves no files."""


@dataclass(frozen=True)
class Task:
    """A run to execute, and where its files go."""

    key: str
    run: RunSpec
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Manifest entries known before the run begins."""
    place: Path | None = None
    """The run's future folder, which must not exist. None: the run is not stored."""


@dataclass(frozen=True)
class Result:
    """The outcome of a run, its duration on the host, and its metrics."""

    key: str
    outcome: Outcome
    seconds: float
    data: Any = None
    """What `Laboratory.digest` made of the metrics; None if the run has no metrics."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The manifest in the run's folder; empty if the run has no folder."""


@dataclass(frozen=True)
class _Simulated:
    """A run that was simulated, and not measured yet."""

    number: int
    """Its place among the runs of its batch."""
    task: Task
    outcome: Outcome
    trace: ShortTrace
    seconds: float


def _accept_any_worker(address: str) -> None:
    """Accepts every worker: the default of Laboratory.check."""


@dataclass
class Laboratory:
    """Everything that a worker needs to execute runs.

    The same object is sent to all workers, so that all use the same programs.
    """

    programs: Mapping[str, Path | bytes]
    """Parts of machines by name (schedlab.runs.parts): paths on this host, or the contents."""
    digest: Callable[[MeasuredRuns], Sequence[Any]] | None = None
    """Extracts from the metrics of runs what is sent back to the caller: one value per run.

    None: the metrics themselves are sent back, if `keep_metrics` is true.
    """
    keep_metrics: bool = False
    check: Callable[[str], None] = _accept_any_worker
    """Raises Unfit if the worker at this address would measure differently."""
    stopping: bool = False
    """True once runs in progress are being stopped and no further run may begin."""
    busy: bool = False

    def set_up(self, place: str, scratch: Path) -> None:
        """Prepares the worker at the address `place`; `scratch` is a private folder. Raises Unfit."""
        self.check(place)
        self.folder = Path(tempfile.mkdtemp(prefix="worker-", dir=scratch))
        self._simulators: dict[object, SimulatorProcess] = {}
        """Processes by thread and machine."""
        self.parts = {
            name: self._write_program(name, part) if isinstance(part, bytes) else part
            for name, part in self.programs.items()
        }

    def _write_program(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o755)
        return path

    def tear_down(self) -> None:
        """Stops runs in progress, and removes all files except results."""
        self.stopping = True
        for simulator in self._simulators.values():
            simulator.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def perform_all(self, tasks: Sequence[Task]) -> list[Result]:
        """Executes runs in order, and returns their results; if stopped, only those of finished runs.

        Runs that are not stored are simulated in one process, and measured together.
        """
        self.busy = True
        run_results: dict[int, Result] = {}
        simulated: list[_Simulated] = []
        records = 0
        try:
            for number, task in enumerate(tasks):
                run = None if task.place else self._simulate(number, task)
                if isinstance(run, _Simulated):
                    simulated.append(run)
                    records += len(run.trace.records)
                else:
                    run_results[number] = run or self.perform(task)
                if records > _WAITING_RECORDS_MAX:
                    run_results |= self._measure_together(simulated)
                    simulated, records = [], 0
        except Stopped:
            pass
        finally:
            with suppress(Stopped):
                run_results |= self._measure_together(simulated)
            self.busy = False
        return [run_results[number] for number in takewhile(run_results.__contains__, count())]

    def _simulate(self, number: int, task: Task) -> _Simulated | Result | None:
        """Simulates a run in this thread's simulator; None if the run must be performed alone.

        A run with a long trace is also measured. Raises Stopped.
        """
        if self.stopping:
            raise Stopped
        machine, run = task.run.machine, task.run
        words = machine.batch_words(run) if isinstance(machine, Batching) else None
        workload = run.played()
        if not isinstance(machine, Batching) or not words or workload is None or not self.digest:
            return None
        began = time.monotonic()
        simulator = self._simulator(machine)
        status = simulator.run(words, workload, machine.host_limit(run.cpus, run.limit_ns))
        outcome = None if status is None else machine.batch_outcome(status)
        if not outcome:
            return None
        trace = read_short(simulator.folder / TRACE_FILE)
        if trace:
            return _Simulated(number, task, outcome, trace, time.monotonic() - began)
        metrics, outcome = evaluate_run(simulator.folder, outcome, store=False)
        digested = next(iter(self.digest(metrics.joined()))) if metrics else None
        return Result(task.key, outcome, time.monotonic() - began, digested)

    def _simulator(self, machine: Batching) -> SimulatorProcess:
        """Returns the process of this thread that simulates the machine's runs."""
        key = (threading.get_ident(), machine)
        if key not in self._simulators:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            self._simulators[key] = SimulatorProcess(
                machine.batch_command(self.parts), folder, lambda: self.stopping
            )
        return self._simulators[key]

    def _measure_together(self, simulated: Sequence[_Simulated]) -> dict[int, Result]:
        """Returns the results of simulated runs by their numbers; if one run is invalid, the results
        of all runs that are joined with it come from performing them alone.
        """
        run_results: dict[int, Result] = {}
        for group in group_traces([run.trace for run in simulated]):
            began = time.monotonic()
            runs = [simulated[index] for index in group]
            digests = self._digest_together([run.trace for run in runs])
            seconds = (time.monotonic() - began) / len(runs)
            for place, run in enumerate(runs):
                if place in digests:
                    run_results[run.number] = Result(
                        run.task.key, run.outcome, run.seconds + seconds, digests[place]
                    )
                else:
                    run_results[run.number] = self.perform(run.task)
        return run_results

    def _digest_together(self, traces: Sequence[ShortTrace]) -> dict[int, Any]:
        """Returns what `digest` makes of the traces, by index; without those measured alone."""
        from polars.exceptions import PanicException

        from schedlab.metrics.compute import measure_joined

        assert self.digest
        try:
            chosen, joined = join_traces(traces)
            digests = self.digest(measure_joined(joined)) if joined else ()
        except (Exception, PanicException):  # measured alone, each trace gets its own message
            return {}
        return dict(zip(chosen, digests, strict=True))

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
            metrics, outcome = evaluate_run(folder, outcome, store=task.place is not None)
            if self.stopping:
                raise Stopped
            manifest.update(status=outcome.status, message=outcome.message)
            if outcome.note:
                manifest["mode"] = outcome.note
            if task.place:
                if metrics:
                    ignored = ignored_attributes(task.run, metrics.attributes)
                    manifest["attributes_ignored"] = ignored
                results.write_json(folder / results.MANIFEST_FILE, manifest)
        digested = None
        if metrics and self.digest:
            (digested,) = self.digest(metrics.joined())
        elif self.keep_metrics:
            digested = metrics
        seconds = time.monotonic() - began
        return Result(task.key, outcome, seconds, digested, manifest if task.place else {})

    @contextmanager
    def _place(self, task: Task) -> Iterator[Path]:
        """Provides the folder of a run; if it is not to be stored, removes the folder afterwards."""
        if self.stopping:
            raise Stopped
        if task.place:
            with results.create_run_folder(task.place) as folder:
                yield folder
        else:
            with tempfile.TemporaryDirectory(dir=self.folder) as name:
                yield Path(name)

    def _execute(self, run: RunSpec, folder: Path) -> Outcome:
        run.write_files(folder)
        machine = run.machine
        seconds = machine.host_limit(run.cpus, run.limit_ns)
        console = folder / CONSOLE_FILE
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            scratch = Path(name)
            command = [
                *complete_prefix(),
                *machine.prepare_command(run, self.parts, folder, scratch),
            ]
            disk = DiskWatch(folder, scratch)
            status = supervise(
                command, folder, console, seconds, lambda: self.stopping or disk.has_problem()
            )
            if self.stopping:
                raise Stopped
            return judge_ended_machine(
                machine, status, seconds, folder, scratch, console, disk.problem
            )


def record_worker_death(task: Task) -> Result:
    """Returns the result of a run whose worker died, and stores it in the run's folder."""
    message = "its worker process was killed each time; if the host ran out of memory, run fewer at a time"
    manifest = {**task.manifest, "status": WORKER_DIED, "message": message}
    if task.place:
        with results.create_run_folder(task.place) as folder:
            (folder / CONSOLE_FILE).touch()
            results.write_json(folder / results.MANIFEST_FILE, manifest)
    return Result(task.key, Outcome(WORKER_DIED, message), 0.0, None, manifest)


def judge_ended_machine(
    machine: Machine,
    status: int | None,
    seconds: float,
    folder: Path,
    scratch: Path,
    console: Path,
    problem: str = "",
) -> Outcome:
    """Returns the outcome of a machine whose process has ended.

    `status`: the process's exit status, or None if schedlab ended the process after `seconds` or
    because of `problem`.
    """
    outcome = machine.outcome(_KILLED if status is None else status, folder, scratch, console)
    if status is not None:
        return outcome
    if problem:
        return Outcome("disk", problem, outcome.note)
    return replace(hung_outcome(seconds, read_console(console)), note=outcome.note)


def evaluate_run(
    folder: Path, outcome: Outcome, path: Path | None = None, *, store: bool = True
) -> tuple[Metrics | None, Outcome]:
    """Validates the trace and computes metrics, if the run left a trace.

    `store`: writes the metrics to `path` (by default the run's folder). Returns the metrics, and
    the outcome with any error of this step.
    """
    if outcome.status not in MEASURABLE_STATUSES:
        return None, outcome
    from polars.exceptions import (
        PanicException,  # Rust's PanicException (polars) is not a subclass of Exception
    )

    try:
        return measure_run(folder, path, store=store), outcome
    except (
        Exception,
        PanicException,
    ) as error:  # no error in one run's results may stop the other runs
        words = traceback.format_exception_only(error)[-1].strip().replace(f"{folder}/", "")
        message = f"the trace could not be measured; repeat the run: {words}"
        return None, replace(outcome, status="unmeasured", message=message)


def measure_run(folder: Path, path: Path | None = None, *, store: bool = True) -> Metrics:
    """Validates a trace and computes its metrics.

    `store`: writes them to `path`, or to the run's folder.
    """
    from schedlab import metrics

    computed = metrics.measure(folder / TRACE_FILE)
    if store:
        computed.write(path or folder / results.METRICS_FOLDER)
    return computed


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
