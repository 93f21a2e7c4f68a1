# SPDX-License-Identifier: MIT
"""Tables of the studies' pages: each published figure with the measured figure and the ideal.

measured = measure(collection.one("s1-timing-switch", "rr:table-scan", 1), numbers)
lines = [Line(("Switch Overhead", "1"), {"switches": Comparison(figure, measured)})]
table = compared_table("table-1", "Round-robin", ("test", "CPUs"), lines)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from schedlab.analysis.comparison.formatting import estimate_in_column
from schedlab.analysis.comparison.statistics import Estimate, ValueRange, estimate
from schedlab.base.display.numbers import NO_VALUE
from schedlab.report.model import Cell, Column, Row, Table, Tone
from schedlab.studies.agreement import is_near, tolerance
from schedlab.studies.causes import Cause, Effects, cause_of

if TYPE_CHECKING:
    from schedlab.runs.collection import ConfigurationRuns, StoredRun
    from schedlab.studies import Figure

NOT_RUN = "not run"
NOT_EXPLAINED = "This difference from the study is not explained."
COSTS_DERIVED_FROM_CELL = "The costs are derived from this cell, so it agrees by definition."
REST_NOT_EXPLAINED = "The rest of the difference is not explained."
EXPLAINED_BY_COSTS = (
    "With the study costs, in which operations are slower, the value is near: see *study costs*."
)

NumbersByRun = Mapping[Path, float]
"""The measured number of each run, by folder. Runs without a number are missing."""


class NoMeasurement(Exception):
    """Raised if a text needs a number that the runs do not have. The message names the reason."""


@dataclass(frozen=True)
class Measurement:
    """A measurement under one configuration: a number for each seed, or the reason why numbers are missing."""

    values: tuple[float, ...] = ()
    missing: str = NOT_RUN
    """The text of a cell without values."""
    why: str = ""
    """Markdown: how the runs failed."""
    has_failed: bool = False
    within: ValueRange = (0, math.inf)
    """Range of possible values, which limits the interval."""
    runs: tuple[float | None, ...] = ()
    """For charts: the number of each run, or None if it failed or has none."""

    @cached_property
    def estimate(self) -> Estimate | None:
        """Returns the mean over the seeds with its interval, or None if there are no values."""
        return estimate(self.values, self.within) if self.values else None

    @property
    def mean(self) -> float | None:
        """Returns the mean, for texts and charts, or None if there are no values."""
        return self.estimate.mean if self.estimate else None

    @property
    def value(self) -> float:
        """Returns the mean. Raises NoMeasurement if there is none."""
        if self.estimate is None:
            raise NoMeasurement("no such value" if self.missing == NO_VALUE else self.missing)
        return self.estimate.mean

    def __format__(self, spec: str) -> str:
        """Returns the mean, for texts: `f"{measured:.1f}"`. Raises NoMeasurement if there is none."""
        return format(self.value, spec)

    def table_record(self) -> dict[str, float | int | str | None]:
        """Returns the columns of the data behind a table."""
        mean = self.estimate
        return {
            "measured": mean.mean if mean else None,
            "low": mean.low if mean else None,
            "high": mean.high if mean else None,
            "seeds": mean.count if mean else None,
            "missing": None if mean else self.missing,
        }

    def format_interval(self, decimals: int) -> str:
        """`86.0 [85.1, 86.9]`, or `not run`."""
        if self.estimate is None:
            return self.missing
        return estimate_in_column(self.estimate, decimals=decimals)


def measure_seeds(
    repeated: ConfigurationRuns | None, numbers: NumbersByRun, within: ValueRange = (0, math.inf)
) -> Measurement:
    """Returns the measurement of all seeds of a configuration.

    It has no values if a run has no number.
    """
    if repeated is None:
        return Measurement()
    runs = tuple(numbers.get(run.folder) if run.succeeded else None for run in repeated.runs)
    if repeated.failed:
        failure_text = f"failed ({len(repeated.failed)} of {len(repeated.runs)})"
        return Measurement(
            (), failure_text, _failures_text(repeated.failed), has_failed=True, runs=runs
        )
    values = tuple(run for run in runs if run is not None)
    if len(values) < len(runs):
        return Measurement((), NO_VALUE, "The run succeeded, but has no such value.", runs=runs)
    return Measurement(values, within=within, runs=runs)


def _failures_text(failed: Iterable[StoredRun]) -> str:
    """Returns in words how runs failed."""
    reasons = {
        f"seed {run.seed}: {run.status}"
        + (f", {message}" if (message := str(run.manifest.get("message", "")).strip()) else "")
        for run in failed
    }
    return "; ".join(sorted(reasons))


ColumnKind = Literal[
    "expected", "published", "rerun", "measured", "difference", "study_costs", "ideal"
]
_COLUMN_TITLES: Mapping[ColumnKind, str] = {
    "expected": "expected",
    "published": "published",
    "rerun": "rerun",
    "measured": "measured",
    "difference": "difference",
    "study_costs": "study costs",
    "ideal": "ideal",
}
"""The titles of the columns, in their order."""


_MEANINGS_WITH_STUDY_COSTS: Mapping[Tone, str] = {
    "good": "near its ideal; study costs: near the published value",
    "bad": "off its ideal; study costs: off the published value",
}


@dataclass(frozen=True)
class FigureComparison:
    """One figure of a study with the measured value and the ideal."""

    published: Figure | None = None
    measured: Measurement | None = None
    """None if no measurement corresponds to the figure.

    A measurement that was not run is a Measured without values.
    """
    study_costs: Measurement | None = None
    """The measurement with the study costs."""
    costs_run: str = ""
    """The experiment that measured with the study costs."""
    effects: Effects = field(default_factory=dict)
    """The measured effects of the cause of a difference."""
    ideal: float | None = None
    expected: Figure | None = None
    """The value that the study considers fair."""
    rerun: Figure | None = None
    """The value of the study's own programs in a rerun."""
    decimals: int = 1
    """Decimals of measured figures and the ideal. Published figures are as printed."""
    near_distance: float | None = None
    """Maximum distance from the ideal for the tone `good`; larger distances are `bad`. None: no tone."""
    is_counted: bool = True
    """False if agreement has no meaning: the published figure measures no scheduler, or defined a constant."""
    shows_ideal: bool = True
    """False if the ideal only determines the tone, and another column shows it."""
    differs: Literal["", "percent", "points"] = ""
    """Measured minus published, in percent of the published value or as points.

    Empty: no column.
    """
    notes: Mapping[ColumnKind, str] = field(default_factory=dict)
    """Footnotes, in Markdown."""

    def has_column(self, kind: ColumnKind) -> bool:
        """Returns whether the column has content."""
        if kind == "difference":
            return bool(self.differs)
        return getattr(self, kind) is not None and (kind != "ideal" or self.shows_ideal)

    def column_cell(self, kind: ColumnKind) -> Cell:
        """Returns the cell of that column."""
        why = self.notes.get(kind, "") or self._difference_reason(kind)
        if kind == "measured":
            return self._measured_cell(self.measured, self.ideal, self.near_distance, why)
        if kind == "study_costs":
            return self._measured_cell(
                self.study_costs, _figure_value(self.published), self.tolerance, why
            )
        if kind == "difference":
            return Cell(self._difference_text(), "muted", why)
        if kind == "ideal":
            text = NO_VALUE if self.ideal is None else f"{self.ideal:.{self.decimals}f}"
            return Cell(text, "muted", why)
        figure: Figure | None = getattr(self, kind)
        tone: Tone = "plain" if kind == "published" else "muted"
        return Cell(figure.text if figure else NO_VALUE, tone, why)

    def _difference_reason(self, kind: ColumnKind) -> str:
        """Returns why a measured value is not near the published one, if the runs show it."""
        measured = {"measured": self.measured, "study_costs": self.study_costs}.get(kind)
        if not self._is_off(measured):
            return ""
        if kind != "measured" or not self.study_costs or self.study_costs.mean is None:
            return NOT_EXPLAINED
        footnote = self.cause_footnote
        if self._is_off(self.study_costs):
            return f"{footnote} {REST_NOT_EXPLAINED}" if footnote else NOT_EXPLAINED
        return footnote or EXPLAINED_BY_COSTS

    @property
    def cause(self) -> Cause | None:
        """Returns the cause that explains the published value, if a run shows one."""
        return cause_of(self.published) if self.published else None

    @property
    def cause_footnote(self) -> str:
        """Returns the cause and its measured effects in words, or "" without a cause."""
        return self.cause.footnote(self.effects, self.decimals) if self.cause else ""

    def _is_off(self, measured: Measurement | None) -> bool:
        """Returns True if a value was measured that is not near the published one."""
        if (
            measured is None
            or measured.mean is None
            or self.published is None
            or not self.published.is_number
        ):
            return False
        return self.is_counted and not is_near(self.published, measured.mean)

    @property
    def tolerance(self) -> float | None:
        """Returns how far a value near the published figure may be
        from it, or None without a figure.
        """
        return tolerance(self.published) if self.published and self.published.is_number else None

    def _difference_text(self) -> str:
        """Returns the difference of the measured from the published value, in words."""
        mean = self.measured.mean if self.measured else None
        published_value = _figure_value(self.published)
        if mean is None or published_value is None or not self.differs:
            return NO_VALUE
        if self.differs == "percent":
            return (
                _signed_text(100 * (mean / published_value - 1), 0) + " %"
                if published_value
                else NO_VALUE
            )
        return _signed_text(mean - published_value, self.decimals)

    def _measured_cell(
        self, measured: Measurement | None, aim: float | None, near: float | None, why: str
    ) -> Cell:
        """Returns the cell of a measured value.

        `aim`: the value it should be near; `near_distance`: the tolerance.
        """
        if measured is None:
            return Cell(NO_VALUE, "muted", why)
        text = measured.format_interval(self.decimals)
        if measured.has_failed:
            return Cell(text, "failed", measured.why)
        if measured.mean is None:
            return Cell(text, "muted", measured.why)
        if aim is None or near is None:
            return Cell(text, "plain", why)
        return Cell(text, "good" if abs(measured.mean - aim) <= near else "bad", why)

    def table_record(self) -> dict[str, float | int | str | None]:
        """Returns the columns of the data behind a table."""
        return {
            "expected": _figure_value(self.expected),
            "published": _figure_value(self.published),
            "rerun": _figure_value(self.rerun),
            **(
                self.measured.table_record()
                if self.measured
                else dict.fromkeys(Measurement().table_record())
            ),
            "study_costs": self.study_costs.mean if self.study_costs else None,
            **self._cause_record(),
            "ideal": self.ideal,
        }

    def _cause_record(self) -> dict[str, float | str | None]:
        """Returns what explains a difference, the run that shows it, and its
        effect, for the data behind a table.
        """
        cause, published = self.cause, self.published
        if not self._is_off(self.measured) or published is None:
            return dict.fromkeys(("cause", "cause_run", "cause_without", "cause_with"))
        if cause:
            before, after = self.effects.get(published.column, (None, None))
            return {
                "cause": cause.name,
                "cause_run": cause.experiment,
                "cause_without": before,
                "cause_with": after,
            }
        is_explained = self._difference_reason("measured") == EXPLAINED_BY_COSTS
        return {
            "cause": "study costs" if is_explained else None,
            "cause_run": self.costs_run if is_explained else None,
            "cause_without": self.measured.mean if is_explained and self.measured else None,
            "cause_with": self.study_costs.mean if is_explained and self.study_costs else None,
        }


