# SPDX-License-Identifier: MIT
"""`./schedlab dev bench contention`: how long CPUs wait for run queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results, say
from schedlab.base.toolchain.policies import kinds_of_policies
from schedlab.commands.carrying_out import carried_out, check_finished
from schedlab.commands.options import CPUS, POLICIES, echo_json, json_option
from schedlab.runs.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.machines.spec import RunSpec
    from schedlab_tools.benchmarks.contention import Contended


@click.command("contention")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="[default: all, and the presets of the standard one]",
)
@click.option("--cpus", default="2,5,16", show_default=True, type=CPUS)
@click.option(
    "--cycles",
    is_flag=True,
    help="Not on Spike but on rvsim, a cycle-level emulator with caches, which is installed for it: the work that"
    " waits most. A check, of some seconds to a minute each.",
)
@json_option
def contention(
    policies: tuple[PolicyChoice, ...] | None, cpus: tuple[int, ...], cycles: bool, as_json: bool
) -> None:
    """Measure how long CPUs wait for the locks of run queues, which is what finer locks could gain.

    On Spike, with turns of 100, 500 and 5,000 instructions. Exact, and the same
    every time.
    """
    from schedlab_tools.benchmarks.contention import TURNS, setups

    wanted = setups(policies or kinds_of_policies(), cpus)
    if cycles:
        found = measure_cycles(wanted)
        table = cycles_table(found)
    else:
        found = [each for turn in TURNS for each in measure(wanted, turn)]
        table = contention_table(found, TURNS)
    if as_json:
        echo_json([each.to_dict() for each in found])
    else:
        results().print(table)


def measure_cycles(wanted: Sequence[RunSpec]) -> list[Contended]:
    """Carries out the setups of the first work, one after the other."""
    from schedlab.runs.parts import supply
    from schedlab_tools.benchmarks.contention import WORK
    from schedlab_tools.benchmarks.cycles import contended_on_rvsim

    parts = supply(["kernel", "disk"])
    found = []
    chosen = [run for run in wanted if run.label == WORK[0]]
    for number, run in enumerate(chosen, start=1):
        found.append(contended_on_rvsim(run, parts))
        say(f"[{number}/{len(chosen)}] {run.title}")
    return found


def cycles_table(found: Sequence[Contended]) -> Table:
    """A row for each setup."""
    table = new_table(
        "Waiting for the locks of run queues, % of the CPUs' cycles, on rvsim",
        *("work", "policy", ">CPUs", ">%", ">waits", ">% of the scheduler's time"),
    )
    for each in found:
        table.add_row(
            each.work,
            each.policy,
            str(each.cpus),
            f"{100 * each.of_time:.3f}",
            f"{each.waits:,}",
            f"{100 * each.waited_us / each.scheduler_us:.2f}",
        )
    return table


def measure(wanted: tuple[RunSpec, ...], turn: str) -> list[Contended]:
    """Carries the setups out at turns of this length, in a folder that goes."""
    from schedlab_tools.benchmarks.contention import MACHINE, contended, turns_of

    with (
        turns_of(turn),
        carried_out(lambda folder: Plan(folder, wanted), MACHINE, None) as finished,
    ):
        check_finished(finished, measured=True)
        return [
            contended(each.run, turn, each.metrics.values)
            for each in finished
            if each.metrics is not None
        ]


def contention_table(found: Sequence[Contended], turns: Sequence[str]) -> Table:
    """A row for each setup; parts of the CPUs' time, by the length of a turn."""
    table = new_table(
        "Waiting for the locks of run queues, % of the CPUs' time, at turns of this many instructions",
        *("work", "policy", ">CPUs", *(f">{int(turn):,}" for turn in turns)),
        f">waits at {turns[0]}",
        f">% of the scheduler's time at {turns[0]}",
    )
    rows: dict[tuple[str, str, int], list[Contended]] = {}
    for each in found:
        rows.setdefault((each.work, each.policy, each.cpus), []).append(each)
    for (work, policy, cpus), by_turn in rows.items():
        finest = by_turn[0]
        table.add_row(
            work,
            policy,
            str(cpus),
            *(f"{100 * each.of_time:.3f}" for each in by_turn),
            f"{finest.waits:,}",
            f"{100 * finest.waited_us / finest.scheduler_us:.2f}",
        )
    return table
