# SPDX-License-Identifier: MIT
"""Lets make build what the C sources give, with progress, and shows the compiler's words."""

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

from schedlab.base.display.numbers import percent
from schedlab.base.display.working import Update, working
from schedlab.base.host.processor import host_processors
from schedlab.base.toolchain.diagnosis import check_source, first_lines, named_in
from schedlab.base.toolchain.kept import kept_module
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.tools import compiler, find_make, system_compiler_there
from schedlab.environment import need_execution
from schedlab.errors import BuildFailed, WrongUsage
from schedlab.paths import BUILD, INSTALLED, ROOT

KERNEL = BUILD / "kernel.elf"
IMAGE = BUILD / "disk.img"
SIMULATOR = BUILD / "sim" / "schedlab-sim"
PARTS = {"kernel": KERNEL, "disk": IMAGE, "simulator": SIMULATOR, "mkfs": BUILD / "mkfs"}
"""What machines start from, by the names that manifests have for them; and what makes disks."""
SIMULATOR_LIBRARY = "build/sim/libschedlab-sim.so"
"""The library that the Python binding of the simulator loads."""
POLICY_COST = BUILD / "policy_cost.elf"
POLICY_LIST = BUILD / "policy_list"
MODEL = BUILD / "model" / "libschedlab-model.so"
"""What the monitor computes from a trace (model/model.h)."""
MODULE = BUILD / "page" / "machine.wasm"
"""The same for a page, and the simulator beside it, as WebAssembly."""

# What `make --trace` prints before it makes a target.
_TARGET = re.compile(r"^\S*[Mm]akefile:\d+: .*target '([^']+)'|^\S+\.mk:\d+: .*target '([^']+)'")


def build(*targets: str, variables: Mapping[str, str] | None = None) -> None:
    """Brings targets of the Makefile up to date. One build at a time; others wait for it.

    `variables`: of the Makefile.
    """
    if INSTALLED:
        lacking = [target for target in targets if not (ROOT / target).exists()]
        if lacking:
            need_checkout(", ".join(lacking))
        return
    if not (ROOT / "Makefile").exists():
        raise BuildFailed(f"{ROOT} has no Makefile: is it a whole checkout?")
    need_execution(ROOT, "copy the checkout to another file system")
    compiler()
    need("make")
    settings = [f"{name}={value}" for name, value in (variables or {}).items()]
    with working("building: another build ends first") as update, build_lock():
        run_make((*targets, *settings), update)


def need_checkout(what: str) -> None:
    """Raises WrongUsage in a package that pip has installed."""
    if INSTALLED:
        raise WrongUsage(
            f"{what}: the installed package has the simulator with the policies that ship, and compiles nothing; take a"
            " checkout of schedlab for policies of your own and for other machines"
        )


@cache
def machine_module() -> bytes:
    """Returns the module that is kept in the repository, or else MODULE, brought up to date once: a page that asks for
    it later waits for no build of another command."""
    return kept_module() or built_module()


def built_module() -> bytes:
    """Returns MODULE, brought up to date."""
    build(str(MODULE.relative_to(ROOT)))
    return MODULE.read_bytes()


@contextmanager
def build_lock() -> Iterator[None]:
    """Held while build/ changes. A fresh checkout has no such folder yet."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_command(targets: tuple[str, ...]) -> list[str]:
    """The make command without the jobs: a dry run needs none."""
    words = {**compiler().variables(), **_of_system()}
    settings = [f"{name}={value}" for name, value in words.items()]
    return [find_make() or "make", "--no-print-directory", "--trace", *settings, *targets]


def _of_system() -> dict[str, str]:
    """The variables of the Makefile that name this host's own compiler."""
    compiler = system_compiler_there()
    if not compiler:
        return {}
    return {
        "SYSTEM_CLANG": compiler.clang,
        "SYSTEM_LINKER": compiler.linker,
        "SYSTEM_STRIP": compiler.tool("llvm-strip"),
    }


def run_make(targets: tuple[str, ...], update: Update) -> None:
    """Makes the targets, and counts them as they are made."""
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
    """How many targets make would make now."""
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
    """Shows how far make is until it is done."""
    done = 0
    assert make.stdout is not None
    for line in make.stdout:
        match = _TARGET.match(line)
        if match:
            done += 1
            update(f"building {done}/{total} ({percent(done / total, 0)}): {match[1] or match[2]}")


def raise_failure(message: str) -> NoReturn:
    """Raises what is wrong with the policies that make's last words name, or else BuildFailed with these words."""
    for source in named_in(message):
        check_source(source)
    raise BuildFailed(f"the build failed:\n{first_lines(message)}")
