# SPDX-License-Identifier: MIT
"""The image of a loaded scheduler, as sim/sched_ext/image.h defines it: written, read and checked."""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from schedlab.sched_ext.bytes_reader import BadObject, cut, text_at, unpack

MAGIC = 0x6567616D49786373
VERSION = 1
REGION_FUNCTIONS, REGION_CODE, REGION_VARIABLES, REGION_MAPS, REGION_ARENA = 4, 5, 6, 8, 9
REGION_IMAGE, REGION_VALUES, REGIONS = 16, 128, 384
MAPS_MAX = REGIONS - REGION_VALUES
READ_ONLY = 1
CALL_HELPER, CALL_PROGRAM, CALL_FUNCTION, CALL_MISSING = 0, 1, 2, 3
REGION_BYTES_MAX = 1 << 32
DATA_BYTES_MAX = 256 << 20
"""Of the initial contents of all regions."""
INSTRUCTIONS_MAX = 1 << 18
STEP_SLOTS, STEP_CONTEXT_MAX = 16, 4096
SUBPROGRAM, CALLBACK, SYSCALL, OTHER = range(4)
STEP_CALL, STEP_KEEP, STEP_USE, STEP_STORE, STEP_MAP_UPDATE = range(5)


class Region(NamedTuple):
    number: int
    name: int
    size: int
    flags: int
    first_field: int  # index in Image.fields
    fields: int  # number of fields
    data: int
    """Where the initial contents begin in the image's data."""
    data_size: int
    data_offset: int
    """Where the initial contents begin in the region."""


class Instruction(NamedTuple):
    op: int
    registers: int  # destination in the low half, source in the high half
    offset: int
    immediate: int


class Map(NamedTuple):
    name: int
    type: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    extra: int  # map_extra
    first_field: int
    fields: int


class InnerMap(NamedTuple):
    map: int  # number of the map of maps
    position: int  # index in it
    inner: int  # number of the map at this index


class Field(NamedTuple):
    kind: int
    offset: int
    size: int
    type_name: int
    type: int
    node_offset: int


class Op(NamedTuple):
    op: int  # number of the callback in struct sched_ext_ops
    instruction: int  # its first instruction


class Program(NamedTuple):
    name: int
    section: int
    kind: int
    first: int  # index of the first instruction
    instructions: int  # their number


class Variable(NamedTuple):
    name: int
    region: int
    offset: int
    size: int  # of all elements, in bytes
    elements: int  # 1 for a single value


class LocalType(NamedTuple):
    """A type that the object allocates by its number in the object's BTF."""

    id: int
    """That number."""
    name: int
    """Offset of its name in the image's texts."""
    size: int
    first_field: int
    fields: int


class Line(NamedTuple):
    instruction: int
    file: int
    line: int
    column: int


class Step(NamedTuple):
    kind: int  # STEP_CALL and so on
    target: int  # number of the program, slot or map
    offset: int
    size: int  # of a call's context, in bytes
    data: int
    data_size: int


RECORDS: dict[str, tuple[type, str]] = {
    "regions": (Region, "IIQIIIIII"),
    "instructions": (Instruction, "BBhi"),
    "maps": (Map, "IIIIIIQII"),
    "inner_maps": (InnerMap, "III"),
    "fields": (Field, "IIIIII"),
    "ops": (Op, "II"),
    "programs": (Program, "IIIII"),
    "variables": (Variable, "IIIII"),
    "types": (LocalType, "IIIII"),
    "lines": (Line, "IIII"),
    "steps": (Step, "IIIIII"),
}
"""The tables of records, in the order of enum image_table_number, with struct's layouts."""
TABLES = len(RECORDS) + 2
_HEADER = "QIIIIQIIII"
_HEADER_BYTES = 48 + 8 * TABLES


