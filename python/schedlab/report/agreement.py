# SPDX-License-Identifier: MIT
"""The page on simulator and kernel: what both machines gave for the same experiments."""

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
_SHOWN = 40
"""Figures of a study that are near and yet in its table: the largest differences."""
_TONES: dict[str, Tone] = {
    "near": "good",
    "known": "bad",
    "microseconds": "muted",
    "off": "bad",
    "near after all": "bad",
    "failed": "failed",
    "not told apart": "plain",
}
_MEANINGS: dict[Tone, str] = {"good": "near", "bad": "off"}


def page(collection: Collection) -> Page | None:
    """Returns the page, or None if no experiment of a study was run on both machines."""
    every = judged(cells(collection), _ranges(collection))
    found = [each for each in every if each.cell.key.experiment in EXPERIMENTS]
    if not found:
        return None
    studies = sorted({_study(each) for each in found})
    return Page(
        NAME,
        "Simulator and kernel",
        _lead(found),
        (
            Section("How they are compared", (_how(),)),
            Section("By policy", (_policies(found),)),
            *(_section(collection, study, found) for study in studies),
        ),
    )


def _ranges(collection: Collection) -> variants.Ranges:
    """Returns what `./schedlab dev bench agreement` found, and left beside the folders of both machines."""
    found: dict[Key, variants.Range] = {}
    for folder in sorted({run.folder.parent.parent for run in collection}):
        found.update(variants.read(folder))
    return found


def _study(each: Judged) -> int:
    return EXPERIMENTS[each.cell.key.experiment].study


def _lead(found: Sequence[Judged]) -> str:
    near = _count(found, "near")
    told = (
        f"Of {counted(len(found), 'figure')} that both machines gave, {near:,} are within"
        f" {_NEAR} or a tick of each other."
    )
    sensitive = _count(found, "microseconds")
    known, open_ = _count(found, "known"), _count(found, "off", "near after all")
    unclear, failed = _count(found, "not told apart"), _count(found, "failed")
    if known:
        told += f" {known:,} are further apart for a reason that is told."
    if sensitive:
        told += f" In {sensitive:,} microseconds decide, and the simulator gives either."
    if unclear:
        told += (
            f" {unclear:,} are further apart, but by no more than the choice of seeds may explain."
        )
    if open_:
        told += f" **Of {open_:,} the reason is not known.**"
    if failed:
        told += f" {failed:,} could not be compared."
    return told


def _count(found: Sequence[Judged], *judgements: str) -> int:
    return sum(each.judgement in judgements for each in found)


def _how() -> Text:
    spread = percent(variants.SPREAD, 0)
    shift = f"{variants.SHIFT_NS // 1000} µs"
    return Text(
        prose("agreement", near=_NEAR, count=str(variants.COUNT), spread=spread, shift=shift)
    )


def _policies(found: Sequence[Judged]) -> Table:
    policies = in_policy_order({each.cell.key.policy for each in found})
    rows = [
        _policy(policy, [e for e in found if e.cell.key.policy == policy]) for policy in policies
    ]
    columns = (
        Column("policy", align="left"),
        Column("figures"),
        Column("near"),
        Column("known reason", "further apart"),
        Column("microseconds", "further apart"),
        Column("not told apart", "further apart"),
        Column("no reason", "further apart"),
        Column("mean", "difference"),
        Column("size", "difference"),
    )
    return Table(
        f"{NAME}-policies",
        "Figures of each policy",
        columns,
        tuple(rows),
        table(found),
        caption="*Mean* of all relative differences: further from 0 than most single ones could"
        " tell, it would show a bias. *Size*: the same without their signs.",
        meanings={"bad": "no reason is known"},
    )


def _policy(policy: str, own: Sequence[Judged]) -> Row:
    relative = [
        each.cell.relative for each in own if not each.cell.failure and each.cell.kernel_mean > 0
    ]
    mean = sum(relative) / len(relative) if relative else 0.0
    size = sum(abs(value) for value in relative) / len(relative) if relative else 0.0
    unexplained = _count(own, "off", "near after all", "failed")
    return (
        Cell(policy),
        Cell(f"{len(own):,}"),
        Cell(f"{_count(own, 'near'):,}"),
        Cell(f"{_count(own, 'known'):,}"),
        Cell(f"{_count(own, 'microseconds'):,}"),
        Cell(f"{_count(own, 'not told apart'):,}"),
        Cell(f"{unexplained:,}", "bad" if unexplained else "plain"),
        Cell(f"{100 * mean:+.2f} %"),
        Cell(percent(size, 2)),
    )


def _section(collection: Collection, study: int, found: Sequence[Judged]) -> Section:
    own = [each for each in found if _study(each) == study]
    near = [each for each in own if each.judgement == "near"]
    shown = [each for each in own if each.judgement != "near"] + near[:_SHOWN]
    order = {id(each): place for place, each in enumerate(own)}
    shown.sort(key=lambda each: order[id(each)])
    left_out = len(own) - len(shown)
    caption = _provenance(collection, own)
    if left_out:
        caption += f" The table leaves out {left_out:,} that are nearer still; its files have all."
    shown_table = Table(
        f"{NAME}-study-{study}",
        f"Study {study}, the largest differences first",
        tuple(
            Column(title, align="left" if title in LEFT else "right")
            for title in HEADINGS
            if title != "CPUs"
        ),
        tuple(_row(each) for each in shown),
        table(own),
        caption=caption,
        meanings=_MEANINGS,
        is_list=True,
    )
    return Section(f"Study {study}", (shown_table,))


def _provenance(collection: Collection, own: Sequence[Judged]) -> str:
    keys = {(each.cell.key.experiment, each.cell.key.policy, each.cell.key.cpus) for each in own}
    setups = [
        each
        for setup, each in collection.repeated.items()
        if setup.machine in (KERNEL, SIMULATOR)
        and (setup.experiment, setup.policy_title, setup.cpus) in keys
    ]
    return provenance(setups, brackets=False)


def _row(each: Judged) -> Row:
    experiment, policy, count, *words, verdict = row(each)
    if each.reason and each.judgement in ("known", "near after all"):
        verdict = each.judgement
    why = each.reason.text if each.reason and each.judgement == "known" else ""
    setup = f"{policy}, {cpus([int(count)])}"
    told = (Cell(word) for word in (experiment, setup, *words))
    return (*told, Cell(verdict, _TONES[each.judgement], why))
