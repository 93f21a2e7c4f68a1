# SPDX-License-Identifier: MIT
"""The description of a sweep before it is expanded to runs, and the conditions on its setups."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from schedlab.base.toolchain.policies import Policy, PolicyChoice
from schedlab.sweep.ranges import Values
from schedlab.workload.shapes.model import Shape


@dataclass(frozen=True)
class Sample:
    """A sample of a policy's setups, instead of the full grid."""

    method: str
    count: int
    seed: int


@dataclass(frozen=True)
class PolicyEntry:
    """A policy and the values of its tunables."""

    choice: PolicyChoice
    policy: Policy
    tunables: Mapping[str, Values]
    conditions: tuple[Condition, ...]
    sample: Sample | None

    def standard(self) -> dict[str, int]:
        """Returns the default values of its tunables."""
        tunables = self.policy.tunables_of(self.choice.preset)
        values = {name: tunable.default for name, tunable in tunables.items()}
        if self.choice.preset:
            values |= self.policy.presets[self.choice.preset].values
        return values


@dataclass(frozen=True)
class WorkloadEntry:
    """A workload file, an experiment of the studies, or a kernel command."""

    kind: Literal["file", "experiment", "command"]
    name: str
    """Name in the table: the file's path, the experiment's name or the command."""
    place: Path | None
    """The file."""
    changes: Mapping[str, Values]
    """Values that replace values in the file, by their paths."""
    machines: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """All dimensions; each workload runs under each policy, with all combinations of the other values."""

    title: str
    workloads: tuple[WorkloadEntry, ...]
    policies: tuple[PolicyEntry, ...]
    cpus: tuple[int, ...]
    seeds: tuple[int, ...]
    ticks_ns: tuple[int, ...]
    costs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    """Shapes of machines, which determine the CPUs; empty if all CPUs are equal."""
    limit_ns: int | None
    """None means the limit of each workload."""
    memory_mib: int
    """Memory of machines that run the kernel."""


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
