# SPDX-License-Identifier: MIT
"""Builds the C sources with make, shows progress, and reports the compiler's errors."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NoReturn

from schedlab.base.display.activity import Update, working
from schedlab.base.display.numbers import percent
from schedlab.base.host.processor import host_processors
from schedlab.base.toolchain.committed import committed_module
from schedlab.base.toolchain.diagnosis import check_source, first_lines, named_in
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.tools import compiler, find_make, find_system_compiler
from schedlab.environment import need_execution
from schedlab.errors import BuildFailed, WrongUsage
from schedlab.paths import BUILD, INSTALLED, ROOT

KERNEL = BUILD / "kernel.elf"
IMAGE = BUILD / "disk.img"
SIMULATOR = BUILD / "sim" / "schedlab-sim"
PARTS = {"kernel": KERNEL, "disk": IMAGE, "simulator": SIMULATOR, "mkfs": BUILD / "mkfs"}
"""Files that machines start from, by their names in manifests, and the maker of disks."""
SIMULATOR_LIBRARY = "build/sim/libschedlab-sim.so"
"""The library that the simulator's Python binding loads."""
POLICY_COST = BUILD / "policy_cost.elf"
POLICY_LIST = BUILD / "policy_list"
MODEL = BUILD / "model" / "libschedlab-model.so"
"""The library that computes the monitor's model from a trace (model/model.h)."""
MODULE = BUILD / "page" / "machine.wasm"
"""The model and the simulator as WebAssembly, for a page."""

# A line of `make --trace` before a target is made.
_TARGET = re.compile(r"^\S*[Mm]akefile:\d+: .*target '([^']+)'|^\S+\.mk:\d+: .*target '([^']+)'")


def build(*targets: str, variables: Mapping[str, str] | None = None) -> None:
    """Updates targets of the Makefile. Only one build runs at a time; others wait.

    `variables` are variables of the Makefile.
    """
    if INSTALLED:
        lacking = [target for target in targets if not (ROOT / target).exists()]
        if lacking:
            need_checkout(", ".join(lacking))
        return
    if not (ROOT / "Makefile").exists():
        raise BuildFailed(f"{ROOT} has no Makefile; use a complete checkout")
    need_execution(ROOT, "copy the checkout to another file system")
    compiler()
    need("make")
    settings = [f"{name}={value}" for name, value in (variables or {}).items()]
    with working("building: another build ends first") as update, build_lock():
        run_make((*targets, *settings), update)


def need_checkout(what: str) -> None:
    """Raises WrongUsage in a package installed by pip."""
    if INSTALLED:
        raise WrongUsage(
            f"{what}: the installed package has the simulator with the built-in "
            "policies and compiles nothing; use a checkout of schedlab for your own "
            "policies and for other machines"
        )


@cache
def machine_module() -> bytes:
    """Returns the module stored in the repository, or else MODULE, built once.

    Later requests of pages do not wait for builds of other commands.
    """
    return committed_module() or built_module()


def built_module() -> bytes:
    """Builds MODULE and returns it."""
    build(str(MODULE.relative_to(ROOT)))
    return MODULE.read_bytes()


@contextmanager
def build_lock() -> Iterator[None]:
    """Holds the lock of build/ and creates that folder."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_command(targets: tuple[str, ...]) -> list[str]:
    """Returns the make command without -j, which dry runs do not need."""
    words = {**compiler().variables(), **_of_system()}
    settings = [f"{name}={value}" for name, value in words.items()]
    return [find_make() or "make", "--no-print-directory", "--trace", *settings, *targets]


def _of_system() -> dict[str, str]:
    """Returns the Makefile's variables for this host's own compiler."""
    compiler = find_system_compiler()
    if not compiler:
        return {}
    return {
        "SYSTEM_CLANG": compiler.clang,
        "SYSTEM_LINKER": compiler.linker,
        "SYSTEM_STRIP": compiler.tool("llvm-strip"),
    }


def run_make(targets: tuple[str, ...], update: Update) -> None:
    """Makes the targets and shows the number made."""
    environment = {**os.environ, "LC_ALL": "C"}
    for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(inherited, None)
    update("building: looking at what changed")
    total = count_targets(targets, environment)
    if total == 0:
        return
    command = [*make_command(targets), f"-j{host_processors()}"]
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        make = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            errors="replace",
        )
        try:
            show_progress(make, total, update)
        except BaseException:
            make.terminate()
            raise
        finally:
            status = make.wait()
        if status:
            complaints.seek(0)
            raise_failure(complaints.read())


def count_targets(targets: tuple[str, ...], environment: dict[str, str]) -> int:
    """Returns the number of targets that make would make now."""
    dry = subprocess.run(
        [*make_command(targets), "--dry-run"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if dry.returncode:
        raise_failure(dry.stderr)
    return sum(1 for line in dry.stdout.splitlines() if _TARGET.match(line))


def show_progress(make: subprocess.Popen[str], total: int, update: Update) -> None:
    """Shows make's progress until it ends."""
    done = 0
    assert make.stdout is not None
    for line in make.stdout:
        match = _TARGET.match(line)
        if match:
            done += 1
            update(f"building {done}/{total} ({percent(done / total, 0)}): {match[1] or match[2]}")


def raise_failure(message: str) -> NoReturn:
    """Raises errors of the policies named in make's output, or else BuildFailed with that output."""
    for source in named_in(message):
        check_source(source)
    raise BuildFailed(f"the build failed:\n{first_lines(message)}")
