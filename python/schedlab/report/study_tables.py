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

from schedlab.analysis.comparison.formatting import in_column
from schedlab.analysis.comparison.statistics import Estimate, Within, estimate
from schedlab.base.display.numbers import NOTHING
from schedlab.report.model import Cell, Column, Row, Table, Tone
from schedlab.studies.agreement import is_near, tolerance
from schedlab.studies.causes import Cause, cause_of

if TYPE_CHECKING:
    from schedlab.runs.collection import Repeated, StoredRun
    from schedlab.studies import Figure

NOT_RUN = "not run"
NOT_EXPLAINED = "This difference from the study is not explained."
GAVE_A_CONSTANT = "The costs are derived from this cell, so it agrees by definition."
REST_NOT_EXPLAINED = "The rest of the difference is not explained."
EXPLAINED_BY_COSTS = (
    "Operations are slower on the study's machine. With its costs the value is near: see *study"
    " costs*."
)

Numbers = Mapping[Path, float]
"""The measured number of each run, by folder. Runs without a number are missing."""


class NotMeasured(Exception):
    """Raised if a text needs a number that the runs do not have. The message names the reason."""


@dataclass(frozen=True)
class Measured:
    """A measurement under one configuration: a number for each seed, or the reason why numbers are missing."""

    values: tuple[float, ...] = ()
    missing: str = NOT_RUN
    """The text of a cell without values."""
    why: str = ""
    """Markdown: how the runs failed."""
    failed: bool = False
    within: Within = (0, math.inf)
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
        """Returns the mean. Raises NotMeasured if there is none."""
        if self.estimate is None:
            raise NotMeasured("no such value" if self.missing == NOTHING else self.missing)
        return self.estimate.mean

    def __format__(self, spec: str) -> str:
        """Returns the mean, for texts: `f"{measured:.1f}"`. Raises NotMeasured if there is none."""
        return format(self.value, spec)

    def record(self) -> dict[str, float | int | str | None]:
        """Returns the columns of the data behind a table."""
        mean = self.estimate
        return {
            "measured": mean.mean if mean else None,
            "low": mean.low if mean else None,
            "high": mean.high if mean else None,
            "seeds": mean.count if mean else None,
            "missing": None if mean else self.missing,
        }

    def text(self, decimals: int) -> str:
        """`86.0 [85.1, 86.9]`, or `not run`."""
        if self.estimate is None:
            return self.missing
        return in_column(self.estimate, decimals=decimals)


def measure(
    repeated: Repeated | None, numbers: Numbers, within: Within = (0, math.inf)
) -> Measured:
    """Returns the measurement of all seeds of a configuration.

    It has no values if a run has no number.
    """
    if repeated is None:
        return Measured()
    runs = tuple(numbers.get(run.folder) if run.succeeded else None for run in repeated.runs)
    if repeated.failed:
        how = f"failed ({len(repeated.failed)} of {len(repeated.runs)})"
        return Measured((), how, _failures(repeated.failed), failed=True, runs=runs)
    values = tuple(run for run in runs if run is not None)
    if len(values) < len(runs):
        return Measured((), NOTHING, "The run succeeded, but has no such value.", runs=runs)
    return Measured(values, within=within, runs=runs)


def _failures(failed: Iterable[StoredRun]) -> str:
    reasons = {
        f"seed {run.seed}: {run.status}"
        + (f", {message}" if (message := str(run.manifest.get("message", "")).strip()) else "")
        for run in failed
    }
    return "; ".join(sorted(reasons))


Kind = Literal["expected", "published", "rerun", "measured", "difference", "study_costs", "ideal"]
_TITLES: Mapping[Kind, str] = {
    "expected": "expected",
    "published": "published",
    "rerun": "rerun",
    "measured": "measured",
    "difference": "difference",
    "study_costs": "study costs",
    "ideal": "ideal",
}
"""The titles of the columns, in their order."""