def _signed_text(number: float, decimals: int) -> str:
    """Returns a number with its sign, unless it is rounded to 0."""
    rounded = round(number, decimals)
    return f"{rounded:+.{decimals}f}" if rounded else f"{0:.{decimals}f}"


def _figure_value(figure: Figure | None) -> float | None:
    """Returns the number of a published figure; None without one."""
    return figure.value if figure and figure.is_number else None


@dataclass(frozen=True)
class ComparisonRow:
    """A row: its labels, and its comparisons by heading."""

    labels: tuple[str, ...]
    comparisons: Mapping[str, FigureComparison]


def compared_table(
    name: str,
    title: str,
    labels: Sequence[str],
    lines: Sequence[ComparisonRow],
    caption: str = "",
) -> Table:
    """Returns a table with columns for the labels and the content of each
    part; empty columns are left out.

    A repeated first label is printed once, and each new one has a line above it.
    """
    kinds = {part: _column_kinds(lines, part) for part in dict.fromkeys(_distinct_headings(lines))}
    columns = [
        *(Column(label, align="left") for label in labels),
        *(
            Column(_COLUMN_TITLES[kind], part)
            for part, kind_group in kinds.items()
            for kind in kind_group
        ),
    ]
    label_rows, sections = make_label_cells([line.labels for line in lines])
    rows = [
        (
            *cells_of_labels,
            *(
                line.comparisons.get(part, FigureComparison()).column_cell(kind)
                for part, kind_group in kinds.items()
                for kind in kind_group
            ),
        )
        for cells_of_labels, line in zip(label_rows, lines, strict=True)
    ]
    has_study_costs = any(
        comparison.study_costs and comparison.published
        for line in lines
        for comparison in line.comparisons.values()
    )
    return Table(
        name,
        title,
        tuple(columns),
        tuple(rows),
        _table_data(labels, lines),
        caption,
        sections,
        _MEANINGS_WITH_STUDY_COSTS if has_study_costs else {},
        keys=len(labels),
    )


