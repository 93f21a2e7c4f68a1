# SPDX-License-Identifier: MIT
"""Measures how long CPUs wait for the locks of run queues and of processes, the upper bound for the gain of finer
locks (study 1, section 8.3).

The guest program `contention` reports the waiting time of each CPU. Spike runs one CPU at a time,
for a turn. A lock taken and released within a turn delays no other CPU; a lock held at the end of a
turn delays the others for a whole turn. Several turn lengths are therefore measured; the shortest
are closest to parallel CPUs.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import click
import polars as pl
from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.policies import PolicyChoice, distinct_policies
from schedlab.commands.execution import check_finished, run_plan
from schedlab.commands.options import CPUS, POLICIES, json_option
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import TURN_VARIABLE, find_spike
from schedlab.runs.plan import Plan
from schedlab_tools.benchmarks.results import finish

MACHINE = "spike"
TURN_LENGTHS = ("100", "500", "5000")
"""Lengths of turns, in instructions."""
WORK = ("prioritytest switch", "prioritytest mixed", "lotterytest starve -t 50 -u 10 -y 2000")
"""200 processes that end at once; a mix of computing and sleeping processes; processes that yield all the time."""
_TICK_NS = 1_000_000
_LIMIT_NS = 60_000_000_000
_MEMORY_MIB = 512


@dataclass(frozen=True)
class ContentionSums:
    """The sums over the CPUs of one configuration, for the whole run including boot."""

    work: str
    policy: str
    cpus: int
    turn: int
    """Instructions."""
    waits: int
    """Number of times that a CPU waited for a run queue lock."""
    waited_us: float
    """Total waiting time over all CPUs; a cycle is a nanosecond."""
    scheduler_us: float
    """Total time of the scheduler over all CPUs, including its waits."""
    of_time: float
    """Waiting time as a fraction of all CPUs' time."""
    process_waits: int
    """Number of times that a CPU waited for the lock of a process, or of the tree of processes."""
    process_of_time: float
    """The same as `of_time`, for these locks."""


def setups(policies: Sequence[PolicyChoice], cpus: Sequence[int]) -> tuple[RunSpec, ...]:
    """Returns each workload under each policy on each number of CPUs."""
    return tuple(
        RunSpec(
            workload=f"contention {work}",
            policy=policy,
            settings=(),
            cpus=count,
            machine=machine_named(MACHINE),
            seed=1,
            tick_ns=_TICK_NS,
            limit_ns=_LIMIT_NS,
            memory_mib=_MEMORY_MIB,
            label=work,
        )
        for work in WORK
        for policy in policies
        for count in cpus
    )


@contextmanager
def turns_of(instructions: str) -> Iterator[None]:
    """Sets the turn length of Spike's CPUs within the block."""
    previous_turn = os.environ.get(TURN_VARIABLE)
    os.environ[TURN_VARIABLE] = instructions
    find_spike.cache_clear()
    try:
        yield
    finally:
        find_spike.cache_clear()
        if previous_turn is None:
            del os.environ[TURN_VARIABLE]
        else:
            os.environ[TURN_VARIABLE] = previous_turn


def contended(run: RunSpec, turn: str, table: pl.DataFrame) -> ContentionSums:
    """Returns the sums of the values that the run's program reported for each CPU."""
    sums = {name: int(value) for name, value in table.group_by("name").agg(pl.sum("value")).rows()}
    all_time = run.cpus * int(table["time_ns"].to_list()[-1])
    return ContentionSums(
        work=run.label or run.workload,
        policy=str(run.policy),
        cpus=run.cpus,
        turn=int(turn),
        waits=sums["waits"],
        waited_us=sums["waited"] / 1000,
        scheduler_us=sums["schedule"] / 1000,
        of_time=sums["waited"] / all_time,
        process_waits=sums["p-waits"],
        process_of_time=sums["p-waited"] / all_time,
    )


@click.command("contention")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="[default: all, and the presets of the standard one]",
)
@click.option("--cpus", default="2,5,16", show_default=True, type=CPUS)
@json_option
def contention(
    policies: tuple[PolicyChoice, ...] | None, cpus: tuple[int, ...], as_json: bool
) -> None:
    """Measure how long CPUs wait for locks, which is what finer locks could gain.

    The locks of run queues, and those of processes and of their tree, which are one lock in xv6.

    On Spike, with turns of 100, 500 and 5,000 instructions. Exact, and the same
    every time.
    """
    from schedlab_tools.benchmarks.contention import TURN_LENGTHS, setups

    planned = setups(policies or distinct_policies(), cpus)
    measured = [row for turn in TURN_LENGTHS for row in measure(planned, turn)]
    finish(
        as_json, [asdict(row) for row in measured], (contention_table(measured, TURN_LENGTHS),), ()
    )


def measure(planned: tuple[RunSpec, ...], turn: str) -> list[ContentionSums]:
    """Runs the configurations with turns of this length, in a temporary folder."""

    with (
        turns_of(turn),
        run_plan(lambda folder: Plan(folder, planned), None) as finished,
    ):
        check_finished(finished, measured=True)
        return [
            contended(run.run, turn, run.metrics.values)
            for run in finished
            if run.metrics is not None
        ]


def contention_table(measured: Sequence[ContentionSums], turns: Sequence[str]) -> Table:
    """Returns one row per configuration: fractions of the CPUs' time, by turn length."""
    table = new_table(
        "Waiting for locks of run queues, and of processes, % of the CPUs' time, at turns of this many instructions",
        *("work", "policy", ">CPUs", *(f">{int(turn):,}" for turn in turns)),
        f">waits at {turns[0]}",
        f">% of the scheduler's time at {turns[0]}",
        *(f">processes, {int(turn):,}" for turn in turns),
    )
    by_configuration: dict[tuple[str, str, int], list[ContentionSums]] = {}
    for sums in measured:
        by_configuration.setdefault((sums.work, sums.policy, sums.cpus), []).append(sums)
    for (work, policy, cpus), by_turn in by_configuration.items():
        finest = by_turn[0]
        table.add_row(
            work,
            policy,
            str(cpus),
            *(f"{100 * sums.of_time:.3f}" for sums in by_turn),
            f"{finest.waits:,}",
            f"{100 * finest.waited_us / finest.scheduler_us:.2f}",
            *(f"{100 * sums.process_of_time:.3f}" for sums in by_turn),
        )
    return table
