# SPDX-License-Identifier: MIT
"""Finds the special fields of values and objects: locks, timers, trees, lists and kernel pointers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from schedlab.sched_ext.btf import COMPOSITES, Btf, Type
from schedlab.sched_ext.bytes_reader import BadObject

FIELDS_MAX = 4096
_DEPTH_MAX = 16
_STRUCTURES = {
    "bpf_spin_lock": (0, 4),
    "bpf_res_spin_lock": (1, 4),
    "bpf_timer": (2, 16),
    "bpf_wq": (3, 16),
    "bpf_rb_root": (7, 16),
    "bpf_rb_node": (8, 32),
    "bpf_list_head": (9, 16),
    "bpf_list_node": (10, 24),
    "bpf_refcount": (11, 4),
    "bpf_task_work": (13, 8),
}
"""Name to the kind in enum image_field_kind and the size in bytes."""
_TAGS = {"kptr": 4, "kptr_untrusted": 5, "percpu_kptr": 6, "uptr": 12}
KINDS = (
    *("spin lock", "resilient spin lock", "timer", "workqueue", "kptr", "untrusted kptr"),
    *("per-CPU kptr", "rbtree", "rbtree node", "list", "list node", "reference count"),
    *("uptr", "task work"),
)


@dataclass(frozen=True)
class SpecialField:
    """A special field; offsets and sizes in bytes."""

    kind: int
    offset: int
    size: int
    type_name: str = ""
    type: int = 0
    """The target's number in the program's types, or the element's; 0 if there is none."""
    node_offset: int = 0


class FieldFinder:
    """Finds special fields of a program's types."""

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._known: dict[int, bool] = {}
        """Whether a type has special fields."""
        self._tags: dict[tuple[int, int], str] = {}
        for entry in btf.types:
            if entry.kind == "decl_tag" and entry.name.startswith("contains:"):
                self._tags[entry.target, entry.component] = entry.name

    def of_type(self, number: int) -> list[SpecialField]:
        """Returns the special fields of a type. Raises BadObject if there are too many."""
        return _limited(self._within(number, 0, "", 0))

    def of_section(self, name: str, offsets: dict[str, int]) -> list[SpecialField]:
        """Returns the special fields of a section's variables; `offsets` are those of symbols."""
        return _limited(
            special
            for variable, place in self._btf.section_variables(name)
            for special in self._within(
                variable.target,
                offsets.get(variable.name, place.offset),
                self._tags.get((variable.id, -1), ""),
                0,
            )
        )

    def _within(self, number: int, offset: int, tag: str, depth: int) -> Iterator[SpecialField]:
        resolved = self._btf.plain(number)
        if not self._has_any(resolved.id, depth):
            return
        if depth > 2 * _DEPTH_MAX:
            raise BadObject(f"type {resolved.name or number} is nested too deeply")
        if resolved.kind == "ptr":
            pointer_tag = self._pointer_tag(resolved)
            target = self._btf.plain(resolved.target)
            yield SpecialField(_TAGS[pointer_tag], offset, 8, target.name, target.id)
        elif resolved.kind == "array":
            size = self._btf.size_of(resolved.target)
            for index in range(resolved.size):
                yield from self._within(resolved.target, offset + index * size, tag, depth + 1)
        elif resolved.name in _STRUCTURES:
            kind, size = _STRUCTURES[resolved.name]
            yield SpecialField(kind, offset, size, *self._contained(tag))
        else:
            for index, member in enumerate(resolved.members):
                inner = self._tags.get((resolved.id, index), "")
                member_offset = offset + member.offset // 8
                yield from self._within(member.type, member_offset, inner, depth + 1)

    def _has_any(self, number: int, depth: int) -> bool:
        """Returns whether a type is or contains a special field."""
        resolved = self._btf.plain(number)
        if resolved.id not in self._known:
            self._known[resolved.id] = False  # a damaged structure may contain itself
            if depth > _DEPTH_MAX:
                return False
            if resolved.kind == "ptr":
                has_any = self._pointer_tag(resolved) in _TAGS
            elif resolved.kind == "array":
                has_any = resolved.size > 0 and self._has_any(resolved.target, depth + 1)
            else:
                has_any = resolved.kind in COMPOSITES and (
                    resolved.name in _STRUCTURES
                    or any(self._has_any(member.type, depth + 1) for member in resolved.members)
                )
            self._known[resolved.id] = has_any
        return self._known[resolved.id]

    def _pointer_tag(self, entry: Type) -> str:
        """Returns the type tag of a pointer, such as "kptr"; "" without one."""
        tag = self._btf.type(entry.target)
        return tag.name if tag.kind == "type_tag" else ""

    def _contained(self, tag: str) -> tuple[str, int, int]:
        """Returns name, number and offset of the node of the elements that a tag names."""
        tag_parts = tag.split(":")
        if len(tag_parts) != 3:
            return "", 0, 0
        for entry in self._btf.by_name.get(tag_parts[1], ()):
            if entry.kind == "struct":
                member = self._btf.find_member(entry, tag_parts[2])
                if member:
                    return entry.name, entry.id, member.offset // 8
        raise BadObject(f"{tag}: the object has no such structure and member")


def _limited(fields: Iterator[SpecialField]) -> list[SpecialField]:
    first_fields = list(islice(fields, FIELDS_MAX + 1))
    if len(first_fields) > FIELDS_MAX:
        raise BadObject(f"a value has more than {FIELDS_MAX} special fields")
    return sorted(first_fields, key=lambda special: special.offset)
