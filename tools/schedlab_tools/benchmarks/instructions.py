# SPDX-License-Identifier: MIT
"""Counts the instructions of kernel operations on Spike, and measures how fast traces are read on this host."""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from schedlab.base.display.numbers import percent
from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM, POLICY_COST, build
from schedlab.base.toolchain.policies import DEFAULT_POLICY
from schedlab.errors import SchedlabError
from schedlab.machines import kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.paths import ROOT
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.benchmarks.simulator import decision_instructions
from schedlab_tools.budgets import DECISION, Counts, exceeded, write_budgets
from schedlab_tools.policy_cost import PolicyRow, console_of, measure_policies
from schedlab_tools.targets import JudgedRow

BASELINES = ROOT / "bench" / "baselines.json"
_LONG_TRACE_NS, _RUN_NS = 20_000_000_000, 22_000_000
"""Duration of a trace of some million events, and of one of 5,000, as in a typical run of a study."""
_OPERATION = re.compile(r"^bench (\S+) (\d+) (\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Row(JudgedRow):
    """An operation of the kernel. Counts are instructions per operation; None: unknown."""

    name: str
    instructions: int
    meaning: str = ""
    baseline: int | None = None
    aim: int | None = None

    @property
    def verdict(self) -> str:
        """Returns whether the count is at most its target."""
        if self.baseline is not None and self.instructions > self.baseline:
            return "worse than the baseline"
        if self.aim is None:
            return ""
        return "met" if self.instructions <= self.aim else "not met"


@dataclass(frozen=True)
class Tracing(JudgedRow):
    """Instructions of the same CPU-bound work, including ticks and switches."""

    derived: ClassVar = ("cost", "aim")
    aim: ClassVar = 0.03
    """The largest overhead of tracing for CPU-bound work, as a fraction of its instructions."""

    without: int
    with_trace: int

    @property
    def cost(self) -> float:
        """The overhead of tracing, as a fraction of the instructions without it."""
        return self.with_trace / self.without - 1

    @property
    def verdict(self) -> str:
        """Returns whether the overhead is at most its target."""
        return "met" if self.cost <= self.aim else "not met"


@dataclass(frozen=True)
class Decoding(JudgedRow):
    """Events of a trace that one core of this host processes per second of CPU time."""

    derived: ClassVar = ("aim",)
    aim: ClassVar = 5_000_000
    """Target for decoded and validated events per second."""

    decode_and_validate: int
    metrics: int
    perfetto: int
    runs: int
    """Complete runs of 5,000 events measured per second."""

    @property
    def verdict(self) -> str:
        """Returns whether the speeds are at least their targets."""
        return "met" if self.decode_and_validate >= self.aim else "not met"


def measure_decoding() -> Decoding:
    """Measures with traces of the simulator. The result depends on the host, unlike other benchmarks."""
    from schedlab import metrics, trace
    from schedlab.runs.worker import measure_run
    from schedlab_tools.benchmarks.monitor_model import Scene, simulate

    build("simulator")
    scene = Scene("long", 100, 4, DEFAULT_POLICY, _LONG_TRACE_NS, 0)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / TRACE_FILE
        simulate(scene, path)
        recorded = trace.read(path)
        checked_s = _shortest_time_s(2, lambda: trace.validate(trace.read(path)))
        measured_s = _shortest_time_s(1, lambda: metrics.compute(recorded))
        exported_s = _shortest_time_s(
            2, lambda: trace.export(recorded, path.with_suffix(".p"), "perfetto")
        )
        simulate(replace(scene, until_ns=_RUN_NS), path)
        run_s = _shortest_time_s(20, lambda: measure_run(Path(folder)))
    events = len(recorded.events)
    return Decoding(
        round(events / checked_s),
        round(events / measured_s),
        round(events / exported_s),
        round(1 / run_s),
    )


def _shortest_time_s(rounds: int, work: Callable[[], object]) -> float:
    """Returns the least CPU time of several rounds, because other load on the host can only add to it."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def measure_kernel(machine: KernelMachine, kernel: Path, disk: Path) -> list[Row]:
    """Runs the program microbench on one CPU."""
    boot = Boot(kernel, disk, 1, 512, 'tick=10ms seed=1 limit=120s run="microbench"')
    rows = kernel_rows(console_of(machine, boot), read_baselines())
    if not rows:
        raise SchedlabError("microbench printed no line `bench NAME ITERATIONS INSTRUCTIONS`")
    return rows


def read_baselines() -> dict[str, dict[str, Any]]:
    """Returns meaning, baseline and target by operation."""
    rows: dict[str, dict[str, Any]] = json.loads(BASELINES.read_text())["rows"]
    return rows


def kernel_rows(console: str, baselines: dict[str, dict[str, Any]]) -> list[Row]:
    """Parses lines "bench NAME ITERATIONS INSTRUCTIONS"; instructions are per iteration."""
    counts = {name: int(count) for name, _, count in _OPERATION.findall(console)}
    if "yield-in-turn" in counts and "getpid" in counts:
        counts["switch"] = counts["yield-in-turn"] // 2 - counts["getpid"]
    if "ping-pong" in counts and "pipe-write-read" in counts:
        # A round trip is two switches, and twice the work of one process alone on one pipe.
        counts["switch-by-pipe"] = (counts["ping-pong"] - 2 * counts["pipe-write-read"]) // 2
    return [Row(name, count, **baselines.get(name, {})) for name, count in counts.items()]


def measure_tracing(machine: KernelMachine, kernel: Path, disk: Path) -> Tracing:
    """Runs the program busybench at the shortest usual tick, without and with a trace."""
    counts = []
    for traced in (False, True):
        trace = f"trace={TRACE_FILE} " if traced else ""
        arguments = f"tick=1ms seed=1 limit=120s {trace}run=busybench"
        console = console_of(machine, Boot(kernel, disk, 1, 512, arguments, traced=traced))
        counts += [int(count) for _, _, count in _OPERATION.findall(console)]
    if len(counts) != 2:
        raise SchedlabError("busybench printed no line `bench NAME ITERATIONS INSTRUCTIONS`")
    return Tracing(*counts)


def counts_of(operations: Iterable[Row], policies: Iterable[PolicyRow]) -> Counts:
    """Returns the counts that have budgets."""
    kernel = {("kernel", row.name, 0): row.instructions for row in operations}
    decisions = {
        (row.policy, DECISION, tasks): count
        for row in policies
        for tasks, count in row.mean.items()
    }
    return kernel | decisions


def renew_budgets() -> list[str]:
    """Measures again, and writes bench/budgets.csv. Returns a sentence for each count that changed."""
    build("kernel", "image", "policy-cost")
    spike = kernel_machine("spike")
    operations, policies = (
        measure_kernel(spike, KERNEL_PROGRAM, DISK_IMAGE),
        measure_policies(spike, POLICY_COST),
    )
    counts = counts_of(operations, policies) | decision_instructions()
    sentences = exceeded(counts)
    write_budgets(counts)
    return sentences


def show(of_host: bool, as_json: bool) -> None:
    """Prints what operations and decisions cost."""
    build("kernel", "image", "policy-cost")
    spike = kernel_machine("spike")
    operations = measure_kernel(spike, KERNEL_PROGRAM, DISK_IMAGE)
    policies = measure_policies(spike, POLICY_COST)
    tracing = measure_tracing(spike, KERNEL_PROGRAM, DISK_IMAGE)
    decoding = [measure_decoding()] if of_host else []
    tables: dict[str, list[JudgedRow]] = {
        "operations": [*operations],
        "policies": [*policies],
        "decoding": [*decoding],
    }
    output = {name: [row.to_dict() for row in rows] for name, rows in tables.items()}
    tracing_text = (
        f"Tracing adds {percent(tracing.cost, 3)} to the instructions of CPU-bound work at a tick of"
        f" 1 ms ({tracing.without:,} without; aim: at most 3 %, {tracing.verdict})"
    )
    decoding_texts = [
        f"One core of this host decodes and validates {row.decode_and_validate:,} events a"
        f" second (aim: 5,000,000, {row.verdict}), computes the metrics of {row.metrics:,},"
        f" exports {row.perfetto:,} for Perfetto; it measures {row.runs} runs a second, of"
        " 5,000 events each"
        for row in decoding
    ]
    finish(
        as_json,
        {**output, "tracing": tracing.to_dict()},
        (operations_table(operations), policies_table(policies), tracing_text, *decoding_texts),
        [*operations, *policies, tracing, *decoding],
    )


def operations_table(rows: list[Row]) -> Table:
    """Returns the table of operations with their counts, baselines and targets."""
    title = "Instructions for one operation (Spike, 1 CPU)"
    figures = (">instructions", ">baseline", ">aim")
    table = new_table(title, "operation", "what it is", *figures, "aim")
    for row in rows:
        numbers = (row.instructions, row.baseline, row.aim)
        shown = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(row.name, row.meaning, *shown, row.verdict)
    return table


def policies_table(rows: list[PolicyRow]) -> Table:
    """Returns the table of the policies' decisions."""
    title = "Instructions for one enqueue and one pick, mean (worst), by tasks that wait"
    counts = sorted({count for row in rows for count in row.mean})
    table = new_table(title, "policy", *(f">{count:,} tasks" for count in counts), "does not grow")
    for row in rows:
        cells = [
            f"{row.mean[n]:,} ({row.worst.get(n, 0):,})" if n in row.mean else "" for n in counts
        ]
        table.add_row(row.policy, *cells, row.verdict)
    return table
