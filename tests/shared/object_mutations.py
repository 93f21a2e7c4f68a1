# SPDX-License-Identifier: MIT
"""Damages BPF objects, and loads the results as the simulator would."""

from __future__ import annotations

import random
import struct

from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.elf import Elf
from schedlab.sched_ext.image import decode
from schedlab.sched_ext.kernel import kernel_of
from schedlab.sched_ext.linker import Configuration, Linker
from schedlab.sched_ext.object_file import BpfObject

_EXTREMES = (0, 1, 7, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)


def mutated(content: bytes, seed: int) -> bytes:
    """Returns a damaged object. Most damage is in headers, types, relocations and symbols."""
    chance = random.Random(seed)
    parts = _parts(content)
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        start, size = chance.choice(parts)
        width = chance.choice((1, 2, 4, 8))
        at = start + chance.randrange(max(1, size - width)) // width * width
        if at + width > len(changed):
            continue
        old = int.from_bytes(changed[at : at + width], "little")
        new = chance.choice(
            (
                chance.choice(_EXTREMES),
                old ^ 1 << chance.randrange(width * 8),
                old + chance.choice((-1, 1, 8, -8)),
                chance.getrandbits(width * 8),
            )
        )
        changed[at : at + width] = (new & (1 << width * 8) - 1).to_bytes(width, "little")
    if chance.random() < 0.05:
        del changed[chance.randrange(len(changed)) :]
    if chance.random() < 0.05:
        first, second = chance.choice(parts), chance.choice(parts)
        piece = content[first[0] : first[0] + min(first[1], second[1])]
        changed[second[0] : second[0] + len(piece)] = piece
    return bytes(changed)


def _parts(content: bytes) -> list[tuple[int, int]]:
    """Returns place and size of the file's header, sections and table of sections."""
    (table,) = struct.unpack_from("<Q", content, 40)
    parts = [(0, 64), (table, len(content) - table)]
    for section in Elf(content).sections:
        at = content.find(section.data) if section.data else -1
        if at >= 0:
            weight = 1 if section.name.startswith(".debug") else 4
            parts += [(at, section.size)] * weight
    return parts


def outcome(content: bytes) -> str:
    """Loads an object: returns "loaded" or the error. Every reference of the image is in bounds."""
    try:
        linked = Linker(BpfObject(content), kernel_of(), Configuration(cpus=4)).link()
    except BadObject as error:
        return str(error)
    decode(linked.image.encode())
    return "loaded"
