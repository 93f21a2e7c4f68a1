# SPDX-License-Identifier: MIT
"""Finds the host's programs that schedlab uses, and their versions."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.environment import current_environment
from schedlab.errors import BuildFailed
from schedlab.paths import cache_folder

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Browsers that can load the tests' pages."""

BUILD_EXTRA = "build"
"""The part of python/requirements.lock that pins the compiler: PyPI's ziglang, with clang and lld."""
_PROCESSOR = "aarch64" if platform.machine() == "arm64" else platform.machine()
_HOST_TARGET = f"{_PROCESSOR}-{'macos' if sys.platform == 'darwin' else 'linux-gnu.2.34'}"
"""Programs run with this version of the C library and newer ones."""


@dataclass(frozen=True)
class Compiler:
    """clang and its linkers, each as the beginning of a command.

    `clang` compiles the kernel, its programs, policies and WebAssembly. `host` and `host_cxx`
    compile and link programs of this host, `wasi` programs of WASI; the pinned compiler has C
    libraries for them.
    """

    release: str
    is_pinned: bool
    clang: tuple[str, ...]
    linker: tuple[str, ...]
    wasm_linker: tuple[str, ...]
    archiver: tuple[str, ...]
    host: tuple[str, ...]
    host_cxx: tuple[str, ...]
    wasi: tuple[str, ...]

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that compile and link policies."""
        return tuple(
            dict.fromkeys(words[0] for words in (self.clang, self.linker, self.wasm_linker))
        )

    @property
    def headers(self) -> Path:
        """The folder whose `include` has the compiler's headers."""
        return Path(first_line(*self.clang, "--print-resource-dir"))

    def variables(self) -> dict[str, str]:
        """Returns the Makefile's variables for this compiler."""
        words = {
            "CLANG": self.clang,
            "LINKER": self.linker,
            "WASM_LINKER": self.wasm_linker,
            "ARCHIVER": self.archiver,
            "HOST_CC": self.host,
            "WASI_CC": self.wasi,
        }
        return {
            name: shlex.join(command_words).replace("$", "$$")
            for name, command_words in words.items()
        }

    def description(self) -> str:
        """Returns the compiler's description for manifests."""
        return f"clang {self.release}, {'pinned' if self.is_pinned else 'named by the user'}"


@dataclass(frozen=True)
class SystemCompiler:
    """The host's clang, for sanitizers and LLVM's object tools, which the pinned compiler lacks.

    No run's result depends on it.
    """

    clang: str
    linker: str
    suffix: str
    """Suffix of its tools' names."""

    @property
    def sanitizer_library(self) -> Path | None:
        """Returns AddressSanitizer's library, or None."""
        folder = first_line(self.clang, "--print-resource-dir")
        libraries = sorted(Path(folder).glob("lib/*/libclang_rt.asan*")) if folder else []
        return libraries[0] if libraries else None

    def tool(self, name: str) -> str:
        """Returns the name of an LLVM tool's program."""
        return f"{name}{self.suffix}"


def find_browser() -> str | None:
    """Returns the path of one of BROWSERS, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def find_make() -> str | None:
    """Returns the path of GNU Make: the private environment's, or the system's."""
    pinned = shutil.which("make", path=f"{sys.prefix}/bin")
    return pinned or shutil.which("gmake") or shutil.which("make")


@cache
def find_package(*names: str) -> str | None:
    """Returns the first of these packages that apt knows, or None."""
    return next((name for name in names if f"Package: {name}" in _apt_policy(name)), None)


def _apt_policy(package: str) -> list[str]:
    return output("apt-cache", "--no-all-versions", "show", package).splitlines()


def first_line(*command: str) -> str:
    """Returns the first line of a program's output; "" if it fails."""
    return output(*command).partition("\n")[0]


