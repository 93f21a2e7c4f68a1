# SPDX-License-Identifier: MIT
"""What study 3 concludes in its section 5, what its tables say, and what comes out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from schedlab.report.model import Cell, Column, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.six_metrics import (
    FAIRNESS,
    METRICS,
    OVERHEAD,
    RESPONSE,
    RESPONSE_QUARTILES,
    SCHEDULERS,
    THROUGHPUT,
    TURNAROUND,
    WORKLOADS,
    Findings,
    Metric,
    published_cell,
)
from schedlab.report.studies.texts import cell, combined, in_order
from schedlab.report.study_tables import NOTHING, Measured
from schedlab.studies import select
from schedlab.studies.figures import Figure


@dataclass(frozen=True)
class Claim:
    """A sentence of the study, in our words."""

    place: str
    says: str
    workload: str
    figure: Figure | None
    """The number in it, if it has one."""
    tables: str
    """What the study's own tables come to."""
    here: Cell


def section(found: Findings, doubts: Doubts) -> Section:
    """All of them, in a table."""
    claims = [*_gains(found), _overhead_ratio(found), _never_drawn(), *_spreads(found)]
    claims += [each for order in _ORDERS for each in _order(found, *order)]
    claims.append(_best_of_fifteen(found))
    return Section("What the study claims", (Text(_INTRODUCTION), _table(claims), *doubts.rest()))


_INTRODUCTION = """
Section 5 of the study derives these statements from its tables. *Its tables* is what the same \
statement comes to if it is computed from the printed figures; *here*, from the runs of this \
report, seed by seed. In an order, ≈ stands between two whose difference may be chance (95 %, \
seed by seed).
"""


def _table(claims: list[Claim]) -> Table:
    columns = ("section", "the study says", "workload", "figure", "its tables", "here")
    rows = [
        (
            each.place.removeprefix("section "),
            each.says,
            each.workload,
            each.figure.text if each.figure else NOTHING,
            each.tables,
        )
        for each in claims
    ]
    return Table(
        "study-3-claims",
        "Statements of section 5",
        tuple(Column(name, align="left") for name in columns),
        tuple(
            (*(Cell(text) for text in _unlike_above(row, above)), each.here)
            for above, row, each in zip([(), *rows], rows, claims, strict=False)
        ),
        pl.DataFrame(
            [
                dict(zip(columns, (*row, each.here.text), strict=True))
                for row, each in zip(rows, claims, strict=True)
            ]
        ),
    )


