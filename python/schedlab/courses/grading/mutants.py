# SPDX-License-Identifier: MIT
"""Makes mutants: copies of a C policy, each with one small mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])*
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | \w+ | -> | \+\+ | -- | && | \|\| | (?:<<|>>)=? | [-+*/%&|^=!<>]= | \S""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_NO_TOKENS = ("/*", "//", "#")
_REASONS = tuple(
    f"ENQUEUE_{reason}"
    for reason in ["NEW", "WOKEN", "EXPIRED", "PREEMPTED", "YIELDED", "MOVED", "ADOPTED"]
)
_REPLACEMENTS: dict[str, list[str]] = {
    **{reason: [other for other in _REASONS if other != reason] for reason in _REASONS},
    "!": [""],
    "++": ["--", ""],
    "--": ["++", ""],
    **{
        token: others.split()
        for token, others in (
            row.split(maxsplit=1)
            for row in """< <= >= > !=
            <= < > >= ==
            > >= <= < !=
            >= > < <= ==
            == !=
            != ==
            && ||
            || &&
            + -
            - +
            * /
            / *
            % /
            += -= =
            -= += =
            true false
            false true
            first last
            last first
            next previous
            TICK_PREEMPT TICK_CONTINUE
            TICK_CONTINUE TICK_PREEMPT
            STOP_BLOCKED STOP_RUNNABLE
            STOP_RUNNABLE STOP_BLOCKED""".splitlines()
        )
    },
}
"""Replacements of a token, one mutant each."""
_CALLS = {
    "task_list_append": "task_list_insert_before({0}, {1}, ({0})->first)",
    "task_list_insert_before": "task_list_append({0}, {1})",
}
"""Replacements of a call, with its first and second argument."""
_NUMBERS = frozenset(("int32_t", "uint32_t", "int64_t", "uint64_t"))
"""Types of variables whose initial values are changed by one."""
_ALWAYS, _NEVER = "true || ({})", "false && ({})"
_CONDITIONS = {"if": ("!({})", _ALWAYS, _NEVER), "while": ("!({})",)}
"""Replacements of a condition."""
_CONTROLS = frozenset(("if", "while", "for", "switch"))
_NO_ACTIONS = _CONTROLS | {"else", "do", "return", "enum", "struct", "case", "default", "{", "}"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_BROAD = frozenset((";", ",", "?", ":", "return", "="))
_ENDS = {"?": _BROAD, "||": _BROAD | {"||"}, "&&": _BROAD | {"||", "&&"}}
"""Tokens that end an operand of the operator."""
_HOOK = re.compile(r"^[ \t]*\.(\w+) = (\w+),\n", re.MULTILINE)
_REQUIRED = frozenset(("enqueue", "dequeue", "pick", "tick", "time_slice"))
_UNDECIDING = frozenset(("time_slice", "shares_by"))
"""Hooks that do not affect decisions, so mistakes in them are not detectable."""

_Edit = tuple[int, int, str]
"""Replaces the characters between two positions by a text."""


@dataclass(frozen=True)
class Mutant:
    """A source with one change; `before` and `after` are the changed lines, joined."""

    line: int
    before: str
    after: str
    source: str = field(repr=False)


def mutants_of(source: str) -> list[Mutant]:
    """Returns all mutants of a policy's source in order of position; some may not compile."""
    code = _Code(source)
    functions = dict(code.functions())
    edits: set[_Edit] = set()
    for line in _HOOK.finditer(source):
        hook, function = line.groups()
        if hook in _UNDECIDING:
            functions.pop(function, None)
        elif hook not in _REQUIRED and function in functions:
            edits.add((*line.span(), "\n"))
    for begin, end in functions.values():
        for place in range(begin, end):
            edits.update(code.edits_at(place))
        edits.update(code.removals(begin + 1, end))
    return [_mutant(source, *edit) for edit in sorted(edits)]


def _mutant(source: str, start: int, end: int, text: str) -> Mutant:
    first, last = source.rfind("\n", 0, start) + 1, source.find("\n", end - 1)
    after = source[first:start] + text + source[end:last]
    return Mutant(
        source.count("\n", 0, start) + 1,
        " ".join(source[first:last].split()),
        " ".join(after.split()),
        source[:start] + text + source[end:],
    )


