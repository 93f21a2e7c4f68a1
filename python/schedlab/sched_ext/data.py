# SPDX-License-Identifier: MIT
"""The global data of a scheduler: its sections, its variables, and values that replace theirs."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schedlab.sched_ext.btf import COMPOSITES, Btf
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.elf import Section
from schedlab.sched_ext.image import (
    REGION_ARENA,
    REGION_BYTES_MAX,
    REGION_IMAGE,
    REGION_MAPS,
    REGION_VALUES,
)
from schedlab.sched_ext.object_file import ARRAY, BpfObject

_CONTENT_BYTES_MAX = 64 << 20
"""Of a section whose variables are set."""
_MAP_VALUE_BYTES_MAX = 1 << 16
"""Of a map whose value can be set."""
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d{1,9})\]")
ARENA_SECTION = ".addr_space.1"
_KERNEL_CONSTANT_PREFIX = "__SCX_"
"""The beginning of variables that user space sets to the kernel's enumerators."""


@dataclass
class DataSection:
    """A section of global data, which is a region of the image."""

    section: Section
    region: int
    content: bytearray
    """The initial contents; zeros follow up to `size`."""
    size: int
    is_read_only: bool
    base: int = 0
    """Where in the region the section begins."""


@dataclass(frozen=True)
class Variable:
    """A global variable."""

    name: str
    data: DataSection
    offset: int
    size: int
    type: int


