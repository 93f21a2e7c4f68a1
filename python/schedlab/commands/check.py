# SPDX-License-Identifier: MIT
"""`./schedlab check`: finds mistakes in a policy before any machine boots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import milliseconds
from schedlab.base.display.terminal import say
from schedlab.commands.options import SOURCES
from schedlab.errors import BuildFailed, RuleBroken

if TYPE_CHECKING:
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.base.toolchain.verifier import HookCost
    from schedlab.machines.checked_simulator import Passed


def of_verifier(costs: tuple[HookCost, ...]) -> str:
    """Returns the hook that costs the verifier most, and how its loops are nested."""
    most = costs[0]
    nested = " within ".join(reversed(most.loops)) if len(most.loops) > 1 else ""
    verdict_text = (
        f"accepted; the longest hook is {most.hook}, about {most.instructions:,} instructions"
    )
    if nested:
        verdict_text += f", because of nested loops: {nested}"
    return verdict_text


def notes(passed: Passed) -> Iterator[str]:
    """Yields what a policy did that may be intended: long waits, unserved tasks and kills."""
    machine = f"{passed.cpus} CPU{'s' if passed.cpus > 1 else ''}"
    yield (
        f"longest wait for a CPU: {milliseconds(passed.longest_wait_ns)}, of pid {passed.waiter}"
        f" on {machine} in 300 ms"
    )
    if passed.never_served:
        yield f"{passed.never_served} tasks were ready for at least half of a run and never picked"
    if passed.kills:
        yield f"{passed.kills} tasks were ended by TICK_KILL"
    if passed.depends_on_time:
        yield "some decisions depend on the absolute time, or on a task's total run time"
    if passed.wraps:
        yield f"unsigned numbers wrapped (intended?): {', '.join(passed.wraps)}"


@click.command()
@click.argument("choices", metavar="POLICY[,POLICY]...|FILE.c", type=SOURCES)
def check(choices: tuple[PolicyChoice | Path, ...]) -> None:
    """Find mistakes in policies before they run.

    Compiles the policy as every host does. A simulator with sanitizers then watches each hook and compares the
    host's fields with their values before it. It runs each preset, and the least and greatest value of each
    tunable, on one CPU and on four. Clocks and run times also start shortly before 2^32 ns, 2^32 µs and 2^63 ns,
    where decisions must not change. Finally it checks the rules of Linux's verifier. The message of the first
    mistake names the hook, the line, the task and the last decisions (exit status 1).

    `./schedlab run` checks changed policies in the same way. docs/mistakes.md lists mistakes and messages.
    """
    from schedlab.machines.checked_simulator import check as try_out
    from schedlab.machines.checked_simulator import sources_of, unchecked

    if left_out := unchecked():
        say(f"schedlab: {left_out}")
    broken = False
    sources = [
        source
        for choice in choices
        for source in ([choice] if isinstance(choice, Path) else sources_of(choice))
    ]
    for source in dict.fromkeys(sources):
        try:
            passed = try_out(source)
        except (BuildFailed, RuleBroken) as error:
            say(f"schedlab: {error}")
            broken = True
            continue
        click.echo(
            f"{source.stem}: no rule broken in {passed.decisions} decisions of {passed.setups} runs"
        )
        for note in notes(passed):
            click.echo(f"  {note}")
        if passed.verifier_costs:
            click.echo(f"  Linux's verifier: {of_verifier(passed.verifier_costs)}")
    if broken:
        raise SystemExit(1)
