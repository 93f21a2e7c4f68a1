# SPDX-License-Identifier: MIT
"""The page of proposals: measures the effect of each change that a study proposed."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from schedlab.analysis.comparison.formatting import estimate_in_column
from schedlab.analysis.comparison.measures import make_measure
from schedlab.analysis.comparison.statistics import Difference, difference
from schedlab.base.display.numbers import Quantity, with_fitting_unit
from schedlab.base.toolchain.policies import parse_setting
from schedlab.report.model import Cell, Column, Page, Row, Section, Table, Text, Tone
from schedlab.report.studies.queries import evaluate_per_run
from schedlab.report.study_tables import NOT_RUN, Measurement, measure_seeds
from schedlab.report.wording import read_prose
from schedlab.runs.collection import Collection, ConfigurationRuns
from schedlab.studies.proposals import Proposal, Test, is_proposal_label, read_proposals

PAGE_NAME = "proposals"
NOTABLE_CHANGE = 0.01
"""Smallest effect that is reported, as a fraction of the value without the proposal.

Smaller effects are not reported, even if significant.
"""
_TONES: dict[str, Tone] = {"helps": "good", "harms": "bad", "does nothing": "muted"}
_TABLE_COLUMNS = (
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
class ProposalOutcome:
    """The result of a test of a change that a study's authors propose.

    The measurements without and with the proposal are paired by seed.
    """

    proposal: Proposal
    test: Test
    off: Measurement
    on: Measurement

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
        notable_change = NOTABLE_CHANGE * abs(change.before.mean)
        sign = 1 if self.test.better == "higher" else -1
        low, high = sorted((sign * change.low, sign * change.high))
        if low > 0 and sign * change.change >= notable_change:
            return "helps"
        if high < 0 and -sign * change.change >= notable_change:
            return "harms"
        is_small = max(abs(low), abs(high)) < 5 * notable_change
        return "does nothing" if is_small else "not significant"


def make_page(collection: Collection) -> Page | None:
    """Returns the page, or None if no test of a proposal was run."""
    runs = collection.of([run for run in collection if is_proposal_label(run.setup.experiment)])
    if not len(runs):
        return None
    all_outcomes = list(find_outcomes(runs))
    run_outcomes = [outcome for outcome in all_outcomes if outcome.was_run]
    return Page(
        PAGE_NAME,
        "What the studies proposed",
        _summarize(run_outcomes, len(all_outcomes) - len(run_outcomes)),
        (
            Section("All tests", (_outcomes_table(run_outcomes),)),
            Section("How to read it", (Text(read_prose("proposals")),)),
        ),
    )


def find_outcomes(collection: Collection) -> Iterator[ProposalOutcome]:
    """Yields all tests of the studies with at least one run."""
    run_labels = {run_labels.setup.experiment for run_labels in collection}
    shown_studies = {
        proposal.study
        for proposal in read_proposals()
        if run_labels & {test.label for test in proposal.tests}
    }
    for proposal in read_proposals(shown_studies) if shown_studies else ():
        for test in proposal.tests:
            off, on = (_measure_test(collection, test, policy) for policy in (test.off, test.on))
            yield ProposalOutcome(proposal, test, off, on)


def _measure_test(collection: Collection, test: Test, policy: str) -> Measurement:
    """Returns the metric of a test under a policy, for all seeds."""
    test_rows = collection.groups if test.group else collection.summary
    if len(test_rows):
        test_rows = test_rows.filter(pl.col("experiment") == test.label)
    if len(test_rows) and test.group:
        test_rows = test_rows.filter(pl.col("group") == test.group)
    first, _, second = test.column.partition(" / ")
    value = pl.col(first).first()
    if second:
        value = value / pl.col(second).first()
    return measure_seeds(
        _test_configuration(collection, test, policy),
        evaluate_per_run(collection, test_rows, value),
    )


def _test_configuration(
    collection: Collection, test: Test, policy: str
) -> ConfigurationRuns | None:
    """Returns the runs of a test under a policy, or None if there are none."""
    name, *settings = policy.split()
    setting_values = dict(parse_setting(setting) for setting in settings)
    setups = collection.select(experiment=test.label, policy=name, cpus=int(test.cpus))
    return next((setup for setup in setups if dict(setup.setup.settings) == setting_values), None)


def _summarize(outcomes: list[ProposalOutcome], not_run: int) -> str:
    """Returns the page's introduction: how many proposals help, harm or do nothing."""
    words = ("helps", "harms", "does nothing", "not significant")
    counts = {word: sum(outcome.verdict == word for outcome in outcomes) for word in words}
    undecided_count = len(outcomes) - sum(counts.values())
    proposal_count = len({(outcome.proposal.study, outcome.proposal.name) for outcome in outcomes})
    return (
        f"{len(outcomes)} tests of {proposal_count} proposals, single or combined:"
        f" {counts['helps']} help, {counts['harms']} harm, {counts['does nothing']} do nothing, and"
        f" {counts['not significant']} are not significant."
        + (
            f" {undecided_count} failed, or ran only with or only without the proposal."
            if undecided_count
            else ""
        )
        + (f" {not_run} others were not run." if not_run else "")
    )


