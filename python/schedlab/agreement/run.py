# SPDX-License-Identifier: MIT
"""Runs what is missing on both machines, and keeps what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from schedlab import results
from schedlab.agreement.cells import KERNEL, SIMULATOR, cells
from schedlab.agreement.known import Judged, judged
from schedlab.agreement.plan import Setting, plan
from schedlab.agreement.text import HEADINGS, LEFT, by_policy, row, summary
from schedlab.collection import Collection, Kept
from schedlab.continuing import unfinished
from schedlab.machines.base import Machine
from schedlab.perform import perform
from schedlab.plan import Plan
from schedlab.run import Software, inputs
from schedlab.terminal import say

STEM = "agreement"
"""Of the files."""


def agreement(wanted: Setting, folder: Path) -> list[Judged]:
    """Runs, compares, writes the tables; the largest difference first.

    Runs that are there are not run again. Those of another kernel are refused (WrongUsage); those
    of another simulator or workload file, which take no time, are thrown away and made anew.
    Raises Interrupted (schedlab.run) on a signal; what was finished is kept.
    """
    plans = {machine: plan(folder, wanted, machine) for machine in (KERNEL, SIMULATOR)}
    for each in plans.values():
        each.check()
    for machine, each in plans.items():
        perform(each, machine, _missing, with_metrics=False)
    found = judged(cells(_kept(plans.values())))
    write(found, folder)
    return found


def _missing(wanted: Plan, machine: Machine, base: Software) -> Plan:
    if machine.name == SIMULATOR:
        _throw_away_others(wanted, machine, base)
    left = unfinished(wanted, machine, base)
    there = len(wanted.runs) - len(left.runs)
    if there:
        say(f"schedlab: {there} of {len(wanted.runs)} runs on {machine.name} are there")
    return left


def _throw_away_others(wanted: Plan, machine: Machine, base: Software) -> None:
    """Of the simulator: runs of another make."""
    for run in wanted.runs:
        place = wanted.folder / run.name
        if results.is_whole(place):
            manifest, now = results.read_manifest(place), inputs(run, machine, base)
            if any(manifest.get(key) != now.get(key) for key in results.DECISIVE):
                shutil.rmtree(place)


def _kept(plans: Iterable[Plan]) -> Collection:
    places = [each.folder / run.name for each in plans for run in each.runs]
    return Collection(Kept(place, results.read_manifest(place)) for place in places)


def write(found: Sequence[Judged], folder: Path) -> None:
    """`agreement.csv`, `.parquet` with all numbers unrounded, and `.md` to be read."""
    import polars as pl

    rows = [
        {
            **each.cell.to_dict(),
            "judgement": each.judgement,
            "reason": each.reason.name if each.reason else "",
        }
        for each in found
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(folder / f"{STEM}.csv")
    table.write_parquet(folder / f"{STEM}.parquet")
    (folder / f"{STEM}.md").write_text(markdown(found))


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
