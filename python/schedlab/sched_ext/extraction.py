# SPDX-License-Identifier: MIT
"""Finds the BPF object of a scheduler: in a file, or within an installed program."""

import difflib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.files.reading import read_bytes
from schedlab.errors import FileRefused, WrongUsage
from schedlab.sched_ext.bytes_reader import BadObject, unpack
from schedlab.sched_ext.elf import MACHINE_BPF
from schedlab.sched_ext.object_file import OBJECT_BYTES_MAX

PROGRAM_BYTES_MAX = 1 << 30
_MAGIC = b"\x7fELF\x02\x01"
_NOBITS = 8
_PREFIX = "scx_"


@dataclass(frozen=True)
class ObjectFile:
    """The bytes of a BPF object, and where they come from."""

    name: str
    """The scheduler's name for users, such as bpfland."""
    path: Path
    """The file that contains it."""
    content: bytes


def find_object(selection: str) -> ObjectFile:
    """Returns the object that a selection names: a file, or NAME of an installed program scx_NAME.

    Raises WrongUsage if there is none, and FileRefused if the file has none.
    """
    path = Path(selection)
    if _is_path(selection):
        content = read_bytes(path, PROGRAM_BYTES_MAX)
        return ObjectFile(_scheduler_name(path), path, _only_object(content, path))
    if not selection:
        raise WrongUsage(
            "the scheduler is missing",
            what="scx",
            fix="write scx:./FILE for an object, or scx:NAME for the installed program scx_NAME",
        )
    program = shutil.which(_PREFIX + selection) or shutil.which(selection)
    if not program:
        close = difflib.get_close_matches(selection, installed_schedulers(), 1)
        hint = f"did you mean {close[0]}? Otherwise " if close else ""
        raise WrongUsage(
            f"no program {_PREFIX}{selection} is on the PATH",
            what=f"scx:{selection}",
            fix=f"{hint}install it, or name the object's file: scx:./{selection}.bpf.o",
        )
    content = read_bytes(Path(program).resolve(), PROGRAM_BYTES_MAX)
    return ObjectFile(selection, Path(program), _only_object(content, Path(program)))


def _is_path(selection: str) -> bool:
    return "/" in selection or selection.endswith(".o") or Path(selection).is_file()


def _scheduler_name(path: Path) -> str:
    return path.name.removesuffix(".o").removesuffix(".bpf").removeprefix(_PREFIX)


def installed_schedulers() -> list[str]:
    """Returns the names of the programs scx_NAME on the PATH."""
    folders = (Path(folder) for folder in os.get_exec_path() if folder)
    names = {path.name for folder in folders for path in folder.glob("scx_*") if _can_run(path)}
    return sorted(name.removeprefix(_PREFIX) for name in names)


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _only_object(content: bytes, path: Path) -> bytes:
    """Returns the largest BPF object of a file."""
    if content[:6] == _MAGIC and content[18:20] == MACHINE_BPF.to_bytes(2, "little"):
        return content
    objects = list(objects_in(content))
    if not objects:
        raise FileRefused(
            "this file contains no BPF object",
            what=str(path),
            fix="name an object that clang -target bpf made, or a program that contains one",
        )
    return max(objects, key=len)


def objects_in(content: bytes) -> Iterator[bytes]:
    """Yields the BPF objects that a program's file contains, such as those of libbpf's skeletons."""
    position = content.find(_MAGIC)
    while position >= 0:
        size = _object_size(content, position)
        if size:
            yield content[position : position + size]
        position = content.find(_MAGIC, position + max(size, 4))


def _object_size(content: bytes, start: int) -> int:
    """Returns the size of the object that begins there; 0 if there is none."""
    try:
        (machine,) = unpack("H", content, start + 18, "the header")
        (table,) = unpack("Q", content, start + 40, "the header")
        width, count = unpack("HH", content, start + 58, "the header")
        if machine != MACHINE_BPF or width != 64 or not count:
            return 0
        end = table + width * count
        for number in range(count):
            header = start + table + number * width
            (kind,) = unpack("I", content, header + 4, "the table of sections")
            offset, size = unpack("QQ", content, header + 24, "the table of sections")
            end = max(end, 0 if kind == _NOBITS else offset + size)
    except BadObject:
        return 0
    return end if end <= min(OBJECT_BYTES_MAX, len(content) - start) else 0
