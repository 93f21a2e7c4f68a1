# SPDX-License-Identifier: MIT
"""Links a BPF object with the simulated kernel: from an object to an image."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.code import Code, CodeLinker, Missing
from schedlab.sched_ext.data import DataSection, GlobalData
from schedlab.sched_ext.elf import Symbol
from schedlab.sched_ext.fields import SpecialField
from schedlab.sched_ext.image import (
    CALLBACK,
    MAPS_MAX,
    OTHER,
    READ_ONLY,
    REGION_ARENA,
    REGION_BYTES_MAX,
    REGION_MAPS,
    REGION_VALUES,
    STEP_MAP_UPDATE,
    SUBPROGRAM,
    SYSCALL,
    Field,
    Image,
    InnerMap,
    Line,
    LocalType,
    Map,
    Op,
    Program,
    Region,
    Step,
    Variable,
    check,
)
from schedlab.sched_ext.kernel import Kernel, linux_name
from schedlab.sched_ext.object_file import ARENA, BpfObject, Description, MapDefinition

_PAGE_BYTES = 4096
_NUMBERS = ("flags", "timeout_ms", "dispatch_max_batch", "exit_dump_len")


@dataclass(frozen=True)
class Configuration:
    """The part of a scheduler's user space that changes the object before it is loaded."""

    variables: Mapping[str, int | Sequence[int]] = field(default_factory=dict)
    """Values of global variables, members and elements, by path."""
    ops: Mapping[str, int] = field(default_factory=dict)
    """Values of members of struct sched_ext_ops, such as flags."""
    sections: Mapping[str, int] = field(default_factory=dict)
    """Sizes in bytes of sections of data."""
    map_entries: Mapping[str, int] = field(default_factory=dict)
    """Sizes of maps."""
    scheduler: str = ""
    """The variable of type struct sched_ext_ops, if the object has several."""
    cpus: int = 0
    hz: int = 1000
    """Ticks per second, which programs read as CONFIG_HZ."""


@dataclass
class Linked:
    """A linked scheduler, and what the kernel lacks for it."""

    image: Image
    program: BpfObject
    data: GlobalData
    code: Code
    description: Description
    missing: list[Missing]
    notes: list[str]

    @property
    def can_run(self) -> bool:
        return not any(missing.is_fatal for missing in self.missing)


