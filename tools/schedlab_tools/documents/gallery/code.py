# SPDX-License-Identifier: MIT
"""Formats a policy's code with its important lines marked, as a block of Markdown."""

from collections.abc import Sequence

from schedlab.errors import SchedlabError

MARK = "▶"


def with_marks(source: str, pieces: Sequence[str]) -> str:
    """Returns the functions that contain the pieces, in order, with a mark at each piece.

    Raises SchedlabError unless each piece is in exactly one line, within a function.
    """
    lines = source.splitlines()
    marked = [_line_of(lines, piece) for piece in pieces]
    functions = sorted({_function_around(lines, at) for at in marked})
    excerpts = [
        "\n".join(
            f"{MARK if index in marked else ' '} {lines[index]}".rstrip()
            for index in range(begin, end + 1)
        )
        for begin, end in functions
    ]
    return "\n\n".join(excerpts)


def _line_of(lines: Sequence[str], piece: str) -> int:
    """Returns the index of the only line that contains the piece."""
    matches = [index for index, line in enumerate(lines) if piece in line]
    if len(matches) != 1:
        raise SchedlabError(
            f"a line to be marked stands {len(matches)} times in the policy: {piece}"
        )
    return matches[0]


def _function_around(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Returns the function's first and last line. clang-format puts both braces of a function at the left edge."""
    opening = max((index for index in range(at) if lines[index] == "{"), default=None)
    closing = next((index for index in range(at, len(lines)) if lines[index] == "}"), None)
    if opening is None or closing is None or "}" in lines[opening:at]:
        raise SchedlabError(f"line {at + 1} of the policy stands in no function")
    begin = opening - 1
    while lines[begin].startswith(" "):
        begin -= 1
    return begin, closing
