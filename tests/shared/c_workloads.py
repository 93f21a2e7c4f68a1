# SPDX-License-Identifier: MIT
"""Workload files for the C programs of tests. The programs contain workloads as text, and
receive the matching files.
"""

from __future__ import annotations

import ast
import re
import struct
from pathlib import Path

from schedlab.workload.binary_steps import WordsRefused, encode_workload_text

VARIABLE = "SCHEDLAB_TEST_WORKLOADS"
"""The environment variable with the path of a program's table."""
TICK_NS = 1_000_000
_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_TEXT = re.compile(rf"{_LITERAL}(?:\s*{_LITERAL})*")
_DEFINITION = re.compile(rf"#define (\w+)((?:\s*\\?\n?\s*{_LITERAL})+)")


def table(source: Path) -> bytes:
    """Returns each workload text of a C source, with its length, and its file."""
    code = source.read_text()
    for name, literals in _DEFINITION.findall(code):
        plain = literals.replace("\\\n", "").replace("\\", "\\\\")
        code = re.sub(rf"\b{name}\b", plain, code)
    entries = []
    for match in _TEXT.findall(code):
        text = "".join(map(ast.literal_eval, re.findall(_LITERAL, match)))
        try:
            file = encode_workload_text(text, TICK_NS)
        except WordsRefused:
            continue
        words = text.encode() + b"\0"
        entries.append(struct.pack("<QQ", len(words), len(file)) + _padded(words) + _padded(file))
    return b"".join(entries)


def environment(source: Path, folder: Path) -> dict[str, str]:
    """Writes the table into a folder. Returns the environment for the program."""
    path = folder / f"{source.stem}.workloads"
    path.write_bytes(table(source))
    return {VARIABLE: str(path)}


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)
