# SPDX-License-Identifier: MIT
"""Reads BTF: the types of a BPF object, or of the kernel (Linux, Documentation/bpf/btf.rst)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from schedlab.sched_ext.bytes_reader import BadObject, cut, text_at, unpack

KINDS = (
    *("void", "int", "ptr", "array", "struct", "union", "enum", "fwd", "typedef", "volatile"),
    *("const", "restrict", "func", "func_proto", "var", "datasec", "float", "decl_tag"),
    *("type_tag", "enum64"),
)
COMPOSITES = ("struct", "union")
ENUMERATIONS = ("enum", "enum64")
QUALIFIERS = ("typedef", "volatile", "const", "restrict", "type_tag")
_QUALIFIERS_MAX = 64
"""Qualifiers and type definitions around a type; more are a cycle."""
_DIMENSIONS_MAX = 32
CONTENT_BYTES_MAX = 16 << 20
"""The kernel's limit, too."""
_BYTES_MAX = 1 << 32


@dataclass(frozen=True)
class Member:
    """A member of a structure, an enumerator, a parameter, or a variable of a section."""

    name: str
    type: int = 0
    offset: int = 0
    """In bits within a structure, in bytes within a section."""
    bits: int = 0
    """Width of a bit field, or 0; size in bytes within a section."""
    value: int = 0
    """Of an enumerator."""


@dataclass(frozen=True)
class Type:
    """A C type in BTF; `kind` is one of KINDS."""

    id: int
    kind: str
    name: str
    size: int
    """Of an int, structure, enumeration or float; the number of elements of an array."""
    target: int
    """The type that it refers to: of a pointer, qualifier, function, variable or tag; of an array's
    elements."""
    members: tuple[Member, ...] = field(repr=False, default=())
    is_signed: bool = False
    component: int = -1
    """Of a declaration tag: the number of the tagged member, or -1 for the complete type."""


VOID = Type(0, "void", "", 0, 0)