class Linker:
    """Links one object. Raises BadObject if it is damaged or a setting does not fit it."""

    def __init__(self, program: BpfObject, kernel: Kernel, configuration: Configuration) -> None:
        self._program = program
        self._kernel = kernel
        self._configuration = configuration
        self._image = Image(kernel.profile, cpus=configuration.cpus)
        self._notes: list[str] = []
        self._missing: list[Missing] = []
        self._map_numbers = {
            definition.offset: number for number, definition in enumerate(program.maps)
        }
        self._weak = {symbol.name for symbol in program.elf.symbols if symbol.is_weak}
        self._kconfig: dict[str, int] = {}
        """Offsets of kernel settings in their region."""

    def link(self) -> Linked:
        """Returns the linked scheduler."""
        description = self._choose_description()
        self._data = GlobalData(self._program)
        self._next_region = self._data.next_region
        self._set_data()
        self._add_maps()
        self._add_regions()
        self._add_kernel_settings()
        linker = CodeLinker(
            self._program,
            self._kernel,
            self._address_of,
            self._address_of_setting,
            self._image.text,
        )
        code = linker.link()
        roots = self._add_ops(description, code)
        linker.poison_missing_helpers(roots)
        self._image.instructions = code.instructions
        self._add_programs(description, code)
        self._add_types(code)
        self._add_lines(code)
        self._add_map_values()
        check(self._image)
        self._missing += code.missing()
        return Linked(
            self._image,
            self._program,
            self._data,
            code,
            description,
            self._missing,
            self._notes,
        )

    def _choose_description(self) -> Description:
        """Returns the struct sched_ext_ops to load: the chosen one, or the first."""
        known = {entry.variable: entry for entry in self._program.descriptions}
        if not known:
            raise BadObject(
                "the object has no struct sched_ext_ops: this is not a sched_ext scheduler"
            )
        chosen = self._configuration.scheduler
        if chosen and chosen not in known:
            raise BadObject(f"no scheduler {chosen}; choose from {', '.join(known)}")
        return known[chosen] if chosen else next(iter(known.values()))

    # ---- data ----

    def _set_data(self) -> None:
        unknown = self._data.set_kernel_constants(self._kernel.btf)
        if unknown:
            names = ", ".join(sorted(name[2:] for name in unknown))
            self._notes.append(f"this kernel lacks these constants, which are 0: {names}")
        for name, size in self._configuration.sections.items():
            self._data.resize(name, size)
        for path, value in self._configuration.variables.items():
            self._data.assign(path, value)

    def _add_fields(self, fields: Sequence[SpecialField]) -> tuple[int, int]:
        """Adds special fields. Returns the first one's number and their count."""
        first = len(self._image.fields)
        for special in fields:
            in_kernel = special.type_name in self._kernel.btf.by_name
            self._image.fields.append(
                Field(
                    special.kind,
                    special.offset,
                    special.size,
                    self._image.text(special.type_name),
                    0 if in_kernel else special.type,
                    special.node_offset,
                )
            )
        return first, len(fields)

    def _add_regions(self) -> None:
        arena_bytes = next(
            (
                definition.max_entries * _PAGE_BYTES
                for definition in self._program.maps
                if definition.type == ARENA
            ),
            0,
        )
        for data in self._data.sections.values():
            if data.region == REGION_ARENA:
                self._place_in_arena(data, arena_bytes)
        for data in self._data.sections.values():
            if data.region != REGION_ARENA:
                self._add_region(data, data.size)
        arenas = [data for data in self._data.sections.values() if data.region == REGION_ARENA]
        if arena_bytes and not arenas:
            text = self._image.text("arena")
            self._image.regions.append(Region(REGION_ARENA, text, arena_bytes, 0, 0, 0, 0, 0, 0))
        for data in arenas:
            self._add_region(data, arena_bytes)
        self._add_variables()

    def _place_in_arena(self, data: DataSection, arena_bytes: int) -> None:
        """Places the arena's variables in its last pages. Page 0 stays free."""
        pages = (data.size + _PAGE_BYTES - 1) // _PAGE_BYTES
        data.base = arena_bytes - pages * _PAGE_BYTES
        if data.base < _PAGE_BYTES or arena_bytes > REGION_BYTES_MAX:
            raise BadObject("the arena is too small for its variables, or larger than 4 GiB")

    def _add_region(self, data: DataSection, size: int) -> None:
        content = bytes(data.content).rstrip(b"\0")
        fields = self._program.fields.of_section(data.section.name, self._program.offsets)
        first, count = self._add_fields(fields if data.region != REGION_ARENA else ())
        self._image.regions.append(
            Region(
                data.region,
                self._image.text(data.section.name),
                size,
                READ_ONLY if data.is_read_only else 0,
                first,
                count,
                self._image.place(content),
                len(content),
                data.base,
            )
        )

    def _add_variables(self) -> None:
        for variable in self._data.variables.values():
            self._image.variables.append(
                Variable(
                    self._image.text(variable.name),
                    variable.data.region,
                    variable.offset + variable.data.base,
                    variable.size,
                    self._data.element_count(variable),
                )
            )

    def _address_of(self, symbol: Symbol, addend: int) -> int:
        """Returns the address of a place in the object's data or maps."""
        if symbol.section < len(self._program.elf.sections):
            name = self._program.elf.sections[symbol.section].name
            if name == ".maps":
                number = self._map_numbers.get(symbol.value)
                if number is None:
                    raise BadObject(f"a reference to {symbol.name}, which is not a map")
                return REGION_MAPS << 32 | number + 1
            data = self._data.sections.get(symbol.section)
            if data:
                offset = symbol.value + addend + data.base
                if not 0 <= offset <= REGION_BYTES_MAX - 1:
                    raise BadObject(f"a reference outside of section {name}")
                return data.region << 32 | offset
        raise BadObject(
            f"a reference to {symbol.name or 'a section'}, which is neither data nor map"
        )

    # ---- kernel settings ----

    def _add_kernel_settings(self) -> None:
        """Adds a region with the values of extern __kconfig variables."""
        btf = self._program.btf
        values = {
            "LINUX_KERNEL_VERSION": self._kernel.profile // 100 << 16
            | self._kernel.profile % 100 << 8,
            "CONFIG_HZ": self._configuration.hz,
            "CONFIG_NR_CPUS": 8192,
            "CONFIG_X86_64": 1,
        }
        content = bytearray()
        for variable, _ in btf.section_variables(".kconfig"):
            size = btf.size_of(variable.target)
            if size > _PAGE_BYTES or len(content) > REGION_BYTES_MAX >> 8:
                raise BadObject(f"kernel setting {variable.name} is too large")
            content += bytes(-len(content) % 8)
            self._kconfig[variable.name] = len(content)
            value = values.get(variable.name, 0) if size <= 8 else 0
            content += (value & (1 << size * 8) - 1).to_bytes(size, "little")
            if variable.name not in values and variable.name not in self._weak:
                self._missing.append(
                    Missing("kernel setting", variable.name, ("the object",), is_fatal=True)
                )
        if not content:
            return
        if self._next_region >= REGION_VALUES:
            raise BadObject("too many sections of data")
        self._kconfig_region = self._next_region
        self._image.regions.append(
            Region(
                self._kconfig_region,
                self._image.text(".kconfig"),
                len(content),
                READ_ONLY,
                0,
                0,
                self._image.place(content),
                len(content),
                0,
            )
        )

    def _address_of_setting(self, symbol: Symbol) -> int | None:
        """Returns the address of a __kconfig variable; None for other symbols."""
        if symbol.name not in self._kconfig:
            return None
        return self._kconfig_region << 32 | self._kconfig[symbol.name]

    # ---- maps ----

    def _add_maps(self) -> None:
        maps = self._program.maps
        if len(maps) > MAPS_MAX:
            raise BadObject(f"{len(maps)} maps; at most {MAPS_MAX} are possible")
        names = {definition.name: number for number, definition in enumerate(maps)}
        unknown = [name for name in self._configuration.map_entries if name not in names]
        if unknown:
            raise BadObject(f"the scheduler has no map {unknown[0]}")
        for number, definition in enumerate(maps):
            self._add_map(definition)
            for index, inner in definition.inner_maps:
                if inner not in names or index >= definition.max_entries:
                    raise BadObject(f"map {definition.name} has {inner}, which is not an inner map")
                self._image.inner_maps.append(InnerMap(number, index, names[inner]))

    def _add_map(self, definition: MapDefinition) -> None:
        if definition.type not in self._kernel.map_types:
            self._missing.append(
                Missing(
                    "map type",
                    linux_name("map_types", definition.type),
                    (f"map {definition.name}",),
                    is_fatal=True,
                )
            )
        fields = (
            self._program.fields.of_type(definition.value_type) if definition.value_type else []
        )
        first, count = self._add_fields(
            [
                special
                for special in fields
                if special.offset + special.size <= definition.value_size
            ]
        )
        entries = self._configuration.map_entries.get(definition.name, definition.max_entries)
        self._image.maps.append(
            Map(
                self._image.text(definition.name),
                definition.type,
                definition.key_size,
                definition.value_size,
                entries,
                definition.flags,
                definition.extra,
                first,
                count,
            )
        )

    def _add_map_values(self) -> None:
        """Adds the steps that store the values of maps that are set."""
        for number, definition in enumerate(self._program.maps):
            variable = self._data.map_values.get(definition.name)
            if not variable or self._data.is_zero(variable):
                continue
            content = bytes(definition.key_size) + variable.data.content
            place = self._image.place(content)
            self._image.steps.append(Step(STEP_MAP_UPDATE, number, 0, 0, place, len(content)))

    # ---- programs ----

    def _add_ops(self, description: Description, code: Code) -> list[int]:
        """Adds the callbacks. Returns the first instructions of all programs that run."""
        image = self._image
        image.name = image.text(description.name)
        values = {**description.values, **self._configuration.ops}
        image.flags = values.get("flags", 0) & (1 << 64) - 1
        image.timeout_ms = values.get("timeout_ms", 0) & 0xFFFFFFFF
        image.dispatch_max_batch = values.get("dispatch_max_batch", 0) & 0xFFFFFFFF
        image.exit_dump_len = values.get("exit_dump_len", 0) & 0xFFFFFFFF
        roots = []
        for callback in description.callbacks:
            if not self._program.defined_function(callback.function):
                raise BadObject(f"callback {callback.op} is not a function of the object")
            if callback.op not in self._kernel.ops:
                self._notes.append(f"callback {callback.op} is ignored: this kernel lacks it")
                continue
            symbol = callback.function
            first = code.base[symbol.section] + symbol.value // 8
            image.ops.append(Op(self._kernel.ops[callback.op], first))
            roots.append(first)
        roots += [function.first for function in code.functions if function.section == "syscall"]
        return roots

    def _add_programs(self, description: Description, code: Code) -> None:
        callbacks = {op.instruction for op in self._image.ops}
        for function in code.functions:
            self._image.programs.append(
                Program(
                    self._image.text(function.name),
                    self._image.text(function.section),
                    _program_kind(function.section, function.first in callbacks),
                    function.first,
                    function.count,
                )
            )

    def _add_types(self, code: Code) -> None:
        """Adds the types of objects that programs allocate, and the types that fields refer to."""
        pending = sorted(
            code.local_types | {resolved.type for resolved in self._image.fields} - {0}
        )
        added: set[int] = set()
        while pending:
            number = pending.pop(0)
            resolved = self._program.btf.plain(number)
            if number in added or resolved.kind != "struct":
                continue
            added.add(number)
            first, count = self._add_fields(self._program.fields.of_type(number))
            pending += [field.type for field in self._image.fields[first:] if field.type]
            self._image.types.append(
                LocalType(number, self._image.text(resolved.name), resolved.size, first, count)
            )

    def _add_lines(self, code: Code) -> None:
        if not self._program.ext:
            return
        sections = {section.name: section for section in self._program.code_sections}
        lines: dict[int, Line] = {}
        for line in self._program.ext.lines():
            section = sections.get(line.section)
            if section and line.offset < section.size:
                at = code.base[section.index] + line.offset // 8
                lines[at] = Line(at, self._image.text(line.file), line.line, line.column)
        self._image.lines = [lines[at] for at in sorted(lines)]


def _program_kind(section: str, is_callback: bool) -> int:
    """Returns which kind of program a section has: CALLBACK, SYSCALL or SUBPROGRAM."""
    if is_callback:
        return CALLBACK
    if section == "syscall":
        return SYSCALL
    return SUBPROGRAM if section in (".text",) else OTHER
