# SPDX-License-Identifier: MIT
"""Writes tables and charts for a paper: LaTeX with booktabs and siunitx, and PDF in two widths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from string import Template

from schedlab import __version__
from schedlab.base.host.addresses import chart_library
from schedlab.report import drawing, layout, markup
from schedlab.report.model import Cell, Chart, Column, Report, Table
from schedlab.report.numbering import SIGNS, numbered_notes, used_tones
from schedlab.report.specifications import for_paper

FOLDER = "latex"
DOCUMENT = "report.tex"
WIDTHS_MM = (85, 178)
"""Widths in mm of a column and of a page of a paper."""
_PIXELS_PER_MM = 96 / 25.4
"""Scale that gives Vega's letters the size of a figure's caption."""
_POINTS_PER_MM = 72 / 25.4
_TEMPLATES = Path(__file__).parent / "templates" / "latex"
_SPECIAL = {
    **{character: f"\\{character}" for character in "#$%&_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "\\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "µ": "\\textmu{}",
    "μ": "\\textmu{}",
    "\N{NO-BREAK SPACE}": "~",
    **{
        sign: f"\\ensuremath{{{command}}}"
        for sign, command in {
            "✓": "\\checkmark", "≠": "\\neq", "✕": "\\times", "×": "\\times", "÷": "\\div",
            "≈": "\\approx", "±": "\\pm", "≤": "\\leq", "≥": "\\geq", "−": "-", "∞": "\\infty",
            "↑": "\\uparrow", "↓": "\\downarrow", "→": "\\to", "·": "\\cdot", "•": "\\bullet",
            "ⁿ": "^{n}", "²": "^{2}",
        }.items()
    },
}  # fmt: skip
_AFTER_LATIN = "\u0180"
_PUNCTUATION = "–—‘’“”„…€"
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")

Advance = Callable[[str], None]


def write_latex(report: Report, folder: Path, advance: Advance = lambda name: None) -> Path:
    """Writes a folder of files for a paper, and a document that contains
    them all. Returns the document.

    A list, such as the list of all runs, is only a CSV file.
    """
    place = folder / FOLDER
    place.mkdir()
    parts = []
    for page in report.pages:
        parts.append(f"\\clearpage\n\\section{{{_title(page.title)}}}")
        for block in page.blocks():
            if isinstance(block, Table) and not block.is_list:
                (place / f"{block.name}.tex").write_text("".join(_lines(_table(block))))
                parts.append(f"\\input{{{block.name}}}")
            elif isinstance(block, Chart):
                for chart in block.on_paper:
                    (place / f"{chart.name}.tex").write_text("".join(_lines(_figure(chart))))
                    parts.append(f"\\input{{{chart.name}}}")
                    _draw(chart, place)
                    advance(chart.name)
    (place / "preamble.tex").write_text(_of_release("preamble.tex"))
    (place / "schedlab.bib").write_text(citation())
    document = (_TEMPLATES / DOCUMENT).read_text()
    fields = {"title": _title(report.title), "content": "\n".join(parts)}
    (place / DOCUMENT).write_text(Template(document).substitute(fields))
    return place / DOCUMENT


def citation() -> str:
    """Returns schedlab's citation in BibTeX."""
    return _of_release("schedlab.bib")


def _of_release(name: str) -> str:
    return Template((_TEMPLATES / name).read_text()).substitute(version=__version__)


