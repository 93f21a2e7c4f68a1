# SPDX-License-Identifier: MIT
"""Resolves CO-RE relocations: what a program asks about the kernel's types, by libbpf's rules."""

from dataclasses import dataclass, replace

from schedlab.sched_ext.btf import (
    COMPOSITES,
    ENUMERATIONS,
    QUALIFIERS,
    Btf,
    Member,
    Type,
    essential_name,
)
from schedlab.sched_ext.bytes_reader import BadObject

FIELD_KINDS = ("byte_offset", "byte_size", "field_exists", "signed", "lshift", "rshift")
KINDS = (
    *FIELD_KINDS,
    *("type_id_local", "type_id_target", "type_exists", "type_size"),
    *("enumval_exists", "enumval_value", "type_matches"),
)
_ACCESS_PATH_MAX = 64
"""Most numbers in the access path of a relocation, such as 0:1:2."""


@dataclass(frozen=True)
class Answer:
    """The value that the kernel gives to a relocation."""

    value: int
    load_bytes: int = 0
    """Of a field: how many bytes an instruction loads or stores; 0 if it stays as it is."""
    field: str = ""
    """The field, such as `task_struct.scx.weight`; "" for other answers."""


class Unresolved(Exception):
    """The kernel lacks what a program asks for. The text names it, such as `rq.nr_running`."""


@dataclass(frozen=True)
class _Field:
    bit: int  # offset in the structure, in bits
    bits: int  # width of a bit field, or 0
    type: int  # number of the type


_Step = str | int
"""A member's name or an array's index."""


def resolve(program: Btf, kernel: Btf, type_id: int, access: str, kind: str) -> Answer:
    """Returns the value that the kernel gives to a relocation.

    Raises Unresolved if the kernel lacks the field, type or enumerator, and BadObject if the
    relocation is damaged.
    """
    named = program.type(type_id)
    while named.kind in QUALIFIERS and not named.name:
        named = program.type(named.target)
    root = program.plain(type_id)
    name = essential_name(named.name or root.name)
    if kind == "type_id_local":
        return Answer(type_id)
    candidates = [
        entry
        for entry in kernel.by_name.get(name, ())
        if _same_kind(kernel.plain(entry.id).kind, root.kind)
    ]
    if kind.startswith("type_"):
        return _resolve_type(program, kernel, root, candidates, kind, name)
    path = _parse_path(access)
    if kind.startswith("enumval_"):
        return _resolve_enumerator(root, candidates, path[0], kind, name)
    return _resolve_field(program, kernel, root, candidates, path, kind)


def _parse_path(access: str) -> list[int]:
    indexes = access.split(":")
    if len(indexes) > _ACCESS_PATH_MAX or not all(
        word.isascii() and word.isdigit() for word in indexes
    ):
        raise BadObject(f"a relocation has the path {access[:80]!r}; compile the object again")
    return [int(word[:10]) for word in indexes]


def _same_kind(kind: str, other: str) -> bool:
    return kind == other or (kind in ENUMERATIONS and other in ENUMERATIONS)


def _resolve_type(
    program: Btf, kernel: Btf, root: Type, candidates: list[Type], kind: str, name: str
) -> Answer:
    """Returns whether a type exists or matches, its number, or its size."""
    entry = next(iter(candidates), None)
    if kind == "type_exists":
        return Answer(int(entry is not None))
    if kind == "type_matches":
        return Answer(
            int(any(_has_all_members(kernel, candidate, root) for candidate in candidates))
        )
    if not entry:
        raise Unresolved(f"type {name}")
    return Answer(kernel.size_of(entry.id) if kind == "type_size" else entry.id)


def _has_all_members(kernel: Btf, candidate: Type, root: Type) -> bool:
    """Returns whether the kernel's type has every named member of the program's type."""
    resolved = kernel.plain(candidate.id)
    if resolved.kind in ENUMERATIONS:
        names = {essential_name(member.name) for member in resolved.members}
        return all(essential_name(member.name) in names for member in root.members)
    return all(kernel.find_member(resolved, member.name) for member in root.members if member.name)


def _resolve_enumerator(
    root: Type, candidates: list[Type], number: int, kind: str, name: str
) -> Answer:
    """Returns whether an enumerator exists, or its value."""
    if root.kind not in ENUMERATIONS or number >= len(root.members):
        raise BadObject(f"a relocation names enumerator {number} of {name}, which does not exist")
    enumerator = essential_name(root.members[number].name)
    for candidate in candidates:
        for member in candidate.members:
            if essential_name(member.name) == enumerator:
                return Answer(1 if kind == "enumval_exists" else member.value)
    if kind == "enumval_exists":
        return Answer(0)
    raise Unresolved(f"{name}.{enumerator}")


