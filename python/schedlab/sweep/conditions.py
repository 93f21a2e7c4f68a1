# SPDX-License-Identifier: MIT
"""Conditions on the tunables of a setup, such as `slice_3 <= slice_2 <= slice_1`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
EXPECTED_CONDITION = (
    "a condition such as slice_1 <= slice_0, of names, numbers, + - *, comparisons, and/or/not"
)
_LENGTH_MAX = 500


@dataclass(frozen=True)
class Condition:
    """A valid condition on the values of tunables."""

    text: str

    def holds(self, values: Mapping[str, int]) -> bool:
        """Returns whether the condition holds for these values of all its names."""
        return bool(_evaluate(ast.parse(self.text, mode="eval").body, values))


def parse_condition(text: str, names: Iterable[str]) -> Condition:
    """Parses a condition on `names`. Raises ValueError if it is invalid or has an unknown name."""
    known_names = set(names)
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"at most {_LENGTH_MAX} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(EXPECTED_CONDITION) from None
    if not isinstance(tree, ast.Compare | ast.BoolOp | ast.UnaryOp):
        raise ValueError(EXPECTED_CONDITION)
    for child in ast.walk(tree):
        if isinstance(child, ast.Name) and child.id not in known_names:
            raise ValueError(
                f"unknown tunable {child.id}; choose from {', '.join(sorted(known_names))}"
            )
    condition = Condition(text.strip())
    condition.holds(dict.fromkeys(known_names, 1))
    return condition


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> Any:
    """Returns the value of an expression for these values of names."""
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Compare):
        return _compare(node, values)
    if isinstance(node, ast.BoolOp):
        operands = [_evaluate(operand, values) for operand in node.values]
        return all(operands) if isinstance(node.op, ast.And) else any(operands)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _evaluate(node.operand, values)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](
            _evaluate(node.left, values), _evaluate(node.right, values)
        )
    raise ValueError(EXPECTED_CONDITION)


def _compare(node: ast.Compare, values: Mapping[str, int]) -> bool:
    """Returns whether a chain of comparisons holds."""
    sides = [_evaluate(operand, values) for operand in (node.left, *node.comparators)]
    for number, sign in enumerate(node.ops):
        if type(sign) not in _COMPARISONS:
            raise ValueError(EXPECTED_CONDITION)
        if not _COMPARISONS[type(sign)](sides[number], sides[number + 1]):
            return False
    return True
