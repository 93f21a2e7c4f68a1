# SPDX-License-Identifier: MIT
"""The page on simulator and kernel: compares their results for the same experiments."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.analysis.agreement import variants
from schedlab.analysis.agreement.cells import KERNEL, NEARNESS, SIMULATOR, Key, cells
from schedlab.analysis.agreement.known import Judged, judged
from schedlab.analysis.agreement.text import HEADINGS, LEFT, row, table
from schedlab.base.display.numbers import counted, percent
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report.model import Cell, Column, Page, Row, Section, Table, Text, Tone
from schedlab.report.wording import cpus, prose, provenance
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import EXPERIMENTS

NAME = "simulator-and-kernel"
_NEAR = percent(NEARNESS, 0)
_SHOWN_MAX = 40
"""Maximum number of near figures in a study's table; those with the largest differences are listed.
"""
_TONES: dict[str, Tone] = {
    "near": "good",
    "known": "bad",
    "microseconds": "muted",
    "off": "bad",
    "unexpectedly near": "bad",
    "failed": "failed",
    "not significant": "plain",
}
_MEANINGS: dict[Tone, str] = {"good": "near", "bad": "off"}


def page(collection: Collection) -> Page | None:
    """Returns the page, or None if no experiment of a study was run on both machines."""
    every = judged(cells(collection), _ranges(collection))
    compared = [cell for cell in every if cell.cell.key.experiment in EXPERIMENTS]
    if not compared:
        return None
    studies = sorted({_study(cell) for cell in compared})
    return Page(
        NAME,
        "Simulator and kernel",
        _lead(compared),
        (
            Section("How they are compared", (_how(),)),
            Section("By policy", (_policies(compared),)),
            *(_section(collection, study, compared) for study in studies),
        ),
    )


def _ranges(collection: Collection) -> variants.Ranges:
    """Returns the results that `./schedlab dev bench agreement` stored next
    to the folders of both machines.
    """
    ranges: dict[Key, variants.Range] = {}
    for folder in sorted({run.folder.parent.parent for run in collection}):
        ranges.update(variants.read(folder))
    return ranges


def _study(cell: Judged) -> int:
    return EXPERIMENTS[cell.cell.key.experiment].study


def _lead(cells: Sequence[Judged]) -> str:
    near = _count(cells, "near")
    text = f"Both machines gave {counted(len(cells), 'figure')}; {near:,} differ by at most {_NEAR} or one tick."
    sensitive = _count(cells, "microseconds")
    known, open_ = _count(cells, "known"), _count(cells, "off", "unexpectedly near")
    unclear, failed = _count(cells, "not significant"), _count(cells, "failed")
    if known:
        text += f" {known:,} differ by more, for the reason given."
    if sensitive:
        text += f" In {sensitive:,}, microseconds decide between the results."
    if unclear:
        text += f" {unclear:,} differ by more, but not significantly."
    if open_:
        text += f" **{open_:,} {'is' if open_ == 1 else 'are'} not explained.**"
    if failed:
        text += f" {failed:,} could not be compared."
    return text


def _count(cells: Sequence[Judged], *judgements: str) -> int:
    return sum(cell.judgement in judgements for cell in cells)


def _how() -> Text:
    spread = percent(variants.SPREAD, 0)
    shift = f"{variants.SHIFT_NS // 1000} µs"
    return Text(
        prose("agreement", near=_NEAR, count=str(variants.COUNT), spread=spread, shift=shift)
    )


def _policies(cells: Sequence[Judged]) -> Table:
    policies = in_policy_order({cell.cell.key.policy for cell in cells})
    rows = [
        _policy(policy, [e for e in cells if e.cell.key.policy == policy]) for policy in policies
    ]
    columns = (
        Column("policy", align="left"),
        Column("figures"),
        Column("near"),
        Column("known reason", "larger difference"),
        Column("microseconds", "larger difference"),
        Column("not significant", "larger difference"),
        Column("not explained", "larger difference"),
        Column("mean", "difference"),
        Column("size", "difference"),
    )
    return Table(
        f"{NAME}-policies",
        "Figures of each policy",
        columns,
        tuple(rows),
        table(cells),
        caption="*Mean* of all relative differences; a value far from 0 shows a bias. *Size*: the"
        " mean of their absolute values.",
        meanings={"bad": "not explained"},
    )


def _policy(policy: str, cells: Sequence[Judged]) -> Row:
    relative = [
        cell.cell.relative for cell in cells if not cell.cell.failure and cell.cell.kernel_mean > 0
    ]
    mean = sum(relative) / len(relative) if relative else 0.0
    size = sum(abs(value) for value in relative) / len(relative) if relative else 0.0
    unexplained = _count(cells, "off", "unexpectedly near", "failed")
    return (
        Cell(policy),
        Cell(f"{len(cells):,}"),
        Cell(f"{_count(cells, 'near'):,}"),
        Cell(f"{_count(cells, 'known'):,}"),
        Cell(f"{_count(cells, 'microseconds'):,}"),
        Cell(f"{_count(cells, 'not significant'):,}"),
        Cell(f"{unexplained:,}", "bad" if unexplained else "plain"),
        Cell(f"{100 * mean:+.2f} %"),
        Cell(percent(size, 2)),
    )


def _section(collection: Collection, study: int, all_cells: Sequence[Judged]) -> Section:
    cells = [cell for cell in all_cells if _study(cell) == study]
    near = [cell for cell in cells if cell.judgement == "near"]
    shown = [cell for cell in cells if cell.judgement != "near"] + near[:_SHOWN_MAX]
    order = {id(cell): place for place, cell in enumerate(cells)}
    shown.sort(key=lambda cell: order[id(cell)])
    left_out = len(cells) - len(shown)
    caption = _provenance(collection, cells)
    if left_out:
        caption += f" {left_out:,} smaller differences are only in the table's files."
    shown_table = Table(
        f"{NAME}-study-{study}",
        f"Study {study}, the largest differences first",
        tuple(
            Column(title, align="left" if title in LEFT else "right")
            for title in HEADINGS
            if title != "CPUs"
        ),
        tuple(_row(cell) for cell in shown),
        table(cells),
        caption=caption,
        meanings=_MEANINGS,
        is_list=True,
    )
    return Section(f"Study {study}", (shown_table,))


def _provenance(collection: Collection, cells: Sequence[Judged]) -> str:
    keys = {(cell.cell.key.experiment, cell.cell.key.policy, cell.cell.key.cpus) for cell in cells}
    setups = [
        repeated
        for setup, repeated in collection.repeated.items()
        if setup.machine in (KERNEL, SIMULATOR)
        and (setup.experiment, setup.policy_title, setup.cpus) in keys
    ]
    return provenance(setups, brackets=False)


def _row(judged: Judged) -> Row:
    experiment, policy, count, *words, verdict = row(judged)
    if judged.reason and judged.judgement in ("known", "unexpectedly near"):
        verdict = judged.judgement
    why = judged.reason.text if judged.reason and judged.judgement == "known" else ""
    setup = f"{policy}, {cpus([int(count)])}"
    row_cells = (Cell(word) for word in (experiment, setup, *words))
    return (*row_cells, Cell(verdict, _TONES[judged.judgement], why))
