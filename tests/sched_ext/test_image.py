# SPDX-License-Identifier: MIT
"""Tests the image of a scheduler: its layout, and what its tables say of our own schedulers."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import replace

import pytest

from conftest import ROOT
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.image import (
    CALL_FUNCTION,
    READ_ONLY,
    RECORDS,
    REGION_CODE,
    REGION_MAPS,
    WIDE,
    Image,
    Instruction,
    Op,
    decode,
)
from schedlab.sched_ext.kernel import kernel_of
from schedlab.sched_ext.linker import Linked
from schedlab.sched_ext.loading import link
from schedlab.sched_ext.user_space import MachineFacts
from scx_objects import SCHEDULERS, object_file

HEADER = ROOT / "sim" / "sched_ext" / "image.h"


def linked(name: str, kernel: str = "7.1", settings: Mapping[str, object] | None = None) -> Linked:
    machine = MachineFacts.of_equal_cpus(4)
    return link(object_file(name), machine, settings or {}, kernel).linked


def callbacks(image: Image) -> dict[str, str]:
    """Returns callback to program."""
    names = {number: name for name, number in kernel_of().ops.items()}
    programs = {program.first: image.text_of(program.name) for program in image.programs}
    return {names[op.op]: programs[op.instruction] for op in image.ops}


def test_records_have_the_sizes_of_the_c_structures() -> None:
    sizes = dict(re.findall(r"sizeof\(struct image_(\w+)\) == (\d+),", HEADER.read_text()))
    names = {
        "regions": "region",
        "instructions": "instruction",
        "maps": "map",
        "inner_maps": "inner_map",
        "fields": "field",
        "ops": "op",
        "programs": "program",
        "variables": "variable",
        "types": "type",
        "lines": "line",
        "steps": "step",
    }
    assert {
        names[table]: str(struct.calcsize(f"<{layout}")) for table, (_, layout) in RECORDS.items()
    } == sizes


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_encoded_image_is_read_again(name: str) -> None:
    content = linked(name).image.encode()
    assert decode(content).encode() == content


def test_callbacks_name_their_programs() -> None:
    image = linked("fifo").image
    assert callbacks(image) == {
        "select_cpu": "fifo_select_cpu",
        "enqueue": "fifo_enqueue",
        "exit": "fifo_exit",
    }
    assert image.text_of(image.name) == "fifo"


def test_kernel_constants_are_filled_in() -> None:
    image = linked("fifo").image
    variables = {image.text_of(entry.name): entry for entry in image.variables}
    regions = {region.number: region for region in image.regions}
    local = variables["__SCX_DSQ_LOCAL"]
    region = regions[local.region]
    assert region.flags == READ_ONLY
    start = region.data + local.offset
    assert int.from_bytes(image.data[start : start + 8], "little") == 1 << 63 | 2


def test_maps_have_their_types_sizes_and_special_fields() -> None:
    image = linked("groups").image
    maps = {image.text_of(entry.name): entry for entry in image.maps}
    storage = maps["groups_of_kernel"]
    assert (storage.type, storage.key_size, storage.value_size) == (32, 4, 24)
    (pointer,) = image.fields[storage.first_field : storage.first_field + storage.fields]
    assert image.text_of(pointer.type_name) == "group_node"
    types = {image.text_of(entry.name): entry for entry in image.types}
    assert pointer.type == types["group_node"].id
    assert types["group_node"].size == 48


def test_a_tree_names_its_elements() -> None:
    image = linked("groups").image
    (region,) = (region for region in image.regions if region.fields)
    lock, tree = image.fields[region.first_field : region.first_field + region.fields]
    assert image.text_of(region.name) == ".data.tree"
    assert (lock.kind, lock.size) == (0, 4)
    assert (tree.kind, tree.size, image.text_of(tree.type_name)) == (7, 16, "group_node")


def test_timers_are_special_fields() -> None:
    image = linked("central").image
    fields = {
        image.text_of(entry.name): [
            special.kind
            for special in image.fields[entry.first_field : entry.first_field + entry.fields]
        ]
        for entry in image.maps
    }
    assert fields == {"waiting": [], "timers": [2], "cpus": []}


def test_addresses_name_maps_and_functions() -> None:
    image = linked("central").image
    regions = set()
    for first, second in zip(image.instructions, image.instructions[1:], strict=False):
        if first.op == WIDE:
            regions.add(second.immediate)
    assert {REGION_CODE, REGION_MAPS} <= regions


def test_kernel_functions_depend_on_the_profile() -> None:
    def called(kernel: str) -> set[int]:
        return {
            instruction.immediate
            for instruction in linked("vtime", kernel).image.instructions
            if instruction.op == 0x85 and instruction.registers >> 4 == CALL_FUNCTION
        }

    old, new = kernel_of("6.12").functions, kernel_of("7.1").functions
    assert old["scx_bpf_dispatch_vtime"] in called("6.12")
    assert new["scx_bpf_dsq_insert_vtime"] in called("7.1")
    assert not called("6.12") & {new["scx_bpf_dsq_insert_vtime"], new["scx_bpf_dsq_insert"]}


def test_lines_name_our_source() -> None:
    image = linked("vtime").image
    enqueue = next(
        program for program in image.programs if image.text_of(program.name) == "vtime_enqueue"
    )
    lines = [line for line in image.lines if line.instruction >= enqueue.first]
    source = (ROOT / "tests/sched_ext/objects/vtime.bpf.c").read_text().splitlines()
    assert image.text_of(lines[0].file).endswith("vtime.bpf.c")
    assert "CALLBACK(void, vtime_enqueue)" in source[lines[0].line - 1]


@pytest.mark.parametrize(
    "instruction",
    [
        Instruction(0x05, 0, 1, 0),  # a jump behind the end
        Instruction(0x06, 0, 0, -2),  # before the beginning
        Instruction(0x85, 1 << 4, 0, 7),  # a call behind the end
        Instruction(0x85, 3 << 4, 0, 99),  # a text that is not there
        Instruction(0x85, 5 << 4, 0, 0),  # of an unknown kind
        Instruction(0xBF, 11, 0, 0),  # register 11
        Instruction(WIDE, 1, 0, 0),  # half an immediate
    ],
)
def test_code_that_leads_outside_is_refused(instruction: Instruction) -> None:
    image = Image(701, instructions=[instruction])
    with pytest.raises(BadObject):
        decode(image.encode())


def test_callbacks_outside_of_the_code_are_refused() -> None:
    image = replace(linked("fifo").image, ops=[Op(0, 1 << 20)])
    with pytest.raises(BadObject, match="callbacks"):
        decode(image.encode())
