# SPDX-License-Identifier: MIT
"""Escapes texts for Markdown, so that they cannot create links, mentions, headings, lists or HTML.

GitHub finds mentions and addresses even in escaped text, but not in code. So use `code` or
`listing` for strangers' texts in comments, which GitHub sends by mail.
"""

import re

from schedlab.base.display.names import visible

_PUNCTUATION = re.compile(
    r"([\\`*_\[\]<>&|#~$^@{}!]|(?<=[A-Za-z]):(?=//)|(?<=www)\.)", re.IGNORECASE
)
"""Characters that have a meaning in CommonMark, or in the dialects of GitHub or Pandoc."""
_FIRST = re.compile(r"^([-+=](?=[-+=\s]|$)|\d+(?=[.)](?:\s|$)))")
"""Beginnings of lines that would start a list, or make the previous line a heading."""
TICKS = re.compile(r"`+")


def literal(text: str) -> str:
    """Returns text escaped for Markdown, on one line."""
    return escaped(_one_line(text))


def literal_with_code(text: str) -> str:
    """Returns text escaped for Markdown, on one line; parts between backticks stay inline code."""
    texts_and_codes = _one_line(text).split("`")
    if len(texts_and_codes) % 2 == 0:
        return literal(text)
    return "".join(
        code(text_or_code) if index % 2 else escaped(text_or_code)
        for index, text_or_code in enumerate(texts_and_codes)
    )


def escaped(line: str) -> str:
    """Returns a line escaped for Markdown, with its blanks."""
    line = _PUNCTUATION.sub(r"\\\1", line)
    first = _FIRST.match(line)
    if not first:
        return line
    rest = line[first.end() :]
    return f"{first[1]}\\{rest}" if first[1].isdigit() else f"\\{line}"


def code(text: str) -> str:
    """Returns text as inline `code`, on one line."""
    line = _one_line(text)
    ticks = "`" * (_longest_backtick_run(line) + 1)
    padding = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def code_cell(text: str) -> str:
    """Returns text as inline code in a table's cell.

    A bar would end the cell, and renderers disagree on escaped bars, so another character replaces
    it.
    """
    return code(text.replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}"))


def listing(text: str, language: str = "") -> str:
    """Returns text as a code block, such as a console's output."""
    text = visible(text).rstrip()
    fence = "`" * max(3, _longest_backtick_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _longest_backtick_run(text: str) -> int:
    return max((len(run) for run in TICKS.findall(text)), default=0)
