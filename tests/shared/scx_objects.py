# SPDX-License-Identifier: MIT
"""Compiles the tests' sched_ext schedulers, once per pytest process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from schedlab.sched_ext.extraction import ObjectFile
from schedlab.sched_ext.kernel import compile_for_bpf

SOURCES = Path(__file__).resolve().parents[1] / "sched_ext" / "objects"
SCHEDULERS = tuple(sorted(path.name.removesuffix(".bpf.c") for path in SOURCES.glob("*.bpf.c")))


@cache
def object_bytes(name: str) -> bytes:
    """Returns the object of tests/sched_ext/objects/NAME.bpf.c."""
    return compiled(SOURCES / f"{name}.bpf.c")


def compiled(source: Path) -> bytes:
    """Returns the object of a C file, which may include scheduler.h."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "scheduler.bpf.o"
        compile_for_bpf(source, target, ["-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"])
        return target.read_bytes()


def object_file(name: str) -> ObjectFile:
    """Returns the same as a file that a user named."""
    return ObjectFile(name, Path(f"{name}.bpf.o"), object_bytes(name))


def write_object(name: str, folder: Path) -> Path:
    """Writes the object into a folder. Returns its path."""
    path = folder / f"{name}.bpf.o"
    path.write_bytes(object_bytes(name))
    return path
