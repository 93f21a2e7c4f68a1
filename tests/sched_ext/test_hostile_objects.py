# SPDX-License-Identifier: MIT
"""Tests that damaged and malicious objects end with an error, or give an image without references outside."""

from __future__ import annotations

import struct

import pytest

from object_mutations import mutated, outcome
from schedlab.sched_ext.btf import Btf
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.elf import Elf
from schedlab.sched_ext.fields import FieldFinder
from schedlab.sched_ext.object_file import BpfObject
from scx_objects import SCHEDULERS, object_bytes

SEEDS = 300
"""Damaged objects per scheduler."""


@pytest.mark.parametrize("name", SCHEDULERS)
def test_damaged_objects_are_refused_or_stay_in_bounds(name: str) -> None:
    outcomes = {outcome(mutated(object_bytes(name), seed)) for seed in range(SEEDS)}
    assert "loaded" in outcomes
    assert len(outcomes) > 10


def btf_of(*types: bytes, texts: bytes = b"\0") -> Btf:
    content = b"".join(types)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(content), len(content), len(texts))
    return Btf(header + content + texts)


def entry(kind: int, size: int, *members: tuple[int, int, int], name: int = 0) -> bytes:
    words = struct.pack("<III", name, kind << 24 | len(members), size)
    return words + b"".join(struct.pack("<III", *member) for member in members)


def array(element: int, count: int) -> bytes:
    return struct.pack("<IIIIII", 0, 3 << 24, 0, element, 1, count)


TYPEDEF, STRUCT, CONST = 8, 4, 10


def test_a_type_that_is_itself_is_refused() -> None:
    btf = btf_of(entry(TYPEDEF, 2), entry(CONST, 1))
    for use in (btf.plain, btf.size_of):
        with pytest.raises(BadObject, match="refers to itself"):
            use(1)


def test_an_array_of_itself_is_refused() -> None:
    with pytest.raises(BadObject, match="refers to itself"):
        btf_of(array(1, 2)).size_of(1)


def test_arrays_of_arrays_are_not_expanded() -> None:
    btf = btf_of(
        entry(STRUCT, 4, name=1),
        *(array(number, 1000) for number in range(1, 6)),
        texts=b"\0bpf_spin_lock\0",
    )
    with pytest.raises(BadObject, match="larger than 4 GiB"):
        FieldFinder(btf).of_type(6)
    with pytest.raises(BadObject, match="special fields"):
        FieldFinder(btf).of_type(3)


def test_a_structure_within_itself_has_no_members() -> None:
    btf = btf_of(entry(STRUCT, 8, *[(0, 1, 0)] * 1000))
    assert FieldFinder(btf).of_type(1) == []
    assert btf.find_member(btf.type(1), "any") is None


def test_a_long_chain_of_structures_is_refused() -> None:
    chain = [entry(STRUCT, 4, (0, number, 0)) for number in range(1, 2000)]
    btf = btf_of(entry(STRUCT, 4, name=1), *chain, texts=b"\0bpf_timer\0")
    finder = FieldFinder(btf)
    for number in range(1, 33):
        assert len(finder.of_type(number)) == 1
    with pytest.raises(BadObject, match="nested too deeply"):
        finder.of_type(34)


@pytest.mark.parametrize(
    ("offset", "width", "value", "message"),
    [
        (18, 2, 62, "no BPF object|not a BPF object"),
        (16, 2, 2, "not relocatable"),
        (40, 8, 1 << 63, "truncated"),
        (60, 2, 0, "no table of sections"),
        (62, 2, 0xFFFF, "no table of sections"),
    ],
)
def test_damaged_headers_are_refused(offset: int, width: int, value: int, message: str) -> None:
    content = bytearray(object_bytes("fifo"))
    content[offset : offset + width] = value.to_bytes(width, "little")
    with pytest.raises(BadObject, match=message):
        Elf(bytes(content))


def test_large_sections_take_no_memory() -> None:
    content = bytearray(object_bytes("fifo"))
    elf = Elf(bytes(content))
    (table,) = struct.unpack_from("<Q", content, 40)
    bss = elf.need(".bss", "")
    struct.pack_into("<Q", content, table + 64 * bss.index + 32, 1 << 32)
    assert outcome(bytes(content)) == "loaded"
    struct.pack_into("<Q", content, table + 64 * bss.index + 32, 1 << 60)
    assert "larger than 4 GiB" in outcome(bytes(content))


def test_a_large_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadObject, match="larger than 32 MiB"):
        BpfObject(object_bytes("fifo") + bytes(33 << 20))