def output(*command: str, even_failing: bool = False) -> str:
    """Returns a program's output; "" if it fails.

    `even_failing` returns output and errors for any exit status.
    """
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
    """Returns a program's error output if it fails or cannot start; None if it succeeds."""
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
    """Returns the first dotted number in a text, such as (7, 2, 22)."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def version_of(program: str) -> tuple[int, ...]:
    """Returns the version in the first line of `program --version`."""
    return version_in(first_line(program, "--version"))


def compiler() -> Compiler:
    """Returns the compiler of all code whose instructions affect results; installs it if necessary.

    SCHEDLAB_CLANG selects another compiler than the pinned one. Raises BuildFailed if there is
    none.
    """
    program = find_compiler_if_installed()
    if not program and (environment := current_environment()):
        environment.add(BUILD_EXTRA)
        importlib.invalidate_caches()
        find_compiler_if_installed.cache_clear()
        program = find_compiler_if_installed()
    if not program:
        raise BuildFailed(
            "the compiler is not installed: run pip install 'schedlab[build]', or set"
            " SCHEDLAB_CLANG to a clang"
        )
    return program


@cache
def find_compiler_if_installed() -> Compiler | None:
    """Returns the compiler, or None if it is not installed.

    Raises BuildFailed if SCHEDLAB_CLANG is invalid.
    """
    if named := os.environ.get("SCHEDLAB_CLANG"):
        return _named_compiler(named)
    package = importlib.util.find_spec("ziglang")
    if not package or not package.origin:
        return None
    return _pinned_compiler(Path(package.origin).with_name("zig"))


def _pinned_compiler(zig: Path) -> Compiler:
    cached = (
        "env",
        f"ZIG_GLOBAL_CACHE_DIR={cache_folder() / 'zig'}",
    )
    # It finds its headers by itself only as `zig cc`.
    plain = (str(zig), "clang", f"-resource-dir={zig.with_name('lib')}")
    as_plain = ("-UNDEBUG", "-fno-sanitize=undefined", "-fomit-frame-pointer")
    return Compiler(
        release=".".join(map(str, version_in(first_line(*plain, "--version")))),
        is_pinned=True,
        clang=plain,
        linker=(str(zig), "ld.lld"),
        wasm_linker=(str(zig), "wasm-ld"),
        archiver=(str(zig), "ar"),
        host=(*cached, str(zig), "cc", "-target", _HOST_TARGET, *as_plain),
        host_cxx=(*cached, str(zig), "c++", "-target", _HOST_TARGET, *as_plain),
        wasi=(*cached, str(zig), "cc", "-target", "wasm32-wasi", *as_plain),
    )


def _named_compiler(clang: str) -> Compiler:
    version = version_of(clang)
    if not version:
        raise BuildFailed(f"SCHEDLAB_CLANG: {clang} does not print a version; set it to a clang")

    def companion(name: str) -> tuple[str, ...]:
        numbered = f"{name}-{version[0]}"
        return (numbered if shutil.which(numbered) else name,)

    return Compiler(
        release=".".join(map(str, version)),
        is_pinned=False,
        clang=(clang,),
        linker=companion("ld.lld"),
        wasm_linker=companion("wasm-ld"),
        archiver=companion("llvm-ar"),
        host=(clang,),
        host_cxx=(clang, "--driver-mode=g++"),
        wasi=(clang, "--target=wasm32-wasi"),
    )


def system_compiler() -> SystemCompiler:
    """Returns the host's clang 19 or newer. Raises BuildFailed if there is none."""
    if not (program := find_system_compiler()):
        raise BuildFailed(
            "clang 19 or newer with lld and the LLVM tools is not on the PATH: "
            "install clang-19, lld-19 and llvm-19"
        )
    return program


@cache
def find_system_compiler() -> SystemCompiler | None:
    """Returns the host's clang 19 or newer, or None."""
    for suffix in ("-19", ""):
        clang, linker = f"clang{suffix}", f"ld.lld{suffix}"
        if shutil.which(clang) and shutil.which(linker) and version_of(clang) >= (19,):
            return SystemCompiler(clang, linker, suffix)
    return None
