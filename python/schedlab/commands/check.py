# SPDX-License-Identifier: MIT
"""`./schedlab check`: an author's mistakes, before anything is booted."""

from __future__ import annotations

import click

from schedlab.commands.options import POLICIES
from schedlab.display.terminal import say
from schedlab.errors import MachineUnfit


@click.command()
@click.argument("choices", metavar="POLICY[,POLICY]...", type=POLICIES)
def check(choices: tuple[object, ...]) -> None:
    """Try policies in a simulator that watches each of their hooks.

    It is compiled with sanitizers, holds what is the host's against what it was before each hook, and runs the
    policy with each preset, and with the least and the greatest value of each tunable, on one CPU and on four. The
    first rule that is broken is told with the hook, the line, the task and the last decisions (exit status 1).

    `./schedlab run` does so by itself for policies that were changed since they passed.
    """
    from schedlab.machines.checked import RuleBroken, can_check, sources_of
    from schedlab.machines.checked import check as try_out
    from schedlab.toolchain.policies import PolicyChoice

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
        except RuleBroken as error:
            say(f"schedlab: {error}")
            broken = True
            continue
        killed = f"; its tick() ended {passed.kills} tasks (TICK_KILL)" if passed.kills else ""
        click.echo(
            f"{source.stem}: no rule broken in {passed.decisions} decisions of {passed.setups} setups{killed}"
        )
    if broken:
        raise SystemExit(1)