class Btf:
    """All types of one object. Raises BadObject if they are damaged."""

    def __init__(self, data: bytes) -> None:
        if len(data) > CONTENT_BYTES_MAX:
            raise BadObject(f"section .BTF is larger than {CONTENT_BYTES_MAX >> 20} MiB")
        magic, _, _, header, types, types_size, texts, texts_size = unpack(
            "HBBIIIII", data, 0, "section .BTF"
        )
        if magic != 0xEB9F:
            raise BadObject("section .BTF has no BTF; compile the object again, with -g")
        self._texts = cut(data, header + texts, texts_size, "the texts of section .BTF")
        content = cut(data, header + types, types_size, "the types of section .BTF")
        self.types = [VOID]
        position = 0
        while position < len(content):
            position = self._read_type(content, position)
        self._sections: dict[str, list[Type]] = {}
        self.by_name: dict[str, list[Type]] = {}
        for entry in self.types:
            if entry.kind == "datasec":
                self._sections.setdefault(entry.name, []).append(entry)
            elif entry.name:
                self.by_name.setdefault(essential_name(entry.name), []).append(entry)

    def text(self, offset: int) -> str:
        """Returns a text by its offset."""
        return text_at(self._texts, offset, "section .BTF")

    def type(self, number: int) -> Type:
        """Returns a type by its number. Raises BadObject if there is none."""
        if not 0 <= number < len(self.types):
            raise BadObject(f"section .BTF has no type {number}; compile the object again")
        return self.types[number]

    def _read_type(self, data: bytes, position: int) -> int:
        name, info, size = unpack("III", data, position, "section .BTF")
        number, kind_number, flag = info & 0xFFFF, info >> 24 & 31, bool(info >> 31)
        if not 0 < kind_number < len(KINDS):
            raise BadObject(f"section .BTF has a type of unknown kind {kind_number}")
        kind = KINDS[kind_number]
        identity = (len(self.types), kind, self.text(name))
        position += 12
        if kind == "int":
            (encoding,) = unpack("I", data, position, "section .BTF")
            new_type = Type(*identity, size, 0, is_signed=bool(encoding >> 24 & 1))
            position += 4
        elif kind == "array":
            element, _, count = unpack("III", data, position, "section .BTF")
            new_type = Type(*identity, count, element)
            position += 12
        elif kind in ("var", "decl_tag"):
            (value,) = unpack("i", data, position, "section .BTF")
            new_type = Type(*identity, 0, size, component=value)
            position += 4
        elif layout := _MEMBERS.get(kind):
            width = 4 * len(layout)
            members = tuple(
                self._make_member(
                    kind, flag, unpack(layout, data, position + index * width, "section .BTF")
                )
                for index in range(number)
            )
            target = size if kind == "func_proto" else 0
            new_type = Type(*identity, size, target, members, is_signed=flag)
            position += number * width
        else:
            new_type = Type(*identity, size if kind == "float" else 0, size)
        self.types.append(new_type)
        return position

    def _make_member(self, kind: str, flag: bool, words: tuple[int, ...]) -> Member:
        if kind in COMPOSITES:
            bits = words[2] >> 24 if flag else 0
            offset = words[2] & 0xFFFFFF if flag else words[2]
            return Member(self.text(words[0]), words[1], offset, bits)
        if kind == "enum":
            value = words[1] - (1 << 32) if flag and words[1] >> 31 else words[1]
            return Member(self.text(words[0]), value=value)
        if kind == "enum64":
            return Member(self.text(words[0]), value=words[1] | words[2] << 32)
        if kind == "func_proto":
            return Member(self.text(words[0]), words[1])
        return Member("", words[0], words[1], words[2])  # a variable of a section

    def plain(self, number: int) -> Type:
        """Returns a type without type definitions and qualifiers."""
        resolved = self.type(number)
        for _ in range(_QUALIFIERS_MAX):
            if resolved.kind not in QUALIFIERS:
                return resolved
            resolved = self.type(resolved.target)
        raise BadObject(f"type {number} of section .BTF refers to itself; compile the object again")

    def size_of(self, number: int) -> int:
        """Returns a type's size in bytes. Raises BadObject if it has none."""
        count = 1
        for _ in range(_DIMENSIONS_MAX):
            resolved = self.plain(number)
            if resolved.kind == "array":
                count, number = count * resolved.size, resolved.target
            elif resolved.kind == "var":
                number = resolved.target
            else:
                size = 8 if resolved.kind == "ptr" else resolved.size
                if count * size > _BYTES_MAX:
                    raise BadObject(f"type {resolved.name or number} is larger than 4 GiB")
                return count * size
        raise BadObject(f"type {number} of section .BTF refers to itself; compile the object again")

    def section_variables(self, name: str) -> Iterator[tuple[Type, Member]]:
        """Yields the variables of a section: the variable, and its place in the section."""
        for entry in self._sections.get(name, ()):
            for member in entry.members:
                variable = self.type(member.type)
                if variable.kind == "var":
                    yield variable, member

    def section_names(self, name: str) -> set[str]:
        """Returns the names of a section's variables and functions."""
        return {
            self.type(member.type).name
            for entry in self._sections.get(name, ())
            for member in entry.members
        }

    def enumerator(self, name: str) -> int | None:
        """Returns an enumerator's value, or None if no enumeration defines the name."""
        for entry in self.types:
            if entry.kind in ENUMERATIONS:
                for member in entry.members:
                    if member.name == name:
                        return member.value
        return None

    def find_member(self, entry: Type, name: str) -> Member | None:
        """Returns a member by its essential name, also one of an unnamed structure within.

        The offset is relative to `entry`.
        """
        essential = essential_name(name)
        visited = set()  # a damaged structure may contain itself
        pending = [(entry, 0)]
        while pending:
            composite, offset = pending.pop()
            visited.add(composite.id)
            for member in composite.members:
                if member.name and essential_name(member.name) == essential:
                    member_offset = member.offset + offset
                    return Member(member.name, member.type, member_offset, member.bits)
                inner = VOID if member.name else self.plain(member.type)
                if inner.kind in COMPOSITES and inner.id not in visited:
                    pending.append((inner, offset + member.offset))
        return None


_MEMBERS = {
    "struct": "III",
    "union": "III",
    "enum": "II",
    "func_proto": "II",
    "datasec": "III",
    "enum64": "III",
}


def essential_name(name: str) -> str:
    """Returns a name without its flavour: what follows the last ___ between other characters."""
    for index in range(len(name) - 5, -1, -1):
        if name[index] != "_" and name[index + 1 : index + 4] == "___" and name[index + 4] != "_":
            return name[: index + 1]
    return name
