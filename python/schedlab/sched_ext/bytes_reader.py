# SPDX-License-Identifier: MIT
"""Reads records from untrusted bytes, with bounds."""

import struct
from functools import cache
from typing import Any


class BadObject(Exception):
    """A BPF object is damaged or uses something that the loader does not know.

    The text completes `FILE: `; the loader adds the file's name.
    """


@cache
def _compiled(layout: str) -> struct.Struct:
    return struct.Struct(f"<{layout}")


def unpack(layout: str, data: bytes | bytearray, offset: int, part: str) -> tuple[Any, ...]:
    """Returns the record at an offset. Raises BadObject if it is not completely in the data.

    `part` names the data in the error.
    """
    record = _compiled(layout)
    if offset < 0 or offset + record.size > len(data):
        raise BadObject(f"{part} is truncated at byte {offset}; compile the object again")
    return record.unpack_from(data, offset)


def cut(data: bytes, offset: int, size: int, part: str) -> bytes:
    """Returns a range of bytes. Raises BadObject if it is not completely in the data."""
    if offset < 0 or size < 0 or offset + size > len(data):
        raise BadObject(
            f"{part} lies outside of the file (bytes {offset} to {offset + size} of {len(data)});"
            " compile the object again"
        )
    return data[offset : offset + size]


def text_at(data: bytes, offset: int, part: str) -> str:
    """Returns the zero-terminated text at an offset. Raises BadObject if there is none."""
    end = data.find(b"\0", offset) if 0 <= offset < len(data) else -1
    if end < 0:
        raise BadObject(f"{part} has no text at byte {offset}; compile the object again")
    return data[offset:end].decode(errors="replace")
