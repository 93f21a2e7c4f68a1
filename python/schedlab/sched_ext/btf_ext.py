# SPDX-License-Identifier: MIT
"""Reads BTF.ext: the CO-RE relocations and line numbers of a BPF object's instructions."""

from collections.abc import Iterator
from dataclasses import dataclass

from schedlab.sched_ext.btf import Btf
from schedlab.sched_ext.bytes_reader import BadObject, cut, unpack
from schedlab.sched_ext.relocation import KINDS

_LINE_INFO, _CORE_RELOCATIONS = 16, 24
"""Where the header names the parts."""


@dataclass(frozen=True)
class CoreRelocation:
    """A question about the kernel's types, for one instruction."""

    section: str
    offset: int
    """In bytes within the section."""
    type: int
    access: str
    kind: str


@dataclass(frozen=True)
class Line:
    """The source line of an instruction and those after it."""

    section: str
    offset: int
    """In bytes within the section."""
    file: str
    line: int
    column: int


class BtfExt:
    """The contents of section .BTF.ext."""

    def __init__(self, data: bytes, btf: Btf) -> None:
        magic, _, _, self._header = unpack("HBBI", data, 0, "section .BTF.ext")
        if magic != 0xEB9F:
            raise BadObject("section .BTF.ext is damaged; compile the object again, with -g")
        self._data = data
        self._btf = btf

    def _records(self, index: int) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
        """Yields section and first four words of the records of a part."""
        if self._header < index + 8:
            return
        start, size = unpack("II", self._data, index, "section .BTF.ext")
        content = cut(self._data, self._header + start, size, "section .BTF.ext")
        if not size:
            return
        (record,) = unpack("I", content, 0, "section .BTF.ext")
        if record < 16:
            raise BadObject("section .BTF.ext has records that are too short")
        position = 4
        while position < len(content):
            name, count = unpack("II", content, position, "section .BTF.ext")
            position += 8
            section = self._btf.text(name)
            for _ in range(count):
                offset, first, second, third = unpack("IIII", content, position, "section .BTF.ext")
                yield section, (offset, first, second, third)
                position += record

    def core_relocations(self) -> Iterator[CoreRelocation]:
        """Yields all CO-RE relocations."""
        for section, (offset, number, access, kind) in self._records(_CORE_RELOCATIONS):
            if kind >= len(KINDS):
                raise BadObject(f"section {section} has a CO-RE relocation of unknown kind {kind}")
            yield CoreRelocation(section, offset, number, self._btf.text(access), KINDS[kind])

    def lines(self) -> Iterator[Line]:
        """Yields where source lines begin."""
        files: dict[int, str] = {}
        for section, (offset, file, _, place) in self._records(_LINE_INFO):
            if file not in files:
                files[file] = self._btf.text(file)
            yield Line(section, offset, files[file], place >> 10, place & 1023)