def _lines(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


# --- tables


def _table(table: Table) -> Iterator[str]:
    shown = layout.fitted(table)
    notes = numbered_notes(shown)
    yield "% SPDX-License-Identifier: MIT"
    yield "\\begin{table}"
    yield f"\\caption{{{_title(table.title)}}}\\label{{tab:{table.name}}}"
    yield "\\centering"
    for part in layout.parts(shown):
        yield "\\schedlabfit{%"
        yield from _tabular(shown, part, notes)
        yield "}"
    texts = [f"\\textsuperscript{{{number}}}~{inline(why)}" for why, number in notes.items()]
    texts += [f"{plain(sign)}~{plain(meaning)}." for sign, meaning in used_tones(shown).items()]
    texts += [inline(table.caption)] if table.caption else []
    if texts:
        yield f"\\par\\smallskip\\begin{{minipage}}{{\\linewidth}}\\footnotesize {' '.join(texts)}"
        yield "\\end{minipage}"
    yield "\\end{table}"


def _tabular(table: Table, part: layout.Part, notes: Mapping[str, int]) -> Iterator[str]:
    columns = [table.columns[number] for number in part]
    yield f"\\begin{{tabular}}{{{''.join(column.align[0] for column in columns)}}}"
    yield "\\toprule"
    yield from _heads(columns)
    for number, row in enumerate(table.rows):
        if number in table.sections:
            yield "\\midrule"
        yield _row(_cell(row[column], notes) for column in part)
    yield "\\bottomrule"
    yield "\\end{tabular}"


def _heads(columns: list[Column]) -> Iterator[str]:
    if any(column.group for column in columns):
        cells, rules, place = [], [], 1
        for group, members in groupby(columns, lambda column: column.group):
            count = len(list(members))
            cells.append(f"\\multicolumn{{{count}}}{{c}}{{{_title(group)}}}")
            rules += [f"\\cmidrule(lr){{{place}-{place + count - 1}}}"] if group else []
            place += count
        yield _row(cells)
        yield "".join(rules)
    if any(column.title for column in columns):
        yield _row(_title(column.title) for column in columns)
        yield "\\midrule"


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: Cell, notes: Mapping[str, int]) -> str:
    large, interval = layout.lines(cell)
    sign = f"{plain(SIGNS[cell.tone])}\\," if cell.tone in SIGNS else ""
    mark = f"\\textsuperscript{{{notes[cell.why]}}}" if cell.why else ""
    below = f" {{\\footnotesize {_numbers(interval)}}}" if interval else ""
    return f"{sign}{_numbers(large)}{mark}{below}"


def _numbers(text: str) -> str:
    """Returns text with siunitx commands for numbers and intervals."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    parts = inner.split(", ") if inner != text else [text]
    if not all(_NUMBER.fullmatch(part) for part in parts):
        return plain(text)
    texts = ", ".join(f"\\num{{{part.replace(',', '').replace('−', '-')}}}" for part in parts)
    return f"{{[}}{texts}{{]}}" if inner != text else texts


# --- text


def plain(text: str) -> str:
    """Escapes text for LaTeX. A character that pdfLaTeX does not have becomes `?`."""
    return "".join(
        _SPECIAL.get(character) or (character if _has_glyph(character) else "?")
        for character in text
    )


def _has_glyph(character: str) -> bool:
    return character < _AFTER_LATIN or character in _PUNCTUATION


def _title(title: str) -> str:
    parts = title.split("`")
    if len(parts) % 2 == 0:
        return plain(title)
    return "".join(_code(part) if number % 2 else plain(part) for number, part in enumerate(parts))


def _code(text: str) -> str:
    return f"\\texttt{{{plain(text)}}}"


def inline(markdown: str) -> str:
    """Converts Markdown to LaTeX: emphasis and code. A link becomes its text."""
    marks = {
        "em_open": "\\emph{", "em_close": "}", "strong_open": "\\textbf{", "strong_close": "}",
        "softbreak": " ", "hardbreak": " ",
    }  # fmt: skip
    texts = []
    for token in markup.tokens(markdown):
        if token.type == "code_inline":
            texts.append(_code(token.content))
        elif token.type == "text":
            texts.append(plain(token.content))
        else:
            texts.append(marks.get(token.type, ""))
    return "".join(texts).strip()


# --- figures


def _figure(chart: Chart) -> Iterator[str]:
    yield "% SPDX-License-Identifier: MIT"
    yield f"% {chart.name}-{WIDTHS_MM[0]}mm.pdf is for one column."
    yield "\\begin{figure}"
    yield "\\centering"
    yield f"\\includegraphics[width=\\linewidth]{{{chart.name}-{WIDTHS_MM[1]}mm}}"
    caption = f"{_title(chart.title)}. {inline(chart.caption)}"
    yield f"\\caption{{{caption}}}\\label{{fig:{chart.name}}}"
    yield "\\end{figure}"


def _draw(chart: Chart, place: Path) -> None:
    """Draws a chart in each of WIDTHS_MM. A single plot keeps the size of its letters."""
    specification = for_paper(chart)
    for width in WIDTHS_MM:
        picture = drawing.narrowed(specification, width * _PIXELS_PER_MM)
        pdf = chart_library().svg_to_pdf(drawing.sized(picture, width * _POINTS_PER_MM))
        (place / f"{chart.name}-{width}mm.pdf").write_bytes(pdf)
