# SPDX-License-Identifier: MIT
"""Runs the kernel once with abnormal turns, and checks the run."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from schedlab import trace
from schedlab.base.display.numbers import milliseconds
from schedlab.base.host.isolated import complete_prefix
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import MachineUnfit
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot
from schedlab.machines.outcome import describe_tail, hung_outcome, interpret_exit
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import DEFAULT_TURN, Spike, driver_command
from schedlab.metrics.intervals import cpu_intervals, state_intervals
from schedlab.paths import BUILD_FOLDER
from schedlab.trace import Kind, Trace
from schedlab.trace.errors import TraceError
from schedlab_tools.interleavings.holds import Hold, read_holds, write_holds

CHECKER = BUILD_FOLDER / "fsck"
TICK_NS = 1_000_000
IDLE_NS = 250_000
"""Longest time that a CPU may idle while a process is in its queue, without times when CPUs are held."""
_MEMORY_MIB = 128
_HOST_SECONDS = 600
HOLDS_FILE, _DISK_FILE = "holds", "disk.img"


@dataclass(frozen=True)
class Setup:
    """The configuration; apart from turns, runs are identical."""

    workload: str
    policy: PolicyChoice
    cpus: int
    limit_ns: int
    kernel: Path = KERNEL_PROGRAM

    @property
    def run(self) -> RunSpec:
        """Returns the specification of the run."""
        return RunSpec(
            self.workload,
            self.policy,
            (),
            self.cpus,
            Spike(),
            1,
            TICK_NS,
            self.limit_ns,
            _MEMORY_MIB,
        )

    @property
    def arguments(self) -> str:
        """Returns the kernel's boot arguments."""
        return f"trace-queues=1 {Spike().arguments(self.run)}"


@dataclass(frozen=True)
class Failure:
    """How a run failed: the failed check, and the problem in words."""

    kind: str
    """The run's status, or `disk`, `trace`, `idle`."""
    words: str


def need_driver() -> None:
    """Raises MachineUnfit if schedlab's driver of Spike is missing."""
    if not Spike().release().turn:
        raise MachineUnfit(
            "explore kernel needs schedlab's own driver of Spike: leave SCHEDLAB_SPIKE unset (docs/spike.md)"
        )


