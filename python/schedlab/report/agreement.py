# SPDX-License-Identifier: MIT
"""The page on simulator and kernel: compares their results for the same experiments."""

from collections.abc import Sequence

from schedlab.analysis.agreement import variants
from schedlab.analysis.agreement.cells import (
    KERNEL,
    NEAR_FRACTION,
    SIMULATOR,
    CellKey,
    compute_cells,
)
from schedlab.analysis.agreement.known import JudgedCell, judge_cells
from schedlab.analysis.agreement.text import HEADINGS, LEFT_ALIGNED, cell_row, cells_table
from schedlab.base.display.numbers import format_count, percent
from schedlab.base.toolchain.policies import sort_policies
from schedlab.report.model import Cell, Column, Page, Row, Section, Table, Text, Tone
from schedlab.report.wording import cpus_text, provenance_text, read_prose
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import EXPERIMENTS

PAGE_NAME = "simulator-and-kernel"
_NEAR = percent(NEAR_FRACTION, 0)
_NEAR_FIGURES_MAX = 40
"""Maximum number of near figures in a study's table; those with the largest differences are listed.
"""
_TONES_OF_JUDGEMENTS: dict[str, Tone] = {
    "near": "good",
    "known": "bad",
    "microseconds": "muted",
    "off": "bad",
    "unexpectedly near": "bad",
    "failed": "failed",
    "not significant": "plain",
}
_MEANINGS_OF_TONES: dict[Tone, str] = {"good": "near", "bad": "off"}


def make_page(collection: Collection) -> Page | None:
    """Returns the page, or None if no experiment of a study was run on both machines."""
    all_cells = judge_cells(compute_cells(collection), _stored_ranges(collection))
    study_cells = [cell for cell in all_cells if cell.cell.key.experiment in EXPERIMENTS]
    if not study_cells:
        return None
    studies = sorted({_study_number(cell) for cell in study_cells})
    return Page(
        PAGE_NAME,
        "Simulator and kernel",
        _summarize(study_cells),
        (
            Section("How they are compared", (_method_text(),)),
            Section("By policy", (_policy_table(study_cells),)),
            *(_study_section(collection, study, study_cells) for study in studies),
        ),
    )


def _stored_ranges(collection: Collection) -> variants.RangesByCell:
    """Returns the results that `./schedlab dev bench agreement` stored next
    to the folders of both machines.
    """
    ranges: dict[CellKey, variants.ValueRange] = {}
    for folder in sorted({run.folder.parent.parent for run in collection}):
        ranges.update(variants.read_ranges(folder))
    return ranges


def _study_number(cell: JudgedCell) -> int:
    """Returns the number of the study to which the cell's experiment belongs."""
    return EXPERIMENTS[cell.cell.key.experiment].study


def _summarize(cells: Sequence[JudgedCell]) -> str:
    """Returns the page's introduction: how many figures agree, and why others differ."""
    near = _count(cells, "near")
    summary = f"Both machines gave {format_count(len(cells), 'figure')}; {near:,} differ by at most {_NEAR}"
    summary += " or one tick."
    sensitive = _count(cells, "microseconds")
    known, unexplained = _count(cells, "known"), _count(cells, "off", "unexpectedly near")
    unclear, failed = _count(cells, "not significant"), _count(cells, "failed")
    if known:
        summary += f" {known:,} differ by more, for the reason given."
    if sensitive:
        summary += f" In {sensitive:,}, microseconds decide between the results."
    if unclear:
        summary += f" {unclear:,} differ by more, but not significantly."
    if unexplained:
        summary += f" **{unexplained:,} {'is' if unexplained == 1 else 'are'} not explained.**"
    if failed:
        summary += f" {failed:,} could not be compared."
    return summary


def _count(cells: Sequence[JudgedCell], *judgements: str) -> int:
    return sum(cell.judgement in judgements for cell in cells)


