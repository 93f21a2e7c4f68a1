# SPDX-License-Identifier: MIT
"""The programs of the host that schedlab stands on: which are there, and of what version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.errors import BuildFailed

COMPILER_VERSIONS = (19, 21, 20, 18, 17, 16)
"""What schedlab is tested with, then the others that serve, newest first."""

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Any of them loads the pages that the tests make."""


@dataclass(frozen=True)
class Compiler:
    """clang and what belongs to it, all of one version."""

    clang: str
    version: int
    linker: str
    wasm_linker: str
    symbol_lister: str
    formatter: str

    @property
    def sanitizer_library(self) -> Path | None:
        """Returns AddressSanitizer's library, which tests on the host are linked with, or None if there is
        none."""
        folder = first_line(self.clang, "--print-resource-dir")
        found = sorted(Path(folder).glob("lib/*/libclang_rt.asan*")) if folder else []
        return found[0] if found else None

    @property
    def makes_web_assembly(self) -> bool:
        """Returns whether a C library and its own functions for WebAssembly are here."""
        folder = first_line(self.clang, "--print-resource-dir")
        return (
            Path("/usr/include/wasm32-wasi/stdio.h").exists()
            and (Path(folder) / "lib" / "wasi" / "libclang_rt.builtins-wasm32.a").exists()
        )


def find_browser() -> str | None:
    """Returns the path of one of BROWSERS, or None if there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def makes_web_assembly() -> bool:
    """Returns whether the simulator can be compiled for a browser here."""
    found = compiler_there()
    return bool(found and found.makes_web_assembly)


@cache
def package_here(*names: str) -> str | None:
    """Returns the first of these packages that apt knows on this host, or None if it knows none."""
    return next((name for name in names if f"Package: {name}" in _apt_says(name)), None)


def _apt_says(package: str) -> list[str]:
    return output("apt-cache", "--no-all-versions", "show", package).splitlines()


def first_line(*command: str) -> str:
    """The first line that a program prints; "" if it cannot run or fails."""
    return output(*command).partition("\n")[0]


def output(*command: str, even_failing: bool = False) -> str:
    """What a program prints; "" if it cannot run or fails. `even_failing`: also what it prints as an
    error, whatever its exit status is."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if even_failing else subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=60,
            check=not even_failing,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def complaint(command: list[str]) -> str | None:
    """Returns what a program says as it fails, or why it cannot be started; None if it succeeds."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return str(error)
    return (done.stderr.strip() or f"status {done.returncode}") if done.returncode else None


def version_in(text: str) -> tuple[int, ...]:
    """The first number with a dot in a text: (7, 2, 22)."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def version_of(program: str) -> tuple[int, ...]:
    """What `program --version` says in its first line."""
    return version_in(first_line(program, "--version"))


def compiler() -> Compiler:
    """Returns the one compiler of everything. SCHEDLAB_CLANG names another. Raises BuildFailed if there is none."""
    found = compiler_there()
    if not found:
        raise BuildFailed(
            "no clang of version 16 to 21 with its lld and llvm tools is on the PATH: install clang-19,"
            " lld-19 and llvm-19, or name a clang in SCHEDLAB_CLANG"
        )
    return found


@cache
def compiler_there() -> Compiler | None:
    """Returns the compiler, or None if there is none. Raises BuildFailed if SCHEDLAB_CLANG names none that serves."""
    named = os.environ.get("SCHEDLAB_CLANG")
    if named:
        return _named_compiler(named)
    for version in COMPILER_VERSIONS:
        if all(shutil.which(f"{name}-{version}") for name in ("clang", "ld.lld", "llvm-nm")):
            return _numbered_compiler(f"clang-{version}", version)
    return None


def _named_compiler(clang: str) -> Compiler:
    version = version_of(clang)
    if not version or version[0] not in COMPILER_VERSIONS:
        found = ".".join(map(str, version)) or "none that it tells"
        raise BuildFailed(
            f"SCHEDLAB_CLANG: {clang} has version {found}; schedlab needs clang 16 to 21"
        )
    return _numbered_compiler(clang, version[0])


def _numbered_compiler(clang: str, version: int) -> Compiler:
    def companion(name: str) -> str:
        numbered = f"{name}-{version}"
        return numbered if shutil.which(numbered) else name

    tools = ("ld.lld", "wasm-ld", "llvm-nm", "clang-format")
    return Compiler(clang, version, *(companion(name) for name in tools))
