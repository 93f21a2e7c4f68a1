# SPDX-License-Identifier: MIT
"""Converts workloads from text (docs/simulator.md) to binary workload files (abi/workload_file.h)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from schedlab.workload.format import (
    FORMS,
    HEADER,
    LOOPS_MAX,
    MAGIC,
    MARK_NAME,
    PROGRAM,
    STEP,
    VERSION,
)

Line = tuple[str, int | None, str]
"""The words of a line, the number for {} in it, and the name of a program for @ in it.

Example: ("arrive @ {}ns", 500, "cpu").
"""
Row = tuple[int, int, int, int, int]
"""A step of a program as numbers, in the order of the fields of STEP."""

NAME_MAX = 31
"""Maximum characters of a name."""
_TIME_MAX = 2**62
_WORD_MAX = 2**64 - 1
_UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
_FIELD_INDEX = {"detail": 1, "target": 3, "value": 4}
"""Index of each field in a Row."""
_LOOP, _EXIT, _MARK = (dict(FORMS)[words][0] for words in ("loop", "exit", "mark begin"))


class WordsRefused(ValueError):
    """A text is not a valid workload. The message names the line, the word and what was expected."""


@dataclass(frozen=True)
class RepeatedLines:
    """Lines that are repeated with other numbers each time: one row per repetition, one column per line."""

    lines: tuple[Line, ...]
    numbers: npt.NDArray[np.uint64]

    def all_lines(self) -> Iterator[Line]:
        """Yields the lines of all repetitions."""
        for row in self.numbers.tolist():
            yield from (
                (words, None if number is None else drawn, name)
                for (words, number, name), drawn in zip(self.lines, row, strict=True)
            )


Lines = Iterable[Line | RepeatedLines]


def expand_lines(lines: Lines) -> Iterator[Line]:
    """Yields single lines, with repetitions expanded."""
    for line in lines:
        if isinstance(line, RepeatedLines):
            yield from line.all_lines()
        else:
            yield line


def format_program(name: str, lines: Lines) -> str:
    """Returns a program in the text format."""
    written, depth = [f"\nprogram {name}\n"], 1
    for words, number, program in expand_lines(lines):
        depth -= words == "end"
        full = words.replace("@", program).replace("{}", str(number))
        written.append(f"{'  ' * depth}{full}\n")
        depth += words.startswith("loop")
    return "".join(written)


# --- kinds of words


@dataclass(frozen=True)
class _WordKind:
    """Which words are valid at one position of a line."""

    pattern: re.Pattern[str]
    expected: str
    least: int = 0
    most: int = _WORD_MAX


def _word_kind(pattern: str, expected: str, least: int = 0, most: int = _WORD_MAX) -> _WordKind:
    return _WordKind(re.compile(pattern, re.ASCII), expected, least, most)


_TIME = r"(\d+|\{\})(ns|us|ms|s|ticks?)"
_TIME_EXPECTED = "a time: a number and ns, us, ms, s or ticks"
_NAME = rf"\S{{1,{NAME_MAX}}}"
_KINDS = {
    "time": _word_kind(_TIME, _TIME_EXPECTED, 0, _TIME_MAX),
    "ticks": _word_kind(r"(\d+|\{\})ticks?", _TIME_EXPECTED, 0, _TIME_MAX),
    "span": _word_kind(rf"{_TIME}|0", _TIME_EXPECTED, 0, _TIME_MAX),
    "own": _word_kind(r"\d+", "a number from 0 to 7", 0, 7),
    "level": _word_kind(r"\d+", "a number from 0 to 10", 0, 10),
    "count": _word_kind(r"\d+|\{\}", "a number from 1 to 4294967295", 1, 2**32 - 1),
    "room": _word_kind(r"\d+", "a number from 0 to 4294967295", 0, 2**32 - 1),
    "number": _word_kind(r"\d+|\{\}", "a number"),
    "signed": _word_kind(r"-?\d+", "a number", -(2**31), 2**31),
    "label": _word_kind(r"\S{1,8}", "a name of at most 8 characters"),
    "text": _word_kind(r"\S+", "a word"),
    "program": _word_kind(_NAME, f"a program's name, of at most {NAME_MAX} characters"),
    "channel": _word_kind(_NAME, f"a channel's name, of at most {NAME_MAX} characters"),
    "timer": _word_kind(rf"(?!\d){_NAME}", f"a timer's name, of at most {NAME_MAX} characters"),
}
_PLACEHOLDER = re.compile(r"<(\w+):(\w+)>(?:\+(\d+))?")
_FORMS: dict[str, list[tuple[list[str], tuple[int, ...]]]] = defaultdict(list)
for _words, _row in FORMS:
    _FORMS[_words.split()[0]].append((_words.split(), _row))
_EXPECTED_FIRST = ", ".join(("program", "channel", *_FORMS, "end"))


def _matches(expected: str, word: str) -> bool:
    place = _PLACEHOLDER.fullmatch(expected)
    return bool(_KINDS[place[2]].pattern.fullmatch(word)) if place else expected == word


def _find_form(words: list[str]) -> tuple[list[str], tuple[int, ...]]:
    """Returns the first form of a step that matches the words. Raises WordsRefused."""
    reached, expected = 0, dict.fromkeys([_EXPECTED_FIRST])
    for form, row in _FORMS.get(words[0], ()):
        pairs = zip(form, words, strict=False)
        mismatch = next((i for i, pair in enumerate(pairs) if not _matches(*pair)), None)
        if mismatch is None and len(form) == len(words):
            return form, row
        position = min(len(form), len(words)) if mismatch is None else mismatch
        expected_word = "the end of the line"
        if position < len(form):
            place = _PLACEHOLDER.fullmatch(form[position])
            expected_word = _KINDS[place[2]].expected if place else form[position]
        if position > reached:
            reached, expected = position, {}
        if position == reached:
            expected[expected_word] = None
    raise WordsRefused(_refusal_text(words[reached : reached + 1], ", or ".join(expected)))


def _refusal_text(alternatives: Sequence[str], expected: str) -> str:
    return (
        f"{alternatives[0][:60]}: expected {expected}" if alternatives else f"expected {expected}"
    )


def encode_label(word: str) -> int:
    """Returns the number that represents a mark's text of up to 8 characters."""
    return int.from_bytes(word.encode()[:8], "little")


