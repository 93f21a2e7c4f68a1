# SPDX-License-Identifier: MIT
"""`./schedlab bench monitor-model`: records that the live monitor takes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.commands.options import echo_json, json_option
from schedlab.display.terminal import new_table, results
from schedlab.toolchain.build import build

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.benchmarks.live_model import Measured


@click.command("monitor-model")
@json_option
def monitor_model(as_json: bool) -> None:
    """Measure how many records a second the live monitor takes in on this host.

    In CPU time of one core, with five frames for each 200,000 records. Exit status 1 if it is less
    than the aim.
    """
    from schedlab.benchmarks import live_model

    build("simulator")
    measured = live_model.measure()
    if as_json:
        echo_json({"scenes": [one.to_dict() for one in measured]})
    else:
        results().print(model_table(measured))
    if any(one.verdict != "met" for one in measured):
        raise SystemExit(1)


def model_table(measured: list[Measured]) -> Table:
    """A row for each scene."""
    title = "Records that the monitor takes in on one core of this host (CPU time)"
    figures = (">records", ">a second", ">aim: at least", ">a frame")
    table = new_table(title, "policy and processes", *figures, "aim")
    for one in measured:
        table.add_row(
            one.name,
            f"{one.records:,}",
            f"{one.records_per_second:,.0f}",
            f"{one.aim:,}",
            f"{one.frame_ms:.1f} ms",
            one.verdict,
        )
    return table
