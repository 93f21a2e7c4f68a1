# SPDX-License-Identifier: MIT
"""Reads the shared libraries that programs need, with llvm-readelf."""

import re
import shutil
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.tools import find_system_compiler, run_captured
from schedlab.errors import MachineUnfit

LOADER_NAME = "ld-linux-x86-64.so.2"
"""The loader of dynamically linked programs."""


@cache
def needed_libraries(path: Path) -> tuple[str, ...]:
    """Returns the names of a file's shared libraries; none if it is static or not an ELF file."""
    result = run_captured([find_readelf(), "--needed-libs", str(path)])
    listed = re.search(r"NeededLibraries \[(.*?)\]", result.stdout, re.DOTALL)
    return tuple(listed[1].split()) if listed else ()


@cache
def find_readelf() -> str:
    """Returns the path of llvm-readelf. Raises MachineUnfit if it is missing."""
    program = find_system_compiler()
    path = shutil.which(program.tool("llvm-readelf") if program else "llvm-readelf")
    if not path:
        raise MachineUnfit("llvm-readelf is not on the PATH; install llvm-19")
    return path
