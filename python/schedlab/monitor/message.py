# SPDX-License-Identifier: MIT
"""Reads the model's self-describing columnar messages (model/model.h) into dictionaries and lists."""

from __future__ import annotations

from typing import Any

import numpy as np

_COLUMN = np.dtype(
    [
        (name, "<u4")
        for name in ("name", "name_bytes", "kind", "width", "count", "data", "ends", "records")
    ]
)
_HEADER_BYTES = 8
_NULL, _TEXT, _LIST = 0, 5, 6
_NUMBERS = {1: "<i8", 2: "<i4", 3: "?", 4: "<f8"}
"""Kinds of columns, as `enum model_kind` numbers them."""

Record = dict[str, Any]


def read(message: bytes) -> Record:
    """Returns the root record of a message.

    Numeric columns of the root are numpy arrays; all other values are plain Python, with tuples for
    rows.
    """
    count = int(np.frombuffer(message, "<u4", 2)[1])
    root: Record = {}
    lists: dict[str, list[Record]] = {"": [root]}
    for column in np.frombuffer(message, _COLUMN, count, _HEADER_BYTES):
        begin = int(column["name"])
        name = message[begin : begin + int(column["name_bytes"])].decode()
        owner = max(
            (short_name for short_name in lists if name.startswith(f"{short_name}.")),
            key=len,
            default="",
        )
        records = lists[owner]
        values = _values(message, column, of_root=not owner)
        if int(column["kind"]) == _LIST:
            lists[name] = values
        path = name[len(owner) + 1 :] if owner else name
        for record, value in zip(records, _parts(message, column, values), strict=True):
            _put(record, path, value)
    return root


def _values(message: bytes, column: np.void, of_root: bool) -> Any:
    kind, count, width = (int(column[field]) for field in ("kind", "count", "width"))
    begin = int(column["data"])
    if kind == _NULL:
        return [None] * count
    if kind == _LIST:
        return [{} for _ in range(count)]
    if kind == _TEXT:
        return _texts(message, begin, count)
    values = np.frombuffer(message, _NUMBERS[kind], count * max(width, 1), begin)
    if width:
        return list(map(tuple, values.reshape(-1, width).tolist()))
    return values if of_root and column["ends"] else values.tolist()


def _texts(message: bytes, begin: int, count: int) -> list[str]:
    ends = [0, *np.frombuffer(message, "<u4", count, begin).tolist()]
    texts = message[begin + 4 * count : begin + 4 * count + ends[-1]]
    return [texts[ends[at] : ends[at + 1]].decode() for at in range(count)]


def _parts(message: bytes, column: np.void, values: Any) -> Any:
    """Returns each record's part of a column: one value, or a list of values."""
    if not column["ends"]:
        return values
    ends = np.frombuffer(message, "<u4", int(column["records"]), int(column["ends"])).tolist()
    return [values[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _put(record: Record, path: str, value: Any) -> None:
    *outer, name = path.split(".")
    for item in outer:
        record = record.setdefault(item, {})
    record[name] = value