def _resolve_field(
    program: Btf, kernel: Btf, root: Type, candidates: list[Type], path: list[int], kind: str
) -> Answer:
    """Returns a field's existence, offset, size or shift. Raises Unresolved if it is missing."""
    steps, local = _follow_path(program, root, path)
    for candidate in candidates:
        target = _find_field(program, kernel, candidate, steps, local)
        if target and _has_fitting_size(program, kernel, local, target, kind):
            field = _path_text(essential_name(root.name), steps)
            return replace(_field_answer(kernel, target, kind), field=field)
    if kind == "field_exists":
        return Answer(0)
    raise Unresolved(_path_text(essential_name(root.name), steps))


def _path_text(name: str, steps: list[_Step]) -> str:
    """Returns the path of a field in C, such as rq.scx.flags[2]."""
    return name + "".join(
        f".{step}" if isinstance(step, str) else f"[{step}]" if number or step else ""
        for number, step in enumerate(steps)
    )


def _follow_path(program: Btf, root: Type, path: list[int]) -> tuple[list[_Step], _Field]:
    """Returns the names and indexes on a path of the program's types, and the last field."""
    steps: list[_Step] = [path[0]]
    bit, bits, number = path[0] * program.size_of(root.id) * 8, 0, root.id
    for index in path[1:]:
        resolved = program.plain(number)
        if resolved.kind in COMPOSITES and index < len(resolved.members):
            member = resolved.members[index]
            number, bits = member.type, member.bits
            bit += member.offset
            if member.name:
                steps.append(member.name)
        elif resolved.kind == "array":
            number, bits = resolved.target, 0
            bit += index * program.size_of(number) * 8
            steps.append(index)
        else:
            raise BadObject(f"a relocation's path leaves type {root.name or root.id}")
    return steps, _Field(bit, bits, number)


def _find_field(
    program: Btf, kernel: Btf, root: Type, steps: list[_Step], local: _Field
) -> _Field | None:
    """Returns the field of the kernel at a path of names, or None if there is none of its type."""
    number, bits = root.id, 0
    bit_offset = int(steps[0]) * kernel.size_of(root.id) * 8 if steps[0] else 0
    for step in steps[1:]:
        resolved = kernel.plain(number)
        if isinstance(step, str):
            member = _member_of(kernel, resolved, step)
            if not member:
                return None
            number, bits = member.type, member.bits
            bit_offset += member.offset
        elif resolved.kind == "array" and (step < resolved.size or not resolved.size):
            number, bits = resolved.target, 0
            bit_offset += step * kernel.size_of(number) * 8
        else:
            return None
    if not _compatible(program, local.type, kernel, number):
        return None
    return _Field(bit_offset, bits, number)


def _member_of(kernel: Btf, entry: Type, name: str) -> Member | None:
    return kernel.find_member(entry, name) if entry.kind in COMPOSITES else None


def _compatible(program: Btf, number: int, kernel: Btf, other: int) -> bool:
    """Returns whether a field of the kernel fits a program's (libbpf's rule)."""
    for _ in range(_ACCESS_PATH_MAX):
        local, target = program.plain(number), kernel.plain(other)
        if local.kind in COMPOSITES and target.kind in COMPOSITES:
            return True
        if not _same_kind(local.kind, target.kind):
            return False
        if local.kind in ENUMERATIONS:
            names = (essential_name(local.name), essential_name(target.name))
            return not all(names) or names[0] == names[1]
        if local.kind != "array":
            return True
        number, other = local.target, target.target
    return False


def _field_answer(kernel: Btf, target: _Field, kind: str) -> Answer:
    if kind == "field_exists":
        return Answer(1)
    start, size = _load_of(kernel, target)
    if kind == "byte_offset":
        return Answer(start, 0 if target.bits else size)
    if kind == "byte_size":
        return Answer(size)
    field_type = kernel.plain(target.type)
    if kind == "signed":
        return Answer(int(field_type.is_signed and field_type.kind in ("int", *ENUMERATIONS)))
    width = target.bits or size * 8
    shift = 64 - (target.bit - start * 8 + width) if kind == "lshift" else 64 - width
    return Answer(shift)


def _load_of(kernel: Btf, target: _Field) -> tuple[int, int]:
    """Returns the offset and size in bytes of the load that contains a field."""
    size = kernel.size_of(target.type)
    if not target.bits:
        return target.bit // 8, size
    while target.bit % (size * 8) + target.bits > size * 8 and size < 8:
        size *= 2
    return target.bit // (size * 8) * size, size


def _has_fitting_size(program: Btf, kernel: Btf, local: _Field, target: _Field, kind: str) -> bool:
    """Returns whether an instruction's size can be adapted.

    Two signed numbers would lose their sign. libbpf refuses one signed number, too; here the types
    are not exactly those of the kernel that the program was compiled for.
    """
    if kind != "byte_offset" or local.bits or target.bits:
        return True
    local_type, target_type = program.plain(local.type), kernel.plain(target.type)
    if local_type.kind != "int" or program.size_of(local.type) == kernel.size_of(target.type):
        return True
    return not (local_type.is_signed and target_type.is_signed)
