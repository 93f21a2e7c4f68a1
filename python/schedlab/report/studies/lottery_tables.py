# SPDX-License-Identifier: MIT
"""Study 1's tables 3 to 8 beside ours: shares under the lottery on one to five CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

import polars as pl

from schedlab.report.model import Cell, Column, Row, Table
from schedlab.report.studies.lottery_reasons import LotteryReasons
from schedlab.report.studies.lottery_runs import (
    SHIPPED,
    THESIS,
    LotteryRuns,
    competition,
    share_figure,
)
from schedlab.report.studies.texts import cell
from schedlab.report.study_tables import (
    Comparison,
    Kind,
    Line,
    Measured,
    compared_table,
)
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiments import ALL_CPUS
from schedlab.studies.ideal import ideal_group_shares
from schedlab.studies.shares import TESTS, LotteryTest

PICKED = "% of selections, the study's program"
WHILE_ALL_COMPETE = {
    policy: f"% of CPU time, all compete, {policy}" for policy in (THESIS, SHIPPED)
}
_DEMANDS_DIFFER = 8
"""The table whose ideal depends on what processes ask for, and that on the tick."""
_BY_DEMANDS = (
    "By what the processes asked for in these runs, system calls included; under another policy it"
    " may differ by a little."
)


def shares_table(runs: LotteryRuns, test: LotteryTest, caption: str) -> Table:
    """One of the six tables."""
    return compared_table(
        f"study-1-table-{test.table}",
        f"The study's table {test.table}: {test.title}",
        ("group", "CPUs"),
        list(_lines(runs, test)),
        caption,
    )


def _lines(runs: LotteryRuns, test: LotteryTest) -> Iterator[Line]:
    reasons = LotteryReasons(runs, test)
    for group, row in test.rows.items():
        for cpus in ALL_CPUS:
            parts = {PICKED: _picked(runs, test, group, cpus, reasons)}
            for policy, part in WHILE_ALL_COMPETE.items():
                parts[part] = _competing(runs, test, group, policy, cpus)
            yield Line((row, str(cpus)), parts)


def _picked(
    runs: LotteryRuns, test: LotteryTest, group: str, cpus: int, reasons: LotteryReasons
) -> Comparison:
    row = test.rows[group]
    first = cpus == ALL_CPUS[0]
    notes: dict[Kind, str] = {"here": reasons.here(group, cpus)}
    if first:
        notes["expected"] = reasons.expected(row)
    return Comparison(
        study=share_figure(test, row, cpus),
        here=runs.picked(test, group, cpus),
        expected=share_figure(test, row, None, "expectation") if first else None,
        rerun=share_figure(test, row, cpus, source="rerun"),
        differs="points",
        notes=notes,
    )


def _competing(
    runs: LotteryRuns, test: LotteryTest, group: str, policy: str, cpus: int
) -> Comparison:
    ideal = 100 * ideal_group_shares(test.table, cpus)[test.rows[group]]
    notes: dict[Kind, str] = {}
    if test.table == _DEMANDS_DIFFER:
        own = runs.own_ideal(test, group, policy, cpus).mean
        ideal = ideal if own is None else own
        notes["ideal"] = _BY_DEMANDS if own is not None else ""
    chance = runs.chance(runs.setup(competition(test), policy, cpus), ideal)
    return Comparison(
        here=runs.share(test, group, policy, cpus),
        ideal=ideal,
        near=chance if chance is None else max(chance, 0.1),
        shows_ideal=policy == SHIPPED,
        notes=notes,
    )


def mean_difference(runs: LotteryRuns, test: LotteryTest, cpus: int) -> Measured:
    """Mean over the groups of how far our shares of selections are off the study's, in points."""
    pairs = [
        (runs.picked(test, group, cpus), share_figure(test, row, cpus))
        for group, row in test.rows.items()
    ]
    for ours, _ in pairs:
        if ours.mean is None:
            return ours
    return Measured(
        (fmean(abs((ours.mean or 0) - theirs.value) for ours, theirs in pairs if theirs),)
    )


def nearness_table(runs: LotteryRuns) -> Table:
    """Of all six tables: how near ours are to the study's, and both lotteries to the ideal."""
    columns = (
        Column("table", align="left"),
        Column("off", align="left"),
        *(Column(cpus_text([cpus])) for cpus in ALL_CPUS),
    )
    rows: list[Row] = []
    data: list[dict[str, str | int | float | None]] = []
    for test in TESTS:
        kinds = {
            "the study's program here, off the study": [
                mean_difference(runs, test, cpus) for cpus in ALL_CPUS
            ],
            **{
                f"{policy}, all compete, off the ideal": [
                    runs.off_ideal(test, policy, cpus) for cpus in ALL_CPUS
                ]
                for policy in (THESIS, SHIPPED)
            },
        }
        for number, (kind, found) in enumerate(kinds.items()):
            name = f"{test.table}: {test.title}"
            rows.append(
                (Cell("" if number else name), Cell(kind), *(cell(each, 1) for each in found))
            )
            data += [
                {"table": test.table, "off": kind, "cpus": cpus, "points": each.mean}
                for cpus, each in zip(ALL_CPUS, found, strict=True)
            ]
    return Table(
        "study-1-shares-off",
        "Percentage points off, mean over the groups of a table",
        columns,
        tuple(rows),
        pl.DataFrame(data, schema_overrides={"points": pl.Float64}),
        "Of each group, how far its mean share is off; the mean over the groups.",
        tuple(range(3, 3 * len(TESTS), 3)),
    )
