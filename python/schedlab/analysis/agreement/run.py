# SPDX-License-Identifier: MIT
"""Runs what is missing on both machines, and keeps what came of it."""

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
from schedlab.base.files import placing
from schedlab.runs import results
from schedlab.runs.carrying_out import Software, inputs
from schedlab.runs.collection import Collection, Kept, Setup
from schedlab.runs.perform import perform, unfinished
from schedlab.runs.plan import Plan

STEM = "agreement"
"""The beginning of the files' names."""


def agreement(
    folder: Path, on_kernel: Sequence[Case], on_simulator: Sequence[Case]
) -> list[Judged]:
    """Runs the cases of each machine, compares, writes the tables; the largest difference first.

    Runs that are there are not run again. Those of another kernel are refused (WrongUsage); those
    of another simulator or workload file, which take no time, are thrown away and made anew.
    Raises Interrupted (schedlab.runs.carrying_out) on a signal; what was finished is kept.
    """
    if folder.is_dir():
        for place in files(folder):
            placing.check_file("out", place, ours=True)
    kernel = kernel_plan(folder, on_kernel)
    _perform(kernel)
    began = windows(kernel)
    simulator = simulator_plan(folder, on_simulator, began)
    _perform(simulator)
    runs = _kept((kernel, simulator))
    found = cells(runs)
    spans = _vary(folder, runs, found, on_simulator, began)
    variants.write(folder, spans)
    result = judged(found, spans)
    write(result, folder)
    return result


def _vary(
    folder: Path,
    runs: Collection,
    found: Sequence[Cell],
    on_simulator: Sequence[Case],
    on_kernel: Windows,
) -> variants.Ranges:
    """Finds what the cells that are off would be with other costs. These runs are not kept."""
    off = {_setup(each.cell) for each in judged(found) if each.judgement in ("off", "known")}
    if not off:
        return {}
    kernel = [run for run in runs if run.setup.machine == KERNEL and _setup_of(run.setup) in off]
    seeds = {(_setup_of(run.setup), run.seed) for run in kernel}
    again = [case for case in on_simulator if (case.setup, case.seed) in seeds]
    say(f"schedlab: {len(off)} setups are off; they are simulated again with other costs")
    varied = []
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        for number in range(variants.COUNT):
            wanted = Plan(Path(place) / str(number), variants.varied_runs(again, on_kernel, number))
            perform(wanted, with_metrics=False)
            varied.append(cells(Collection([*kernel, *_kept([wanted])])))
    return variants.ranges(varied)


def _setup(cell: Cell) -> tuple[str, str, int]:
    return cell.key.experiment, cell.key.policy, cell.key.cpus


def _setup_of(setup: Setup) -> tuple[str, str, int]:
    return setup.experiment, setup.policy_title, setup.cpus


def _perform(wanted: Plan) -> None:
    wanted.check()
    perform(wanted, _missing, with_metrics=False)


def windows(kernel: Plan) -> Windows:
    """The windows of the first seeds: until the window begins, the seed decides nothing."""
    found: dict[tuple[str, str, int], Window] = {}
    for run in kernel.runs:
        setup = run.label, str(run.policy), run.cpus
        kept = Kept(kernel.place(run), results.read_manifest(kernel.place(run)))
        if setup not in found and kept.succeeded:
            summary = kept.summary()
            found[setup] = Window(int(summary["begin_ns"][0]), int(summary["end_ns"][0]))
    return found


def _missing(wanted: Plan, base: Software) -> Plan:
    machine = wanted.runs[0].machine
    if machine.name == SIMULATOR:
        _throw_away_others(wanted, base)
    left = unfinished(wanted, base)
    there = len(wanted.runs) - len(left.runs)
    if there:
        say(f"schedlab: {there} of {len(wanted.runs)} runs on {machine.name} are there")
    return left


def _throw_away_others(wanted: Plan, base: Software) -> None:
    """Throws away the simulator's runs of another make."""
    for run in wanted.runs:
        place = wanted.place(run)
        if results.is_whole(place):
            manifest, now = results.read_manifest(place), inputs(run, base)
            if any(manifest.get(key) != now.get(key) for key in results.DECISIVE):
                placing.check_folder("out", place)
                placing.remove(place)


def _kept(plans: Sequence[Plan]) -> Collection:
    places = [each.place(run) for each in plans for run in each.runs]
    return Collection(Kept(place, results.read_manifest(place)) for place in places)


def write(found: Sequence[Judged], folder: Path) -> None:
    """`agreement.csv`, `.parquet` with all numbers unrounded, and `.md` to be read."""
    numbers = table(found)
    csv, parquet, page, told = files(folder)
    write_csv(numbers, csv)
    numbers.write_parquet(parquet)
    page.write_text(markdown(found))
    for place in (csv, parquet, page, told):
        if place.exists():
            placing.add_to_list(place)


def files(folder: Path) -> tuple[Path, ...]:
    """What is written there beside the runs: three by `write`, and one by `variants.write`."""
    names = (f"{STEM}.csv", f"{STEM}.parquet", f"{STEM}.md", variants.FILE)
    return tuple(folder / name for name in names)


def markdown(found: Sequence[Judged]) -> str:
    """All cells, the largest difference first, and the reasons."""
    lines = ["# Simulator and kernel", "", f"{summary(found)}.", ""]
    lines += [f"- {line}" for line in by_policy(found)]
    lines += ["", _line(HEADINGS), _line(["---" if each in LEFT else "---:" for each in HEADINGS])]
    lines += [_line(row(each)) for each in found]
    reasons = {each.reason.name: each.reason for each in found if each.reason}
    if reasons:
        lines += ["", "## Reasons", ""]
        lines += [f"- **{reason.name}**: {reason.text}" for reason in reasons.values()]
    return "\n".join(lines) + "\n"


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
