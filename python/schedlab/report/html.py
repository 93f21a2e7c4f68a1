# SPDX-License-Identifier: MIT
"""Writes a report as a folder of pages that a browser opens without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from schedlab.base.display.names import json_in_script, slug
from schedlab.base.files.atomic import atomic_write
from schedlab.base.host.addresses import import_chart_library
from schedlab.base.toolchain.committed import committed_vega
from schedlab.paths import find_in_caches
from schedlab.report import files, layout, markup, player_pages, trials
from schedlab.report.model import Cell, Chart, Page, Report, Section, Table, Text
from schedlab.report.numbering import TONE_SIGNS, Numbering, number_notes, tone_meaning, used_tones
from schedlab.report.specifications import VEGA_LITE, page_specification

TEMPLATES = Path(__file__).parent / "templates"
_SCRIPT_FILE = "vega.js"
_PORTRAIT_CHARACTERS = 125
"""Maximum width of a table on paper in portrait format, in characters."""
THEME = ("theme.css", "dark.css")
"""Style sheets of all pages, including the monitor's."""
HAND_OVER_SCRIPT = "perfetto.js"
"""The script that passes a trace to Perfetto's page, in reports and in the monitor."""
SHARED_FILES = (*THEME, HAND_OVER_SCRIPT)
"""The files of reports that the monitor's page uses."""
STYLES = (*THEME, "style.css", "blocks.css", "media.css")
"""Style sheets of a report's pages. The last one depends on screen or paper."""
_COPIED_FILES = (*STYLES, "report.js", "traces.js", HAND_OVER_SCRIPT)


