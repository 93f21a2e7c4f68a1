# SPDX-License-Identifier: MIT
"""Measures the kernel's cost of being monitored: instructions, counted on Spike with one CPU.

The program watchbench does a fixed amount of work three times. The first run has a trace, as usual.
The second adds the records that a monitor needs. The third adds the program `steer`, which reads
sched_status ten times per second. The differences are exact and repeatable.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click
from rich.table import Table

from schedlab.base.display.numbers import percent
from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM, build
from schedlab.commands.options import json_option
from schedlab.errors import SchedlabError
from schedlab.machines import kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.policy_cost import console_of
from schedlab_tools.targets import JudgedRow

PROCESSES = (2, 500)
PERIOD_MS = 100
"""Time between two queries in milliseconds. A monitor asks less often; each query counts individually."""
SHARE_MAX = 0.05
"""Largest fraction of a CPU's time for monitoring, with one query per second."""
_INSTRUCTIONS_PER_SECOND = 1_000_000_000
_LINE = re.compile(r"^bench (watched|status-reads) (\d+) (\d+)\s*$", re.MULTILINE)
_READY = re.compile(r"^@@ 0 ready \d+ (\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class MonitoringCost(JudgedRow):
    """Instructions for the same work of some processes."""

    derived: ClassVar = ("tracing", "read_instructions", "share")

    processes: int
    plain: int
    """Instructions of a run with a trace."""
    told: int
    """Instructions with QUEUED records in the trace, and with blocks written in time."""
    watched: int
    """Instructions with `steer` in addition."""
    reads: int
    """Number of queries answered during the run."""
    record_instructions: float
    """The kernel's instructions to write one record, as measured by `steer`."""

    @property
    def tracing(self) -> float:
        """The additional cost of the extended trace, as a fraction of the work."""
        return self.told / self.plain - 1

    @property
    def read_instructions(self) -> float:
        """Instructions per query, including its answer."""
        return (self.watched - self.told) / self.reads

    @property
    def share(self) -> float:
        """Fraction of a CPU's time for monitoring, with one query per second."""
        return self.tracing + self.read_instructions / _INSTRUCTIONS_PER_SECOND

    @property
    def verdict(self) -> str:
        """Returns whether the fraction is at most SHARE_MAX."""
        return "met" if self.share <= SHARE_MAX else "not met"


def measure(
    machine: KernelMachine, kernel: Path, disk: Path, processes: Sequence[int] = PROCESSES
) -> list[MonitoringCost]:
    """Measures each number of processes, which takes about nine seconds."""

    def console(count: int, arguments: str, period_ms: int) -> str:
        """Returns the output of a run with this many processes."""
        run = f'run="watchbench {count} {period_ms}"'
        arguments_text = f"tick=10ms seed=1 limit=120s trace={TRACE_FILE} {arguments} {run}"
        return console_of(machine, Boot(kernel, disk, 1, 512, arguments_text))

    boot_settings = "trace-queues=1 trace-delay=50ms"
    return [
        watching(
            count,
            console(count, "", 0),
            console(count, boot_settings, 0),
            console(count, boot_settings, PERIOD_MS),
        )
        for count in processes
    ]


def watching(processes: int, plain: str, description: str, watched: str) -> MonitoringCost:
    """Parses the output of the three runs."""
    ready = _READY.search(watched)
    reads = bench_value("status-reads", watched)
    if not ready or reads == 0:
        raise SchedlabError("watchbench ran without steer, or never asked it anything")
    return MonitoringCost(
        processes,
        bench_value("watched", plain),
        bench_value("watched", description),
        bench_value("watched", watched),
        reads,
        int(ready[1]) / 1000,
    )


def bench_value(name: str, text: str) -> int:
    """Returns the value of a line "bench NAME PROCESSES VALUE"."""
    for benchmark, _, figure in _LINE.findall(text):
        if benchmark == name:
            return int(figure)
    raise SchedlabError(f"watchbench printed no line `bench {name} PROCESSES FIGURE`")


@click.command("monitor")
@json_option
def monitor(as_json: bool) -> None:
    """Measure the kernel's cost of being monitored.

    Instructions on Spike with one CPU: exact and repeatable. Exit status 1 if monitoring takes more
    than 5 % of a CPU, with one query of sched_status per second.
    """

    build("kernel", "image")
    rows = measure(kernel_machine("spike"), KERNEL_PROGRAM, DISK_IMAGE)
    output = {"watching": [row.to_dict() for row in rows], "aim": SHARE_MAX}
    finish(as_json, output, (watching_table(rows),), rows)


def watching_table(rows: list[MonitoringCost]) -> Table:
    """Returns one row for each number of processes."""
    table = new_table(
        "What being watched costs (Spike, 1 CPU, instructions)",
        *(">processes", ">queues, and blocks in time", ">a record", ">a question and its answer"),
        *(">of a CPU, asked once a second (aim: at most 5 %)", "aim"),
    )
    for row in rows:
        table.add_row(
            f"{row.processes:,}",
            percent(row.tracing, 3),
            f"{row.record_instructions:.0f}",
            f"{row.read_instructions:,.0f}",
            percent(row.share, 3),
            row.verdict,
        )
    return table