def _method_text() -> Text:
    """Returns the text that explains how the machines are compared."""
    spread = percent(variants.COST_SPREAD, 0)
    shift = f"{variants.BEGIN_SHIFT_MAX_NS // 1000} µs"
    return Text(
        read_prose(
            "agreement", near=_NEAR, count=str(variants.VARIANT_COUNT), spread=spread, shift=shift
        )
    )


def _policy_table(cells: Sequence[JudgedCell]) -> Table:
    policies = sort_policies({cell.cell.key.policy for cell in cells})
    rows = [
        _policy_row(policy, [e for e in cells if e.cell.key.policy == policy])
        for policy in policies
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
        f"{PAGE_NAME}-policies",
        "Figures of each policy",
        columns,
        tuple(rows),
        cells_table(cells),
        caption="*Mean* of all relative differences; a value far from 0 shows a bias. *Size*: the"
        " mean of their absolute values.",
        meanings={"bad": "not explained"},
    )


def _policy_row(policy: str, cells: Sequence[JudgedCell]) -> Row:
    """Returns a policy's row: how many of its figures agree, and its mean difference."""
    relative = [
        cell.cell.relative for cell in cells if not cell.cell.failure and cell.cell.kernel_mean > 0
    ]
    mean = sum(relative) / len(relative) if relative else 0.0
    mean_size = sum(abs(value) for value in relative) / len(relative) if relative else 0.0
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
        Cell(percent(mean_size, 2)),
    )


def _study_section(collection: Collection, study: int, all_cells: Sequence[JudgedCell]) -> Section:
    """Returns the section of a study: its figures on both machines."""
    cells = [cell for cell in all_cells if _study_number(cell) == study]
    near = [cell for cell in cells if cell.judgement == "near"]
    listed_cells = [cell for cell in cells if cell.judgement != "near"] + near[:_NEAR_FIGURES_MAX]
    order = {id(cell): index for index, cell in enumerate(cells)}
    listed_cells.sort(key=lambda cell: order[id(cell)])
    omitted_count = len(cells) - len(listed_cells)
    caption = _provenance_text(collection, cells)
    if omitted_count:
        caption += f" {omitted_count:,} smaller differences are only in the table's files."
    shown_table = Table(
        f"{PAGE_NAME}-study-{study}",
        f"Study {study}, the largest differences first",
        tuple(
            Column(title, align="left" if title in LEFT_ALIGNED else "right")
            for title in HEADINGS
            if title != "CPUs"
        ),
        tuple(_figure_row(cell) for cell in listed_cells),
        cells_table(cells),
        caption=caption,
        meanings=_MEANINGS_OF_TONES,
        is_list=True,
    )
    return Section(f"Study {study}", (shown_table,))


def _provenance_text(collection: Collection, cells: Sequence[JudgedCell]) -> str:
    """Returns the text for a caption that says how the cells' runs were made."""
    keys = {(cell.cell.key.experiment, cell.cell.key.policy, cell.cell.key.cpus) for cell in cells}
    setups = [
        repeated
        for setup, repeated in collection.repeated.items()
        if setup.machine in (KERNEL, SIMULATOR)
        and (setup.experiment, setup.policy_title, setup.cpus) in keys
    ]
    return provenance_text(setups, brackets=False)


def _figure_row(cell: JudgedCell) -> Row:
    """Returns the row of one figure: simulator, kernel, and the judgement of their difference."""
    experiment, policy, count, *words, verdict = cell_row(cell)
    if cell.reason and cell.judgement in ("known", "unexpectedly near"):
        verdict = cell.judgement
    why = cell.reason.text if cell.reason and cell.judgement == "known" else ""
    setup = f"{policy}, {cpus_text([int(count)])}"
    row_cells = (Cell(word) for word in (experiment, setup, *words))
    return (*row_cells, Cell(verdict, _TONES_OF_JUDGEMENTS[cell.judgement], why))
