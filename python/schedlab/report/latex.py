# SPDX-License-Identifier: MIT
"""Writes tables and charts for a paper: LaTeX with booktabs and siunitx, and PDF in two widths."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from string import Template

from schedlab import __version__
from schedlab.base.host.addresses import import_chart_library
from schedlab.report import drawing, layout, markup
from schedlab.report.model import Cell, Chart, Column, Report, Table
from schedlab.report.numbering import TONE_SIGNS, number_notes, used_tones
from schedlab.report.specifications import paper_specification

LATEX_FOLDER = "latex"
DOCUMENT_FILE = "report.tex"
WIDTHS_MM = (85, 178)
"""Widths in mm of a column and of a page of a paper."""
_PIXELS_PER_MM = 96 / 25.4
"""Scale that gives Vega's letters the size of a figure's caption."""
_POINTS_PER_MM = 72 / 25.4
_TEMPLATES = Path(__file__).parent / "templates" / "latex"
_ESCAPES = {
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
_FIRST_NOT_LATIN = "\u0180"
_PUNCTUATION = "–—‘’“”„…€"
_NUMBER_PATTERN = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")

ReportDrawn = Callable[[str], None]


def write_latex(report: Report, folder: Path, advance: ReportDrawn = lambda name: None) -> Path:
    """Writes a folder of files for a paper, and a document that contains
    them all. Returns the document.

    A list, such as the list of all runs, is only a CSV file.
    """
    path = folder / LATEX_FOLDER
    path.mkdir()
    latex_blocks = []
    for page in report.pages:
        latex_blocks.append(f"\\clearpage\n\\section{{{_escape_title(page.title)}}}")
        for block in page.blocks():
            if isinstance(block, Table) and not block.is_list:
                (path / f"{block.name}.tex").write_text("".join(_end_lines(_write_table(block))))
                latex_blocks.append(f"\\input{{{block.name}}}")
            elif isinstance(block, Chart):
                for chart in block.on_paper:
                    (path / f"{chart.name}.tex").write_text(
                        "".join(_end_lines(_write_figure(chart)))
                    )
                    latex_blocks.append(f"\\input{{{chart.name}}}")
                    _draw_pdfs(chart, path)
                    advance(chart.name)
    (path / "preamble.tex").write_text(_fill_version("preamble.tex"))
    (path / "schedlab.bib").write_text(citation())
    document = (_TEMPLATES / DOCUMENT_FILE).read_text()
    template_fields = {"title": _escape_title(report.title), "content": "\n".join(latex_blocks)}
    (path / DOCUMENT_FILE).write_text(Template(document).substitute(template_fields))
    return path / DOCUMENT_FILE


def citation() -> str:
    """Returns schedlab's citation in BibTeX."""
    return _fill_version("schedlab.bib")


def _fill_version(name: str) -> str:
    """Returns the text of a template with schedlab's version filled in."""
    return Template((_TEMPLATES / name).read_text()).substitute(version=__version__)


