# SPDX-License-Identifier: MIT
"""Finds the programs of the host that schedlab uses, and their versions."""

import importlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.environment import current_environment
from schedlab.errors import BuildFailed
from schedlab.paths import cache_folder

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Browsers that can load the tests' pages."""

BUILD_EXTRA = "build"
"""The extra with the compiler: PyPI's package ziglang, which contains clang and lld."""
_PROCESSOR = "aarch64" if platform.machine() == "arm64" else platform.machine()
_HOST_TARGET = f"{_PROCESSOR}-{'macos' if sys.platform == 'darwin' else 'linux-gnu.2.34'}"
"""The target of programs for this host. They run with this version of the C library or a newer one."""


@dataclass(frozen=True)
class Compiler:
    """clang and its linkers; each command is a list of words, to which arguments are added.

    `clang` compiles the kernel, its programs, policies and WebAssembly. `host` and `host_cxx`
    compile and link programs for this host, `wasi` programs for WASI, with the C libraries of the
    pinned compiler.
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
        """The folder that contains the folder `include` with the compiler's own headers."""
        return Path(first_output_line(*self.clang, "--print-resource-dir"))

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
        """Name and version for manifests."""
        return f"clang {self.release}, {'pinned' if self.is_pinned else 'named by the user'}"


@dataclass(frozen=True)
class SystemCompiler:
    """The host's own clang.

    It has sanitizers and LLVM's object tools, which the pinned compiler lacks. No result of a run
    depends on it.
    """

    clang: str
    linker: str
    suffix: str
    """Suffix of the names of its tools, such as "-19"."""

    @property
    def sanitizer_library(self) -> Path | None:
        """Returns AddressSanitizer's library, or None."""
        folder = first_output_line(self.clang, "--print-resource-dir")
        libraries = sorted(Path(folder).glob("lib/*/libclang_rt.asan*")) if folder else []
        return libraries[0] if libraries else None

    def tool(self, name: str) -> str:
        """Returns the name of an LLVM tool's program."""
        return f"{name}{self.suffix}"


def find_browser() -> str | None:
    """Returns the path of the first of BROWSERS that is installed, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def find_make() -> str | None:
    """Returns the path of GNU Make, from the private environment or the system."""
    pinned = shutil.which("make", path=f"{sys.prefix}/bin")
    return pinned or shutil.which("gmake") or shutil.which("make")


@cache
def find_package(*names: str) -> str | None:
    """Returns the first of these packages that apt knows, or None."""
    return next((name for name in names if f"Package: {name}" in _apt_policy(name)), None)


def _apt_policy(package: str) -> list[str]:
    return program_output("apt-cache", "--no-all-versions", "show", package).splitlines()


def first_output_line(*command: str) -> str:
    """Returns the first line of a program's output; "" if it fails."""
    return program_output(*command).partition("\n")[0]


def program_output(*command: str, accept_failure: bool = False) -> str:
    """Returns the output of a program; "" if it fails.

    `accept_failure`: returns output and error output for any exit status.
    """
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if accept_failure else subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=60,
            check=not accept_failure,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()


def run_captured(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program without input; returns its exit status, output and error output.

    `options`: further arguments of subprocess.run. Raises OSError if the program cannot start.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **options,
    )


def run_for_error(command: list[str]) -> str | None:
    """Returns a program's error output if it fails or cannot start; None if it succeeds."""
    try:
        result = run_captured(command)
    except OSError as error:
        return str(error)
    return (result.stderr.strip() or f"status {result.returncode}") if result.returncode else None


def parse_version(text: str) -> tuple[int, ...]:
    """Returns the first number with dots in a text, such as (7, 2, 22)."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def program_version(program: str) -> tuple[int, ...]:
    """Returns the version in the first line of `program --version`."""
    return parse_version(first_output_line(program, "--version"))


def require_compiler() -> Compiler:
    """Returns the compiler of all code that affects results; installs it if necessary.

    This is the pinned compiler, or the compiler named by SCHEDLAB_CLANG. Raises BuildFailed if there
    is none.
    """
    program = find_compiler()
    if not program and (environment := current_environment()):
        environment.add(BUILD_EXTRA)
        importlib.invalidate_caches()
        find_compiler.cache_clear()
        program = find_compiler()
    if not program:
        raise BuildFailed(
            "the compiler is not installed: run pip install 'schedlab[build]', or set"
            " SCHEDLAB_CLANG to a clang"
        )
    return program


@cache
def find_compiler() -> Compiler | None:
    """Returns the compiler, or None if it is not installed.

    Raises BuildFailed if SCHEDLAB_CLANG is invalid.
    """
    if named_clang := os.environ.get("SCHEDLAB_CLANG"):
        return _named_compiler(named_clang)
    package = importlib.util.find_spec("ziglang")
    if not package or not package.origin:
        return None
    return _pinned_compiler(Path(package.origin).with_name("zig"))


def _pinned_compiler(zig: Path) -> Compiler:
    cache_variable = (
        "env",
        f"ZIG_GLOBAL_CACHE_DIR={cache_folder() / 'zig'}",
    )
    # Only as `zig cc` does the compiler find its own headers.
    zig_clang = (str(zig), "clang", f"-resource-dir={zig.with_name('lib')}")
    plain_options = ("-UNDEBUG", "-fno-sanitize=undefined", "-fomit-frame-pointer")
    return Compiler(
        release=".".join(map(str, parse_version(first_output_line(*zig_clang, "--version")))),
        is_pinned=True,
        clang=zig_clang,
        linker=(str(zig), "ld.lld"),
        wasm_linker=(str(zig), "wasm-ld"),
        archiver=(str(zig), "ar"),
        host=(*cache_variable, str(zig), "cc", "-target", _HOST_TARGET, *plain_options),
        host_cxx=(*cache_variable, str(zig), "c++", "-target", _HOST_TARGET, *plain_options),
        wasi=(*cache_variable, str(zig), "cc", "-target", "wasm32-wasi", *plain_options),
    )


def _named_compiler(clang: str) -> Compiler:
    version = program_version(clang)
    if not version:
        raise BuildFailed(
            f"SCHEDLAB_CLANG: {clang} does not print a version; name another clang, or unset SCHEDLAB_CLANG"
        )

    def companion(name: str) -> tuple[str, ...]:
        versioned_name = f"{name}-{version[0]}"
        return (versioned_name if shutil.which(versioned_name) else name,)

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


def require_system_compiler() -> SystemCompiler:
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
        if shutil.which(clang) and shutil.which(linker) and program_version(clang) >= (19,):
            return SystemCompiler(clang, linker, suffix)
    return None
