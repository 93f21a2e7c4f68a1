# SPDX-License-Identifier: MIT
"""Measures the simulator's speed on this host, and compares it with targets and other simulators.

Results are CPU times of one core, the least of several rounds, because other load on the host can
only add to them. Only ratios within one run are independent of the host.
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM, build
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.commands.options import json_option
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD_FOLDER
from schedlab.workload.binary_steps import encode_workload_text
from schedlab_tools.benchmarks import long_trace
from schedlab_tools.benchmarks.results import finish, output_of
from schedlab_tools.budgets import Counts
from schedlab_tools.targets import Aim

SPEED = BUILD_FOLDER / "simulator_speed"
_COMPUTING = (
    "program root\n  loop 100\n    fork worker\n  end\n  wait all\nprogram worker\n  run 3600s\n"
)
_COUNTED_RUNS = (
    ("rr", 1, False),
    ("rr", 1, True),
    ("rr", 64, False),
    ("eevdf", 1, False),
    ("eevdf", 64, False),
)
_LIMITS_NS = (1_000_000_000, 3_000_000_000)
_LIMIT_REACHED = 3
"""The exit status of `schedlab-sim` that reached its limit."""
_LINE = re.compile(r"^bench simulator-(\S+) (\d+) ([\d.]+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Decision:
    """The cost of a decision. All processes only compute; round-robin decides at each tick."""

    name: str
    processes: int
    nanoseconds: float

    @property
    def per_second(self) -> float:
        """Returns the number of decisions per second."""
        return 1e9 / self.nanoseconds


def measure() -> list[Decision]:
    """Runs bench/simulator_speed.c with its trace in a temporary folder."""
    build(f"build/{SPEED.name}", "simulator")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return decisions(output_of([SPEED, Path(folder) / "trace.bin"]))


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
        workload.write_bytes(encode_workload_text("program root\n  run 1ms\n"))
        bytes_by_policy = [
            count(
                "process_bytes",
                output_of([SIMULATOR_PROGRAM, "--policy", policy, "--no-trace", workload]),
            )
            for policy in policies
        ]
    return max(bytes_by_policy)


def decision_instructions() -> Counts:
    """Returns the simulator's instructions for one decision, counted by valgrind.

    100 processes compute without end. Two runs of different lengths are compared, so that the start
    does not count. Raises WrongUsage without valgrind.
    """
    need("valgrind")
    build("simulator")
    counts: Counts = {}
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workload, trace = Path(folder) / "workload", Path(folder) / "trace.bin"
        workload.write_bytes(encode_workload_text(_COMPUTING))
        for policy, cpus, traced in _COUNTED_RUNS:
            tracing = ["--trace", trace] if traced else ["--no-trace"]
            options = ["--policy", policy, "--cpus", str(cpus), *tracing]
            few, many = (
                _counted_run([*options, "--limit", str(ns), workload]) for ns in _LIMITS_NS
            )
            name = f"decision of {policy} on {cpus} CPU" + ("s" if cpus > 1 else "")
            key = ("simulator", name + (" with trace" if traced else ""), 100)
            counts[key] = round((many[0] - few[0]) / (many[1] - few[1]))
    return counts


def _counted_run(options: Sequence[str | Path]) -> tuple[int, int]:
    """Returns the instructions and the decisions of a run of `schedlab-sim` up to its limit."""
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    result = subprocess.run(
        [*valgrind, SIMULATOR_PROGRAM, *options], capture_output=True, text=True, check=False
    )
    collected = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode != _LIMIT_REACHED or not collected:
        raise SchedlabError(f"valgrind {SIMULATOR_PROGRAM} failed:\n{result.stderr.strip()}")
    return int(collected[1]), count("decisions", result.stdout)


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
    """Returns the table of results and targets."""
    title = "The simulator on one core of this host (CPU time, least of some rounds)"
    table = new_table(title, "what", ">measured", ">aim: at most", "unit", "aim")
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:,.1f}", f"{aim.most:,.0f}", aim.unit, aim.verdict)
    return table