_ALSO_THEIRS: Mapping[Tone, str] = {
    "good": "near its ideal; study costs: near the published value",
    "bad": "off its ideal; study costs: off the published value",
}


@dataclass(frozen=True)
class Comparison:
    """One figure of a study with the measured value and the ideal."""

    published: Figure | None = None
    measured: Measured | None = None
    """None if no measurement corresponds to the figure.

    A measurement that was not run is a Measured without values.
    """
    study_costs: Measured | None = None
    """The measurement with the study costs."""
    costs_run: str = ""
    """The experiment that measured with the study costs."""
    ideal: float | None = None
    expected: Figure | None = None
    """The value that the study considers fair."""
    rerun: Figure | None = None
    """The value of the study's own programs in a rerun."""
    decimals: int = 1
    """Decimals of measured figures and the ideal. Published figures are as printed."""
    near: float | None = None
    """Maximum distance from the ideal for the tone `good`; larger distances are `bad`. None: no tone."""
    counted: bool = True
    """False if agreement has no meaning: the published figure measures no scheduler, or defined a constant."""
    shows_ideal: bool = True
    """False if the ideal only determines the tone, and another column shows it."""
    differs: Literal["", "percent", "points"] = ""
    """Measured minus published, in percent of the published value or as points.

    Empty: no column.
    """
    notes: Mapping[Kind, str] = field(default_factory=dict)
    """Footnotes, in Markdown."""

    def has(self, kind: Kind) -> bool:
        """Returns whether the column has content."""
        if kind == "difference":
            return bool(self.differs)
        return getattr(self, kind) is not None and (kind != "ideal" or self.shows_ideal)

    def cell(self, kind: Kind) -> Cell:
        """Returns the cell of that column."""
        why = self.notes.get(kind, "") or self._reason(kind)
        if kind == "measured":
            return self._measured(self.measured, self.ideal, self.near, why)
        if kind == "study_costs":
            return self._measured(self.study_costs, _value(self.published), self.tolerance, why)
        if kind == "difference":
            return Cell(self._difference(), "muted", why)
        if kind == "ideal":
            text = NOTHING if self.ideal is None else f"{self.ideal:.{self.decimals}f}"
            return Cell(text, "muted", why)
        figure: Figure | None = getattr(self, kind)
        tone: Tone = "plain" if kind == "published" else "muted"
        return Cell(figure.text if figure else NOTHING, tone, why)

    def _reason(self, kind: Kind) -> str:
        """Returns why a measured value is not near the published one, if the runs show it."""
        ours = {"measured": self.measured, "study_costs": self.study_costs}.get(kind)
        if not self._is_off(ours):
            return ""
        if kind != "measured" or not self.study_costs or self.study_costs.mean is None:
            return NOT_EXPLAINED
        cause = self.cause
        if self._is_off(self.study_costs):
            return f"{cause.text} {REST_NOT_EXPLAINED}" if cause else NOT_EXPLAINED
        return cause.text if cause else EXPLAINED_BY_COSTS

    @property
    def cause(self) -> Cause | None:
        """Returns the cause that explains the published value, if a run shows one."""
        return cause_of(self.published) if self.published else None

    def _is_off(self, ours: Measured | None) -> bool:
        """Returns True if a value was measured that is not near the published one."""
        if (
            ours is None
            or ours.mean is None
            or self.published is None
            or not self.published.finished
        ):
            return False
        return self.counted and not is_near(self.published, ours.mean)

    @property
    def tolerance(self) -> float | None:
        """Returns how far a value near the published figure may be
        from it, or None without a figure.
        """
        return tolerance(self.published) if self.published and self.published.finished else None

    def _difference(self) -> str:
        mean = self.measured.mean if self.measured else None
        theirs = _value(self.published)
        if mean is None or theirs is None or not self.differs:
            return NOTHING
        if self.differs == "percent":
            return _signed(100 * (mean / theirs - 1), 0) + " %" if theirs else NOTHING
        return _signed(mean - theirs, self.decimals)

    def _measured(
        self, ours: Measured | None, aim: float | None, near: float | None, why: str
    ) -> Cell:
        if ours is None:
            return Cell(NOTHING, "muted", why)
        text = ours.text(self.decimals)
        if ours.failed:
            return Cell(text, "failed", ours.why)
        if ours.mean is None:
            return Cell(text, "muted", ours.why)
        if aim is None or near is None:
            return Cell(text, "plain", why)
        return Cell(text, "good" if abs(ours.mean - aim) <= near else "bad", why)

    def record(self) -> dict[str, float | int | str | None]:
        """Returns the columns of the data behind a table."""
        return {
            "expected": _value(self.expected),
            "published": _value(self.published),
            "rerun": _value(self.rerun),
            **(self.measured.record() if self.measured else dict.fromkeys(Measured().record())),
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
            before, after = cause.effects[published.column]
            return {
                "cause": cause.name,
                "cause_run": cause.run,
                "cause_without": before,
                "cause_with": after,
            }
        explained = self._reason("measured") == EXPLAINED_BY_COSTS
        return {
            "cause": "study costs" if explained else None,
            "cause_run": self.costs_run if explained else None,
            "cause_without": self.measured.mean if explained and self.measured else None,
            "cause_with": self.study_costs.mean if explained and self.study_costs else None,
        }


def _signed(number: float, decimals: int) -> str:
    """Returns a number with its sign, unless it is rounded to 0."""
    rounded = round(number, decimals)
    return f"{rounded:+.{decimals}f}" if rounded else f"{0:.{decimals}f}"


def _value(figure: Figure | None) -> float | None:
    return figure.value if figure and figure.finished else None


@dataclass(frozen=True)
class Line:
    """A row: its labels, and its comparisons by heading."""

    labels: tuple[str, ...]
    parts: Mapping[str, Comparison]


def compared_table(
    name: str,
    title: str,
    labels: Sequence[str],
    lines: Sequence[Line],
    caption: str = "",
) -> Table:
    """Returns a table with columns for the labels and the content of each
    part; empty columns are left out.

    A repeated first label is printed once, and each new one has a line above it.
    """
    kinds = {part: _kinds(lines, part) for part in dict.fromkeys(_parts(lines))}
    columns = [
        *(Column(label, align="left") for label in labels),
        *(Column(_TITLES[kind], part) for part, kind_group in kinds.items() for kind in kind_group),
    ]
    shown, sections = label_cells([line.labels for line in lines])
    rows = [
        (
            *cells_of_labels,
            *(
                line.parts.get(part, Comparison()).cell(kind)
                for part, kind_group in kinds.items()
                for kind in kind_group
            ),
        )
        for cells_of_labels, line in zip(shown, lines, strict=True)
    ]
    theirs = any(
        comparison.study_costs and comparison.published
        for line in lines
        for comparison in line.parts.values()
    )
    return Table(
        name,
        title,
        tuple(columns),
        tuple(rows),
        _data(labels, lines),
        caption,
        sections,
        _ALSO_THEIRS if theirs else {},
        keys=len(labels),
    )


def label_cells(labels: Sequence[Sequence[str]]) -> tuple[list[Row], tuple[int, ...]]:
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


def _parts(lines: Sequence[Line]) -> Iterable[str]:
    return (part for line in lines for part in line.parts)


def _kinds(lines: Sequence[Line], part: str) -> list[Kind]:
    return [
        kind
        for kind in _TITLES
        if any(part in line.parts and line.parts[part].has(kind) for line in lines)
    ]


def _data(labels: Sequence[str], lines: Sequence[Line]) -> pl.DataFrame:
    numbers = (
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
            {**dict(zip(labels, line.labels, strict=True)), "quantity": part, **comparison.record()}
            for line in lines
            for part, comparison in line.parts.items()
        ],
        schema_overrides={
            **dict.fromkeys(numbers, pl.Float64),
            "seeds": pl.Int64,
            **dict.fromkeys(("missing", "cause", "cause_run"), pl.String),
        },
    )
