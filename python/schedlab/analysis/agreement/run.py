# SPDX-License-Identifier: MIT
"""Performs missing runs on both machines, compares them and writes the results."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedlab.analysis.agreement import variants
from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR, Cell, cells
from schedlab.analysis.agreement.known import Judged, judged
from schedlab.analysis.agreement.plan import Case, Window, Windows, kernel_plan, simulator_plan
from schedlab.analysis.agreement.text import HEADINGS, LEFT, by_policy, row, summary, table
from schedlab.base.display.names import write_csv
from schedlab.base.display.terminal import say
from schedlab.base.files import replacement
from schedlab.runs import results
from schedlab.runs.collection import Collection, Setup, StoredRun
from schedlab.runs.perform import perform, unfinished
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Software, inputs

STEM = "agreement"
"""Prefix of the names of result files."""


def agreement(
    folder: Path, on_kernel: Sequence[Case], on_simulator: Sequence[Case]
) -> list[Judged]:
    """Performs the cases of both machines, writes the tables, and returns the cells, largest difference first.

    Existing runs are reused. Raises WrongUsage for runs of another kernel. Runs of another
    simulator or workload file are discarded and repeated, because they take little time.

    Raises Interrupted (schedlab.runs.plan_execution) on a signal; finished runs are kept.
    """
    if folder.is_dir():
        for place in files(folder):
            replacement.check_file("out", place, ours=True)
    kernel = kernel_plan(folder, on_kernel)
    _perform(kernel)
    began = windows(kernel)
    simulator = simulator_plan(folder, on_simulator, began)
    _perform(simulator)
    runs = _collect((kernel, simulator))
    cell_list = cells(runs)
    spans = _vary(folder, runs, cell_list, on_simulator, began)
    variants.write(folder, spans)
    result = judged(cell_list, spans)
    write(result, folder)
    return result


def _vary(
    folder: Path,
    runs: Collection,
    cell_list: Sequence[Cell],
    on_simulator: Sequence[Case],
    on_kernel: Windows,
) -> variants.Ranges:
    """Returns the range over cost variants for each cell that is off. The runs of variants are not kept."""
    off = {
        _setup(judged_cell.cell)
        for judged_cell in judged(cell_list)
        if judged_cell.judgement in ("off", "known")
    }
    if not off:
        return {}
    kernel = [run for run in runs if run.setup.machine == KERNEL and _setup_of(run.setup) in off]
    seeds = {(_setup_of(run.setup), run.seed) for run in kernel}
    again = [case for case in on_simulator if (case.setup, case.seed) in seeds]
    say(f"schedlab: {len(off)} configurations disagree; they are simulated again with other costs")
    varied = []
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        for number in range(variants.COUNT):
            varied_plan = Plan(
                Path(place) / str(number), variants.varied_runs(again, on_kernel, number)
            )
            perform(varied_plan, with_metrics=False)
            varied.append(cells(Collection([*kernel, *_collect([varied_plan])])))
    return variants.ranges(varied)


def _setup(cell: Cell) -> tuple[str, str, int]:
    return cell.key.experiment, cell.key.policy, cell.key.cpus


def _setup_of(setup: Setup) -> tuple[str, str, int]:
    return setup.experiment, setup.policy_title, setup.cpus


def _perform(plan: Plan) -> None:
    plan.check()
    perform(plan, _missing, with_metrics=False)


def windows(kernel: Plan) -> Windows:
    """Returns the windows of the first seeds. The seed has no effect before the window begins."""
    window_by_run: dict[tuple[str, str, int], Window] = {}
    for run in kernel.runs:
        setup = run.label, str(run.policy), run.cpus
        kernel_run = StoredRun(kernel.place(run), results.read_manifest(kernel.place(run)))
        if setup not in window_by_run and kernel_run.succeeded:
            summary = kernel_run.summary()
            window_by_run[setup] = Window(int(summary["begin_ns"][0]), int(summary["end_ns"][0]))
    return window_by_run


def _missing(plan: Plan, base: Software) -> Plan:
    machine = plan.runs[0].machine
    if machine.name == SIMULATOR:
        _throw_away_others(plan, base)
    left = unfinished(plan, base)
    finished = len(plan.runs) - len(left.runs)
    if finished:
        say(f"schedlab: {finished} of {len(plan.runs)} runs on {machine.name} exist already")
    return left


def _throw_away_others(plan: Plan, base: Software) -> None:
    """Discards runs of another version of the simulator."""
    for run in plan.runs:
        place = plan.place(run)
        if results.is_complete(place):
            manifest, now = results.read_manifest(place), inputs(run, base)
            if any(manifest.get(key) != now.get(key) for key in results.DECISIVE):
                replacement.check_folder("out", place)
                replacement.remove(place)


def _collect(plans: Sequence[Plan]) -> Collection:
    places = [plan.place(run) for plan in plans for run in plan.runs]
    return Collection(StoredRun(place, results.read_manifest(place)) for place in places)


def write(cells: Sequence[Judged], folder: Path) -> None:
    """Writes unrounded numbers to `agreement.csv` and `agreement.parquet`, and a readable table to `agreement.md`."""
    numbers = table(cells)
    csv, parquet, page, markdown_file = files(folder)
    write_csv(numbers, csv)
    numbers.write_parquet(parquet)
    page.write_text(markdown(cells))
    for place in (csv, parquet, page, markdown_file):
        if place.exists():
            replacement.add_to_list(place)


def files(folder: Path) -> tuple[Path, ...]:
    """Returns the result files: three of `write`, and one of `variants.write`."""
    names = (f"{STEM}.csv", f"{STEM}.parquet", f"{STEM}.md", variants.FILE)
    return tuple(folder / name for name in names)


def markdown(cells: Sequence[Judged]) -> str:
    """Returns all cells as Markdown, largest difference first, followed by the reasons."""
    lines = ["# Simulator and kernel", "", f"{summary(cells)}.", ""]
    lines += [f"- {line}" for line in by_policy(cells)]
    lines += [
        "",
        _line(HEADINGS),
        _line(["---" if heading in LEFT else "---:" for heading in HEADINGS]),
    ]
    lines += [_line(row(cell)) for cell in cells]
    reasons = {cell.reason.name: cell.reason for cell in cells if cell.reason}
    if reasons:
        lines += ["", "## Reasons", ""]
        lines += [f"- **{reason.name}**: {reason.text}" for reason in reasons.values()]
    return "\n".join(lines) + "\n"


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
