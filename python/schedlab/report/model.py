# SPDX-License-Identifier: MIT
"""The content of a report, independent of its output format.

A report consists of pages, a page of sections, and a section of blocks: texts, tables and charts.
The code that makes sections does not depend on HTML. The HTML writer does not depend on schedulers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

HREF = "href"
"""Column of a chart's data with the target of a click on the mark, as in Text: `#NAME`."""

Tone = Literal["plain", "good", "bad", "muted", "failed"]
"""The meaning of a cell: near its ideal, far from its ideal, less important, or from a failed run."""


@dataclass(frozen=True)
class Text:
    """Paragraphs, lists, `code` and links, in Markdown. HTML in the text is escaped.

    A link to `#NAME` leads to the table, chart or page of that name, on any page. A link to
    `try:NAME` leads to the page's trial of that name, in formats that have trials. Convert external
    text to Markdown with schedlab.base.display.markdown: `literal`, `code`, `listing`.
    """

    markdown: str
    tone: Literal["plain", "note", "warning"] = "plain"


@dataclass(frozen=True)
class Column:
    """A column of a table. Adjacent columns with the same `group` share it as a heading."""

    title: str
    group: str = ""
    align: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class Recording:
    """A run's trace that a reader can play. `name`: the file's name without suffix."""

    name: str
    title: str
    policy: str
    """`name` or `name:preset`."""
    trace: Path
    more: tuple[tuple[str, str], ...] = ()
    """As in Cell."""
    is_sound: bool = True
    """True if the trace is also available for other programs."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table. `text` is printed, with its interval if there is one; `why` explains it.

    An interval in brackets at the end, `86.0 [85.2, 86.8]`, is printed smaller, on a line below.
    """

    text: str
    tone: Tone = "plain"
    why: str = ""
    """Markdown of a footnote. Equal texts share one footnote."""

    recording: Recording | None = None
    """The recording that a click plays, in formats that can play recordings."""
    link: str = ""
    """Target of a click, as in Text: `#NAME`."""
    more: tuple[tuple[str, str], ...] = ()
    """Details that a click opens. Each is a description in Markdown, and a command or path."""
    rank: float | None = None
    """Sort key in the column, if it differs from the number at the start of the text."""


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table. `name` names its files: letters, digits and hyphens, unique within the report.

    Titles are plain text, except `code`. This holds for all blocks.
    """

    name: str
    """Names the table's anchor and its files."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    data: pl.DataFrame
    """The unrounded numbers in long form, for the CSV and Parquet files."""
    caption: str = ""
    """Markdown: how the numbers were measured, with seeds, machine and tick."""
    sections: tuple[int, ...] = ()
    """Rows before which a line is drawn."""
    meanings: Mapping[Tone, str] = field(default_factory=dict)
    """Meanings of tones.

    Default: `near its ideal` (good), `off its ideal` (bad), `a run failed`.
    """
    keys: int = 1
    """Number of key columns on the left, which each part of a split table repeats."""
    is_list: bool = False
    """True if the table is long enough to need sorting and filtering."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells, not all columns")


@dataclass(frozen=True)
class Chart:
    """A picture, and a description of it in words."""

    name: str
    title: str
    chart: alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | Any
    data: pl.DataFrame
    caption: str
    description: str
    """Text alternative: what the picture shows."""
    still: tuple[Chart, ...] = ()
    """The printed versions of a chart with menus."""

    @property
    def on_paper(self) -> tuple[Chart, ...]:
        """The charts that represent this chart on paper."""
        return self.still or (self,)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The Vega-Lite specification without configuration.

        Tests validate it against the schema.
        """
        import altair as alt

        with (
            alt.theme.enable("none"),
            alt.data_transformers.enable("default", max_rows=None),
        ):
            plain: dict[str, Any] = self.chart.to_dict(validate=False)
        return plain


Block = Text | Table | Chart


@dataclass(frozen=True)
class Trial:
    """A configuration that the standalone page simulates when a reader
    follows a link (docs/page.md).
    """

    title: str
    """Policies, workload and CPUs in words, in Markdown."""
    policies: tuple[str, ...]
    """Policies in the link's form: `mlfq:preset,boost=100`."""
    cpus: int
    seed: int
    tick_ns: int
    workload: str = ""
    """Name of a workload of the page; "" for none."""
    text: str = ""
    """Text of a workload that the page does not have; "" for none."""
    differs: tuple[str, ...] = ()
    """Differences from the report's runs, in words."""


@dataclass(frozen=True)
class Section:
    """A heading with blocks and subsections. Without a title there is no heading."""

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    is_row: bool = False
    """True if its charts are placed side by side where space permits."""


@dataclass(frozen=True)
class Page:
    """A page of a report. `name`: the file's name without suffix."""

    name: str
    title: str
    lead: str
    """Markdown: a summary of the page in three sentences."""
    sections: tuple[Section, ...]
    above: str = ""
    """The name of the page that links to this page; "" if this page is in the report's menu."""
    picture: str = ""
    """The name of the chart that represents the page on the first page; "" for none."""
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """Trials by name, for links in the page's texts. The trial `page` is offered below the lead."""

    def blocks(self) -> Iterator[Block]:
        """Yields all blocks in the order of the page."""
        yield from _blocks(self.sections)


@dataclass(frozen=True)
class Report:
    """A report. Its first page is the page to open."""

    title: str
    pages: tuple[Page, ...]
    facts: dict[str, str] = field(default_factory=dict)
    """Facts at the foot of each page: version, commit, machine, host and date."""
    findings: tuple[str, ...] = ()
    """The findings of the first page, in Markdown."""

    @property
    def menu(self) -> tuple[Page, ...]:
        """The pages of the menu."""
        return tuple(page for page in self.pages if not page.above)


def _blocks(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks(section.sections)
