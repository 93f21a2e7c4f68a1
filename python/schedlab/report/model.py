# SPDX-License-Identifier: MIT
"""What a report is made of, whatever it is written as.

A report is pages; a page, sections; a section, blocks: texts, tables and charts. The maker of a
section knows nothing of HTML, and the writer of HTML knows nothing of schedulers.
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
"""The column of a chart's data that says what a click on its mark leads to, as in Text: `#NAME`."""

Tone = Literal["plain", "good", "bad", "muted", "failed"]
"""How a cell is meant: near its ideal, or off it; of less weight; of a run that failed."""


@dataclass(frozen=True)
class Text:
    """Paragraphs, lists, `code` and links, in Markdown; HTML in it is shown as it is written.

    A link to `#NAME` leads to the table, chart or page of that name, on whatever page it stands; one to
    `try:NAME` to the trial of that name of its page, where there is such a page to lead to.
    Text of others is made Markdown by schedlab.base.display.markdown: `literal`, `code`, `listing`.
    """

    markdown: str
    tone: Literal["plain", "note", "warning"] = "plain"


@dataclass(frozen=True)
class Column:
    """A column of a table. Neighbours of the same `group` have it as a common heading."""

    title: str
    group: str = ""
    align: Literal["left", "right"] = "right"


@dataclass(frozen=True)
class Recording:
    """A run's trace, which a reader can play. `name` is that of its file, without a suffix."""

    name: str
    title: str
    policy: str
    """name or name:preset."""
    trace: Path
    more: tuple[tuple[str, str], ...] = ()
    """As of a Cell."""
    is_sound: bool = True
    """Is there a trace for other programs, too?"""


@dataclass(frozen=True)
class Cell:
    """`text` is what is printed: with its interval, if it has one. `why` explains it.

    An interval in brackets at its end, `86.0 [85.2, 86.8]`, is printed smaller, below.
    """

    text: str
    tone: Tone = "plain"
    why: str = ""
    """Markdown; a footnote of the table. The same words are one footnote."""

    recording: Recording | None = None
    """What a click on it plays, where pages can play recordings."""
    link: str = ""
    """What a click on it leads to, as in Text: `#NAME`."""
    more: tuple[tuple[str, str], ...] = ()
    """What a click on it opens: what each line is, in Markdown, and a command or a place."""
    rank: float | None = None
    """Its place where a reader sorts by its column, if that is not the number that its text begins with."""


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """`name` is that of its files: letters, digits and hyphens, its own within the report.

    Titles, here and elsewhere, are plain text, except `code`.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    data: pl.DataFrame
    """The numbers behind it, in long form and unrounded: its CSV and Parquet file."""
    caption: str = ""
    """Markdown. How it was measured: seeds, machine, tick."""
    sections: tuple[int, ...] = ()
    """Rows before which a line is drawn."""
    meanings: Mapping[Tone, str] = field(default_factory=dict)
    """What its tones say, if not `near its ideal` (good), `off its ideal` (bad), `a run failed`."""
    keys: int = 1
    """Columns at its left that say whose row it is: they stand in each part of a table that is cut."""
    is_list: bool = False
    """Has it many rows that are looked up? A reader can sort and filter them."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells, not all columns")


@dataclass(frozen=True)
class Chart:
    """A picture, and in words what is to be seen in it."""

    name: str
    title: str
    chart: alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | Any
    data: pl.DataFrame
    caption: str
    description: str
    """What the picture shows, for readers that cannot see it."""
    still: tuple[Chart, ...] = ()
    """The charts that stand for it where nothing can be chosen: on paper."""

    @property
    def on_paper(self) -> tuple[Chart, ...]:
        """What of it is drawn on paper."""
        return self.still or (self,)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The specification, in Vega-Lite, without a look of its own. Tests hold charts against the schema."""
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
    """What the page that stands alone simulates when a reader follows a link to it (docs/page.md)."""

    title: str
    """Policies, workload and CPUs in words, in Markdown."""
    policies: tuple[str, ...]
    """As in the link: `mlfq:preset,boost=100`."""
    cpus: int
    seed: int
    workload: str = ""
    """One that stands in the page; "": none."""
    text: str = ""
    """One of its own, in the simulator's words; "": none."""
    differs: str = ""
    """How it differs from the report's runs, in words; "": in nothing."""


@dataclass(frozen=True)
class Section:
    """A heading, what stands below it, and sections within. Without a title it has no heading."""

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    is_row: bool = False
    """Do its charts stand side by side, where there is room?"""


@dataclass(frozen=True)
class Page:
    """`name` is that of its file, without a suffix."""

    name: str
    title: str
    lead: str
    """Markdown: the page in three sentences."""
    sections: tuple[Section, ...]
    above: str = ""
    """The name of the page from which a reader comes to it; without one it is in the report's menu."""
    picture: str = ""
    """The name of the chart that stands for it on the first page; "": none does."""
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """Trials that its texts lead to, by name; that named `page` is offered below the lead."""

    def blocks(self) -> Iterator[Block]:
        """Gives all of them, in the order of the page."""
        yield from _blocks(self.sections)


@dataclass(frozen=True)
class Report:
    """The first page is the one that is opened."""

    title: str
    pages: tuple[Page, ...]
    facts: dict[str, str] = field(default_factory=dict)
    """Name and value: version, commit, machine, host, when; at the foot of each page."""
    findings: tuple[str, ...] = ()
    """What the first page says first, in Markdown."""

    @property
    def menu(self) -> tuple[Page, ...]:
        """The pages that a reader chooses from on each page."""
        return tuple(page for page in self.pages if not page.above)


def _blocks(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks(section.sections)