class GlobalData:
    """All global data of an object."""

    def __init__(self, program: BpfObject) -> None:
        self._btf = program.btf
        self.sections: dict[int, DataSection] = {}
        """By the index of the section."""
        number = REGION_IMAGE
        for section in program.elf.sections:
            if section.name == ARENA_SECTION and section.size:
                self.sections[section.index] = DataSection(
                    section, REGION_ARENA, bytearray(section.data), section.size, False
                )
            if not _is_global_data(section):
                continue
            if number == REGION_VALUES:
                raise BadObject(f"more than {REGION_VALUES - REGION_IMAGE} sections of data")
            self.sections[section.index] = DataSection(
                section,
                number,
                bytearray(section.data),
                section.size,
                section.name.startswith(".rodata"),
            )
            number += 1
        self.next_region = number
        self.variables = {variable.name: variable for variable in self._read_variables(program)}
        self.map_values = {variable.name: variable for variable in self._read_map_values(program)}
        """The first elements of arrays in maps, which are set like variables."""

    def _read_variables(self, program: BpfObject) -> Iterator[Variable]:
        for data in self.sections.values():
            for member, place in self._btf.section_variables(data.section.name):
                offset = program.offsets.get(member.name, place.offset)
                size = place.bits or self._btf.size_of(member.target)
                if offset + size > data.size:
                    raise BadObject(f"variable {member.name} lies outside of its section")
                yield Variable(member.name, data, offset, size, member.target)

    def _read_map_values(self, program: BpfObject) -> Iterator[Variable]:
        places = [section for section in program.elf.sections if section.name == ".maps"]
        for entry in program.maps:
            size = entry.value_size
            is_array = entry.type == ARRAY and entry.key_size == 4 and entry.value_type
            if not is_array or size > min(
                _MAP_VALUE_BYTES_MAX, self._btf.size_of(entry.value_type)
            ):
                continue
            data = DataSection(places[0], REGION_MAPS, bytearray(size), size, is_read_only=False)
            yield Variable(entry.name, data, 0, size, entry.value_type)

    def element_count(self, variable: Variable) -> int:
        """Returns the number of elements of an array; 1 for another variable."""
        resolved = self._btf.plain(variable.type)
        return max(1, resolved.size) if resolved.kind == "array" else 1

    def set_kernel_constants(self, kernel: Btf) -> list[str]:
        """Sets the variables that user space copies from the kernel's enumerations.

        Returns the variables whose enumerators the kernel lacks; they stay 0.
        """
        missing = []
        for name, variable in self.variables.items():
            if name.startswith(_KERNEL_CONSTANT_PREFIX):
                value = kernel.enumerator(name[2:])
                if value is None:
                    missing.append(name)
                else:
                    self._write(variable, variable.offset, min(8, variable.size), value)
        return missing

    def assign(self, path: str, value: int | Sequence[int]) -> None:
        """Sets a variable, a member such as `a.b`, or an element such as `a[2]`.

        The first element of an array in a map is set like a variable with the map's name.
        A list sets the first elements of an array. Raises BadObject if the path does not exist or a
        value does not fit.
        """
        variable, offset, number = self._resolve(path)
        resolved = self._btf.plain(number)
        if isinstance(value, int):
            if resolved.kind not in ("int", "enum", "enum64", "ptr", "float"):
                raise BadObject(f"variable {path} is not a number; name a member or an element")
            self._write_number(variable, path, offset, number, value)
            return
        if resolved.kind != "array" or resolved.size < len(value):
            raise BadObject(f"variable {path} is not an array of {len(value)} elements")
        size = self._btf.size_of(resolved.target)
        for index, element in enumerate(value):
            self._write_number(variable, path, offset + index * size, resolved.target, element)

    def is_zero(self, variable: Variable) -> bool:
        """Returns whether all bytes of a variable are 0 at the start."""
        content = variable.data.content[variable.offset : variable.offset + variable.size]
        return not any(content)

    def _resolve(self, path: str) -> tuple[Variable, int, int]:
        """Returns the variable, offset in its section and type of a path."""
        steps = [match.groups() for match in _STEP.finditer(path)]
        all_variables = {**self.map_values, **self.variables}
        if not steps or _STEP.sub("", path) or steps[0][0] not in all_variables:
            name = steps[0][0] if steps and steps[0][0] else path
            close = difflib.get_close_matches(name, all_variables, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise BadObject(f"the scheduler has no variable {path}{hint}")
        variable = all_variables[steps[0][0]]
        offset, type_id = variable.offset, variable.type
        for name, index in steps[1:]:
            resolved = self._btf.plain(type_id)
            if index and resolved.kind == "array" and int(index) < resolved.size:
                type_id = resolved.target
                offset += int(index) * self._btf.size_of(type_id)
                continue
            member = None
            if name and resolved.kind in COMPOSITES:
                member = self._btf.find_member(resolved, name)
            if not member or member.bits:
                raise BadObject(f"the scheduler has no variable {path}")
            type_id = member.type
            offset += member.offset // 8
        return variable, offset, type_id

    def _write_number(
        self, variable: Variable, path: str, offset: int, number: int, value: int
    ) -> None:
        size = min(8, self._btf.size_of(number))
        if not -(1 << size * 8 - 1) <= value < 1 << size * 8:
            raise BadObject(f"variable {path} has {size} bytes; {value} does not fit")
        self._write(variable, offset, size, value)

    def _write(self, variable: Variable, offset: int, size: int, value: int) -> None:
        data = variable.data
        end = offset + size
        if end > data.size or end > _CONTENT_BYTES_MAX:
            raise BadObject(f"variable {variable.name} lies outside of its section")
        if end > len(data.content):
            data.content += bytes(end - len(data.content))
        data.content[offset:end] = (value & (1 << size * 8) - 1).to_bytes(size, "little")

    def resize(self, name: str, size: int) -> None:
        """Changes the size of a section, as user space does with arrays that end a section."""
        for data in self.sections.values():
            if data.section.name == name:
                if size > REGION_BYTES_MAX:
                    raise BadObject(f"section {name} would be larger than 4 GiB")
                data.size = max(size, len(data.content))
                return
        raise BadObject(f"the scheduler has no section {name}")


def _is_global_data(section: Section) -> bool:
    return (
        section.is_data
        and section.size > 0
        and bool(re.match(r"\.(rodata|data|bss)(\.|$)", section.name))
    )
