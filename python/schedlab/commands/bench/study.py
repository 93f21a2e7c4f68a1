# SPDX-License-Identifier: MIT
"""`./schedlab dev bench study`: what the default study costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results
from schedlab.commands.carrying_out import carried_out, check_finished
from schedlab.commands.options import echo_json, json_option
from schedlab.machines import machine_named
from schedlab.runs.collection import Collection, Kept
from schedlab.runs.parts import supply
from schedlab.runs.plan import Plan

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.machines.spec import RunSpec
    from schedlab_tools.benchmarks.study_setups import Cost


@click.command("study")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    metavar="PATTERN",
    help="Only these, such as s4-mixed-20 or 's1-timing-*'. May be repeated.",
)
@json_option
def study(experiments: tuple[str, ...], as_json: bool) -> None:
    """Measure the CPU time of the default study: its machines, Python, and the report.

    The setups are those of bench/study.csv, whatever the studies' plan is now, so that the figures
    before and after a change are of the same work. Nothing of the runs is kept. Exit status 1 if a
    run fails.
    """
    from schedlab_tools.benchmarks import study_setups

    measured = measure(study_setups.chosen(study_setups.read(), experiments))
    if as_json:
        echo_json(measured.to_dict())
    else:
        results().print(cost_table(measured))


def measure(setups: tuple[RunSpec, ...]) -> Cost:
    """Carries the setups out, and makes their report, in a folder that goes."""
    from schedlab.commands.study import REPORT, make_report
    from schedlab_tools.benchmarks.study_setups import MACHINE, cost, reading

    supply(machine_named(MACHINE).parts)  # what is built is no part of the study
    began = reading()
    with carried_out(lambda folder: Plan(folder, setups), MACHINE, None) as finished:
        ran = reading()
        check_finished(finished, measured=True)
        runs = Collection(Kept(each.folder, each.manifest) for each in finished)
        make_report(runs, finished[0].folder.parent / REPORT)
        return cost(len(setups), began, ran, reading())


def cost_table(measured: Cost) -> Table:
    table = new_table(
        f"{measured.setups} setups of the default study on this host",
        *("what", ">CPU seconds", ">wall seconds"),
    )
    table.add_row("machines", f"{measured.machines_s:,.1f}", "")
    table.add_row("Python: starts, traces, metrics", f"{measured.python_s:,.1f}", "")
    table.add_row("report", f"{measured.report_s:,.1f}", "", end_section=True)
    table.add_row("all", f"{measured.cpu_s:,.1f}", f"{measured.wall_s:,.1f}")
    return table
