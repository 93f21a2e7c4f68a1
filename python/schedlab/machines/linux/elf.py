# SPDX-License-Identifier: MIT
"""Which shared libraries programs need, as llvm's own reader of executables tells it."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.tools import system_compiler_there
from schedlab.errors import MachineUnfit

LOADER = "ld-linux-x86-64.so.2"
"""What starts every program that is not static."""


@cache
def needed_libraries(path: Path) -> tuple[str, ...]:
    """The names that a file is linked with; none for what is static or no ELF file."""
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
    """The program of LLVM that reads ELF files. Raises MachineUnfit if there is none."""
    program = system_compiler_there()
    path = shutil.which(program.tool("llvm-readelf") if program else "llvm-readelf")
    if not path:
        raise MachineUnfit("llvm-readelf is not on the PATH: install llvm-19")
    return path
