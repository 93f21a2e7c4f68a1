# SPDX-License-Identifier: MIT
"""`./schedlab dev bench monitor-model`: records that the live monitor takes in."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results
from schedlab.base.toolchain.build import build
from schedlab.commands.options import echo_json, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab_tools.benchmarks.live_model import Measured
    from schedlab_tools.benchmarks.page_trace import Opened


@click.command("monitor-model")
@json_option
def monitor_model(as_json: bool) -> None:
    """Measure how many records a second the live monitor takes in on this host.

    In CPU time of one core, with five frames for each 200,000 records; how long it takes to take the waits of
    a process apart, in a trace of 100,000; and how long a page takes to open a trace of 100 MB and to go to any
    of its moments, if there is Node.js. Exit status 1 if an aim is not met.
    """
    from schedlab_tools.benchmarks import live_model, page_trace

    build("simulator")
    measured = live_model.measure()
    opened = page_trace.measure()
    aims = opened.aims() if opened else []
    if as_json:
        page = {**asdict(opened), "aims": [aim.to_dict() for aim in aims]} if opened else None
        echo_json({"scenes": [one.to_dict() for one in measured], "page": page})
    else:
        results().print(model_table(measured))
        results().print(
            page_table(opened) if opened else "The page was not measured: there is no node."
        )
    verdicts = [one.verdict for one in measured] + [aim.verdict for aim in aims]
    if any(verdict != "met" for verdict in verdicts):
        raise SystemExit(1)


def page_table(opened: Opened) -> Table:
    """A row for each aim."""
    title = f"A page and a trace of {opened.records:,} records, {opened.cpus} CPUs (CPU time)"
    table = new_table(title, "what", ">value", ">aim: at most", "aim")
    for aim in opened.aims():
        value, most = f"{aim.value:.2f} {aim.unit}", f"{aim.most:g} {aim.unit}"
        table.add_row(aim.name, value, most, aim.verdict)
    return table


def model_table(measured: list[Measured]) -> Table:
    """A row for each scene."""
    title = "Records that the monitor takes in on one core of this host (CPU time)"
    figures = (">records", ">a second", ">aim: at least", ">a frame", ">waits, taken apart")
    table = new_table(title, "policy and processes", *figures, "aim")
    for one in measured:
        table.add_row(
            one.name,
            f"{one.records:,}",
            f"{one.records_per_second:,.0f}",
            f"{one.aim:,}",
            f"{one.frame_ms:.1f} ms",
            f"{one.blame_ms:.0f} ms",
            one.verdict,
        )
    return table
