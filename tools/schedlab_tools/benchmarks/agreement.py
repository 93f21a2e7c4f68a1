# SPDX-License-Identifier: MIT
"""`./schedlab dev bench agreement`: compares the simulator with the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from schedlab.analysis.agreement.known import Judged
from schedlab.analysis.agreement.plan import Setting
from schedlab.base.display.terminal import new_table, print_result, results
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.execution import ended_by_signal
from schedlab.commands.options import CPUS, FOLDER, echo_json, json_option, policy_option
from schedlab.paths import RUNS

DEFAULT = RUNS / "agreement"


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
    from schedlab.analysis.agreement.known import wrong

    setting = plan.setting(full, policies or (), cpus or (), experiments)
    folder = (out or DEFAULT).absolute()
    cells = compared(setting, folder)
    if as_json:
        echo_json({"folder": str(folder), "cells": [as_dict(cell) for cell in cells]})
    else:
        show(cells, everything)
        print_result(f"Kept in {folder}")
    if wrong(cells):
        raise SystemExit(1)


def compared(setting: Setting, folder: Path) -> list[Judged]:
    """Runs the comparison; on interruption, names the folder with the finished runs."""
    from schedlab.analysis.agreement import run
    from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR
    from schedlab.analysis.agreement.plan import cases

    hint = f"; what was finished is kept in {folder}; to continue, repeat the command"
    with ended_by_signal(lambda _: hint):
        return run.agreement(folder, list(cases(setting, KERNEL)), list(cases(setting, SIMULATOR)))


def as_dict(cell: Judged) -> dict[str, object]:
    reason = cell.reason.text if cell.reason else ""
    return {**cell.cell.to_dict(), "judgement": cell.judgement, "reason": reason}


def show(cells: Sequence[Judged], everything: bool) -> None:
    """Prints the cells that are not near, or all, then the sums and the reasons."""
    from schedlab.analysis.agreement.text import by_policy, row, summary

    shown = [cell for cell in cells if everything or cell.judgement != "near"]
    if shown:
        results().print(table([row(cell) for cell in shown]))
    for line in (summary(cells), *by_policy(cells)):
        print_result(line)
    for reason in {cell.reason.name: cell.reason for cell in shown if cell.reason}.values():
        print_result(f"{reason.name}: {reason.text}")


def table(rows: Sequence[tuple[str, ...]]) -> Table:
    from schedlab.analysis.agreement.text import HEADINGS, LEFT

    headings = (heading if heading in LEFT else f">{heading}" for heading in HEADINGS)
    made = new_table(
        "Simulator against kernel: ticks and ± (95 %) are of the difference", *headings
    )
    for row_cells in rows:
        made.add_row(*row_cells)
    return made
