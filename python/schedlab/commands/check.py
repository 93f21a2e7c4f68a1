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


def describe_verifier_cost(costs: tuple[HookCost, ...]) -> str:
    """Returns the hook that costs the verifier most, and how its loops are nested."""
    costliest = costs[0]
    nesting = " within ".join(reversed(costliest.loops)) if len(costliest.loops) > 1 else ""
    verdict_text = f"accepted; the longest hook is {costliest.hook}, about {costliest.instructions:,} instructions"
    if nesting:
        verdict_text += f", because of nested loops: {nesting}"
    return verdict_text


def list_behaviour(passed: Passed) -> Iterator[str]:
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
    from schedlab.machines.checked_simulator import describe_missing_checks, policy_sources

    if left_out := describe_missing_checks():
        say(f"schedlab: {left_out}")
    has_mistakes = False
    sources = [
        source
        for choice in choices
        for source in ([choice] if isinstance(choice, Path) else policy_sources(choice))
    ]
    for source in dict.fromkeys(sources):
        try:
            passed = try_out(source)
        except (BuildFailed, RuleBroken) as error:
            say(f"schedlab: {error}")
            has_mistakes = True
            continue
        click.echo(
            f"{source.stem}: no rule broken in {passed.decisions} decisions of {passed.setups} runs"
        )
        for note in list_behaviour(passed):
            click.echo(f"  {note}")
        if passed.verifier_costs:
            click.echo(f"  Linux's verifier: {describe_verifier_cost(passed.verifier_costs)}")
    if has_mistakes:
        raise SystemExit(1)
