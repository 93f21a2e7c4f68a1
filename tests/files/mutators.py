# SPDX-License-Identifier: MIT
"""Changes files as accidents and attackers do: by bytes, and by meaning."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from schedlab.trace.format import HEADER, RECORD

Mutator = Callable[[random.Random, bytes], bytes]

NUMBERS = (0, 1, 2, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**61, 2**63 - 1, 2**63, 2**64 - 1)
_BYTES = (b"", b"\0", b"\xff", b"\xed\xa0\x80", b"{", b"]", b'"', b"\n", b"-", b"9" * 40, b"1e999")
_VALUES: tuple[Any, ...] = (
    None, True, *NUMBERS, -1, -(2**63), 2**70, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", " ",
    "x" * 300, "\0", "\ud800", "a\nb", "rr:", "-1", "1e9", "../..", [], {}, [None], {"": None}, [[1]],
)  # fmt: skip
_NESTED = 5000


def of_bytes(source: random.Random, content: bytes) -> bytes:
    """Truncates the content, or changes, inserts, removes or repeats some bytes."""
    for _ in range(source.choice((1, 1, 2, 8))):
        begin = source.randrange(len(content) + 1)
        end = min(begin + source.choice((0, 1, 1, 4, 50)), len(content))
        middle = source.choice(
            (source.choice(_BYTES), source.randbytes(end - begin), 2 * content[begin:end])
        )
        content = content[:begin] + middle + (b"" if source.random() < 0.1 else content[end:])
    return content


def of_words(source: random.Random, content: bytes) -> bytes:
    """Replaces aligned numbers of 1 to 8 bytes in a binary file."""
    data = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        size = source.choice((1, 2, 4, 8))
        at = source.randrange(max(len(data) // size, 1)) * size
        if source.random() < 0.5:  # the start has most of the format information
            at %= 512
        number = source.choice((*NUMBERS, source.getrandbits(64), len(data), at))
        data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(data)


def of_json(source: random.Random, content: bytes) -> bytes:
    """Replaces or removes a value somewhere in the tree."""
    tree = json.loads(content)
    for _ in range(source.choice((1, 1, 2, 3))):
        tree = _changed(source, tree)
    text = json.dumps(tree)
    if source.random() < 0.02:
        text = "[" * _NESTED + text + "]" * _NESTED
    return text.encode()


def of_json_lines(source: random.Random, content: bytes) -> bytes:
    """Mutates some lines of a file of JSON lines."""
    lines = content.splitlines(keepends=True)
    for at in source.sample(range(len(lines)), source.choice((1, 2, 4))):
        lines[at] = of_json(source, lines[at]) + b"\n"
    return b"".join(lines)


def _changed(source: random.Random, tree: Any) -> Any:
    places = list(_places(tree))
    if not places:
        return source.choice(_VALUES)
    parent, key = source.choice(places)
    how = source.random()
    if how < 0.2:
        del parent[key]
    elif how < 0.35 and isinstance(parent, dict):
        parent[source.choice(("", "x", str(key).upper(), "\ud800"))] = parent.pop(key)
    elif how < 0.5:
        parent[key] = copy.deepcopy(source.choice([other[name] for other, name in places]))
    else:
        parent[key] = source.choice(_VALUES)
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    keys = (
        list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    )
    positions = [(tree, key) for key in keys]
    for key in keys:
        positions += _places(tree[key])
    return positions


_YAML = ("&a [*a]", "&a {x: *a}", "*a", "? [x]", "!!python/object:os.system x", "<<: *a", "- ", "{", "]",
         "0x10", "1e400", "2..1..0", "0..1e9", "[1, ", "| \n", "\t", "'", "null", "%YAML 9.9", "...", "9" * 31,
         "1-64", "0..18446744073709551616", "{from: 0, to: 100000000000}")  # fmt: skip


def of_yaml(source: random.Random, content: bytes) -> bytes:
    """Replaces words and moves lines."""
    lines = content.decode(errors="replace").split("\n")
    for _ in range(source.choice((1, 1, 2, 3))):
        at = source.randrange(len(lines))
        words = lines[at].split(" ")
        word = source.randrange(len(words))
        how = source.random()
        if how < 0.6:
            words[word] = source.choice((*_YAML, *map(str, NUMBERS)))
            lines[at] = " ".join(words)
        elif how < 0.8:
            lines.insert(source.randrange(len(lines)), lines[at])
        elif len(lines) > 1:
            del lines[at]
    return "\n".join(lines).encode()


def of_parquet(source: random.Random, content: bytes) -> bytes:
    """Removes, renames, retypes or refills columns; removes or repeats rows."""
    table = pl.read_parquet(io.BytesIO(content))
    for _ in range(source.choice((1, 1, 2))):
        if not table.columns:
            break
        name = source.choice(table.columns)
        how = source.choice(("drop", "rename", "type", "null", "value", "value", "rows", "twice"))
        if how == "drop":
            table = table.drop(name)
        elif how == "rename":
            to = source.choice(("x", "run", "place", name + "\0"))
            table = table.rename({name: to}) if to not in table.columns else table
        elif how == "type":
            kind = source.choice(_TYPES)
            table = table.with_columns(pl.Series(name, [None] * len(table), kind))
            table = table.with_columns(pl.lit("x").alias(name)) if kind == pl.String() else table
        elif how == "null":
            table = table.with_columns(pl.lit(None, table.schema[name]).alias(name))
        elif how == "value":
            table = table.with_columns(pl.lit(source.choice(_SCALARS)).alias(name))
        else:
            table = table.clear() if how == "rows" else pl.concat([table, table])
    file = io.BytesIO()
    table.write_parquet(file)
    return file.getvalue()


_TYPES: tuple[pl.DataType, ...] = (
    pl.String(), pl.Boolean(), pl.Float64(), pl.List(pl.Int8), pl.Date(),
)  # fmt: skip
_SCALARS: tuple[Any, ...] = (
    -1, 0, 2**40, 2**62, -(2**62), 1e300, float("nan"), float("inf"), "", "a\nb", "\0", True, None,
)  # fmt: skip


def of_trace(source: random.Random, content: bytes) -> bytes:
    """Changes numbers in the header and records; removes, repeats or moves records."""
    data = bytearray(content)
    count = (len(data) - HEADER.itemsize) // RECORD.itemsize
    if count < 1:
        return of_bytes(source, content)
    records = np.ndarray(count, RECORD, buffer=data, offset=HEADER.itemsize)
    header = np.ndarray(1, HEADER, buffer=data)
    for _ in range(source.choice((1, 1, 2, 4))):
        row, other = source.randrange(count), source.randrange(count)
        how = source.random()
        if how < 0.15:
            name = source.choice(("header_bytes", "cpus", "tick_ns", "cycles_per_second", "seed"))
            header[name][0] = _number(source, HEADER[name])
        elif how < 0.85:
            name = source.choice(RECORD.names or ())
            same = int(records[name][other])
            records[name][row] = source.choice(
                (_number(source, RECORD[name]), source.randrange(30), same)
            )
        elif how < 0.95:
            records[row] = records[other]
        else:
            return bytes(data[: HEADER.itemsize + row * RECORD.itemsize + source.randrange(32)])
    return bytes(data)


def _number(source: random.Random, of: np.dtype[Any]) -> int:
    return min(source.choice(NUMBERS), int(np.iinfo(of).max))