@dataclass
class Image:
    """A scheduler, ready for the engine. Texts are offsets in `strings`."""

    profile: int
    name: int = 0
    flags: int = 0
    timeout_ms: int = 0
    dispatch_max_batch: int = 0
    exit_dump_len: int = 0
    cpus: int = 0
    regions: list[Region] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list, repr=False)
    maps: list[Map] = field(default_factory=list)
    inner_maps: list[InnerMap] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    types: list[LocalType] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list, repr=False)
    steps: list[Step] = field(default_factory=list)
    strings: bytearray = field(default_factory=lambda: bytearray(1), repr=False)
    data: bytearray = field(default_factory=bytearray, repr=False)
    _offset_by_text: dict[str, int] = field(default_factory=dict, repr=False)

    def text(self, text: str) -> int:
        """Returns the offset of a text, which is added if it is new."""
        if not text:
            return 0
        if text not in self._offset_by_text:
            self._offset_by_text[text] = len(self.strings)
            self.strings += text.replace("\0", "").encode(errors="replace") + b"\0"
        return self._offset_by_text[text]

    def text_of(self, offset: int) -> str:
        """Returns the text at an offset."""
        return text_at(bytes(self.strings), offset, "the image's texts")

    def place(self, content: bytes | bytearray) -> int:
        """Adds bytes to the data. Returns their offset. Raises BadObject if there are too many."""
        self.data += bytes(-len(self.data) % 8)
        offset = len(self.data)
        if offset + len(content) > DATA_BYTES_MAX:
            raise BadObject(f"more than {DATA_BYTES_MAX >> 20} MiB of initial data")
        self.data += content
        return offset

    def encode(self) -> bytes:
        """Returns the file's bytes."""
        tables: list[tuple[int, int]] = []
        content = bytearray(_HEADER_BYTES)
        for name, (_, layout) in RECORDS.items():
            records = getattr(self, name)
            content += bytes(-len(content) % 8)
            tables.append((len(content), len(records)))
            pack = struct.Struct(f"<{layout}").pack
            content += b"".join(pack(*record) for record in records)
        for extra in (self.strings, self.data):
            content += bytes(-len(content) % 8)
            tables.append((len(content), len(extra)))
            content += extra
        header = (MAGIC, VERSION, len(content), self.profile, self.name, self.flags)
        settings = (self.timeout_ms, self.dispatch_max_batch, self.exit_dump_len, self.cpus)
        struct.pack_into(f"<{_HEADER}", content, 0, *header, *settings)
        for number, table in enumerate(tables):
            struct.pack_into("<II", content, 48 + 8 * number, *table)
        return bytes(content)


def decode(content: bytes) -> Image:
    """Returns the image in a file. Raises BadObject if it is damaged or a reference leads outside."""
    magic, version, size, profile, name, flags, *settings = unpack(_HEADER, content, 0, "the image")
    if magic != MAGIC or version != VERSION or size != len(content):
        raise BadObject("this is not an image of this version")
    image = Image(profile, name, flags, *settings)
    tables = [_table_place(content, number) for number in range(TABLES)]
    for (table, (record, layout)), (offset, count) in zip(RECORDS.items(), tables, strict=False):
        compiled = struct.Struct(f"<{layout}")
        table_bytes = cut(content, offset, count * compiled.size, f"the image's table {table}")
        setattr(image, table, [record(*words) for words in compiled.iter_unpack(table_bytes)])
    image.strings = bytearray(cut(content, *tables[-2], "the image's texts"))
    image.data = bytearray(cut(content, *tables[-1], "the image's data"))
    check(image)
    return image


def _table_place(content: bytes, number: int) -> tuple[int, int]:
    """Returns offset and number of entries of one of the image's tables."""
    offset, count = unpack("II", content, 48 + 8 * number, "the image")
    return offset, count


def check(image: Image) -> None:
    """Raises BadObject if a reference leads outside of the image."""
    if len(image.instructions) > INSTRUCTIONS_MAX or len(image.maps) > MAPS_MAX:
        raise BadObject("too many instructions or maps")
    if not image.strings or image.strings[0] or image.strings[-1]:
        raise BadObject("the texts do not begin and end with a 0")
    _check_regions(image)
    _check_texts(image)
    _check_ranges(image)
    _check_steps(image)
    check_code(image)


def _require(holds: bool, part: str) -> None:
    if not holds:
        raise BadObject(f"a reference of the {part} leads outside")


def _check_regions(image: Image) -> None:
    numbers = [region.number for region in image.regions]
    _require(len(set(numbers)) == len(numbers), "regions")
    for region in image.regions:
        valid = region.number == REGION_ARENA or REGION_IMAGE <= region.number < REGION_VALUES
        inside = region.data + region.data_size <= len(image.data)
        end = region.data_offset + region.data_size
        _require(valid and inside and end <= region.size <= REGION_BYTES_MAX, "regions")
    sizes = {region.number: region.size for region in image.regions}
    for variable in image.variables:
        _require(variable.offset + variable.size <= sizes.get(variable.region, -1), "variables")
        _require(variable.elements >= 1, "variables")


