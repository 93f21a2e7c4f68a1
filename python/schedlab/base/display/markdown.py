# SPDX-License-Identifier: MIT
"""Escapes any text for Markdown, so that it cannot create links, mentions, headings, lists or HTML.

GitHub finds mentions and addresses even in escaped text, but not in code. So `code` or `listing`
must be used where other people's text is sent by mail, as in comments.
"""

from __future__ import annotations

import re

from schedlab.base.display.names import visible

_PUNCTUATION = re.compile(
    r"([\\`*_\[\]<>&|#~$^@{}!]|(?<=[A-Za-z]):(?=//)|(?<=www)\.)", re.IGNORECASE
)
"""Characters with a meaning in CommonMark or in GitHub's or Pandoc's dialect."""
_FIRST = re.compile(r"^([-+=](?=[-+=\s]|$)|\d+(?=[.)](?:\s|$)))")
"""Beginnings of lines that start a list or turn the line above into a heading."""
TICKS = re.compile(r"`+")


def literal(text: str) -> str:
    """Returns text escaped for Markdown, on one line."""
    return escaped(_line(text))


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
    line = _line(text)
    ticks = "`" * (_longest_run(line) + 1)
    padding = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def code_cell(text: str) -> str:
    """Returns inline code for a table.

    Renderers disagree on escaped bars, so another character replaces them.
    """
    return code(text.replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}"))


def listing(text: str, language: str = "") -> str:
    """Returns text as a code block, such as a console's output."""
    text = visible(text).rstrip()
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _longest_run(text: str) -> int:
    return max((len(run) for run in TICKS.findall(text)), default=0)
