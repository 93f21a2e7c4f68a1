# SPDX-License-Identifier: MIT
"""Reads the model's self-describing columnar messages (model/model.h) into dictionaries and lists."""

from __future__ import annotations

from typing import Any

import numpy as np

_COLUMN_TYPE = np.dtype(
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


def parse_message(message: bytes) -> Record:
    """Parses a message into its root record: a dictionary by column name.

    Numeric columns of the root are numpy arrays. All other values are plain Python; rows are
    tuples.
    """
    count = int(np.frombuffer(message, "<u4", 2)[1])
    root: Record = {}
    lists: dict[str, list[Record]] = {"": [root]}
    for column in np.frombuffer(message, _COLUMN_TYPE, count, _HEADER_BYTES):
        begin = int(column["name"])
        name = message[begin : begin + int(column["name_bytes"])].decode()
        owner = max(
            (short_name for short_name in lists if name.startswith(f"{short_name}.")),
            key=len,
            default="",
        )
        records = lists[owner]
        values = _column_values(message, column, is_of_root=not owner)
        if int(column["kind"]) == _LIST:
            lists[name] = values
        path = name[len(owner) + 1 :] if owner else name
        for record, value in zip(records, _split_by_record(message, column, values), strict=True):
            _set_value(record, path, value)
    return root


def _column_values(message: bytes, column: np.void, is_of_root: bool) -> Any:
    """Returns a column's values by row: numbers, tuples, texts, {} for lists, or None."""
    kind, count, width = (int(column[field]) for field in ("kind", "count", "width"))
    begin = int(column["data"])
    if kind == _NULL:
        return [None] * count
    if kind == _LIST:
        return [{} for _ in range(count)]
    if kind == _TEXT:
        return _column_texts(message, begin, count)
    values = np.frombuffer(message, _NUMBERS[kind], count * max(width, 1), begin)
    if width:
        return list(map(tuple, values.reshape(-1, width).tolist()))
    return values if is_of_root and column["ends"] else values.tolist()


def _column_texts(message: bytes, begin: int, count: int) -> list[str]:
    ends = [0, *np.frombuffer(message, "<u4", count, begin).tolist()]
    texts = message[begin + 4 * count : begin + 4 * count + ends[-1]]
    return [texts[ends[index] : ends[index + 1]].decode() for index in range(count)]


def _split_by_record(message: bytes, column: np.void, values: Any) -> Any:
    """Splits a column's values among the records: each record gets one value, or a list."""
    if not column["ends"]:
        return values
    ends = np.frombuffer(message, "<u4", int(column["records"]), int(column["ends"])).tolist()
    return [values[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _set_value(record: Record, path: str, value: Any) -> None:
    """Sets a value at a path such as "cost.total"."""
    *outer, name = path.split(".")
    for item in outer:
        record = record.setdefault(item, {})
    record[name] = value