def make_label_cells(labels: Sequence[Sequence[str]]) -> tuple[list[Row], tuple[int, ...]]:
    """Returns the label cells of rows, and the rows before which a line is drawn.

    A repeated first label is omitted. There are no lines if every row has a new one.
    """
    starts = [
        number
        for number, row_labels in enumerate(labels)
        if number == 0 or row_labels[0] != labels[number - 1][0]
    ]
    rows = [
        (Cell(row_labels[0] if number in starts else ""), *map(Cell, row_labels[1:]))
        for number, row_labels in enumerate(labels)
    ]
    return rows, tuple(starts[1:]) if len(starts) < len(labels) else ()


def _distinct_headings(lines: Sequence[ComparisonRow]) -> Iterable[str]:
    """Returns the distinct headings of the lines' comparisons, in order."""
    return (part for line in lines for part in line.comparisons)


def _column_kinds(lines: Sequence[ComparisonRow], part: str) -> list[ColumnKind]:
    return [
        kind
        for kind in _COLUMN_TITLES
        if any(
            part in line.comparisons and line.comparisons[part].has_column(kind) for line in lines
        )
    ]


def _table_data(labels: Sequence[str], lines: Sequence[ComparisonRow]) -> pl.DataFrame:
    """Returns the data behind a table: a row for each comparison."""
    number_columns = (
        "expected",
        "published",
        "rerun",
        "measured",
        "low",
        "high",
        "study_costs",
        "cause_without",
        "cause_with",
        "ideal",
    )
    return pl.DataFrame(
        [
            {
                **dict(zip(labels, line.labels, strict=True)),
                "quantity": part,
                **comparison.table_record(),
            }
            for line in lines
            for part, comparison in line.comparisons.items()
        ],
        schema_overrides={
            **dict.fromkeys(number_columns, pl.Float64),
            "seeds": pl.Int64,
            **dict.fromkeys(("missing", "cause", "cause_run"), pl.String),
        },
    )