def write_pages(
    report: Report,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes the pages next to the existing `files`, and returns the first page.

    `pictures`: the files include pictures of the charts.
    """
    numbering = Numbering(report)
    for number, page in enumerate(report.pages):
        progress(f"writing page {page.name}", number, len(report.pages))
        html = _PageWriter(report, page, numbering, pictures).html()
        (folder / page_file(report, page)).write_text(html)
        if number == 0:
            first_file = folder / page_file(report, page)
    for name in _COPIED_FILES:
        (folder / name).write_bytes((TEMPLATES / name).read_bytes())
    (folder / _SCRIPT_FILE).write_text(charts_script())
    player_pages.write_player_pages(report, folder)
    return first_file


def page_file(report: Report, page: Page) -> str:
    """Returns the name of a page's file. The first page is index.html, which browsers open."""
    return "index.html" if page is report.pages[0] else f"{page.name}.html"


@dataclass(frozen=True)
class ContentsEntry:
    """An entry of a page's table of contents."""

    id: str
    title: str
    below: tuple[ContentsEntry, ...]


class _PageWriter:
    """Writes one page. The templates call its public methods."""

    def __init__(
        self, report: Report, page: Page, numbering: Numbering, pictures: bool = False
    ) -> None:
        self.report = report
        self.pictures = pictures
        self.page = page
        self.numbering = numbering
        self.ids: dict[int, str] = {}
        self._name_sections(page.sections, {page.name for page in report.pages})

    def html(self) -> str:
        return _environment().get_template("page.html").render(page=self.page, write=self)

    def _name_sections(self, sections: Sequence[Section], taken: set[str]) -> None:
        """Gives each section a distinct HTML id that is derived from its title."""
        taken |= {name.lower() for name in self.numbering.labels}
        for section in sections:
            stem = slug(section.title) or "section"
            name, number = stem, 2
            while name in taken:
                name, number = f"{stem}-{number}", number + 1
            taken.add(name)
            self.ids[id(section)] = name
            self._name_sections(section.sections, taken)

    def section_id(self, section: Section) -> str:
        return self.ids[id(section)]

    def contents(self, sections: Sequence[Section]) -> tuple[ContentsEntry, ...]:
        return tuple(
            ContentsEntry(self.section_id(section), section.title, self.contents(section.sections))
            for section in sections
        )

    def resolve(self, target: str) -> str:
        """Returns the address of a link's target or of one of this page's trials, as seen from this page."""
        if target.startswith(markup.TRIAL_PREFIX):
            return player_pages.trial_address(
                self.page.trials[target.removeprefix(markup.TRIAL_PREFIX)]
            )
        if not target.startswith("#"):
            return target
        name = target[1:]
        for page in self.report.pages:
            if page.name == name:
                return page_file(self.report, page)
        home = self.numbering.page_of(name)
        if home is None or home is self.page:
            return target
        return f"{page_file(self.report, home)}{target}"

    def text(self, markdown: str) -> Markup:
        """Converts Markdown paragraphs to HTML."""
        return Markup(markup.to_html(markdown, self.resolve))

    def line(self, markdown: str) -> Markup:
        return Markup(markup.to_inline_html(markdown, self.resolve))

    @property
    def trial(self) -> str:
        """The name of the trial below the lead; "" for none."""
        return trials.PAGE_TRIAL if trials.PAGE_TRIAL in self.page.trials else ""

    def cards(self, with_picture: bool) -> list[tuple[Page, str]]:
        """Returns the pages that the first page links to, and their files."""
        return [page for page in self.pages()[1:] if bool(page[0].picture) == with_picture]

    def chart_of(self, page: Page) -> Chart:
        """Returns the chart that represents a page on the first page."""
        chart = self.numbering.blocks[page.picture]
        assert isinstance(chart, Chart), page.picture
        return chart

    def short(self, page: Page) -> str:
        return page.title.partition(":")[0]

    def pages(self) -> list[tuple[Page, str]]:
        """Returns the pages of the menu, and their files."""
        return [(page, page_file(self.report, page)) for page in self.report.menu]

    @property
    def above(self) -> Page | None:
        """The page that links to this page; None if this page is in the menu."""
        return next((page for page in self.report.pages if page.name == self.page.above), None)

    def is_current(self, other: Page) -> bool:
        """Returns whether the other page is this page or the one above it."""
        return other.name in (self.page.name, self.page.above)

    @property
    def is_first(self) -> bool:
        """Returns whether this is the report's first page."""
        return self.page is self.report.pages[0]

    @property
    def has_charts(self) -> bool:
        """Returns whether the page has a chart."""
        carded = self.is_first and any(page.picture for page, _ in self.pages())
        return carded or any(isinstance(block, Chart) for block in self.page.blocks())

    @property
    def is_wide(self) -> bool:
        """True if the page is printed in landscape format."""
        tables = (block for block in self.page.blocks() if isinstance(block, Table))
        return any(
            layout.width_in_characters(table, part) > _PORTRAIT_CHARACTERS
            for table in map(layout.fit_table, tables)
            for part in layout.split_columns(table)
        )

    def label(self, block: Table | Chart) -> str:
        """Returns the label of a table or chart, such as `Figure 3`."""
        return self.numbering.labels[block.name]

    def specification(self, chart: Chart) -> Markup:
        """Returns the specification as JSON in a script element."""
        return Markup(json_in_script(page_specification(chart, self.resolve)))

    def files(self, block: Table | Chart) -> list[tuple[str, str]]:
        """Returns the files that accompany a block: the kind and the address of each."""
        pictures = files.PICTURE_KINDS if self.pictures and isinstance(block, Chart) else ()
        kinds = (*pictures, *files.DATA_KINDS)
        return [(kind.upper(), f"{files.FILES_FOLDER}/{block.name}.{kind}") for kind in kinds]

    def table(self, table: Table) -> _TableWriter:
        return _TableWriter(layout.fit_table(table))


@dataclass(frozen=True)
class _Head:
    """A cell of a table's header."""

    title: str
    columns: int = 1
    rows: int = 1
    align: str = "center"
    begins_group: bool = False


class _TableWriter:
    """The methods of a table that the template calls."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes = number_notes(table)
        self.tones = used_tones(table)
        self._referred: set[int] = set()

    def parts(self) -> list[_PartWriter]:
        """Returns the parts of the table, stacked vertically, each no wider than the page."""
        return [_PartWriter(self.table, part) for part in layout.split_columns(self.table)]

    def meaning(self, cell: Cell) -> str:
        return tone_meaning(self.table, cell.tone)

    def note(self, cell: Cell) -> int:
        """Returns the number of a cell's footnote; 0 for none."""
        return self.notes.get(cell.why, 0)

    def first_reference(self, number: int) -> bool:
        """Returns whether this is the note's first reference, which the note links back to."""
        is_first = number not in self._referred
        self._referred.add(number)
        return is_first

    def lines(self, cell: Cell) -> tuple[str, str]:
        """Returns the large text of a cell, and the interval below it."""
        return layout.cell_lines(cell)


class _PartWriter:
    """The methods of a table's part that the template calls."""

    def __init__(self, table: Table, part: layout.ColumnNumbers) -> None:
        self.characters = layout.width_in_characters(table, part)
        self.rows = [[row[number] for number in part] for row in table.rows]
        self._table = table
        self._columns = [table.columns[number] for number in part]
        self._starts = layout.group_starts(self._columns)

    def heads(self) -> list[list[_Head]]:
        """Returns the header's rows: two if columns share a heading,
        none without headings, else one.
        """
        if not any(column.group for column in self._columns):
            row = [_Head(column.title, align=column.align) for column in self._columns]
            return [row] if any(head.title for head in row) else []
        upper, lower = [], []
        number = 0
        for group, members in groupby(self._columns, lambda column: column.group):
            columns = list(members)
            if group:
                upper.append(_Head(group, columns=len(columns), begins_group=True))
            for column in columns:
                head = _Head(column.title, 1, 1, column.align, number in self._starts)
                if group:
                    lower.append(head)
                else:
                    upper.append(_Head(column.title, 1, 2, column.align))
                number += 1
        return [upper, lower]

    def classes(self, column: int, cell: Cell) -> str:
        names: list[str] = [self._columns[column].align]
        if cell.tone != "plain":
            names.append(cell.tone)
        if column in self._starts:
            names.append("group")
        if layout.longest_line(layout.cell_lines(cell)[0]) > layout.LONG_LINE:
            names.append("long")
        if "\n" in cell.text:
            names.append("lines")
        return " ".join(names)

    def begins_section(self, row: int) -> bool:
        """Returns whether a line is drawn above this row."""
        return row in self._table.sections


@cache
def _environment() -> Environment:
    """Returns the Jinja environment with the report's templates."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(signs=TONE_SIGNS, player_address=player_pages.player_address)
    environment.filters.update(titled=markup.title_html, untitled=markup.plain_title)
    environment.tests["text"] = lambda block: isinstance(block, Text)
    environment.tests["table"] = lambda block: isinstance(block, Table)
    return environment


def charts_script() -> str:
    """Returns the script with Vega, Vega-Lite, Vega-Embed and the
    code that draws a page's charts.
    """
    page_script = (TEMPLATES / "charts.js").read_text()
    return f"{vega_script()}\n(() => {{\n{page_script}}})();\n"


def vega_script() -> str:
    """Returns Vega from the standalone page if the page has been built.

    Bundling Vega takes seconds, and libraries from the network.
    """
    return committed_vega() or vega_bundle()


def vega_bundle() -> str:
    """Returns a script with Vega, Vega-Lite and Vega-Embed as global names.

    `vegaEmbed` with `ast: true` needs no compiled code.
    """
    return bundle_script("vega", "Object.assign(globalThis, { vega, vegaLite, vegaEmbed });\n")


def bundle_script(name: str, page_script: str) -> str:
    """Returns a bundle of Vega, Vega-Lite, Vega-Embed and a script of schedlab that uses them.

    Bundling takes seconds. The result is cached under a hash of its inputs.
    """
    bundle_inputs = f"{version('vl-convert-python')} {VEGA_LITE} {page_script}"
    key = hashlib.sha256(bundle_inputs.encode()).hexdigest()[:16]
    cache_file = find_in_caches(f"{name}-{key}.js")
    try:
        return cache_file.read_text()
    except OSError:
        script = str(import_chart_library().javascript_bundle(page_script, vl_version=VEGA_LITE))
        with suppress(OSError):  # an unwritable cache is not an error
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(cache_file) as new_file:
                new_file.write_text(script)
        return script
