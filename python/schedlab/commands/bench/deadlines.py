# SPDX-License-Identifier: MIT
"""`./schedlab dev bench deadlines`: random tasks with deadlines, by theory, our simulator and SimSo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results
from schedlab.commands.options import OWN_SETTING, POLICIES, echo_json, json_option
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    from schedlab.base.toolchain.policies import PolicyChoice


@click.command("deadlines")
@click.option(
    "--policy",
    "policies",
    required=True,
    type=POLICIES,
    help="One that serves the earliest deadline first.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=OWN_SETTING,
    help="A tunable's value, such as what lets it admit all tasks. May be repeated.",
)
@click.option("--sets", default=100, show_default=True, type=click.IntRange(1, 100_000))
@json_option
def deadlines(
    policies: tuple[PolicyChoice, ...],
    settings: tuple[tuple[str, int], ...],
    sets: int,
    as_json: bool,
) -> None:
    """Compare when jobs with deadlines are done in our simulator and in SimSo, another one.

    Sets of five tasks are drawn at random (UUniFast, Bini and Buttazzo 2005), the same each time. Exit status 1 if a
    job misses a deadline that theory promises, or is done at other times in the two. SimSo is
    installed into the cache, for this command alone.
    """
    from schedlab.base.toolchain.build import build
    from schedlab_tools.benchmarks.deadlines import compare

    if len(policies) > 1:
        raise WrongUsage("--policy: one at a time")
    build("simulator")
    options = ["--policy", str(policies[0])]
    if settings:
        options += ["--set", ",".join(f"{name}={value}" for name, value in settings)]
    found = compare(range(sets), options)
    if as_json:
        echo_json([each.to_dict() for each in found])
    else:
        table = new_table("", "sets", ">number", ">jobs", ">missed", ">compared", ">apart, ns")
        for title, chosen in (
            ("admitted by theory", [each for each in found if each.admitted]),
            ("not admitted", [each for each in found if not each.admitted]),
        ):
            figures = (
                len(chosen),
                sum(each.jobs for each in chosen),
                sum(each.misses for each in chosen),
                sum(each.compared for each in chosen),
                max((each.apart_ns for each in chosen), default=0),
            )
            table.add_row(title, *(f"{figure:,}" for figure in figures))
        results().print(table)
    if not all(each.agrees for each in found):
        raise SystemExit(1)
