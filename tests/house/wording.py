# SPDX-License-Identifier: MIT
"""Measures how plain the project's English is: listed phrases, vague names and the length of
sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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


_C_NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
"""Comments, strings and characters, which contain no definitions."""
_C_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([\w ,.]*)\))?", re.MULTILINE)
_C_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_C_DECLARATION = re.compile(
    r"\b([A-Za-z_]\w*)(?:<[\w:, *&<>]*>)?(?:\s+|\s+[*&]+(?:const\s+)?)"
    r"(?=([A-Za-z_]\w*)\s*(?:[=;,)\[({:]|$))"
)
"""A type and a name. The formatter writes `type *name`, but `factor * factor`."""
_C_ENUMERATION = re.compile(r"\benum\b[^{};()]*\{([^}]*)\}")
_C_TAG_BODY = re.compile(r"\w+\s*(?:final\s*)?[{:]")
_C_NOT_TYPES = frozenset(
    {
        *("return", "else", "goto", "case", "sizeof", "typeof", "new", "delete", "throw", "do"),
        *("in", "and", "or", "not", "using", "namespace", "public", "private", "protected"),
        *("default", "co_return"),
    }
)
_C_TAGS = frozenset({"struct", "union", "enum", "class"})
_C_NOT_NAMES = _C_TAGS | frozenset(
    {
        *("if", "for", "while", "switch", "return", "sizeof", "const", "volatile", "static"),
        *("inline", "extern", "int", "char", "long", "short", "unsigned", "signed", "void"),
        *("bool", "float", "double", "auto", "override", "final", "noexcept", "default"),
        *("operator", "else", "restrict"),
    }
)
_JS_NOISE = re.compile(rf"{_C_NOISE.pattern}|`(?:\\.|[^`\\])*`", re.DOTALL)
_JS_BINDING = re.compile(r"\b(?:const|let|var)\s+(\{[^{}=]*\}|\[[^\[\]=]*\]|\w+)")
_JS_NAMED = re.compile(r"\b(?:function\s*\*?|class)\s+(\w+)")
_JS_PARAMETERS = re.compile(
    r"\bfunction\b\s*\*?\s*\w*\s*\(([^()]*)\)"
    r"|^[ \t]+(?:(?:static|async|get|set)\s+|\*\s*)*(#?\w+)\(([^()]*)\)\s*\{"
    r"|\(([^()]*)\)\s*=>|\b(\w+)\s*=>",
    re.MULTILINE,
)
"""Parameters of a function, a method (with its name), and an arrow function."""
_JS_FIELD = re.compile(r"\bthis\.(#?\w+)\s*=(?!=)|^[ \t]+(?:static\s+)?(#\w+)\s*[=;]", re.MULTILINE)
_JS_STATEMENTS = frozenset({"if", "for", "while", "switch", "catch", "return", "function"})
_SENTENCE_WORDS = 4
"""Number of words from which the name of a C test is a sentence, like the names of Python's tests."""


def _python_definitions(text: str) -> Iterator[str]:
    """Yields the name of each function, class, parameter, variable and attribute that a module
    defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _c_definitions(text: str) -> Iterator[str]:
    """Yields the names that a C or C++ file declares: macros, types, enumerators, functions,
    parameters, members and variables.

    Recognises a declaration by two consecutive names, so of `int a, b;` it yields only `a`.
    """
    code = _C_NOISE.sub(lambda match: " " if match[0].startswith("/") else '""', text)
    for name, parameters in _C_MACRO.findall(code):
        yield name
        yield from re.findall(r"\w+", parameters)
    code = _C_DIRECTIVE.sub("", code)
    for body in _C_ENUMERATION.findall(code):
        yield from re.findall(r"(?:^|,)\s*(\w+)", body)
    for match in _C_DECLARATION.finditer(code):
        kind, name = match[1], match[2]
        is_reference = kind in _C_TAGS and not _C_TAG_BODY.match(code, match.end())
        if not is_reference and kind not in _C_NOT_TYPES and name not in _C_NOT_NAMES:
            yield name


def _bound_names(pattern: str) -> list[str]:
    """Returns the names that a list of parameters or a destructuring pattern binds."""
    without_keys = re.sub(r"\b\w+\s*:\s*(?=\w)", "", pattern)
    return re.findall(r"\w+", re.sub(r"=[^,{}\[\]]*", "", without_keys))


def _js_definitions(text: str) -> Iterator[str]:
    """Yields the names that a JavaScript file defines: constants, variables, functions, classes,
    methods, parameters and fields."""
    code = _JS_NOISE.sub(lambda match: " " if match[0].startswith("/") else '""', text)
    for pattern in _JS_BINDING.findall(code):
        yield from _bound_names(pattern)
    yield from _JS_NAMED.findall(code)
    for function, method, of_method, of_arrow, single in _JS_PARAMETERS.findall(code):
        if method in _JS_STATEMENTS:
            continue
        if method and method != "constructor":
            yield method.lstrip("#")
        yield from _bound_names(function or of_method or of_arrow)
        if single:
            yield single
    for assigned, declared in _JS_FIELD.findall(code):
        yield (assigned or declared).lstrip("#")


LANGUAGES: dict[str, tuple[frozenset[str], Callable[[str], Iterator[str]]]] = {
    "Python": (frozenset({".py"}), _python_definitions),
    "C": (frozenset({".c", ".h"}), _c_definitions),
    "C++": (frozenset({".cc"}), _c_definitions),
    "JavaScript": (frozenset({".js", ".mjs"}), _js_definitions),
}
"""The file suffixes of each language, and the function that yields a file's definitions."""


def _name_words(name: str) -> list[str]:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().strip("_").split("_")


def vague_names(paths: Iterable[Path], language: str) -> tuple[Counter[str], int]:
    """Returns how often each vague name is defined in the language's files, and the number of all
    definitions.

    The names of C tests that are sentences do not count.
    """
    suffixes, definitions = LANGUAGES[language]
    vague, words, total = Counter[str](), read_vague_words(), 0
    for path in paths:
        if path.suffix not in suffixes:
            continue
        is_test = "tests" in path.parts and path.suffix in (".c", ".h", ".cc")
        for name in definitions(path.read_text(encoding="utf-8")):
            parts = _name_words(name)
            if is_test and len(parts) >= _SENTENCE_WORDS:
                continue
            total += 1
            vague[name] += not words.isdisjoint(parts)
    return +vague, total
