# SPDX-License-Identifier: MIT
"""Generates small mistakes in Python, of the same kinds as schedlab.courses.grading.mutants for C."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
    ast.And: (" and ", " or "),
    ast.Or: (" or ", " and "),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
}
_REMOVABLE = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)
_NOT_RUN = ("annotation", "returns", "decorator_list", "args")
"""Fields whose lines do not count as executed by a test."""

_Edit = tuple[int, int, int, str]
"""Replaces a range of characters in a line, given by its index, by the text."""


def python_mutants(source: str) -> Iterator[tuple[int, str]]:
    """Yields the index of each mutable line within a function, and the changed line."""
    lines = source.splitlines()
    module = ast.parse(source)
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    outermost = [f for f in functions if f.col_offset in (0, 4)]
    edits = {edit for f in outermost for node in _executed(f) for edit in _Edits(lines).of(node)}
    for index, start, end, text in sorted(edits):
        yield index, lines[index][:start] + text + lines[index][end:]


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all nodes below one, except within formatted strings, whose positions Python 3.11 does not know."""
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from _executed(child)


class _Edits:
    """Finds the possible changes of each node of a source."""

    def __init__(self, lines: list[str]) -> None:
        """Prepares for the lines of a source."""
        self._lines = lines

    def of(self, node: ast.AST) -> Iterator[_Edit]:
        """Yields the changes of a node within one line."""
        if isinstance(node, ast.Compare):
            yield from self._replace_operator(node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            yield from self._replace_operator(node.values[0], node.op, node.values[1])
        elif isinstance(node, ast.BinOp):
            yield from self._replace_operator(node.left, node.op, node.right)
        elif isinstance(node, ast.Constant):
            yield from self._constant_edits(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._replace(node, self._source_text(node.operand))
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield from self._replace(node.test, f"not ({self._source_text(node.test)})")
        elif isinstance(node, ast.Return) and node.value:
            yield from self._replace(node, "return None")
        elif isinstance(node, _REMOVABLE) or self._is_effect(node):
            yield from self._replace(node, "pass")
        elif isinstance(node, ast.Call):
            yield from self._without_keywords(node)

    def _constant_edits(self, node: ast.Constant) -> Iterator[_Edit]:
        """Yields other values for a constant."""
        if isinstance(node.value, bool):
            yield from self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            yield from self._replace(node, str(node.value + 1))
            yield from self._replace(node, str(node.value - 1))

    @staticmethod
    def _is_effect(node: ast.AST) -> bool:
        """True for a call for its effect, or a change of an object."""
        if isinstance(node, ast.Assign):
            return isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)

    def _span(self, node: ast.AST) -> tuple[int, int, int] | None:
        """Returns the index of the node's single line, its first column and the column after its last."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", -1)
        if first != last:
            return None
        line = self._lines[first - 1].encode()
        ends = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0))
        start, end = (len(line[:offset].decode()) for offset in ends)
        return first - 1, start, end

    def _source_text(self, node: ast.AST) -> str:
        """Returns the source of a node."""
        span = self._span(node)
        return self._lines[span[0]][span[1] : span[2]] if span else ""

    def _replace(self, node: ast.AST, text: str) -> Iterator[_Edit]:
        """Yields the edit that replaces a node by the text, if the node is within one line."""
        if span := self._span(node):
            yield (*span, text)

    def _replace_operator(
        self, left: ast.AST, operator: ast.AST, right: ast.AST
    ) -> Iterator[_Edit]:
        """Yields another operator between two operands."""
        one, other = self._span(left), self._span(right)
        if one and other and one[0] == other[0] and type(operator) in _OPERATORS:
            before, after = _OPERATORS[type(operator)]
            text = self._lines[one[0]][one[2] : other[1]]
            yield one[0], one[2], other[1], text.replace(before, after, 1)

    def _without_keywords(self, call: ast.Call) -> Iterator[_Edit]:
        """Yields calls with one argument removed, if another argument precedes it in the line."""
        arguments: list[ast.AST] = [*call.args, *call.keywords]
        for previous, argument in itertools.pairwise(arguments):
            one, other = self._span(previous), self._span(argument)
            named = isinstance(argument, ast.keyword) and argument.arg
            if named and one and other and one[0] == other[0]:
                yield one[0], one[2], other[2], ""
