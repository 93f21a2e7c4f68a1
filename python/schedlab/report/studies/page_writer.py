# SPDX-License-Identifier: MIT
"""Builds the studies' pages from sections, texts, and tables and charts that compare
published and measured figures.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import polars as pl

from schedlab.base.display.markdown import code, literal_with_code
from schedlab.base.display.numbers import NO_VALUE
from schedlab.report import trials
from schedlab.report.charts import dots, draw_if_possible, lines, schedules
from schedlab.report.charts.schedules import find_measured_slices
from schedlab.report.model import Block, Cell, Chart, Column, Page, Section, Table, Text, Trial
from schedlab.report.studies import agreement_counts
from schedlab.report.studies.agreement_counts import count_agreement, headline_text
from schedlab.report.study_tables import (
    ComparisonRow,
    FigureComparison,
    Measurement,
    NoMeasurement,
    compared_table,
    make_label_cells,
)
from schedlab.studies.figures import Figure
from schedlab.studies.study import Contradiction, Study
from schedlab.trace import Trace

_PUNCTUATION = tuple(",;:.")
_NOT_SHOWN = "*The runs do not show this: {}.*"

Rows = Mapping[Any, Any] | Iterable[Any]
"""Rows of a table: labels, each with the arguments of the columns' functions.

A label or the arguments may be a tuple. Without a mapping, labels are the arguments.
"""


@dataclass(frozen=True)
class MeasuredCell:
    """A measurement, and how to print it."""

    measured: Measurement
    digits: int = 1
    muted: bool = False
    """True if the measurement is less important."""

    def cell(self) -> Cell:
        """Returns the measured value, or why it is missing."""
        measured = self.measured
        if measured.has_failed:
            return Cell(measured.format_interval(self.digits), "failed", measured.why)
        muted = self.muted or measured.mean is None
        return Cell(
            measured.format_interval(self.digits), "muted" if muted else "plain", measured.why
        )


class Drawing(Protocol):
    """A function that draws one trace."""

    def __call__(self, name: str, trace: Any, /, *, title: str, caption: str) -> Chart | None: ...


@dataclass(frozen=True)
class Quantity:
    """A column of measured figures: `cell` is called for each row."""

    title: str
    cell: Callable[..., Measurement | MeasuredCell | float]
    group: str = ""
    digits: int | None = None
    """None for the table's number of digits."""
    muted: bool = False

    def cell_of(self, arguments: tuple[Any, ...], digits: int) -> MeasuredCell:
        """Returns the cell of a row. `digits`: the default number of digits."""
        cell = self.cell(*arguments)
        if isinstance(cell, MeasuredCell):
            return cell
        number = cell if isinstance(cell, Measurement) else Measurement((float(cell),))
        return MeasuredCell(number, digits if self.digits is None else self.digits, self.muted)


@dataclass(frozen=True)
class Curve:
    """A line of a chart: the measured and the published value at each point."""

    measured: Callable[[int], Measurement]
    study: Callable[[int], Figure | None] = lambda x: None


Statement = str | Figure | Measurement | MeasuredCell | Cell | None


