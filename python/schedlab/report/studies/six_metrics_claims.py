# SPDX-License-Identifier: MIT
"""What study 3 concludes in its section 5, what its tables say, and what comes out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from schedlab.report.model import Cell, Column, Section, Table, Text, Tone
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
from schedlab.report.studies.texts import cell, combined
from schedlab.report.study_tables import NOTHING, Measured
from schedlab.studies import select
from schedlab.studies.figures import Figure


@dataclass(frozen=True)
class Claim:
    """A sentence of the study, in our words."""

    place: str
    says: str
    figure: Figure | None
    """The number in it, if it has one."""
    tables: str
    """What the study's own tables come to."""
    here: Cell


def section(found: Findings) -> Section:
    """All of them, in a table."""
    claims = [*_gains(found), _overhead_ratio(found), _never_drawn(), *_spreads(found)]
    claims += [_order(found, *each) for each in _ORDERS]
    claims.append(_best_of_fifteen(found))
    return Section("What the study claims", (Text(_INTRODUCTION), _table(claims)))


_INTRODUCTION = """
Section 5 of the study derives these statements from its tables. *Its tables* is what the same \
statement comes to if it is computed from the printed figures; *here*, from the runs of this \
report, seed by seed. In an order, ≈ stands between two whose 95 % intervals overlap.
"""


def _table(claims: list[Claim]) -> Table:
    columns = ("place", "the study says", "figure", "its tables", "here")
    rows = [
        (each.place, each.says, each.figure.text if each.figure else NOTHING, each.tables)
        for each in claims
    ]
    return Table(
        "study-3-claims",
        "Statements of section 5",
        tuple(Column(name, align="left") for name in columns),
        tuple(
            (*(Cell(text) for text in row), each.here)
            for row, each in zip(rows, claims, strict=True)
        ),
        pl.DataFrame(
            [
                dict(zip(columns, (*row, each.here.text), strict=True))
                for row, each in zip(rows, claims, strict=True)
            ]
        ),
    )


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
                f"{workload}: MLFQ's throughput is so many % larger than {other}'s",
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
        "Mixed: round-robin's overhead is almost so many times MLFQ's",
        figure,
        f"{there[0] / there[1]:.1f}",
        cell(here, 1),
    )


def _never_drawn() -> Claim:
    (figure,) = select(study=3, kind="claim", quantity="processes not picked in n draws")
    return Claim(
        figure.place,
        "so many % of n processes are not drawn in n draws",
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
                f"Mixed: of the three, {figure.row} has the {wanted} spread of response times "
                "(its rank, 1 is the narrowest)",
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


_ORDERS: tuple[tuple[str, str, Metric, bool], ...] = (
    ("section 5.1", "MLFQ pays by the longest turnaround in CPU-bound and mixed", TURNAROUND, True),
    ("section 5.1", "RR and lottery have similar turnarounds in all three", TURNAROUND, True),
    ("section 5.2", "MLFQ responds first in all three", RESPONSE, False),
    ("section 5.4", "MLFQ has the least overhead", OVERHEAD, False),
    ("section 6", "RR is the fairest, closely followed by lottery; MLFQ is last", FAIRNESS, True),
)
"""Place, what is said, of which metric, and whether the highest comes first."""


def _order(found: Findings, place: str, says: str, metric: Metric, falling: bool) -> Claim:
    there, here, whys = [], [], []
    for workload in WORKLOADS:
        printed = {s: published_cell(metric, s, workload).value for s in SCHEDULERS}
        there.append(
            f"{workload}: {' > '.join(sorted(printed, key=lambda s: -printed[s]))}"
            if falling
            else f"{workload}: {' < '.join(sorted(printed, key=lambda s: printed[s]))}"
        )
        measured = {s: found.metric(metric, workload, s) for s in SCHEDULERS}
        here.append(f"{workload}: {_in_order(measured, falling)}")
        whys += [each.why for each in measured.values() if each.failed]
    tone: Tone = "failed" if whys else "plain"
    return Claim(
        place, says, None, "; ".join(there), Cell("; ".join(here), tone, "; ".join(set(whys)))
    )


def _in_order(values: Mapping[str, Measured], falling: bool) -> str:
    known = {name: each.estimate for name, each in values.items() if each.estimate}
    if len(known) < len(values):
        return next(each.missing for each in values.values() if each.mean is None)
    names = sorted(known, key=lambda name: known[name].mean, reverse=falling)
    told = names[0]
    for one, other in pairwise(names):
        apart = known[one].low > known[other].high or known[one].high < known[other].low
        told += f" {('>' if falling else '<') if apart else '≈'} {other}"
    return told


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
        "MLFQ improves everything: cells of tables 1 to 5 in which it has the best value, of 15",
        None,
        str(best_published("MLFQ")),
        cell(here, 0),
    )
