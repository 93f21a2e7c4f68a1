# SPDX-License-Identifier: MIT
"""Any text, made safe for Markdown: it shows as it is, and begins no link, mention, heading, list or HTML.

GitHub also looks for mentions and addresses in text whose punctuation is escaped, but not in code. Where text of others
reaches people by mail, as a comment does, it is `code` or a `listing`.
"""

from __future__ import annotations

import re

from schedlab.base.display.names import visible

_PUNCTUATION = re.compile(
    r"([\\`*_\[\]<>&|#~$^@{}!]|(?<=[A-Za-z]):(?=//)|(?<=www)\.)", re.IGNORECASE
)
"""What Markdown reads as more than itself, in CommonMark, GitHub's and Pandoc's dialect."""
_FIRST = re.compile(r"^([-+=](?=[-+=\s]|$)|\d+(?=[.)](?:\s|$)))")
"""What begins a list, or makes a heading of what is above, at the beginning of a line."""
TICKS = re.compile(r"`+")


def literal(text: str) -> str:
    """Returns any text as text, on one line."""
    return escaped(_line(text))


def escaped(line: str) -> str:
    """Returns the same of one line, with its blanks."""
    line = _PUNCTUATION.sub(r"\\\1", line)
    first = _FIRST.match(line)
    if not first:
        return line
    rest = line[first.end() :]
    return f"{first[1]}\\{rest}" if first[1].isdigit() else f"\\{line}"


def code(text: str) -> str:
    """Returns any text as `code`, on one line."""
    line = _line(text)
    ticks = "`" * (_longest_run(line) + 1)
    padding = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def code_cell(text: str) -> str:
    """Returns the same for a table, where readers disagree on how a bar is escaped: another one replaces it."""
    return code(text.replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}"))


def listing(text: str, language: str = "") -> str:
    """Returns any text as lines of code, such as a console's."""
    text = visible(text).rstrip()
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _longest_run(text: str) -> int:
    return max((len(run) for run in TICKS.findall(text)), default=0)
