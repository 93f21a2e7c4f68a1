# SPDX-License-Identifier: MIT
"""`./schedlab check`: an author's mistakes, before anything is booted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.commands.options import POLICIES
from schedlab.display.terminal import say
from schedlab.errors import MachineUnfit, RuleBroken

if TYPE_CHECKING:
    from schedlab.toolchain.verifier import HookCost


def of_verifier(costs: list[HookCost]) -> str:
    """Returns which hook costs it most, and where its loops lie within each other."""
    most = costs[0]
    nested = " within ".join(reversed(most.loops)) if len(most.loops) > 1 else ""
    told = f"nothing that it refuses; {most.hook} is the longest, some {most.instructions:,} instructions"
    if nested:
        told += f", as a loop is within a loop: {nested}"
    return told


@click.command()
@click.argument("choices", metavar="POLICY[,POLICY]...", type=POLICIES)
def check(choices: tuple[object, ...]) -> None:
    """Try policies in a simulator that watches each of their hooks.

    It is compiled with sanitizers, holds what is the host's against what it was before each hook, and runs the
    policy with each preset, and with the least and the greatest value of each tunable, on one CPU and on four. The
    first rule that is broken is told with the hook, the line, the task and the last decisions (exit status 1).

    `./schedlab run` does so by itself for policies that were changed since they passed.
    """
    from schedlab.machines.checked import can_check, sources_of
    from schedlab.machines.checked import check as try_out
    from schedlab.toolchain.policies import PolicyChoice
    from schedlab.toolchain.tools import compiler
    from schedlab.toolchain.verifier import OLDEST_COMPILER, examine

    if not can_check():
        raise MachineUnfit(
            "the library of AddressSanitizer is missing: install libclang-rt of clang's version"
        )
    broken = False
    sources = [
        source
        for choice in choices
        if isinstance(choice, PolicyChoice)
        for source in sources_of(choice)
    ]
    for source in dict.fromkeys(sources):
        try:
            passed = try_out(source)
            costs = examine(source) if compiler().version >= OLDEST_COMPILER else []
        except RuleBroken as error:
            say(f"schedlab: {error}")
            broken = True
            continue
        killed = f"; it ended {passed.kills} tasks by TICK_KILL" if passed.kills else ""
        click.echo(
            f"{source.stem}: no rule broken in {passed.decisions} decisions of {passed.setups} setups{killed}"
        )
        if costs:
            click.echo(f"  Linux's verifier: {of_verifier(costs)}")
    if broken:
        raise SystemExit(1)