def _check_texts(image: Image) -> None:
    texts = [image.name]
    texts += [region.name for region in image.regions]
    texts += [entry.name for entry in image.maps]
    texts += [entry.type_name for entry in image.fields]
    texts += [text for program in image.programs for text in (program.name, program.section)]
    texts += [entry.name for entry in image.variables]
    texts += [entry.name for entry in image.types]
    texts += [line.file for line in image.lines]
    _require(max(texts) < len(image.strings), "texts")


def _check_ranges(image: Image) -> None:
    ranges = [(entry.first_field, entry.fields, entry.value_size) for entry in image.maps]
    ranges += [(entry.first_field, entry.fields, entry.size) for entry in image.regions]
    ranges += [(entry.first_field, entry.fields, entry.size) for entry in image.types]
    for first, count, size in ranges:
        _require(first + count <= len(image.fields), "special fields")
        for entry in image.fields[first : first + count]:
            _require(entry.offset + entry.size <= size, "special fields")
    for inner in image.inner_maps:
        _require(max(inner.map, inner.inner) < len(image.maps), "inner maps")
        _require(inner.position < image.maps[inner.map].max_entries, "inner maps")
    for op in image.ops:
        _require(op.instruction < len(image.instructions), "callbacks")
    end = 0
    for program in image.programs:
        _require(end <= program.first and program.instructions > 0, "programs")
        end = program.first + program.instructions
    _require(end <= len(image.instructions), "programs")
    for line in image.lines:
        _require(line.instruction < len(image.instructions), "lines")


def _check_steps(image: Image) -> None:
    for step in image.steps:
        _require(step.data + step.data_size <= len(image.data), "steps")
        if step.kind == STEP_CALL:
            _require(step.target < len(image.programs), "steps")
            _require(step.data_size <= step.size <= STEP_CONTEXT_MAX, "steps")
        elif step.kind == STEP_MAP_UPDATE:
            _require(step.target < len(image.maps), "steps")
            map_definition = image.maps[step.target]
            _require(step.data_size == map_definition.key_size + map_definition.value_size, "steps")
        else:
            _require(step.kind <= STEP_STORE and step.target < STEP_SLOTS, "steps")
            _require(step.kind == STEP_STORE or step.offset + 8 <= STEP_CONTEXT_MAX, "steps")


_JUMP_ALWAYS, _JUMP_ALWAYS_LONG, _CALL, _CALL_INDIRECT, _EXIT, _MAY_JUMP = (
    *(0x05, 0x06, 0x85, 0x8D, 0x95, 0xE5),
)
WIDE = 0x18
"""The operation of a 64-bit immediate, which takes two instructions."""


def check_code(image: Image) -> None:
    """Raises BadObject if an instruction refers to one outside of the code, or to what is not there."""
    count = len(image.instructions)
    second_half = -1
    for index, instruction in enumerate(image.instructions):
        op, registers, offset, _ = instruction
        if index == second_half:
            if op or registers or offset:
                raise BadObject(f"instruction {index} is not the second half of a 64-bit immediate")
            continue
        if max(registers & 15, registers >> 4) > 10:
            raise BadObject(f"instruction {index} names a register that does not exist")
        if op == WIDE:
            if index + 1 >= count or registers >> 4:
                raise BadObject(f"instruction {index} has an incomplete 64-bit immediate")
            second_half = index + 1
        elif op & 7 in (5, 6):
            target = _target(image, index, instruction)
            if not 0 <= target < count:
                raise BadObject(f"instruction {index} jumps or calls outside of the code")


def _target(image: Image, at: int, instruction: Instruction) -> int:
    """Returns the instruction that a jump or call leads to; `at` for other instructions."""
    op, registers, offset, immediate = instruction
    if op == _CALL:
        source = registers >> 4
        if source == CALL_PROGRAM:
            return at + 1 + immediate
        if source == CALL_MISSING and 0 <= immediate < len(image.strings):
            return at
        if source in (CALL_HELPER, CALL_FUNCTION) and 0 <= immediate < 1 << 16:
            return at
        raise BadObject(f"instruction {at} calls something unknown")
    if op in (_CALL_INDIRECT, _EXIT):
        return at
    return at + 1 + (immediate if op == _JUMP_ALWAYS_LONG else offset)
