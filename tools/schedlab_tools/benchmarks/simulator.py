# SPDX-License-Identifier: MIT
"""Measures the simulator's speed on this host, and compares it with targets and other simulators.

Results are CPU times of one core, the least of several rounds, because other load on the host can
only add to them. Only ratios within one run are independent of the host.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import SIMULATOR, build
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.commands.options import json_option
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD
from schedlab.workload.binary_steps import read_words
from schedlab_tools.benchmarks import long_trace
from schedlab_tools.benchmarks.results import finish, printed
from schedlab_tools.targets import Aim

SPEED = BUILD / "simulator_speed"
_LINE = re.compile(r"^bench simulator-(\S+) (\d+) ([\d.]+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Decision:
    """The cost of a decision. All processes only compute; round-robin decides at each tick."""

    name: str
    processes: int
    nanoseconds: float

    @property
    def per_second(self) -> float:
        return 1e9 / self.nanoseconds


def measure() -> list[Decision]:
    """Runs bench/simulator_speed.c with its trace in a temporary folder."""
    build(f"build/{SPEED.name}", "simulator")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return decisions(printed([SPEED, Path(folder) / "trace.bin"]))


def decisions(text: str) -> list[Decision]:
    """Parses lines "bench simulator-NAME PROCESSES NANOSECONDS"."""
    measured = [
        Decision(name, int(count), float(time)) for name, count, time in _LINE.findall(text)
    ]
    if not measured:
        raise SchedlabError(f"{SPEED} printed no line `bench simulator-NAME PROCESSES NANOSECONDS`")
    return measured


def aims(measured: Sequence[Decision], process_bytes: int) -> list[Aim]:
    """Returns targets and results."""
    times = {(one.name, one.processes): one.nanoseconds for one in measured}
    few, many = times["decision", 100], times["decision", 100_000]
    return [
        Aim("a decision, 100 processes, no trace", few, 100, "ns"),
        Aim("the same with a trace, to a file", times["decision-traced", 100], 1000 / 3, "ns"),
        Aim(
            "a decision over a bare loop of pick and enqueue",
            few / times["bare-loop", 100],
            10,
            "times",
        ),
        Aim("a decision with 100,000 processes over one with 100", many / few, 2, "times"),
        Aim("memory for a process, under the policy that needs most", process_bytes, 256, "bytes"),
    ]


def process_bytes(policies: Sequence[str]) -> int:
    """Returns the simulator's memory per process, under the policy that needs most."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workload = Path(folder) / "workload"
        workload.write_bytes(read_words("program root\n  run 1ms\n"))
        bytes_by_policy = [
            count("process_bytes", printed([SIMULATOR, "--policy", policy, "--no-trace", workload]))
            for policy in policies
        ]
    return max(bytes_by_policy)


def count(name: str, text: str) -> int:
    """Returns a count in the output of `schedlab-sim`."""
    match = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    if not match:
        raise SchedlabError(f"schedlab-sim printed no line `{name} NUMBER`")
    return int(match[1])


@click.command("simulator")
@json_option
def simulator(as_json: bool) -> None:
    """Measure how fast the simulator decides on this host, and how fast its trace is measured.

    In CPU time of one core; exit status 1 if an aim is not met.
    """

    measured = measure()
    reached = aims(measured, process_bytes(list(read_catalogue()))) + long_trace.measure().aims()
    decided = [{**vars(one), "per_second": one.per_second} for one in measured]
    output = {"decisions": decided, "aims": [aim.to_dict() for aim in reached]}
    finish(as_json, output, (aims_table(reached),), reached)


def aims_table(aims: list[Aim]) -> Table:
    title = "The simulator on one core of this host (CPU time, least of some rounds)"
    table = new_table(title, "what", ">measured", ">aim: at most", "unit", "aim")
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:,.1f}", f"{aim.most:,.0f}", aim.unit, aim.verdict)
    return table