class _Code:
    """A source split into tokens."""

    def __init__(self, source: str) -> None:
        self._source = source
        tokens = [
            token
            for token in _TOKEN.finditer(source)
            if not token[0].lstrip().startswith(_NO_TOKENS)
        ]
        self._texts = [token[0] for token in tokens]
        self._starts = [token.start() for token in tokens]
        self._ends = [token.end() for token in tokens]
        self._partners: dict[int, int] = {}
        """Index of the matching bracket for each bracket."""
        opened: list[int] = []
        for place, text in enumerate(self._texts):
            if text in _OPENING:
                opened.append(place)
            elif text in _CLOSING and opened:
                self._partners[place] = opened.pop()
                self._partners[self._partners[place]] = place

    def functions(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yields each function's name and the indices of its braces."""
        place = 0
        while place < len(self._texts):
            if self._texts[place] == "{":
                end = self._partners[place]
                if self._texts[place - 1] == ")":
                    yield self._texts[self._partners[place - 1] - 1], (place, end)
                place = end
            place += 1

    def edits_at(self, place: int) -> Iterator[_Edit]:
        """Yields the changes of a token and of its operands, condition or call."""
        text, start, end = self._texts[place], self._starts[place], self._ends[place]
        after = place + 1
        if self._texts[after] == "LOOP_GUARD":
            return  # tests need not detect endless loops
        for other in _REPLACEMENTS.get(text, ()):
            yield start, end, other
        if text.isdecimal():
            yield from ((start, end, str(n)) for n in (int(text) + 1, int(text) - 1) if n >= 0)
        for form in _CONDITIONS.get(text, ()):
            condition = self._ends[after], self._starts[self._partners[after]]
            yield (*condition, form.format(self._source[slice(*condition)]))
        if text in _ENDS:
            yield from self._operands(place)
        if text in _CALLS and self._texts[after] == "(":
            yield start, self._ends[self._partners[after]], self._other_call(place)
        if text in _NUMBERS and self._texts[place + 2] == "=":
            stop = self._starts[self._until(place, {";"})]
            yield from ((stop, stop, change) for change in (" + 1", " - 1"))

    def removals(self, place: int, end: int) -> Iterator[_Edit]:
        """Yields changes that make each statement except controls unreachable.

        The statement's variables stay in use, so that it still compiles.
        """
        begins = True
        while place < end:
            text = self._texts[place]
            bare = text == "return" and self._texts[place + 1] == ";"
            if text in _CONTROLS or (begins and self._heads_block(place)):
                place, begins = self._partners[place + 1], True
            elif begins and (bare or text not in _NO_ACTIONS):
                start, place = self._starts[place], self._until(place, {";", "}"})
                stop = self._ends[place]
                if text != "(" and self._texts[place] == ";":  # not (void)parameter
                    yield start, stop, f"{{ if (false) {self._source[start:stop]} }}"
            else:
                begins = text in {";", "{", "}", "else", "do"}
            place += 1

    def _heads_block(self, place: int) -> bool:
        """Returns whether a looping macro begins here."""
        if self._texts[place + 1] != "(":
            return False
        return self._texts[self._partners[place + 1] + 1] == "{"

    def _operands(self, place: int) -> Iterator[_Edit]:
        """Yields `&&` and `||` with one operand, and `? :` with a constant condition or swapped results."""
        left, ends = place, _ENDS[self._texts[place]]
        while self._texts[left - 1] not in ends | _OPENING:
            left = self._partners.get(left - 1, left - 1)
        start, middle = self._starts[left], self._starts[place]
        first = place + 1
        if self._texts[place] != "?":
            right = self._until(first, ends | _CLOSING)
            yield start, self._starts[first], ""
            yield middle, self._ends[right - 1], ""
            return
        for form in (_ALWAYS, _NEVER):
            yield start, middle, f"({form.format(self._source[start:middle].strip())}) "
        colon = self._until(first, {":"})
        stop = self._ends[self._until(colon + 1, _CLOSING | {";", ","}) - 1]
        one = self._source[self._starts[first] : self._ends[colon - 1]]
        other = self._source[self._starts[colon + 1] : stop]
        yield self._starts[first], stop, f"{other} : {one}"

    def _other_call(self, place: int) -> str:
        comma = self._until(place + 2, {","})
        stop = self._until(comma + 1, _CLOSING | {","})
        line = self._source[self._starts[place + 2] : self._starts[comma]]
        task = self._source[self._starts[comma + 1] : self._starts[stop]]
        return _CALLS[self._texts[place]].format(line, task)

    def _until(self, place: int, ends: Set[str]) -> int:
        """Returns the index of the first of these tokens outside of brackets."""
        while self._texts[place] not in ends:
            place = (self._partners[place] if self._texts[place] in _OPENING else place) + 1
        return place
