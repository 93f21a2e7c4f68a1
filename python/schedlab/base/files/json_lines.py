# SPDX-License-Identifier: MIT
"""Parses JSON with the line and path of each value, and as tolerantly as rt-app (json-c).

It accepts comments, trailing commas, strings in single quotes or with line feeds, numbers with
leading zeros, and words in any case. Neither Python's parser nor the package json5 reports lines,
and JSON5 has neither such strings nor such numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_DEPTH_MAX = 100
_STRING_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][-+]?\d+)?")
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_QUOTE_REPLACEMENTS = {"\\'": "'", '"': '\\"'}
"""How a string in single quotes is converted to one in double quotes."""
_NUMBER_DIGITS_MAX = 30
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Object:
    """A JSON object: its members in the order of the text; a key may occur more than once."""

    members: tuple[tuple[str, Node], ...]


Value = Object | tuple["Node", ...] | str | int | float | bool | None


@dataclass(frozen=True)
class Node:
    """A JSON value and where it is in the text."""

    value: Value
    line: int
    path: str
    """Keys and indices joined by dots, such as `tasks.worker.phases.first.run`."""


class JsonError(ValueError):
    """Unexpected text in the line `line`."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Node:
    """Parses a complete text. Raises JsonError."""
    return _Parser(text).document()


def parse_first(text: str, bare: tuple[str, ...] = ()) -> tuple[Node, int]:
    """Parses the first value in a text and ignores text after it, as json-c does.

    Returns the value, and the line of the text that follows (0: none). Keys that begin with one of
    `bare` may lack a value, which is then "". Raises JsonError.
    """
    parser = _Parser(text, bare)
    node = parser.node("")
    rest = parser.next()
    if rest == "/":
        raise parser.unexpected("a comment or the end of the file")
    return node, parser.line() if rest else 0


class _Parser:
    def __init__(self, text: str, bare: tuple[str, ...] = ()) -> None:
        self.text = text
        self.bare = bare
        self.place = 0
        self.depth = 0
        self.counted = 0
        self.lines = 1

    def document(self) -> Node:
        node = self.node("")
        if self.next():
            raise self.unexpected("the end of the file")
        return node

    def line(self) -> int:
        """Returns the line of the current position; positions must not decrease."""
        self.lines += self.text.count("\n", self.counted, self.place)
        self.counted = self.place
        return self.lines

    def next(self) -> str:
        """Skips white space and comments; returns the next character, or "" at the end."""
        match = _SPACE.match(self.text, self.place)
        assert match  # it may be empty
        self.place = match.end()
        return self.text[self.place : self.place + 1]

    def unexpected(self, expected: str) -> JsonError:
        rest = self.text[self.place : self.place + 20].split("\n")[0]
        return JsonError(self.line(), f"{rest or 'end of file'}: expected {expected}")

    def node(self, path: str) -> Node:
        """Returns the value at the current place; `path` is its path in the document."""
        character = self.next()
        line = self.line()
        if character in ("{", "["):
            self.depth += 1
            if self.depth > _DEPTH_MAX:
                raise JsonError(
                    line, f"expected at most {_DEPTH_MAX} levels of {{ and [; nest fewer"
                )
            value: Value = self.object(path) if character == "{" else self.array(path)
            self.depth -= 1
        elif character in ('"', "'"):
            value = self.string()
        else:
            value = self.scalar()
        return Node(value, line, path)

    def object(self, path: str) -> Object:
        members: list[tuple[str, Node]] = []
        self.place += 1
        while self.next() != "}":
            if self.next() not in ('"', "'"):
                raise self.unexpected('a key in " or }')
            key = self.string()
            place = f"{path}.{key}" if path else key
            if self.next() == ":":
                self.place += 1
                members.append((key, self.node(place)))
            elif key.startswith(self.bare):
                members.append((key, Node("", self.line(), place)))
            else:
                raise self.unexpected(":")
            self.separator("}")
        self.place += 1
        return Object(tuple(members))

    def array(self, path: str) -> tuple[Node, ...]:
        items: list[Node] = []
        self.place += 1
        while self.next() != "]":
            items.append(self.node(f"{path}.{len(items)}"))
            self.separator("]")
        self.place += 1
        return tuple(items)

    def separator(self, end: str) -> None:
        """Skips a comma, but not the closing bracket."""
        if self.next() == ",":
            self.place += 1
        elif self.next() != end:
            raise self.unexpected(f", or {end}")

    def string(self) -> str:
        if match := _SINGLE_QUOTED.match(self.text, self.place):
            inner = re.sub(
                r"\\.|\"", lambda match: _QUOTE_REPLACEMENTS.get(match[0], match[0]), match[1]
            )
            value = self.decoded(f'"{inner}"', 0)[0]
            self.place = match.end()
            return value
        value, self.place = self.decoded(self.text, self.place)
        return value

    def decoded(self, text: str, place: int) -> tuple[str, int]:
        """Returns the double-quoted string that begins at a position, and the position after it."""
        try:
            value, end = _STRING_DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            advice = "end it with its quote, and write \\ as \\\\"
            raise JsonError(self.line(), f"not a string ({error.msg}); {advice}") from None
        return str(value), end

    def scalar(self) -> int | float | bool | None:
        for word, constant in _CONSTANTS.items():
            if self.text[self.place : self.place + len(word)].lower() == word:
                self.place += len(word)
                return constant
        match = _NUMBER.match(self.text, self.place)
        if not match or len(match[0]) > _NUMBER_DIGITS_MAX:
            raise self.unexpected(f"a value; a number has at most {_NUMBER_DIGITS_MAX} characters")
        self.place = match.end()
        return float(match[0]) if match[1] or match[2] else int(match[0])
