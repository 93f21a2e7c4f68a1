# SPDX-License-Identifier: MIT
"""`./schedlab dev bench races`: races that were planted in the kernel are found."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from schedlab.base.display.terminal import new_table, results
from schedlab.base.display.working import working
from schedlab.commands.options import echo_json, json_option


@click.command()
@click.option(
    "--tries",
    default=200,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Runs to make each one small that breaks.",
)
@json_option
def races(tries: int, as_json: bool) -> None:
    """Plant ten races in copies of the kernel, one at a time, and search for each as `explore kernel` does.

    Exit status 1 if one is not found within the seeds that bench/races says.
    """
    from schedlab.commands.explore.kernel import WORKLOADS
    from schedlab_tools.benchmarks.races import hunt, races
    from schedlab_tools.interleavings.trial import need_driver

    need_driver()
    rows = []
    with working("races") as update:
        for race in races():
            update(race.name)
            rows.append(hunt(race, WORKLOADS, len(os.sched_getaffinity(0)), tries))
    if as_json:
        echo_json({"rows": [asdict(row) for row in rows]})
    else:
        table = new_table("", "race", ">seed", ">within", "seen as", ">turns", ">needed")
        for row in rows:
            found = (str(row.seed), row.kind, f"{row.drawn:,}", str(row.needed))
            seed, kind, drawn, needed = found if row.seed else ("none", "", "", "")
            table.add_row(row.race, seed, str(row.within), kind, drawn, needed)
        results().print(table)
    if not all(row.seed for row in rows):
        raise SystemExit(1)