def run_trial(setup: Setup, turns: int | tuple[Hold, ...], folder: Path) -> Failure | None:
    """Runs the configuration in an empty folder, and returns the failure, or None.

    `turns`: a seed, or the turns themselves. The folder then contains the trace, and the abnormal
    turns as HOLDS. Raises MachineUnfit if the machine cannot be started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(turns, int):
        hold_options = [f"--hold-by={turns}"]
    else:
        write_holds(folder / "given", turns)
        hold_options = ["--holds=given"]
    path = Spike().release().path
    boot = Boot(setup.kernel, DISK_IMAGE, setup.cpus, _MEMORY_MIB, setup.arguments)
    command = driver_command(path, boot, DEFAULT_TURN)
    command[1:1] = [*hold_options, f"--keep-holds={HOLDS_FILE}", f"--keep-disk={_DISK_FILE}"]
    try:
        result = subprocess.run(
            [*complete_prefix(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_HOST_SECONDS,
            check=False,
        )
        console = result.stdout.decode(errors="replace")
        outcome = interpret_exit(result.returncode, console, program=setup.kernel)
    except subprocess.TimeoutExpired as error:
        outcome = hung_outcome(_HOST_SECONDS, (error.stdout or b"").decode(errors="replace"))
    if not (folder / HOLDS_FILE).exists():
        raise MachineUnfit("the machine did not begin" + describe_tail(outcome.message, "it said"))
    if not outcome.succeeded:
        return Failure(outcome.status, outcome.message)
    return _failure_in(folder)


def _failure_in(folder: Path) -> Failure | None:
    """Returns the failure that the files of a finished run show, or None."""
    checked = subprocess.run(
        [CHECKER, folder / _DISK_FILE], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        return Failure("disk", f"the file system is broken afterwards: {checked.stdout.strip()}")
    try:
        recorded = trace.read(folder / TRACE_FILE)
        trace.validate(recorded)
    except TraceError as error:
        return Failure("trace", f"its trace cannot be: {error}")
    still = [(hold.at_ns, hold.at_ns + hold.length_ns) for hold in holds_in(folder)]
    problem = idle_while_work_waits(recorded, IDLE_NS, still)
    return Failure("idle", problem) if problem else None


def holds_in(folder: Path) -> tuple[Hold, ...]:
    """Returns the abnormal turns of a run."""
    return read_holds(folder / HOLDS_FILE)


Span = tuple[int, int]


def idle_while_work_waits(trace: Trace, most_ns: int, still: Sequence[Span] = ()) -> str:
    """Describes a CPU that idles longer than `most_ns` while a process waits in its queue; "" if there is none.

    The trace must contain QUEUED records. `still`: intervals when some CPU was held, which do not
    count. The held CPU may be the idle CPU, or the CPU that would notify it.
    """
    waits = _waits(trace)
    breaches = [
        _violation_on_cpu(trace, waits, cpu, most_ns, still) for cpu in range(trace.header.cpus)
    ]
    first = min((breach for breach in breaches if breach), default=None)
    if first is None:
        return ""
    at_ns, length_ns, cpu, pid = first
    return (
        f"from {milliseconds(at_ns, 4)} on, CPU {cpu} idles for {length_ns / 1000:.1f} µs while process {pid}"
        " waits in its queue"
    )


def _waits(trace: Trace) -> pl.DataFrame:
    """Returns the waits of processes in one queue: pid, cpu (the queue's), begin_ns, end_ns."""
    rows = trace.rows(Kind.QUEUED)
    queued = pl.DataFrame(
        {
            "pid": trace.at("process", rows).astype(np.int64),
            "cpu": trace.at("first", rows).astype(np.int64),
            "row": rows.astype(np.int64),
            "begin_ns": trace.at("time_ns", rows).astype(np.int64),
        }
    ).sort("row")
    picked = (
        state_intervals(trace)
        .filter((pl.col("state") == "runnable") & pl.col("end_row").is_not_null())
        .select(
            pl.col("pid").cast(pl.Int64),
            pl.col("end_row").cast(pl.Int64).alias("picked"),
            pl.col("begin_ns").cast(pl.Int64).alias("runnable_ns"),
            pl.col("end_ns").cast(pl.Int64),
        )
        .sort("picked")
    )
    again = pl.col("begin_ns").shift(-1).over("pid")
    return (
        queued.with_columns(again=again)
        .join_asof(
            picked,
            left_on="row",
            right_on="picked",
            by="pid",
            strategy="forward",
            check_sortedness=False,
        )
        .drop_nulls("end_ns")
        .with_columns(
            # it may have continued to run at first
            begin_ns=pl.max_horizontal("begin_ns", "runnable_ns"),
            end_ns=pl.min_horizontal("again", "end_ns"),
        )
    )


def _violation_on_cpu(
    trace: Trace, waits: pl.DataFrame, cpu: int, most_ns: int, still: Sequence[Span]
) -> tuple[int, int, int, int] | None:
    """Returns the first violation on a CPU: time, duration, CPU and waiting PID."""
    idle = cpu_intervals(trace).filter((pl.col("cpu") == cpu) & (pl.col("pid") == 0))
    cpu_waits = waits.filter(pl.col("cpu") == cpu)
    if not len(idle) or not len(cpu_waits):
        return None
    begins, ends = idle["begin_ns"].to_numpy(), idle["end_ns"].to_numpy()
    first, last, pids = (cpu_waits[name].to_numpy() for name in ("begin_ns", "end_ns", "pid"))
    preceding = np.searchsorted(begins, first, "right") - 1
    breaches = []
    for at in (
        preceding.clip(0),
        (preceding + 1).clip(0, len(begins) - 1),
    ):  # the wait overlaps this idle interval or the next
        since = np.maximum(begins[at], first)
        for index in np.flatnonzero(np.minimum(ends[at], last) - since > most_ns).tolist():
            begin, end = int(since[index]), int(min(ends[at][index], last[index]))
            length = end - begin - sum(max(0, min(end, b) - max(begin, a)) for a, b in still)
            if length > most_ns:
                breaches.append((begin, length, cpu, int(pids[index])))
    return min(breaches, default=None)
