# SPDX-License-Identifier: MIT
"""The page of proposals: measures the effect of each change that a study proposed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from schedlab.analysis.comparison.formatting import in_column
from schedlab.analysis.comparison.measures import measure_of
from schedlab.analysis.comparison.statistics import Difference, difference
from schedlab.base.display.numbers import Quantity, fitting
from schedlab.base.toolchain.policies import parse_setting
from schedlab.report.model import Cell, Column, Page, Row, Section, Table, Text, Tone
from schedlab.report.studies.queries import of_rows
from schedlab.report.study_tables import NOT_RUN, Measured, measure
from schedlab.report.wording import prose
from schedlab.runs.collection import Collection, Repeated
from schedlab.studies.proposals import Proposal, Test, is_of_proposals, proposals

NAME = "proposals"
LEAST = 0.01
"""Smallest effect that is reported, as a fraction of the value without the proposal.

Smaller effects are not reported, even if significant.
"""
_TONES: dict[str, Tone] = {"helps": "good", "harms": "bad", "does nothing": "muted"}
_COLUMNS = (
    Column("#"),
    *(Column(title, align="left") for title in ("study", "proposal", "test", "verdict")),
    Column("change, %"),
    Column("off", "means"),
    Column("on", "means"),
    Column("off", "policies", align="left"),
    Column("on", "policies", align="left"),
)
_MEANINGS: dict[Tone, str] = {"good": "better with it", "bad": "worse with it"}


@dataclass(frozen=True)
class Outcome:
    """The result of a test: the measurements without and with the proposal, paired by seed."""

    proposal: Proposal
    test: Test
    off: Measured
    on: Measured

    @property
    def was_run(self) -> bool:
        """True if either side was run, even if it failed."""
        return any(side.values or side.missing != NOT_RUN for side in (self.off, self.on))

    @property
    def change(self) -> Difference | None:
        """The change with the proposal, or None if a side is missing."""
        if not self.off.values or len(self.off.values) != len(self.on.values):
            return None
        return difference(self.off.values, self.on.values, paired=True)

    @property
    def verdict(self) -> str:
        """`helps`, `harms` or `does nothing`; `not significant` if the interval permits several of these."""
        change = self.change
        if change is None:
            return self.on.missing if self.off.values else self.off.missing
        least = LEAST * abs(change.before.mean)
        sign = 1 if self.test.better == "higher" else -1
        low, high = sorted((sign * change.low, sign * change.high))
        if low > 0 and sign * change.change >= least:
            return "helps"
        if high < 0 and -sign * change.change >= least:
            return "harms"
        small = max(abs(low), abs(high)) < 5 * least
        return "does nothing" if small else "not significant"


def page(collection: Collection) -> Page | None:
    """Returns the page, or None if no test of a proposal was run."""
    runs = Collection(run for run in collection if is_of_proposals(run.setup.experiment))
    if not len(runs):
        return None
    every = list(outcomes(runs))
    tested = [outcome for outcome in every if outcome.was_run]
    return Page(
        NAME,
        "What the studies proposed",
        _lead(tested, len(every) - len(tested)),
        (
            Section("All tests", (_table(tested),)),
            Section("How to read it", (Text(prose("proposals")),)),
        ),
    )


def outcomes(collection: Collection) -> Iterator[Outcome]:
    """Yields all tests of the studies with at least one run."""
    run = {run.setup.experiment for run in collection}
    shown = {
        proposal.study for proposal in proposals() if run & {test.label for test in proposal.tests}
    }
    for proposal in proposals(shown) if shown else ():
        for test in proposal.tests:
            off, on = (_measured(collection, test, policy) for policy in (test.off, test.on))
            yield Outcome(proposal, test, off, on)


def _measured(collection: Collection, test: Test, policy: str) -> Measured:
    rows = collection.groups if test.group else collection.summary
    if len(rows):
        rows = rows.filter(pl.col("experiment") == test.label)
    if len(rows) and test.group:
        rows = rows.filter(pl.col("group") == test.group)
    first, _, second = test.column.partition(" / ")
    value = pl.col(first).first()
    if second:
        value = value / pl.col(second).first()
    return measure(_setup(collection, test, policy), of_rows(collection, rows, value))


def _setup(collection: Collection, test: Test, policy: str) -> Repeated | None:
    name, *settings = policy.split()
    setting_values = dict(parse_setting(setting) for setting in settings)
    setups = collection.select(experiment=test.label, policy=name, cpus=int(test.cpus))
    return next((setup for setup in setups if dict(setup.setup.settings) == setting_values), None)


def _lead(outcomes: list[Outcome], not_run: int) -> str:
    words = ("helps", "harms", "does nothing", "not significant")
    counts = {word: sum(outcome.verdict == word for outcome in outcomes) for word in words}
    left = len(outcomes) - sum(counts.values())
    built = len({(outcome.proposal.study, outcome.proposal.name) for outcome in outcomes})
    return (
        f"{len(outcomes)} tests of {built} proposals, single or combined:"
        f" {counts['helps']} help, {counts['harms']} harm, {counts['does nothing']} do nothing, and"
        f" {counts['not significant']} are not significant."
        + (f" {left} failed, or ran only with or only without the proposal." if left else "")
        + (f" {not_run} others were not run." if not_run else "")
    )


def _table(outcomes: list[Outcome]) -> Table:
    shown = {outcome.proposal.study for outcome in outcomes}
    missing = [proposal for proposal in proposals(shown) if proposal.missing]
    rows = [
        *(_row(outcome) for outcome in outcomes),
        *(_missing_row(proposal) for proposal in missing),
    ]
    data = pl.DataFrame(
        [
            {
                "study": outcome.proposal.study,
                "proposal": outcome.proposal.name,
                "test": outcome.test.shows,
                "cpus": int(outcome.test.cpus),
                "setup": setup,
                "policy": policy,
                "column": outcome.test.column,
                "seed": seed,
                "value": value,
            }
            for outcome in outcomes
            for setup, policy, side in (
                ("off", outcome.test.off, outcome.off),
                ("on", outcome.test.on, outcome.on),
            )
            for seed, value in enumerate(side.values)
        ]
    )
    return Table(
        f"{NAME}-one-by-one",
        "Results without and with each proposal",
        _COLUMNS,
        tuple((Cell(str(number)), *row) for number, row in enumerate(rows, start=1)),
        data,
        "Less is better, except for rows with ↑. In brackets: the 95 % interval.",
        meanings=_MEANINGS,
    )


def _row(outcome: Outcome) -> Row:
    test, change = outcome.test, outcome.change
    quantity = measure_of("", "", test.column, test.better, "").quantity
    if change:
        quantity = fitting(quantity, max(change.before.mean, change.after.mean))
    unit = f", {quantity.unit}" if quantity.unit else ""
    cpus = "" if test.cpus == "1" else f", {test.cpus} CPUs"
    return (
        *_place(outcome.proposal),
        Cell(f"{'↑ ' if test.better == 'higher' else ''}{test.shows}{cpus}{unit}"),
        Cell(outcome.verdict, _TONES.get(outcome.verdict, "plain")),
        Cell(_percent(change)),
        _value(outcome.off, quantity),
        _value(outcome.on, quantity),
        Cell(test.off),
        Cell(test.on),
    )


def _place(proposal: Proposal) -> tuple[Cell, Cell]:
    """Returns two plain-text cells: code spans are not marked."""
    place = f"{proposal.study}, {proposal.place}"
    return Cell(place), Cell(proposal.proposes.replace("`", ""))


def _missing_row(proposal: Proposal) -> Row:
    verdict, _, why = proposal.missing.replace("`", "").partition(": ")
    cells = (Cell(text or "–", "muted") for text in (why, verdict))
    return (*_place(proposal), *cells, *([Cell("–", "muted")] * 5))


def _value(side: Measured, quantity: Quantity) -> Cell:
    if side.estimate is None:
        return Cell(side.missing, "failed" if side.failed else "muted", side.why)
    return Cell(in_column(side.estimate, quantity))


def _percent(change: Difference | None) -> str:
    if change is None or not change.before.mean:
        return "–"
    scale = 100 / change.before.mean
    mean, low, high = (value * scale for value in (change.change, change.low, change.high))
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"
