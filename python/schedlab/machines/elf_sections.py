# SPDX-License-Identifier: MIT
"""A table of sections for a program or library that lost its own: that table stands at a file's end.

To run, a file needs none. A linker finds in it the names that a library offers.
"""

from __future__ import annotations

import struct

_LOAD, _DYNAMIC = 1, 2
"""Types of segments."""
_STRINGS, _SYMBOLS, _STRINGS_BYTES = 5, 6, 10
"""Tags of entries in the dynamic segment: two addresses, and the size of the first."""
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<QQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_TABLE_AT, _TABLE_SIZE_AT = 40, 58
"""Where the header says at which byte the table of sections begins, and of how many of what size it is."""
_DYNSYM, _STRTAB, _DYNAMIC_SECTION = 11, 3, 6
"""Types of sections."""
_STRINGS_AT = 2
"""The section of names, by its place in the table."""


def with_sections(content: bytes) -> bytes:
    """Returns an ELF file of 64 bits with a table of three sections at its end: symbols, names, dynamic.

    The symbols end where their names begin, as linkers lay them.
    """
    segments = _segments(content)
    _, _, begin, _, _, size, *_ = next(each for each in segments if each[0] == _DYNAMIC)
    entries = dict(_ENTRY.iter_unpack(content[begin : begin + size]))
    symbols, strings = (_offset(segments, entries[tag]) for tag in (_SYMBOLS, _STRINGS))
    table = [
        (0,) * 10,
        _section(_DYNSYM, symbols, strings - symbols, _STRINGS_AT, _SYMBOL_BYTES),
        _section(_STRTAB, strings, entries[_STRINGS_BYTES], 0, 0),
        _section(_DYNAMIC_SECTION, begin, size, _STRINGS_AT, _ENTRY.size),
    ]
    padded = content + bytes(-len(content) % 8)
    whole = bytearray(padded + b"".join(_SECTION.pack(*each) for each in table))
    struct.pack_into("<Q", whole, _TABLE_AT, len(padded))
    struct.pack_into("<HHH", whole, _TABLE_SIZE_AT, _SECTION.size, len(table), _STRINGS_AT)
    return bytes(whole)


def _segments(content: bytes) -> list[tuple[int, ...]]:
    """Type, flags, place in the file, address, physical address, bytes in the file and in memory, alignment."""
    begin, size, count = struct.unpack_from("<Q14xHH", content, 32)
    return list(_SEGMENT.iter_unpack(content[begin : begin + size * count]))


def _offset(segments: list[tuple[int, ...]], address: int) -> int:
    """Returns the place in the file of what is loaded to an address."""
    return next(
        address - start + offset
        for kind, _, offset, start, _, size, *_ in segments
        if kind == _LOAD and start <= address < start + size
    )


def _section(kind: int, offset: int, size: int, link: int, entry_bytes: int) -> tuple[int, ...]:
    """As the file's format has it. The first symbol alone is local."""
    first_global = 1 if kind == _DYNSYM else 0
    return (0, kind, 0, 0, offset, size, link, first_global, 8, entry_bytes)