def _outcomes_table(outcomes: list[ProposalOutcome]) -> Table:
    shown = {outcome.proposal.study for outcome in outcomes}
    missing = [proposal for proposal in read_proposals(shown) if proposal.missing]
    rows = [
        *(_outcome_row(outcome) for outcome in outcomes),
        *(_missing_row(proposal) for proposal in missing),
    ]
    outcome_data = pl.DataFrame(
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
        f"{PAGE_NAME}-one-by-one",
        "Results without and with each proposal",
        _TABLE_COLUMNS,
        tuple((Cell(str(number)), *row) for number, row in enumerate(rows, start=1)),
        outcome_data,
        "Less is better, except for rows with ↑. In brackets: the 95 % interval.",
        meanings=_MEANINGS,
    )


def _outcome_row(outcome: ProposalOutcome) -> Row:
    test, change = outcome.test, outcome.change
    quantity = make_measure("", "", test.column, test.better, "").quantity
    if change:
        quantity = with_fitting_unit(quantity, max(change.before.mean, change.after.mean))
    unit = f", {quantity.unit}" if quantity.unit else ""
    cpus = "" if test.cpus == "1" else f", {test.cpus} CPUs"
    return (
        *_proposal_cells(outcome.proposal),
        Cell(f"{'↑ ' if test.better == 'higher' else ''}{test.shows}{cpus}{unit}"),
        Cell(outcome.verdict, _TONES.get(outcome.verdict, "plain")),
        Cell(_change_text(change)),
        _measured_cell(outcome.off, quantity),
        _measured_cell(outcome.on, quantity),
        Cell(test.off),
        Cell(test.on),
    )


def _proposal_cells(proposal: Proposal) -> tuple[Cell, Cell]:
    """Returns the cells for the study and the proposal, as plain text: code
    spans are not marked.
    """
    place = f"{proposal.study}, {proposal.place}"
    return Cell(place), Cell(proposal.proposes.replace("`", ""))


def _missing_row(proposal: Proposal) -> Row:
    """Returns the row of a proposal without runs."""
    verdict, _, why = proposal.missing.replace("`", "").partition(": ")
    cells = (Cell(text or "–", "muted") for text in (why, verdict))
    return (*_proposal_cells(proposal), *cells, *([Cell("–", "muted")] * 5))


def _measured_cell(side: Measurement, quantity: Quantity) -> Cell:
    """Returns the cell of a measurement, or the reason why it is missing."""
    if side.estimate is None:
        return Cell(side.missing, "failed" if side.has_failed else "muted", side.why)
    return Cell(estimate_in_column(side.estimate, quantity))


def _change_text(change: Difference | None) -> str:
    """Returns a change in percent; a dash for None."""
    if change is None or not change.before.mean:
        return "–"
    scale = 100 / change.before.mean
    mean, low, high = (value * scale for value in (change.change, change.low, change.high))
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"
