# SPDX-License-Identifier: MIT
"""Tests that only the packages of policies, studies and tests name a policy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from committed_policies import policies_in_progress
from conftest import ROOT
from schedlab.base.toolchain.policies import DEFAULT_POLICY, read_catalogue

PACKAGE = ROOT / "python" / "schedlab"
OF_STUDIES = re.compile(r"studies/|report/(studies/|study_|simulated)|base/outputs/")
"""Packages that may name policies, because they describe the studies' runs."""
EXCEPTIONS = {
    ("base/toolchain/policies.py", DEFAULT_POLICY): "the policy that is meant where none is named"
}
ATTRIBUTES = {"priority"}
"""Policy names that are also attributes: only `NAME` or a preset counts as a policy's name."""
ENGLISH = {"lottery", "stride", "hybrid", *ATTRIBUTES}
"""Policy names that are also English: inside a sentence, they do not count as names."""


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """Returns, per policy, the pattern of its name in a text."""
    policy_patterns = {}
    for policy in read_catalogue().values():
        if policy.name in policies_in_progress():
            continue  # its author may choose a word that schedlab already uses
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
    """Yields all string literals; docstrings count only if the help of a command shows them."""
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
    """Returns whether the node is the docstring of a decorated function, which is a command."""
    return any(
        function.decorator_list and function.body[0] is node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
    )


def texts_of_script(path: Path) -> Iterator[str]:
    """Yields all string literals of JavaScript, and keys of its tables, but no comments."""
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
