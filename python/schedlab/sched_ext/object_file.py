# SPDX-License-Identifier: MIT
"""A BPF object: its ELF sections, its types, and what these say about data, maps and callbacks."""

import re
from dataclasses import dataclass
from functools import cached_property

from schedlab.sched_ext.btf import ENUMERATIONS, Btf, Type, essential_name
from schedlab.sched_ext.btf_ext import BtfExt
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.elf import FUNCTION, OBJECT, UNDEFINED, Elf, Section, Symbol
from schedlab.sched_ext.fields import FieldFinder

OBJECT_BYTES_MAX = 32 << 20
INNER_MAPS_MAX = 65_536
ARRAY, ARRAY_OF_MAPS, ARENA = 2, 12, 33

_SCHEDULER_NAME = re.compile(r"[A-Za-z0-9_.]+")


@dataclass(frozen=True)
class MapDefinition:
    """A map, as the object defines it."""

    name: str
    offset: int
    """In section .maps."""
    type: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    extra: int
    value_type: int
    """The value's type, or 0."""
    inner_maps: tuple[tuple[int, str], ...] = ()
    """Indexes and names of inner maps."""


@dataclass(frozen=True)
class Callback:
    """A callback of struct sched_ext_ops."""

    op: str
    function: Symbol


@dataclass(frozen=True)
class Description:
    """A struct sched_ext_ops of the object."""

    variable: str
    name: str
    callbacks: tuple[Callback, ...]
    values: dict[str, int]
    """Values of the members that are numbers, such as flags and timeout_ms."""


class BpfObject:
    """A compiled BPF object. Raises BadObject if it is damaged or has no types."""

    def __init__(self, content: bytes) -> None:
        if len(content) > OBJECT_BYTES_MAX:
            raise BadObject(f"larger than {OBJECT_BYTES_MAX >> 20} MiB")
        self.elf = Elf(content)
        self.btf = Btf(self.elf.need(".BTF", "compile the object with -g").data)
        ext = self.elf.section(".BTF.ext")
        self.ext = BtfExt(ext.data, self.btf) if ext else None
        self.fields = FieldFinder(self.btf)
        self.offsets = {
            symbol.name: symbol.value for symbol in self.elf.symbols if symbol.kind == OBJECT
        }
        """Of variables, within their sections."""

    @cached_property
    def code_sections(self) -> list[Section]:
        """Sections with programs."""
        sections = [section for section in self.elf.sections if section.is_code and section.size]
        for section in sections:
            if section.size % 8:
                raise BadObject(f"section {section.name} does not consist of complete instructions")
        return sections

    @cached_property
    def _functions(self) -> dict[int, list[Symbol]]:
        functions: dict[int, list[Symbol]] = {}
        for symbol in self.elf.symbols:
            if symbol.kind == FUNCTION:
                functions.setdefault(symbol.section, []).append(symbol)
        return functions

    def functions_of(self, section: Section) -> list[Symbol]:
        """Returns the functions of a section, ordered by their first instruction."""
        functions = self._functions.get(section.index, ())
        return sorted(functions, key=lambda symbol: (symbol.value, -symbol.size))

    def defined_function(self, symbol: Symbol) -> bool:
        """Returns whether a symbol is a place in a program."""
        return (
            symbol.section != UNDEFINED
            and symbol.section < len(self.elf.sections)
            and self.elf.sections[symbol.section].is_code
            and symbol.value < self.elf.sections[symbol.section].size
            and symbol.value % 8 == 0
        )

    # ---- maps ----

    @cached_property
    def maps(self) -> list[MapDefinition]:
        """The object's maps."""
        section = self.elf.section(".maps")
        if not section:
            return []
        values = {
            relocation.offset: relocation.symbol.name
            for relocation in self.elf.relocations(section)
        }
        return [
            self._make_map(
                variable, self.offsets.get(variable.name, place.offset), place.bits, values
            )
            for variable, place in self.btf.section_variables(".maps")
        ]

    def _make_map(
        self, variable: Type, offset: int, size: int, values: dict[int, str]
    ) -> MapDefinition:
        definition = self.btf.plain(variable.target)
        members = {member.name: member for member in definition.members}

        def number(name: str) -> int:
            """Returns the number that libbpf's __uint() or __ulong() writes into a type."""
            if name not in members:
                return 0
            pointer = self.btf.plain(members[name].type)
            if pointer.kind in ENUMERATIONS and pointer.members:
                return pointer.members[0].value & (1 << 64) - 1
            array = self.btf.plain(pointer.target) if pointer.kind == "ptr" else pointer
            if pointer.kind != "ptr" or array.kind != "array":
                raise BadObject(f"map {variable.name}: member {name} is not made by __uint()")
            return array.size

        def target(name: str) -> int:
            if name not in members:
                return 0
            pointer = self.btf.plain(members[name].type)
            if pointer.kind != "ptr":
                raise BadObject(f"map {variable.name}: member {name} is not made by __type()")
            return pointer.target

        key, value = target("key"), target("value")
        inner_maps: tuple[tuple[int, str], ...] = ()
        if "values" in members:
            start = offset + members["values"].offset // 8
            inner_maps = tuple(
                ((at - start) // 8, name)
                for at, name in sorted(values.items())
                if start <= at < max(offset + size, start + 1)
            )[:INNER_MAPS_MAX]
        return MapDefinition(
            variable.name,
            offset,
            number("type"),
            number("key_size") or (self.btf.size_of(key) if key else 0),
            number("value_size")
            or (self.btf.size_of(value) if value else 4 if "values" in members else 0),
            number("max_entries"),
            number("map_flags"),
            number("map_extra"),
            value,
            inner_maps,
        )

    # ---- callbacks ----

    @cached_property
    def descriptions(self) -> list[Description]:
        """The object's schedulers: variables of type struct sched_ext_ops."""
        return [
            self._make_description(section, variable, self.offsets.get(variable.name, place.offset))
            for section in self.elf.sections
            if section.name.startswith((".struct_ops", "?.struct_ops"))
            for variable, place in self.btf.section_variables(section.name)
            if essential_name(self.btf.plain(variable.target).name) == "sched_ext_ops"
        ]

    def _make_description(self, section: Section, variable: Type, start: int) -> Description:
        functions = {
            relocation.offset: relocation.symbol for relocation in self.elf.relocations(section)
        }
        callbacks, values, name = [], {}, ""
        for member in self.btf.plain(variable.target).members:
            member_begin = start + member.offset // 8
            member_type = self.btf.plain(member.type)
            content = section.data[
                member_begin : member_begin + min(self.btf.size_of(member.type), 4096)
            ]
            if member_type.kind == "ptr" and member_begin in functions:
                callbacks.append(Callback(essential_name(member.name), functions[member_begin]))
            elif member_type.kind == "array" and member.name == "name":
                name = content.split(b"\0")[0].decode(errors="replace")
            elif member_type.kind in ("int", "enum", "enum64"):
                values[member.name] = int.from_bytes(content, "little")
        if not _SCHEDULER_NAME.fullmatch(name):
            raise BadObject(
                f"name {name[:32]!r} of the scheduler: Linux allows a-z, A-Z, 0-9, _ and ."
            )
        return Description(variable.name, name, tuple(callbacks), values)
