# SPDX-License-Identifier: MIT
"""`./schedlab dev bench monitor`: what being watched costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import percent
from schedlab.base.display.terminal import new_table, results
from schedlab.base.toolchain.build import IMAGE, KERNEL, build
from schedlab.commands.options import echo_json, json_option
from schedlab.machines import kernel_machine

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab_tools.benchmarks.watching import Watching


@click.command("monitor")
@json_option
def monitor(as_json: bool) -> None:
    """Count what being watched costs our kernel.

    Instructions on Spike with one CPU: exact, and the same every time. Exit status 1 if watching
    takes more than 5 % of a CPU, at one question for sched_status a second.
    """
    from schedlab_tools.benchmarks import watching as monitor_bench

    build("kernel", "image")
    rows = monitor_bench.measure(kernel_machine("spike"), KERNEL, IMAGE)
    if as_json:
        echo_json({"watching": [row.to_dict() for row in rows], "aim": monitor_bench.MOST})
    else:
        results().print(watching_table(rows))
    if any(row.verdict != "met" for row in rows):
        raise SystemExit(1)


def watching_table(rows: list[Watching]) -> Table:
    """A row for each number of processes."""
    table = new_table(
        "What being watched costs (Spike, 1 CPU, instructions)",
        *(">processes", ">queues, and blocks in time", ">a record", ">a question and its answer"),
        *(">of a CPU, asked once a second (aim: at most 5 %)", "aim"),
    )
    for row in rows:
        table.add_row(
            f"{row.processes:,}",
            percent(row.tracing, 3),
            f"{row.record_instructions:.0f}",
            f"{row.read_instructions:,.0f}",
            percent(row.share, 3),
            row.verdict,
        )
    return table
