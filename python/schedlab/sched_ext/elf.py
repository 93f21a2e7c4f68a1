# SPDX-License-Identifier: MIT
"""Reads the sections, symbols and relocations of a BPF object (64-bit little-endian ELF)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from schedlab.sched_ext.bytes_reader import BadObject, cut, text_at, unpack

MACHINE_BPF = 247
_MAGIC = b"\x7fELF\x02\x01"
_HEADER = "6s10xHHIQQQIHHHHHH"
_SECTION = "IIQQQQIIQQ"
_SYMBOL = "IBBHQQ"
_RELOCATION = "QQ"
SECTIONS_MAX = 16_384
SYMBOLS_MAX = 1 << 18
SECTION_BYTES_MAX = 1 << 32
"""Of a section without contents in the file, such as .bss."""
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_ALLOC, _EXECUTE = 2, 4
UNDEFINED = 0
_WEAK = 2
FUNCTION, OBJECT = 2, 1


@dataclass(frozen=True)
class Section:
    """A section of the object."""

    index: int
    name: str
    kind: int
    flags: int
    size: int
    data: bytes = field(repr=False)
    """Empty for a section without contents in the file."""
    link: int
    info: int

    @property
    def is_code(self) -> bool:
        return bool(self.flags & _EXECUTE) and self.kind == _PROGBITS

    @property
    def is_data(self) -> bool:
        """Whether the section is part of a running program's memory and is not code."""
        return bool(self.flags & _ALLOC) and not self.flags & _EXECUTE


@dataclass(frozen=True)
class Symbol:
    """A symbol: a function or variable of a section, a section, or a name defined elsewhere."""

    name: str
    kind: int
    is_weak: bool
    section: int
    """Index of the section; UNDEFINED if the kernel defines the symbol."""
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """A place in a section that refers to a symbol."""

    offset: int
    symbol: Symbol


class Elf:
    """A BPF object's ELF file. Raises BadObject if it is damaged or of another kind."""

    def __init__(self, data: bytes) -> None:
        magic, kind, machine, _, _, _, start, _, _, _, _, size, count, names = unpack(
            _HEADER, data, 0, "the ELF header"
        )
        if magic != _MAGIC or machine != MACHINE_BPF:
            raise BadObject("this is not a BPF object; name a file that clang -target bpf made")
        if kind != 1:
            raise BadObject("this ELF file is not relocatable; name the object that clang -c made")
        if size != 64 or not 0 < count <= SECTIONS_MAX or names >= count:
            raise BadObject("the ELF header names no table of sections; compile the object again")
        headers = [
            unpack(_SECTION, data, start + number * size, "the table of sections")
            for number in range(count)
        ]
        texts = cut(data, headers[names][4], headers[names][5], "the names of sections")
        self.sections = [
            self._section(data, number, header, text_at(texts, header[0], "the names of sections"))
            for number, header in enumerate(headers)
        ]
        self.by_name = {section.name: section for section in reversed(self.sections)}
        self.symbols = self._read_symbols()
        self._relocations = self._relocation_sections()

    @staticmethod
    def _section(data: bytes, index: int, header: tuple[int, ...], name: str) -> Section:
        """Returns a section from its header (Elf64_Shdr). Raises BadObject if it is too large."""
        _, kind, flags, _, offset, size, link, info, _, _ = header
        if size > SECTION_BYTES_MAX:
            raise BadObject(f"section {name} is larger than 4 GiB")
        content = b"" if kind in (0, _NOBITS) else cut(data, offset, size, f"section {name}")
        return Section(index, name, kind, flags, size, content, link, info)

    def section(self, name: str) -> Section | None:
        """Returns the first section with a name, or None."""
        return self.by_name.get(name)

    def need(self, name: str, fix: str) -> Section:
        """Returns a section. Raises BadObject, with what to do, if there is none."""
        section = self.by_name.get(name)
        if not section:
            raise BadObject(f"section {name} is missing; {fix}")
        return section

    def _read_symbols(self) -> list[Symbol]:
        table = next((section for section in self.sections if section.kind == _SYMTAB), None)
        if not table:
            raise BadObject("the table of symbols is missing; do not strip the object")
        if table.link >= len(self.sections):
            raise BadObject("the names of symbols are missing; compile the object again")
        if len(table.data) > 24 * SYMBOLS_MAX:
            raise BadObject(f"more than {SYMBOLS_MAX} symbols")
        texts = self.sections[table.link].data
        symbols = []
        for offset in range(0, len(table.data) - 23, 24):
            name, info, _, section, value, size = unpack(_SYMBOL, table.data, offset, "a symbol")
            kind = info & 15
            if kind == 3 and section < len(self.sections):
                symbol_name = self.sections[section].name
            else:
                symbol_name = text_at(texts, name, "the names of symbols") if name else ""
            symbols.append(Symbol(symbol_name, kind, info >> 4 == _WEAK, section, value, size))
        return symbols

    def _relocation_sections(self) -> dict[int, list[Section]]:
        tables: dict[int, list[Section]] = {}
        for section in self.sections:
            if section.kind == _RELA:
                raise BadObject(
                    f"section {section.name} has relocations with addends, which BPF does not use"
                )
            if section.kind == _REL:
                tables.setdefault(section.info, []).append(section)
        return tables

    def relocations(self, section: Section) -> Iterator[Relocation]:
        """Yields a section's relocations. Raises BadObject for one outside of the section."""
        for table in self._relocations.get(section.index, ()):
            for position in range(0, len(table.data) - 15, 16):
                offset, info = unpack(_RELOCATION, table.data, position, table.name)
                number = info >> 32
                if number >= len(self.symbols) or offset >= section.size:
                    raise BadObject(f"a relocation of section {section.name} lies outside of it")
                yield Relocation(offset, self.symbols[number])