# --- a workload


@dataclass(frozen=True)
class _Template:
    """The step that the words of a line mean, before the line's number and program are filled in.

    `scale`: factor for the number of {}. `has_program`: the target is the program of @. `text`: a
    field that gets the number of a new text, and the text.
    """

    row: Row
    scale: int = 0
    has_program: bool = False
    text: tuple[str, str] | None = None


class Assembly:
    """Converts a workload line by line, beginning with the program of the first process.

    Names are numbered in the order of their first use. `tick_ns`: length of a tick in the text.
    """

    def __init__(self, tick_ns: int) -> None:
        self.tick_ns = tick_ns
        self.line = 0
        """Current line of the text."""
        self._begins: dict[int, int] = {}
        """By program number, the index of its first step; in order of appearance."""
        self._begin_of_last = 0
        self._pieces = [np.empty(0, STEP)]
        self._piece_steps = 0
        self._rows: list[Row] = []
        """Steps after those in the pieces."""
        self._loops: list[tuple[int, int, int]] = []
        """Open loops: first step, number of rounds, and line."""
        self._numbers: dict[str, dict[str, int]] = {"program": {}, "channel": {}, "timer": {}}
        self._first_lines: dict[str, int] = {}
        """The line where each program was first named."""
        self._channels: list[int] = []
        self._texts: list[str] = []
        self._templates: dict[str, _Template] = {}

    def add(self, words: str, number: int | None = None, name: str = "") -> None:
        """Adds a line (see Line). Words are separated by single blanks. Raises WordsRefused."""
        template = self._templates.get(words)
        if template is None and self._handle_declaration(words.split(" ")):
            return
        template = template or self._parse_template(words)
        row = template.row
        if template.scale or template.has_program or template.text:
            row = self._fill_template(template, number or 0, name)
        if row[0] == _LOOP:
            self._begin_loop(row[4])
            return
        if words.startswith("window "):
            self._rows.append((_MARK, MARK_NAME, 0, 0, encode_label("window")))
        self._rows.append(row)
        if len(self._rows) >= _STEPS_PER_ARRAY:
            self._end_piece()

    def add_program(self, name: str, lines: Lines) -> None:
        """Adds a program."""
        self._begin(self._number_of_name("program", name), name)
        for line in lines:
            if isinstance(line, RepeatedLines):
                self._add_rounds(line)
            else:
                self.add(*line)

    def _handle_declaration(self, words: list[str]) -> bool:
        """Handles a line that is not a step, such as `program` or `end`; returns False for a step."""
        first = words[0]
        if first in ("program", "channel") and len(words) != (2 if first == "program" else 3):
            raise WordsRefused(
                _refusal_text(words[:1], f"`{first} NAME{' N' * (first == 'channel')}`")
            )
        if first == "program":
            self._begin(self._read_word("program", words[1]), words[1])
        elif first == "channel":
            number = self._read_word("channel", words[1])
            self._channels[number] = self._read_word("room", words[2])
        elif not self._begins:
            _find_form(words)
            raise WordsRefused(_refusal_text(words, "`program NAME` before the first step"))
        elif words == ["end"]:
            self._end_loop()
        else:
            return False
        return True

    def _begin(self, number: int, name: str) -> None:
        """Begins the program of this number and name."""
        self._end()
        if number in self._begins:
            raise WordsRefused(
                _refusal_text([name], "another name, because a program has this one")
            )
        self._begins[number] = self._begin_of_last = self._piece_steps + len(self._rows)

    def _end(self) -> None:
        """Ends the previous program, if there is one."""
        if self._loops:
            self.line = self._loops[-1][2]
            raise WordsRefused("expected an `end` for the loop that begins here")
        last = self._rows[-1][0] if self._rows else self._pieces[-1]["kind"][-1:]
        if self._begins and (self._next_step_index() == 0 or last != _EXIT):
            self._rows.append((_EXIT, 0, 0, 0, 0))

    def _end_piece(self) -> None:
        self._pieces.append(np.array(self._rows, STEP))
        self._piece_steps += len(self._rows)
        self._rows = []

    def _next_step_index(self) -> int:
        """Returns the index that the next step has in its program."""
        return self._piece_steps + len(self._rows) - self._begin_of_last

    def _begin_loop(self, rounds: int) -> None:
        if len(self._loops) == LOOPS_MAX:
            raise WordsRefused(_refusal_text(["loop"], f"at most {LOOPS_MAX} nested loops"))
        self._loops.append((self._next_step_index(), rounds, self.line))

    def _end_loop(self) -> None:
        if not self._loops:
            raise WordsRefused(_refusal_text(["end"], "a loop before it"))
        first, rounds, _ = self._loops.pop()
        if first == self._next_step_index():
            raise WordsRefused(_refusal_text(["end"], "a step within the loop"))
        self._rows.append((_LOOP, len(self._loops), 0, first, rounds))

    def _add_rounds(self, rounds: RepeatedLines) -> None:
        """Adds all repetitions at once, or one by one if they contain a text with a changing number."""
        templates = [
            self._templates.get(words) or self._parse_template(words) for words, *_ in rounds.lines
        ]
        if any(template.text for template in templates):
            for line in rounds.all_lines():
                self.add(*line)
            return
        names = (name for *_, name in rounds.lines)
        one_round = [
            self._fill_template(template, 0, name)
            for template, name in zip(templates, names, strict=True)
        ]
        steps = np.tile(np.array(one_round, STEP), (len(rounds.numbers), 1))
        for index, template in enumerate(templates):
            if template.scale:
                steps["value"][:, index] = rounds.numbers[:, index] * np.uint64(template.scale)
        self._end_piece()
        self._pieces.append(steps.reshape(-1))
        self._piece_steps += steps.size

    # --- words

    def _fill_template(self, template: _Template, number: int, name: str) -> Row:
        """Returns the step with a line's number and name filled in."""
        kind, detail, _, target, value = template.row
        if template.has_program:
            target = self._number_of_name("program", name)
        if template.text:
            field, text = template.text
            target, value = (
                (len(self._texts), value) if field == "target" else (target, len(self._texts))
            )
            self._texts.append(text)
        return (kind, detail, 0, target, value + number * template.scale)

    def _parse_template(self, words: str) -> _Template:
        split_words = words.split(" ")
        form, (kind, detail, target, value) = _find_form(split_words)
        template = _Template((kind, detail, 0, target, value))
        for expected, word in zip(form, split_words, strict=True):
            if place := _PLACEHOLDER.fullmatch(expected):
                template = self._apply_word(template, place, word)
        self._templates[words] = template
        return template

    def _apply_word(self, template: _Template, place: re.Match[str], word: str) -> _Template:
        """Returns the template with the meaning of one word."""
        name, kind, more = place.groups()
        if kind == "text":
            return replace(template, text=(name, word))
        if word == "@":
            return replace(template, has_program=True)
        if word.startswith("{}"):
            return replace(template, scale=1 if kind == "ticks" else self._unit_ns(word[2:]))
        row = list(template.row)
        row[_FIELD_INDEX[name]] = self._read_word(kind, word) + int(more or 0) & _WORD_MAX
        return replace(template, row=(row[0], row[1], 0, row[3], row[4]))

    def _unit_ns(self, unit: str) -> int:
        return _UNITS.get(unit, self.tick_ns) if unit else 1

    def _number_of_name(self, kind: str, name: str) -> int:
        """Returns the number of a program or channel; a new name gets the next number."""
        numbers = self._numbers[kind]
        if name not in numbers:
            numbers[name] = len(numbers)
            if kind == "channel":
                self._channels.append(0)
            elif kind == "program" and self.line:
                self._first_lines[name] = self.line
        return numbers[name]

    def _read_word(self, kind: str, word: str) -> int:
        """Returns the number that a word means. Raises WordsRefused if it is invalid or out of range."""
        rule = _KINDS[kind]
        if not rule.pattern.fullmatch(word):
            raise WordsRefused(_refusal_text([word], rule.expected))
        if kind in self._numbers:
            return self._number_of_name(kind, word)
        if kind == "label":
            return encode_label(word)
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        number = int(digits) if len(digits) <= 20 else rule.most + 1
        number *= 1 if kind == "ticks" else self._unit_ns(word[len(digits) :])
        if not rule.least <= number <= rule.most:
            raise WordsRefused(_refusal_text([word], rule.expected))
        return number

    # --- the file

    def to_bytes(self) -> bytes:
        """Returns the file. Raises WordsRefused if a program is missing."""
        if not self._begins:
            raise WordsRefused("expected a program: `program NAME`")
        self._end()
        names = self._numbers["program"]
        for name, number in names.items():
            if number not in self._begins:
                self.line = self._first_lines[name]
                raise WordsRefused(_refusal_text([name], "the name of a program"))
        self._end_piece()
        steps, lengths = self._sort_steps()
        texts = [text.encode() + b"\0" for text in (*names, *self._texts)]
        text_offsets = np.cumsum([0, *map(len, texts)])
        programs = np.zeros(len(names), PROGRAM)
        programs["first"], programs["count"] = np.cumsum(lengths) - lengths, lengths
        programs["name"] = text_offsets[: len(names)]
        channels = np.array(self._channels, "<u8")
        contents: list[npt.NDArray[Any]] = [
            programs,
            steps,
            channels,
            text_offsets[len(names) : -1].astype("<u4"),
        ]
        pieces: list[bytes | memoryview] = [content.view(np.uint8).data for content in contents]
        pieces.append(b"".join(texts))
        total = _HASH_START
        for piece in pieces:
            total = checksum(piece, total)
        header = np.zeros(1, HEADER)
        header_fields = {
            "magic": MAGIC.encode(),
            "version": VERSION,
            "header_bytes": HEADER.itemsize,
            "bytes": HEADER.itemsize + sum(map(len, pieces)),
            "checksum": total,
            "tick_ns": self.tick_ns,
            "program_count": len(names),
            "step_count": len(steps),
            "channel_count": len(channels),
            "text_count": len(self._texts),
            "text_bytes": text_offsets[-1],
        }
        for name, value in header_fields.items():
            header[name] = value
        return b"".join((header.tobytes(), *pieces))

    def _sort_steps(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
        """Returns all steps sorted by program, and the number of steps of each program."""
        steps = np.concatenate(self._pieces)
        begins = np.array([*self._begins.values(), len(steps)])
        order = np.argsort(list(self._begins))
        lengths = np.diff(begins)[order]
        if (order == np.arange(len(order))).all():
            return steps, lengths
        source_indices = np.repeat(begins[order] - (np.cumsum(lengths) - lengths), lengths)
        return steps[source_indices + np.arange(len(steps))], lengths


_STEPS_PER_ARRAY = 1 << 16
"""When about this many steps are stored individually, they are packed into an array."""
_HASH_CHUNK = 1 << 16
_PRIME = 0x100000001B3
_HASH_START = 0xCBF29CE484222325
_POWERS_OF_TWO = [1 << bit for bit in range(16)]


def checksum(contents: bytes | memoryview, total: int = _HASH_START) -> int:
    """Returns the 64-bit FNV-1a hash (Fowler, Noll, Vo, 1991) of bytes; `total`: hash of the bytes
    before.

    Computes many bytes at once with numpy. If l is the lowest byte of the hash, hash ^ byte equals
    hash + ((l ^ byte) − l), so the hash is linear in these differences. Each bit of l depends on
    lower bits only, and by exclusive or on its previous value.
    """
    data = np.frombuffer(contents, np.uint8)
    powers = np.multiply.accumulate(np.full(_HASH_CHUNK, _PRIME, np.uint64))
    for begin in range(0, len(data), _HASH_CHUNK):
        chunk = data[begin : begin + _HASH_CHUNK]
        mixed = np.zeros(len(chunk), np.uint8)
        for bit in range(8):
            carried = mixed * np.uint8(_PRIME & 0xFF) >> bit & 1
            chunk_bit = chunk >> bit & 1
            hash_bit = np.concatenate(([np.uint8(total >> bit & 1)], chunk_bit[:-1] ^ carried[:-1]))
            for step in _POWERS_OF_TWO:  # running exclusive or
                hash_bit[step:] ^= hash_bit[:-step]
            mixed |= (hash_bit ^ chunk_bit) << bit
        differences = mixed.astype(np.int64) - (mixed ^ chunk)
        sums = differences.astype(np.uint64) * powers[: len(chunk)][::-1]
        total = (total * int(powers[len(chunk) - 1]) + int(sums.sum())) & _WORD_MAX
    return total


# --- a text


def encode_workload_text(text: str, tick_ns: int = 1_000_000, name: str = "workload") -> bytes:
    """Converts a workload's text to a binary workload file.

    `name`: the text's name in errors. Raises WordsRefused, whose message begins with the name and
    the line.
    """
    assembly = Assembly(tick_ns)
    try:
        for line in text.split("\n"):
            assembly.line += 1
            if "\0" in line:
                raise WordsRefused("contains the character NUL; remove it")
            if words := line.partition("#")[0].split():
                assembly.add(" ".join(words))
        return assembly.to_bytes()
    except WordsRefused as error:
        raise WordsRefused(f"{name}:{assembly.line}: {error}") from None