class Writer:
    """Builds a study's page from top to bottom. Adjacent texts form one block."""

    def __init__(self, study: Study, title: str) -> None:
        self._study = study
        self._title = title
        self._lead = ""
        self._sections: list[tuple[int, str, list[Block]]] = []
        self._doubts = list(study.contradictions)
        self._comparisons: list[FigureComparison] = []

    def lead(self, text: str) -> None:
        """Adds text to the lead."""
        text = line(text)
        if not text:
            return
        self._lead += text if not self._lead or text[:1] in _PUNCTUATION else f" {text}"

    def section(self, title: str) -> None:
        """Begins a section."""
        self._sections.append((1, title, []))

    def subsection(self, title: str) -> None:
        """Begins a section within the last one."""
        self._sections.append((2, title, []))

    @contextmanager
    def if_measured(self, add: Callable[[str], None] | None = None) -> Iterator[None]:
        """Opens a block for texts with numbers that the runs may lack.

        If a number is missing, the reason replaces the block's texts. `add` adds the reason; the
        default is `text`.

        """
        before = self._lead, list(self._blocks) if self._sections else []
        try:
            yield
        except NoMeasurement as missing:
            self._lead = before[0]
            if self._sections:
                self._blocks[:] = before[1]
            (add or self.text)(_NOT_SHOWN.format(missing))

    def text(self, text: str, tone: Literal["plain", "note"] = "plain") -> None:
        """Adds a paragraph or a list."""
        self._add(text, "\n\n", tone)

    def item(self, text: str) -> None:
        """Adds an item to a list, or begins a list."""
        made = line(text)
        last = self._last()
        after_item = last is not None and last.markdown.rpartition("\n\n")[2].startswith("- ")
        self._add(f"- {made}", "\n" if after_item else "\n\n")

    def more(self, text: str) -> None:
        """Adds text to the last paragraph or item, with a blank unless it
        begins with a punctuation mark.
        """
        text = line(text)
        self._add(text, "" if text[:1] in _PUNCTUATION else " ")

    def show(self, *blocks: Block | Iterable[Block]) -> None:
        """Adds tables and charts to the current section. A caption that names no command gets the study's."""
        for block in blocks:
            several = [block] if isinstance(block, Text | Table | Chart) else block
            self._blocks.extend(map(self._with_command, several))

    def _with_command(self, block: Block) -> Block:
        """Returns a block whose caption has the command that makes its runs."""
        if isinstance(block, Text) or "./schedlab" in block.caption:
            return block
        return replace(block, caption=f"{block.caption} {self.command}".strip())

    @property
    def command(self) -> str:
        """Returns the command that makes the study's runs, for a caption."""
        return f"Repeat: {code(f'./schedlab reproduce study-{self._study.number}')}."

    def contradictions_about(self, *places: str) -> None:
        """Adds the contradictions within the study's text about these tables or sections,
        except those that the page has already.
        """
        by_name = {
            contradiction.name: contradiction
            for place in places
            for contradiction in self._doubts
            if contradiction.concerns(place)
        }
        self._list_contradictions(by_name.values(), "**Contradictions in the study:**\n\n")

    def contradictions_named(self, *names: str) -> None:
        """Adds the contradictions with these names."""
        self._list_contradictions(
            [contradiction for contradiction in self._doubts if contradiction.name in names]
        )

    def other_contradictions(self) -> None:
        """Adds all other contradictions."""
        self._list_contradictions(self._doubts)

    def _list_contradictions(
        self, contradictions: Iterable[Contradiction], heading: str = ""
    ) -> None:
        listed_ = list(contradictions)
        if listed_:
            items = "\n".join(
                f"- {literal_with_code(str(contradiction))}" for contradiction in listed_
            )
            self.show(Text(heading + items, "note"))
        self._doubts = [
            contradiction for contradiction in self._doubts if contradiction not in listed_
        ]

    # --- tables

    def measured(
        self,
        name: str,
        title: str,
        labels: Sequence[str],
        rows: Rows,
        columns: Sequence[Quantity],
        caption: str = "",
        digits: int = 1,
    ) -> None:
        """Adds a table of measured figures only."""
        named = list(_labelled(rows))
        shown, sections = make_label_cells([line_cells for line_cells, _ in named])
        cells, behind = [], []
        for (label, arguments), above in zip(named, shown, strict=True):
            row_cells = [column.cell_of(arguments, digits) for column in columns]
            cells.append((*above, *(cell.cell() for cell in row_cells)))
            behind += [
                {
                    **dict(zip(labels, label, strict=True)),
                    "quantity": f"{column.group}, {column.title}" if column.group else column.title,
                    **one.measured.table_record(),
                }
                for column, one in zip(columns, row_cells, strict=True)
            ]
        numbers = dict.fromkeys(("measured", "low", "high"), pl.Float64)
        schema = {**numbers, "seeds": pl.Int64, "missing": pl.String}
        headings = (
            *(Column(label, align="left") for label in labels),
            *(Column(e.title, e.group) for e in columns),
        )
        data = pl.DataFrame(behind, schema_overrides=schema)
        keys = len(labels)
        self.show(
            Table(name, title, headings, tuple(cells), data, line(caption), sections, keys=keys)
        )

    def compared(
        self,
        name: str,
        title: str,
        labels: Sequence[str],
        rows: Rows,
        parts: Mapping[str, Callable[..., FigureComparison | None]],
        caption: str = "",
        decimals: int | None = None,
    ) -> None:
        """Adds a table of published and measured figures. If a part returns None, the row has no such cells.

        `decimals`: the number of decimals in the whole table; None: each comparison has its own.
        """
        lines_ = [
            ComparisonRow(
                label,
                {
                    part: cell if decimals is None else replace(cell, decimals=decimals)
                    for part, make in parts.items()
                    if (cell := make(*arguments)) is not None
                },
            )
            for label, arguments in _labelled(rows)
        ]
        self._comparisons += [cell for line in lines_ for cell in line.comparisons.values()]
        self.show(compared_table(name, title, labels, lines_, line(caption)))

    def statements(
        self,
        name: str,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Statement]],
        caption: str = "",
        shared: int = 0,
        right: Sequence[str] = (),
    ) -> None:
        """Adds a table of a study's statements, with the published and
        the measured figures for each.

        `shared`: number of columns on the left that print a repeated text once.
        """
        rows = [
            [MeasuredCell(cell) if isinstance(cell, Measurement) else cell for cell in row]
            for row in rows
        ]
        shown: list[tuple[Cell, ...]] = []
        labels_above: list[str] | None = None
        for row in rows:
            cells = [_cell(cell) for cell in row]
            texts = [cell.text for cell in cells[:shared]]
            shown.append(
                tuple(
                    [Cell("")] * shared + cells[shared:]
                    if shared and texts == labels_above
                    else cells
                )
            )
            labels_above = texts
        self._blocks.append(
            Table(
                name,
                title,
                tuple(
                    Column(column, align="right" if column in right else "left")
                    for column in columns
                ),
                tuple(shown),
                pl.DataFrame(
                    {
                        heading: [
                            cell.measured.mean
                            for cell in row_cells
                            if isinstance(cell, MeasuredCell)
                        ]
                        if all(isinstance(cell, MeasuredCell) for cell in row_cells)
                        else [_cell(cell).text for cell in row_cells]
                        for heading, row_cells in zip(columns, zip(*rows, strict=True), strict=True)
                    }
                ),
                line(caption),
            )
        )

    # --- charts

    def curves(
        self,
        name: str,
        title: str,
        points: Sequence[int],
        x_title: str,
        y_title: str,
        series: Mapping[str, Curve],
        *,
        caption: str,
        ideal: Callable[[int], float] | Mapping[str, Callable[[int], float]] | None = None,
        **options: Any,
    ) -> None:
        """Adds a line chart, or nothing if no point was run.

        `ideal` may be several lines by name.
        """
        curve_points = {
            name: [(x, curve.measured(x)) for x in points] for name, curve in series.items()
        }
        shown_names = [
            name
            for name, values in curve_points.items()  # curves without any run are left out
            if any(
                point.has_failed or any(run is not None for run in point.runs)
                for _, point in values
            )
        ]
        rows = [
            (name, x, run)
            for name in shown_names
            for x, measured in curve_points[name]
            for run in measured.runs
        ]
        if not rows:
            return
        printed = [
            (name, x, figure.value)
            for name in shown_names
            for x in points
            if (figure := series[name].study(x))
        ]
        schema = {"series": pl.String, "x": pl.Int64, "y": pl.Float64}
        self.show(
            lines(
                name,
                pl.DataFrame(rows, schema=schema, orient="row"),
                title=title,
                caption=line(caption),
                x="x",
                y="y",
                x_title=x_title,
                y_title=y_title,
                series="series",
                ideal=_ideals(ideal, points) if ideal else None,
                published=pl.DataFrame(printed, schema=schema, orient="row") if printed else None,
                **options,
            )
        )

    def dotted(
        self,
        name: str,
        title: str,
        x_title: str,
        rows: Mapping[str, tuple[Measurement, float | None]],
        *,
        caption: str,
    ) -> None:
        """Adds a chart with a row of dots for each measured and published
        figure; nothing if none was run.
        """
        run_dots = [
            (row, run) for row, (ours, _) in rows.items() for run in ours.runs or ours.values
        ]
        if all(run is None for _, run in run_dots):
            return
        schema = {"row": pl.String, "value": pl.Float64}
        printed = [(row, theirs) for row, (_, theirs) in rows.items() if theirs is not None]
        self.show(
            dots(
                name,
                pl.DataFrame(run_dots, schema=schema, orient="row"),
                title=title,
                caption=line(caption),
                category="row",
                value="value",
                x_title=x_title,
                category_order=list(rows),
                published=pl.DataFrame(printed, schema=schema, orient="row"),
            )
        )

    def picture(
        self,
        make: Drawing,
        name: str,
        title: str,
        trace: Any,
        *,
        caption: str,
    ) -> None:
        """Adds a picture of one trace; nothing without a trace or without content.

        Options of `make` are bound with functools.partial, whose arguments mypy checks.
        """
        if trace is not None:
            self.show(draw_if_possible(make, name, trace, title=title, caption=line(caption)))

    def schedule(
        self,
        name: str,
        title: str,
        trace: Trace | None,
        *,
        caption: str,
        published: pl.DataFrame | None = None,
    ) -> None:
        """Adds the schedule of one trace, with a published schedule in the chart's columns.

        Adds nothing without a trace. A schedule that was published only
        in words belongs in the caption.
        """
        if trace is None:
            return
        measured = find_measured_slices(trace)
        rows = (
            measured
            if published is None
            else pl.concat([published, measured], how="diagonal_relaxed")
        )
        self.picture(schedules, name, title, rows, caption=caption)

    def page(self, trials_of_captions: Mapping[str, Trial]) -> Page:
        """Returns the page. Its picture is the first chart."""
        sections: list[Section] = []
        for level, title, blocks in self._sections:
            made = Section(title, tuple(blocks))
            if level == 1:
                sections.append(made)
            else:
                above = sections[-1]
                sections[-1] = replace(above, sections=(*above.sections, made))
        counts = count_agreement(self._study.figures, self._comparisons)
        if counted := agreement_counts.agreement_section(self._study.number, counts):
            self.lead(headline_text(counts))
            sections.insert(1, counted)
        charts = (e.name for *_, blocks in self._sections for e in blocks if isinstance(e, Chart))
        trial = trials.trial_of_study(self._study)
        return Page(
            f"study-{self._study.number}",
            self._title,
            self._lead,
            tuple(sections),
            picture=next(charts, ""),
            trials={**trials_of_captions, **({trials.PAGE_TRIAL: trial} if trial else {})},
        )

    @property
    def _blocks(self) -> list[Block]:
        return self._sections[-1][2]

    def _last(self) -> Text | None:
        """Returns the last block if more text can be added to it; otherwise None."""
        last = self._blocks[-1] if self._blocks else None
        return last if isinstance(last, Text) and last.tone == "plain" else None

    def _add(self, markdown: str, between: str, tone: Literal["plain", "note"] = "plain") -> None:
        """Adds Markdown to the last text, after the separator `between`, or begins a new text."""
        markdown = inspect.cleandoc(markdown)
        last = self._last()
        if not markdown:
            return
        if last is None or tone != "plain":
            self._blocks.append(Text(markdown, tone))
        else:
            self._blocks[-1] = Text(last.markdown + between + markdown)