def _end_lines(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


# --- tables


def _write_table(table: Table) -> Iterator[str]:
    fitted_table = layout.fit_table(table)
    notes = number_notes(fitted_table)
    yield "% SPDX-License-Identifier: MIT"
    yield "\\begin{table}"
    yield f"\\caption{{{_escape_title(table.title)}}}\\label{{tab:{table.name}}}"
    yield "\\centering"
    for part in layout.split_columns(fitted_table):
        yield "\\schedlabfit{%"
        yield from _write_part(fitted_table, part, notes)
        yield "}"
    texts = [f"\\textsuperscript{{{number}}}~{inline_latex(why)}" for why, number in notes.items()]
    texts += [
        f"{escape_latex(sign)}~{escape_latex(meaning)}."
        for sign, meaning in used_tones(fitted_table).items()
    ]
    texts += [inline_latex(table.caption)] if table.caption else []
    if texts:
        yield f"\\par\\smallskip\\begin{{minipage}}{{\\linewidth}}\\footnotesize {' '.join(texts)}"
        yield "\\end{minipage}"
    yield "\\end{table}"


def _write_part(
    table: Table, part: layout.ColumnNumbers, notes: Mapping[str, int]
) -> Iterator[str]:
    """Yields the lines of one part of a table, a `tabular`."""
    columns = [table.columns[number] for number in part]
    yield f"\\begin{{tabular}}{{{''.join(column.align[0] for column in columns)}}}"
    yield "\\toprule"
    yield from _write_heads(columns)
    for number, row in enumerate(table.rows):
        if number in table.sections:
            yield "\\midrule"
        yield _join_cells(_write_cell(row[column], notes) for column in part)
    yield "\\bottomrule"
    yield "\\end{tabular}"


def _write_heads(columns: list[Column]) -> Iterator[str]:
    if any(column.group for column in columns):
        cells, rules, first_column = [], [], 1
        for group, members in groupby(columns, lambda column: column.group):
            count = len(list(members))
            cells.append(f"\\multicolumn{{{count}}}{{c}}{{{_escape_title(group)}}}")
            rules += (
                [f"\\cmidrule(lr){{{first_column}-{first_column + count - 1}}}"] if group else []
            )
            first_column += count
        yield _join_cells(cells)
        yield "".join(rules)
    if any(column.title for column in columns):
        yield _join_cells(_escape_title(column.title) for column in columns)
        yield "\\midrule"


def _join_cells(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _write_cell(cell: Cell, notes: Mapping[str, int]) -> str:
    large, interval = layout.cell_lines(cell)
    sign = f"{escape_latex(TONE_SIGNS[cell.tone])}\\," if cell.tone in TONE_SIGNS else ""
    mark = f"\\textsuperscript{{{notes[cell.why]}}}" if cell.why else ""
    below = f" {{\\footnotesize {_write_numbers(interval)}}}" if interval else ""
    return f"{sign}{_write_numbers(large)}{mark}{below}"


def _write_numbers(text: str) -> str:
    """Returns text with siunitx commands for numbers and intervals."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    numbers = inner.split(", ") if inner != text else [text]
    if not all(_NUMBER_PATTERN.fullmatch(number) for number in numbers):
        return escape_latex(text)
    texts = ", ".join(f"\\num{{{number.replace(',', '').replace('−', '-')}}}" for number in numbers)
    return f"{{[}}{texts}{{]}}" if inner != text else texts


# --- text


def escape_latex(text: str) -> str:
    """Escapes text for LaTeX. A character that pdfLaTeX does not have becomes `?`."""
    return "".join(
        _ESCAPES.get(character) or (character if _has_glyph(character) else "?")
        for character in text
    )


def _has_glyph(character: str) -> bool:
    """Returns whether pdfLaTeX can print the character."""
    return character < _FIRST_NOT_LATIN or character in _PUNCTUATION


def _escape_title(title: str) -> str:
    """Converts a title with `code` to LaTeX."""
    texts_and_codes = title.split("`")
    if len(texts_and_codes) % 2 == 0:
        return escape_latex(title)
    return "".join(
        _write_code(text_or_code) if number % 2 else escape_latex(text_or_code)
        for number, text_or_code in enumerate(texts_and_codes)
    )


def _write_code(text: str) -> str:
    return f"\\texttt{{{escape_latex(text)}}}"


def inline_latex(markdown: str) -> str:
    """Converts Markdown to LaTeX: emphasis and code. A link becomes its text."""
    marks = {
        "em_open": "\\emph{", "em_close": "}", "strong_open": "\\textbf{", "strong_close": "}",
        "softbreak": " ", "hardbreak": " ",
    }  # fmt: skip
    texts = []
    for token in markup.inline_tokens(markdown):
        if token.type == "code_inline":
            texts.append(_write_code(token.content))
        elif token.type == "text":
            texts.append(escape_latex(token.content))
        else:
            texts.append(marks.get(token.type, ""))
    return "".join(texts).strip()


# --- figures


def _write_figure(chart: Chart) -> Iterator[str]:
    yield "% SPDX-License-Identifier: MIT"
    yield f"% {chart.name}-{WIDTHS_MM[0]}mm.pdf is for one column."
    yield "\\begin{figure}"
    yield "\\centering"
    yield f"\\includegraphics[width=\\linewidth]{{{chart.name}-{WIDTHS_MM[1]}mm}}"
    caption = f"{_escape_title(chart.title)}. {inline_latex(chart.caption)}"
    yield f"\\caption{{{caption}}}\\label{{fig:{chart.name}}}"
    yield "\\end{figure}"


def _draw_pdfs(chart: Chart, path: Path) -> None:
    """Draws a chart in each of WIDTHS_MM. A single plot keeps the size of its letters."""
    specification = paper_specification(chart)
    for width in WIDTHS_MM:
        picture = drawing.render_at_width(specification, width * _PIXELS_PER_MM)
        pdf = import_chart_library().svg_to_pdf(
            drawing.scale_picture(picture, width * _POINTS_PER_MM)
        )
        (path / f"{chart.name}-{width}mm.pdf").write_bytes(pdf)
