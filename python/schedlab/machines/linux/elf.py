# SPDX-License-Identifier: MIT
"""Reads the shared libraries that programs need, with llvm-readelf."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.tools import find_system_compiler
from schedlab.errors import MachineUnfit

LOADER = "ld-linux-x86-64.so.2"
"""The loader of dynamically linked programs."""


@cache
def needed_libraries(path: Path) -> tuple[str, ...]:
    """Returns the names of a file's shared libraries; none if it is static or not an ELF file."""
    done = subprocess.run(
        [reader(), "--needed-libs", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    listed = re.search(r"NeededLibraries \[(.*?)\]", done.stdout, re.DOTALL)
    return tuple(listed[1].split()) if listed else ()


@cache
def reader() -> str:
    """Returns the path of llvm-readelf. Raises MachineUnfit if it is missing."""
    program = find_system_compiler()
    path = shutil.which(program.tool("llvm-readelf") if program else "llvm-readelf")
    if not path:
        raise MachineUnfit("llvm-readelf is not on the PATH; install llvm-19")
    return path
