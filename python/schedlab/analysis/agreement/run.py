# SPDX-License-Identifier: MIT
"""Performs missing runs on both machines, compares them and writes the results."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedlab.analysis.agreement import variants
from schedlab.analysis.agreement.cells import KERNEL, SIMULATOR, Cell, compute_cells
from schedlab.analysis.agreement.known import JudgedCell, judge_cells
from schedlab.analysis.agreement.plan import (
    ComparedRun,
    KernelWindow,
    Windows,
    kernel_plan,
    simulator_plan,
)
from schedlab.analysis.agreement.text import (
    HEADINGS,
    LEFT_ALIGNED,
    cell_row,
    cells_table,
    policy_bias_lines,
    verdict_counts_text,
)
from schedlab.base.display.names import write_csv
from schedlab.base.display.terminal import say
from schedlab.base.files import replacement
from schedlab.runs import results
from schedlab.runs.collection import Collection, Setup, StoredRun
from schedlab.runs.perform import perform, select_unfinished
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Software, manifest_inputs

RESULT_STEM = "agreement"
"""Prefix of the names of result files."""


def measure_agreement(
    folder: Path, kernel_cases: Sequence[ComparedRun], simulator_cases: Sequence[ComparedRun]
) -> list[JudgedCell]:
    """Performs the cases of both machines, writes the tables, and returns the cells, largest difference first.

    Existing runs are reused. Raises WrongUsage for runs of another kernel. Runs of another
    simulator or workload file are discarded and repeated, because they take little time.

    Raises Interrupted (schedlab.runs.plan_execution) on a signal; finished runs are kept.
    """
    if folder.is_dir():
        for path in result_files(folder):
            replacement.check_file("out", path, has_default_name=True)
    kernel = kernel_plan(folder, kernel_cases)
    _perform_plan(kernel)
    began = kernel_windows(kernel)
    simulator = simulator_plan(folder, simulator_cases, began)
    _perform_plan(simulator)
    runs = _collect_runs((kernel, simulator))
    cell_list = compute_cells(runs)
    ranges = _run_variants(folder, runs, cell_list, simulator_cases, began)
    variants.write_ranges(folder, ranges)
    result = judge_cells(cell_list, ranges)
    write_results(result, folder)
    return result


def _run_variants(
    folder: Path,
    runs: Collection,
    cell_list: Sequence[Cell],
    simulator_cases: Sequence[ComparedRun],
    windows: Windows,
) -> variants.RangesByCell:
    """Returns the range over cost variants for each cell that is off. The runs of variants are not kept."""
    off_configurations = {
        _cell_configuration(judged_cell.cell)
        for judged_cell in judge_cells(cell_list)
        if judged_cell.judgement in ("off", "known")
    }
    if not off_configurations:
        return {}
    kernel = [
        run
        for run in runs
        if run.setup.machine == KERNEL and _run_configuration(run.setup) in off_configurations
    ]
    seeds = {(_run_configuration(run.setup), run.seed) for run in kernel}
    repeated_cases = [case for case in simulator_cases if (case.configuration, case.seed) in seeds]
    say(
        f"schedlab: {len(off_configurations)} configurations disagree; they are simulated again with other costs"
    )
    variant_cells = []
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder_name:
        for number in range(variants.VARIANT_COUNT):
            varied_plan = Plan(
                Path(folder_name) / str(number),
                variants.varied_runs(repeated_cases, windows, number),
            )
            perform(varied_plan, with_metrics=False)
            variant_cells.append(
                compute_cells(Collection([*kernel, *_collect_runs([varied_plan])]))
            )
    return variants.value_ranges(variant_cells)


def _cell_configuration(cell: Cell) -> tuple[str, str, int]:
    """Returns the configuration of a cell: experiment, policy and CPUs."""
    return cell.key.experiment, cell.key.policy, cell.key.cpus


def _run_configuration(setup: Setup) -> tuple[str, str, int]:
    """Returns the configuration of a run: experiment, policy and CPUs."""
    return setup.experiment, setup.policy_title, setup.cpus


def _perform_plan(plan: Plan) -> None:
    plan.check()
    perform(plan, _missing_runs, with_metrics=False)


def kernel_windows(kernel: Plan) -> Windows:
    """Returns the windows of the first seeds. The seed has no effect before the window begins."""
    window_by_run: dict[tuple[str, str, int], KernelWindow] = {}
    for run in kernel.runs:
        setup = run.label, str(run.policy), run.cpus
        kernel_run = StoredRun(kernel.place(run), results.read_manifest(kernel.place(run)))
        if setup not in window_by_run and kernel_run.succeeded:
            summary = kernel_run.summary()
            window_by_run[setup] = KernelWindow(
                int(summary["begin_ns"][0]), int(summary["end_ns"][0])
            )
    return window_by_run


def _missing_runs(plan: Plan, base: Software) -> Plan:
    """Returns the plan of the runs that do not exist yet.

    Raises WrongUsage for runs of another kernel.
    """
    machine = plan.runs[0].machine
    if machine.name == SIMULATOR:
        _discard_outdated(plan, base)
    missing = select_unfinished(plan, base)
    finished = len(plan.runs) - len(missing.runs)
    if finished:
        say(f"schedlab: {finished} of {len(plan.runs)} runs on {machine.name} exist already")
    return missing


def _discard_outdated(plan: Plan, base: Software) -> None:
    """Discards runs of another version of the simulator."""
    for run in plan.runs:
        run_folder = plan.place(run)
        if results.is_complete(run_folder):
            manifest, now = results.read_manifest(run_folder), manifest_inputs(run, base)
            if any(manifest.get(key) != now.get(key) for key in results.DECISIVE_INPUTS):
                replacement.check_folder("out", run_folder)
                replacement.remove(run_folder)


def _collect_runs(plans: Sequence[Plan]) -> Collection:
    folders = [plan.place(run) for plan in plans for run in plan.runs]
    return Collection(StoredRun(place, results.read_manifest(place)) for place in folders)


def write_results(cells: Sequence[JudgedCell], folder: Path) -> None:
    """Writes unrounded numbers to `agreement.csv` and `agreement.parquet`, and a readable table to `agreement.md`."""
    numbers = cells_table(cells)
    csv, parquet, page, markdown_file = result_files(folder)
    write_csv(numbers, csv)
    numbers.write_parquet(parquet)
    page.write_text(markdown(cells))
    for place in (csv, parquet, page, markdown_file):
        if place.exists():
            replacement.add_to_list(place)


def result_files(folder: Path) -> tuple[Path, ...]:
    """Returns the result files: three of `write_results`, and one of `variants.write`."""
    names = (
        f"{RESULT_STEM}.csv",
        f"{RESULT_STEM}.parquet",
        f"{RESULT_STEM}.md",
        variants.VARIANTS_FILE,
    )
    return tuple(folder / name for name in names)


def markdown(cells: Sequence[JudgedCell]) -> str:
    """Returns all cells as Markdown, largest difference first, followed by the reasons."""
    lines = ["# Simulator and kernel", "", f"{verdict_counts_text(cells)}.", ""]
    lines += [f"- {line}" for line in policy_bias_lines(cells)]
    lines += [
        "",
        _table_line(HEADINGS),
        _table_line(["---" if heading in LEFT_ALIGNED else "---:" for heading in HEADINGS]),
    ]
    lines += [_table_line(cell_row(cell)) for cell in cells]
    reasons = {cell.reason.name: cell.reason for cell in cells if cell.reason}
    if reasons:
        lines += ["", "## Reasons", ""]
        lines += [f"- **{reason.name}**: {reason.text}" for reason in reasons.values()]
    return "\n".join(lines) + "\n"


def _table_line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
