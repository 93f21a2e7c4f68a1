# SPDX-License-Identifier: MIT
"""`./schedlab dev bench agreement`: compares the simulator with the kernel."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from schedlab.analysis.agreement.known import JudgedCell
from schedlab.analysis.agreement.plan import ComparisonScope
from schedlab.base.display.terminal import new_table, print_result, result_console
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.execution import report_if_ended_by_signal
from schedlab.commands.options import CPUS, FOLDER, echo_json, json_option, policy_option
from schedlab.paths import RUNS_FOLDER

DEFAULT_FOLDER = RUNS_FOLDER / "agreement"


@click.command("agreement")
@click.option("--full", is_flag=True, help="All experiments, 1 to 5 CPUs, all presets, more seeds.")
@policy_option(
    "POLICY or POLICY:PRESET, several with commas.  [default: all; presets of studies 1, 4]"
)
@click.option("--cpus", type=CPUS, help="How many CPUs.  [default: 1,2,4; --full: 1-5]")
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    metavar="PATTERN",
    help="Only these, such as s4-mixed-6 or 's1-timing-*'. May be repeated.",
)
@click.option("--all", "everything", is_flag=True, help="Print near figures, too.")
@click.option(
    "--out",
    type=FOLDER,
    help="Folder of the runs; existing runs are not repeated.  [default: runs/agreement]",
)
@json_option
def agreement(
    full: bool,
    policies: tuple[PolicyChoice, ...] | None,
    cpus: tuple[int, ...] | None,
    experiments: tuple[str, ...],
    everything: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare the simulator with the kernel on Spike.

    The suites of studies 1 and 4 run on both, under the same policies. Completion times, turnarounds
    and shares may differ by at most 2 % or a tick. The table lists larger differences, the largest
    first; agreement.md, .csv and .parquet in the folder list all. Exit status 1 if a difference has
    no known reason. docs/simulator.md explains the verdicts.
    """
    from schedlab.analysis.agreement import plan
    from schedlab.analysis.agreement.known import wrong_cells

    setting = plan.comparison_scope(full, policies or (), cpus or (), experiments)
    folder = (out or DEFAULT_FOLDER).absolute()
    cells = compared(setting, folder)
    if as_json:
        echo_json({"folder": str(folder), "cells": [as_dict(cell) for cell in cells]})
    else:
        show(cells, everything)
        print_result(f"Kept in {folder}")
    if wrong_cells(cells):
        raise SystemExit(1)


def compared(setting: ComparisonScope, folder: Path) -> list[JudgedCell]:
    """Runs the comparison; on interruption, names the folder with the finished runs."""
    from schedlab.analysis.agreement import run
    from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR
    from schedlab.analysis.agreement.plan import planned_runs

    hint = f"; what was finished is kept in {folder}; to continue, repeat the command"
    with report_if_ended_by_signal(lambda _: hint):
        return run.measure_agreement(
            folder, list(planned_runs(setting, KERNEL)), list(planned_runs(setting, SIMULATOR))
        )


def as_dict(cell: JudgedCell) -> dict[str, object]:
    """Returns a cell for JSON."""
    reason = cell.reason.text if cell.reason else ""
    return {**cell.cell.to_dict(), "judgement": cell.judgement, "reason": reason}


def show(cells: Sequence[JudgedCell], everything: bool) -> None:
    """Prints the cells that are not near, or all, then the sums and the reasons."""
    from schedlab.analysis.agreement.text import cell_row, policy_bias_lines, verdict_counts_text

    shown = [cell for cell in cells if everything or cell.judgement != "near"]
    if shown:
        result_console().print(table([cell_row(cell) for cell in shown]))
    for line in (verdict_counts_text(cells), *policy_bias_lines(cells)):
        print_result(line)
    for reason in {cell.reason.name: cell.reason for cell in shown if cell.reason}.values():
        print_result(f"{reason.name}: {reason.text}")


def table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Returns the table of these rows."""
    from schedlab.analysis.agreement.text import HEADINGS, LEFT_ALIGNED

    headings = (heading if heading in LEFT_ALIGNED else f">{heading}" for heading in HEADINGS)
    made = new_table(
        "Simulator against kernel: ticks and ± (95 %) are of the difference", *headings
    )
    for row_cells in rows:
        made.add_row(*row_cells)
    return made
