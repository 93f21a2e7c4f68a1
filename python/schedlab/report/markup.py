# SPDX-License-Identifier: MIT
"""Converts Markdown in reports to HTML. To escape text, use schedlab.base.display.markdown."""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from schedlab.base.display.markdown import TICKS, code, escaped, literal

_FENCE_PATTERN = re.compile(r" {0,3}(`{3,}|~{3,})")

TRIAL_PREFIX = "try:"
"""Prefix of the target of a link to a trial."""
OPEN_TRIAL_TEXT = "Open it in the page"
"""The text of a caption's link to a trial. More text may follow."""
_TRIAL_LINKS = re.compile(
    rf" *\[{OPEN_TRIAL_TEXT}\]\({TRIAL_PREFIX}[^()\s]*\)\."
    rf"| *\[[^\[\]]*\]\({TRIAL_PREFIX}[^()\s]*\)[^\n]*"
)

ResolveLink = Callable[[str], str]
"""Returns the address of a link, given its target."""


def title_html(title: str) -> Markup:
    """Returns HTML of a title: plain text, except `code`."""
    parts = title.split("`")
    if len(parts) % 2 == 0:  # a single, unpaired backquote
        return escape(title)
    inside = (Markup("<code>{}</code>").format(part) for part in parts[1::2])
    outside = (escape(part) for part in parts[0::2])
    pairs = zip_longest(outside, inside, fillvalue=Markup(""))
    return Markup("").join(part for pair in pairs for part in pair)


def plain_title(title: str) -> str:
    """Returns a title without markup."""
    return title.replace("`", "") if title.count("`") % 2 == 0 else title


def title_markdown(title: str) -> str:
    """Returns Markdown of a title."""
    parts = " ".join(title.split()).split("`")
    if len(parts) % 2 == 0:
        return literal(title)
    return "".join(code(part) if number % 2 else escaped(part) for number, part in enumerate(parts))


def _make_parser() -> MarkdownIt:
    """Returns a parser of Markdown without pictures."""
    # Pictures would be fetched from other hosts. The pictures of a report are charts.
    parser = MarkdownIt("commonmark", {"html": False, "typographer": False})
    return parser.enable("table").disable("image")


_PARSER = _make_parser()


def to_html(markdown: str, resolve: ResolveLink = str) -> str:
    """Returns HTML of paragraphs. HTML in the text is escaped."""
    return _render(_PARSER.parse(markdown), resolve)


def to_inline_html(markdown: str, resolve: ResolveLink = str) -> str:
    """Returns HTML of one line of text, without a paragraph element."""
    return _render(_PARSER.parseInline(markdown), resolve)


def inline_tokens(markdown: str) -> Iterator[Token]:
    """Yields the parts of one line of text: text, code, and the limits of emphasis."""
    return (child for token in _PARSER.parseInline(markdown) for child in token.children or [])


def without_trials(markdown: str) -> str:
    """Returns a text without its links to trials and the rest of their
    lines, for formats without the page.
    """
    return _TRIAL_LINKS.sub("", markdown)


def _render(tokens: list[Token], resolve: ResolveLink) -> str:
    """Converts parsed Markdown to HTML, with the addresses of links resolved."""
    for token in tokens:
        for child in token.children or []:
            if child.type == "link_open":
                child.attrs["href"] = resolve(str(child.attrs["href"]))
    html: Any = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return str(html)


def without_html(markdown: str) -> str:
    """Returns Markdown that renders as `to_html` does, with HTML escaped."""
    lines = []
    fence = ""
    for line in markdown.split("\n"):
        match = _FENCE_PATTERN.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif match:
            fence = match[1]
        else:
            lines.append(_escape_outside_code(line))
            continue
        lines.append(line)
    return "\n".join(lines)


def _escape_outside_code(line: str) -> str:
    """Adds a backslash before HTML or a picture outside of code, unless there is one."""
    escaped, index = "", 0
    while index < len(line):
        if line[index] == "\\":
            escaped += line[index : index + 2]
            index += 2
        elif line[index] == "`":
            end = _find_code_end(line, index)
            escaped += line[index:end]
            index = end
        else:
            begins = line[index] == "<" or line.startswith("![", index)
            escaped += f"\\{line[index]}" if begins else line[index]
            index += 1
    return escaped


def _find_code_end(line: str, begin: int) -> int:
    """Returns the position after the code span that begins here, or
    after backquotes without a match.
    """
    match = TICKS.match(line, begin)
    assert match
    for closing in TICKS.finditer(line, match.end()):
        if len(closing[0]) == len(match[0]):
            return closing.end()
    return match.end()