def text_if_measured(text: Callable[[], str]) -> str:
    """Returns a text, or the reason if it needs a number that the runs do not have."""
    try:
        return text()
    except NoMeasurement as missing:
        return _NOT_SHOWN.format(missing)


def line(text: str) -> str:
    """Returns the text on one line."""
    return " ".join(text.split())


def value_of(figure: Figure | None) -> float:
    """Returns the number of a published figure. Raises ValueError if there is none."""
    if figure is None:
        raise ValueError("the study has no such figure")
    return figure.value


def _labelled(rows: Rows) -> Iterable[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Yields for each row its labels, and the arguments of the functions that make its cells."""
    pairs = rows.items() if isinstance(rows, Mapping) else ((row, row) for row in rows)
    for label, arguments in pairs:
        yield tuple(map(str, _tuple(label))), _tuple(arguments)


def _tuple(one_or_several: Any) -> tuple[Any, ...]:
    """Returns a tuple, also of a single value."""
    return one_or_several if isinstance(one_or_several, tuple) else (one_or_several,)


def _cell(statement: Statement) -> Cell:
    """Returns the cell of a statement; an empty cell for None."""
    if isinstance(statement, MeasuredCell):
        return statement.cell()
    return (
        statement
        if isinstance(statement, Cell)
        else Cell(NO_VALUE if statement is None else str(statement))
    )


def _ideals(
    ideal: Callable[[int], float] | Mapping[str, Callable[[int], float]], points: Sequence[int]
) -> pl.DataFrame:
    if isinstance(ideal, Mapping):
        return pl.concat(
            _ideals(ideal_curve, points).with_columns(series=pl.lit(name))
            for name, ideal_curve in ideal.items()
        )
    return pl.DataFrame([{"x": x, "y": float(ideal(x))} for x in points])