def _unlike_above(row: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """Place and statement are printed once for the rows that share them."""
    return ("", "", *row[2:]) if row[:2] == above[:2] else row


def _gains(found: Findings) -> list[Claim]:
    claims = []
    for figure in select(study=3, kind="claim", quantity="throughput gained"):
        other = figure.row.removeprefix("MLFQ over ")
        workload = figure.column

        def gain(mlfq: float, rest: float) -> float:
            return (mlfq / rest - 1) * 100

        there = [published_cell(THROUGHPUT, name, workload).value for name in ("MLFQ", other)]
        here = combined(
            found.metric(THROUGHPUT, workload, "MLFQ"),
            found.metric(THROUGHPUT, workload, other),
            gain,
        )
        claims.append(
            Claim(
                figure.place,
                f"MLFQ's throughput is larger than {other}'s by, %",
                workload,
                figure,
                f"{gain(*there):.0f}",
                cell(here, 1),
            )
        )
    return claims


def _overhead_ratio(found: Findings) -> Claim:
    (figure,) = select(study=3, kind="claim", quantity="overhead ratio")
    there = [published_cell(OVERHEAD, name, "Mixed").value for name in ("RR", "MLFQ")]
    here = combined(
        found.metric(OVERHEAD, "Mixed", "RR"),
        found.metric(OVERHEAD, "Mixed", "MLFQ"),
        lambda rr, mlfq: rr / mlfq,
    )
    return Claim(
        figure.place,
        "RR's overhead is so many times MLFQ's",
        "Mixed",
        figure,
        f"{there[0] / there[1]:.1f}",
        cell(here, 1),
    )


def _never_drawn() -> Claim:
    (figure,) = select(study=3, kind="claim", quantity="processes not picked in n draws")
    return Claim(
        figure.place,
        "processes not drawn in n draws among n, %",
        NOTHING,
        figure,
        NOTHING,
        Cell(
            f"{100 * (1 - 1 / 40) ** 40:.1f}",
            why="Not measured but computed, for n = 40: (1 − 1/n)ⁿ, which rises to 1/e = 36.8 % "
            "as n grows. In a run the number of those that wait changes from draw to draw.",
        ),
    )


def _spreads(found: Findings) -> list[Claim]:
    """Of figure 4: the rank of a scheduler's spread, with all three spreads."""
    spreads = {
        name: found.of_processes("Mixed", policy, RESPONSE_QUARTILES)
        for name, policy in SCHEDULERS.items()
    }
    claims = []
    for figure in select(study=3, place="figure 4", kind="claim"):
        wanted = "narrowest" if figure.text == "1" else "widest"
        claims.append(
            Claim(
                "section 5.6",
                f"{figure.row} has the {wanted} spread of response (rank)",
                "Mixed",
                figure,
                NOTHING,
                _rank(figure.row, spreads),
            )
        )
    return claims


def _rank(name: str, values: Mapping[str, Measured]) -> Cell:
    means = {each: found.mean for each, found in values.items() if found.mean is not None}
    if len(means) < len(values):
        return _missing(values)
    order = sorted(means, key=lambda each: means[each])
    told = ", ".join(f"{each} {means[each]:.2f}" for each in order)
    return Cell(f"{order.index(name) + 1}", why=f"Interquartile ranges in ticks: {told}.")


def _missing(values: Mapping[str, Measured]) -> Cell:
    first = next(each for each in values.values() if each.mean is None)
    return cell(first, 0)


_ALL = tuple(WORKLOADS)
_ORDERS: tuple[tuple[str, str, Metric, bool, tuple[str, ...]], ...] = (
    (
        "section 5.1",
        "MLFQ has the longest turnaround",
        TURNAROUND,
        True,
        ("CPU-bound", "Mixed"),
    ),
    ("section 5.1", "RR and lottery have similar turnarounds", TURNAROUND, True, _ALL),
    ("section 5.2", "MLFQ responds first", RESPONSE, False, _ALL),
    ("section 5.4", "MLFQ has the least overhead", OVERHEAD, False, _ALL),
    (
        "section 6",
        "RR is the fairest, then lottery, MLFQ last",
        FAIRNESS,
        True,
        _ALL,
    ),
)
"""Place, what is said, of which metric, whether the highest comes first, of which workloads."""


def _order(
    found: Findings,
    place: str,
    says: str,
    metric: Metric,
    falling: bool,
    workloads: tuple[str, ...],
) -> list[Claim]:
    """One for each workload."""
    return [
        Claim(
            place,
            says,
            workload,
            None,
            _order_there(metric, workload, falling),
            _order_here({s: found.metric(metric, workload, s) for s in SCHEDULERS}, falling),
        )
        for workload in workloads
    ]


def _order_there(metric: Metric, workload: str, falling: bool) -> str:
    printed = {name: published_cell(metric, name, workload).value for name in SCHEDULERS}
    sign = " > " if falling else " < "
    return sign.join(sorted(printed, key=lambda name: printed[name], reverse=falling))


def _order_here(values: Mapping[str, Measured], falling: bool) -> Cell:
    means = {name: each.mean for name, each in values.items() if each.mean is not None}
    if len(means) < len(values):
        return _missing(values)
    return Cell(in_order(values, falling))


def best_published(scheduler: str) -> int:
    """In how many cells of tables 1 to 5 it has the best of the three values printed."""
    return _count_best(
        scheduler, lambda metric, name, workload: published_cell(metric, name, workload).value
    )


def _count_best(scheduler: str, value: Callable[[Metric, str, str], float]) -> int:
    return sum(
        metric.best({name: value(metric, name, workload) for name in SCHEDULERS}) == scheduler
        for metric in METRICS
        for workload in WORKLOADS
    )


def best_here(found: Findings, scheduler: str) -> Measured:
    """The same of our means; not a mean over seeds itself, but one number of all runs."""
    means: dict[tuple[int, str, str], float] = {}
    for metric in METRICS:
        for workload in WORKLOADS:
            for name in SCHEDULERS:
                measured = found.metric(metric, workload, name)
                if measured.mean is None:
                    return measured
                means[metric.table, name, workload] = measured.mean
    return Measured((_count_best(scheduler, lambda m, name, w: means[m.table, name, w]),))


def _best_of_fifteen(found: Findings) -> Claim:
    here = best_here(found, "MLFQ")
    return Claim(
        "section 5",
        "MLFQ improves everything (best of 15 cells)",
        "all",
        None,
        str(best_published("MLFQ")),
        cell(here, 0),
    )
