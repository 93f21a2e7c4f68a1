# SPDX-License-Identifier: MIT
"""Measures how plain the project's English is: listed phrases, vague names and the length of
sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DATA = Path(__file__).with_name("language")
_C_COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.DOTALL)
_HASH_COMMENT = re.compile(r"(?:^|\s)#\s?([^\n!].*)", re.MULTILINE)
_YAML_TEXT = re.compile(
    r"^\s*(?:- )?[\w.-]*:?\s*[\"']?([A-Z][^\n]*\w+ \w+ \w+[^\n]*)$", re.MULTILINE
)
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\n+")
_CODE = re.compile(r"`[^`]*`")
_C_SUFFIXES = {".c", ".h", ".cc", ".S", ".js", ".mjs", ".css", ".ld"}
_SHORTEST_MESSAGE = 4
"""Minimum number of words for a string to count as prose."""


def lines(name: str) -> list[str]:
    """Returns the lines of a file of tests/house/language, without comments."""
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


@dataclass(frozen=True)
class Phrase:
    pattern: re.Pattern[str]
    replacement: str


def read_phrases() -> list[Phrase]:
    """Returns the phrases to avoid, each with what to write."""
    pairs = (line.split("\t") for line in lines("phrases.tsv"))
    return [Phrase(re.compile(pattern, re.IGNORECASE), text) for pattern, text in pairs]


def read_vague_words() -> frozenset[str]:
    """Returns the words that no name should contain."""
    return frozenset(word for line in lines("vague_names.txt") for word in line.split())


def prose(path: Path) -> str:
    """Returns what a person reads in a file: Markdown without code, docstrings, messages and
    comments."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".md":
        return _markdown(text)
    if path.suffix == ".py":
        return _python(text)
    if path.suffix in (".yaml", ".yml"):
        return "\n".join(_YAML_TEXT.findall(text))
    if path.suffix in _C_SUFFIXES:
        comments = (block or line for block, line in _C_COMMENT.findall(text))
        without_licence = (comment for comment in comments if "SPDX" not in comment)
        return "\n\n".join(
            re.sub(r"^\s*\*", "", comment, flags=re.MULTILINE) for comment in without_licence
        )
    if path.suffix in (".mk", ".sh") or path.name in ("Makefile", "schedlab", "run"):
        return "\n".join(_HASH_COMMENT.findall(text))
    return ""


def _markdown(text: str) -> str:
    text = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    return _CODE.sub("X", "\n".join(lines)).replace("|", ". ")


def _python(text: str) -> str:
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts = [
        string
        for string in strings
        if len(string.split()) >= _SHORTEST_MESSAGE and re.search(r"[a-z] [a-z]", string)
    ]
    texts += [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and "SPDX" not in token.string
    ]
    return "\n\n".join(_CODE.sub("X", string) for string in texts)


def sentences(text: str) -> list[str]:
    """Returns the sentences of more than three words."""
    return [part for part in _SENTENCE_END.split(text) if len(part.split()) > 3]


def definitions(tree: ast.AST) -> Iterator[str]:
    """Yields the name of each function, class, parameter, variable and attribute that a module
    defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def vague_names(paths: list[Path]) -> tuple[Counter[str], int]:
    """Returns how often each vague name is defined, and the number of all definitions."""
    vague, words, total = Counter[str](), read_vague_words(), 0
    for path in paths:
        for name in definitions(ast.parse(path.read_text(encoding="utf-8"))):
            total += 1
            parts = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
            vague[name] += not words.isdisjoint(parts)
    return +vague, total
