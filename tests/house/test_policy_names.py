# SPDX-License-Identifier: MIT
"""No part knows a policy by name, except the rooms of policies, of studies and of tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from committed_policies import policies_in_progress
from conftest import ROOT
from schedlab.base.toolchain.policies import STANDARD, read_catalogue

PACKAGE = ROOT / "python" / "schedlab"
OF_STUDIES = re.compile(r"studies/|report/(studies/|study_|simulated)|base/outputs/")
"""Rooms that may name policies, since their subject is what studies ran under them."""
EXCEPTIONS = {
    ("base/toolchain/policies.py", STANDARD): "the policy that is meant where none is named"
}
ATTRIBUTES = {"priority"}
"""Names that are words of the system's own, too: of these, only a preset counts, or `NAME`."""
ENGLISH = {"lottery", "stride", "hybrid", *ATTRIBUTES}
"""In a sentence they mean the algorithm or the thing. All by itself, such a word is a name."""


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """By policy: what in a text is its name."""
    policy_patterns = {}
    for policy in read_catalogue().values():
        if policy.name in policies_in_progress():
            continue  # its author may call it what a part of ours is called
        name = re.escape(policy.name)
        ways = [rf"`{name}`"]
        ways += [rf"(?<![\w-]){name}:{re.escape(preset)}(?![\w-])" for preset in policy.presets]
        if policy.name not in ATTRIBUTES:
            ways.append(rf"\A{name}\Z")
            ways.append(rf"(?<![\w-]){name},[\w:-]+|[\w:-],{name}(?![\w-])")
        if policy.name not in ENGLISH:
            ways.append(rf"(?<![\w-]){name}(?![\w-])")
        policy_patterns[policy.name] = re.compile("|".join(ways))
    return policy_patterns


def texts_of_python(path: Path) -> Iterator[str]:
    """All string literals; docstrings of commands, which their help shows, but no others."""
    tree = ast.parse(path.read_text())
    of_commands = "commands" in path.parts
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and not (of_commands and is_help(tree, node))
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in silent
        ):
            yield node.value


def is_help(tree: ast.Module, node: ast.Expr) -> bool:
    """Is it the docstring of a function that a decorator makes a command?"""
    return any(
        function.decorator_list and function.body[0] is node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
    )


def texts_of_script(path: Path) -> Iterator[str]:
    """All string literals of JavaScript, and keys of its tables; comments do not count."""
    code = re.sub(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", "", path.read_text(), flags=re.DOTALL)
    for match in re.finditer(
        r"\"([^\"\n]*)\"|'([^'\n]*)'|`([^`]*)`|^ +(\w+): [\"'`{\[]", code, re.M
    ):
        yield next(group for group in match.groups() if group is not None)


def named_in(path: Path) -> list[str]:
    place = str(path.relative_to(PACKAGE))
    texts = texts_of_python(path) if path.suffix == ".py" else texts_of_script(path)
    return [
        f"{place}: {policy} in {text[:80]!r}"
        for text in texts
        for policy, pattern in patterns().items()
        if pattern.search(text) and (place, text) not in EXCEPTIONS
    ]


def sources() -> list[Path]:
    paths = [path for ending in ("*.py", "*.js") for path in PACKAGE.rglob(ending)]
    return sorted(path for path in paths if not OF_STUDIES.match(str(path.relative_to(PACKAGE))))


def test_no_policy_is_known_by_name() -> None:
    files = sources()
    assert len(files) > 200
    assert [mention for path in files for mention in named_in(path)] == []
