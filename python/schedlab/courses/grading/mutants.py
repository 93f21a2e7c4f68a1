# SPDX-License-Identifier: MIT
"""Makes mutants: copies of a C policy, each with one small mistake."""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

_TOKEN_PATTERN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])*
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | \w+ | -> | \+\+ | -- | && | \|\| | (?:<<|>>)=? | [-+*/%&|^=!<>]= | \S""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_SKIPPED_PREFIXES = ("/*", "//", "#")
_ENQUEUE_REASONS = tuple(
    f"ENQUEUE_{reason}"
    for reason in ["NEW", "WOKEN", "EXPIRED", "PREEMPTED", "YIELDED", "MOVED", "ADOPTED"]
)
_REPLACEMENTS: dict[str, list[str]] = {
    **{
        reason: [other for other in _ENQUEUE_REASONS if other != reason]
        for reason in _ENQUEUE_REASONS
    },
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
_CALL_REPLACEMENTS = {
    "task_list_append": "task_list_insert_before({0}, {1}, ({0})->first)",
    "task_list_insert_before": "task_list_append({0}, {1})",
}
"""Replacements of a call, with its first and second argument."""
_NUMBER_TYPES = frozenset(("int32_t", "uint32_t", "int64_t", "uint64_t"))
"""Types of variables whose initial values are changed by one."""
_ALWAYS_TRUE, _ALWAYS_FALSE = "true || ({})", "false && ({})"
_CONDITIONS = {"if": ("!({})", _ALWAYS_TRUE, _ALWAYS_FALSE), "while": ("!({})",)}
"""Replacements of a condition."""
_CONTROL_KEYWORDS = frozenset(("if", "while", "for", "switch"))
_NON_STATEMENT_TOKENS = _CONTROL_KEYWORDS | {
    "else",
    "do",
    "return",
    "enum",
    "struct",
    "case",
    "default",
    "{",
    "}",
}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_WEAK_TOKENS = frozenset((";", ",", "?", ":", "return", "="))
_OPERAND_ENDS = {"?": _WEAK_TOKENS, "||": _WEAK_TOKENS | {"||"}, "&&": _WEAK_TOKENS | {"||", "&&"}}
"""Tokens that end an operand of the operator."""
_HOOK_LINE = re.compile(r"^[ \t]*\.(\w+) = (\w+),\n", re.MULTILINE)
_REQUIRED_HOOKS = frozenset(("enqueue", "dequeue", "pick", "tick", "time_slice"))
_HOOKS_WITHOUT_DECISIONS = frozenset(("time_slice", "shares_by"))
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


def make_mutants(source: str) -> list[Mutant]:
    """Returns all mutants of a policy's source in order of position; some may not compile."""
    code = _TokenizedSource(source)
    functions = dict(code.functions())
    edits: set[_Edit] = set()
    for hook_line in _HOOK_LINE.finditer(source):
        hook, function = hook_line.groups()
        if hook in _HOOKS_WITHOUT_DECISIONS:
            functions.pop(function, None)
        elif hook not in _REQUIRED_HOOKS and function in functions:
            edits.add((*hook_line.span(), "\n"))
    for begin, end in functions.values():
        for index in range(begin, end):
            edits.update(code.edits_at(index))
        edits.update(code.removal_edits(begin + 1, end))
    return [_apply_edit(source, *edit) for edit in sorted(edits)]


def _apply_edit(source: str, start: int, end: int, text: str) -> Mutant:
    """Returns the mutant where `text` replaces the characters from `start` to `end`."""
    line_start, line_end = source.rfind("\n", 0, start) + 1, source.find("\n", end - 1)
    after = source[line_start:start] + text + source[end:line_end]
    return Mutant(
        source.count("\n", 0, start) + 1,
        " ".join(source[line_start:line_end].split()),
        " ".join(after.split()),
        source[:start] + text + source[end:],
    )


class _TokenizedSource:
    """A source split into tokens."""

    def __init__(self, source: str) -> None:
        """Splits the source into tokens and matches its brackets."""
        self._source = source
        tokens = [
            token
            for token in _TOKEN_PATTERN.finditer(source)
            if not token[0].lstrip().startswith(_SKIPPED_PREFIXES)
        ]
        self._texts = [token[0] for token in tokens]
        self._starts = [token.start() for token in tokens]
        self._ends = [token.end() for token in tokens]
        self._partners: dict[int, int] = {}
        """Index of the matching bracket for each bracket."""
        opened: list[int] = []
        for index, text in enumerate(self._texts):
            if text in _OPENING:
                opened.append(index)
            elif text in _CLOSING and opened:
                self._partners[index] = opened.pop()
                self._partners[self._partners[index]] = index

    def functions(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yields each function's name and the indices of its braces."""
        index = 0
        while index < len(self._texts):
            if self._texts[index] == "{":
                end = self._partners[index]
                if self._texts[index - 1] == ")":
                    yield self._texts[self._partners[index - 1] - 1], (index, end)
                index = end
            index += 1

    def edits_at(self, index: int) -> Iterator[_Edit]:
        """Yields the changes of a token and of its operands, condition or call."""
        text, start, end = self._texts[index], self._starts[index], self._ends[index]
        next_index = index + 1
        if self._texts[next_index] == "LOOP_GUARD":
            return  # tests need not detect endless loops
        for other in _REPLACEMENTS.get(text, ()):
            yield start, end, other
        if text.isdecimal():
            yield from ((start, end, str(n)) for n in (int(text) + 1, int(text) - 1) if n >= 0)
        for form in _CONDITIONS.get(text, ()):
            condition = self._ends[next_index], self._starts[self._partners[next_index]]
            yield (*condition, form.format(self._source[slice(*condition)]))
        if text in _OPERAND_ENDS:
            yield from self._operand_edits(index)
        if text in _CALL_REPLACEMENTS and self._texts[next_index] == "(":
            yield start, self._ends[self._partners[next_index]], self._replaced_call(index)
        if text in _NUMBER_TYPES and self._texts[index + 2] == "=":
            end_of_value = self._starts[self._find_end(index, {";"})]
            yield from ((end_of_value, end_of_value, change) for change in (" + 1", " - 1"))

    def removal_edits(self, index: int, end: int) -> Iterator[_Edit]:
        """Yields changes that make each statement except controls unreachable.

        The statement's variables stay in use, so that it still compiles.
        """
        is_statement_start = True
        while index < end:
            text = self._texts[index]
            is_bare_return = text == "return" and self._texts[index + 1] == ";"
            if text in _CONTROL_KEYWORDS or (is_statement_start and self._begins_loop(index)):
                index, is_statement_start = self._partners[index + 1], True
            elif is_statement_start and (is_bare_return or text not in _NON_STATEMENT_TOKENS):
                start, index = self._starts[index], self._find_end(index, {";", "}"})
                stop = self._ends[index]
                if text != "(" and self._texts[index] == ";":  # not (void)parameter
                    yield start, stop, f"{{ if (false) {self._source[start:stop]} }}"
            else:
                is_statement_start = text in {";", "{", "}", "else", "do"}
            index += 1

    def _begins_loop(self, index: int) -> bool:
        """Returns whether a looping macro begins here."""
        if self._texts[index + 1] != "(":
            return False
        return self._texts[self._partners[index + 1] + 1] == "{"

    def _operand_edits(self, index: int) -> Iterator[_Edit]:
        """Yields `&&` and `||` with one operand, and `? :` with a constant condition or swapped results."""
        left, ends = index, _OPERAND_ENDS[self._texts[index]]
        while self._texts[left - 1] not in ends | _OPENING:
            left = self._partners.get(left - 1, left - 1)
        start, middle = self._starts[left], self._starts[index]
        first = index + 1
        if self._texts[index] != "?":
            right = self._find_end(first, ends | _CLOSING)
            yield start, self._starts[first], ""
            yield middle, self._ends[right - 1], ""
            return
        for form in (_ALWAYS_TRUE, _ALWAYS_FALSE):
            yield start, middle, f"({form.format(self._source[start:middle].strip())}) "
        colon = self._find_end(first, {":"})
        stop = self._ends[self._find_end(colon + 1, _CLOSING | {";", ","}) - 1]
        first_result = self._source[self._starts[first] : self._ends[colon - 1]]
        second_result = self._source[self._starts[colon + 1] : stop]
        yield self._starts[first], stop, f"{second_result} : {first_result}"

    def _replaced_call(self, index: int) -> str:
        """Returns the replacement of the call at this token; "" if there is none."""
        comma = self._find_end(index + 2, {","})
        stop = self._find_end(comma + 1, _CLOSING | {","})
        first_argument = self._source[self._starts[index + 2] : self._starts[comma]]
        second_argument = self._source[self._starts[comma + 1] : self._starts[stop]]
        return _CALL_REPLACEMENTS[self._texts[index]].format(first_argument, second_argument)

    def _find_end(self, index: int, ends: Set[str]) -> int:
        """Returns the index of the first of these tokens outside of brackets."""
        while self._texts[index] not in ends:
            index = (self._partners[index] if self._texts[index] in _OPENING else index) + 1
        return index
