# SPDX-License-Identifier: MIT
"""Builds the C sources with make, shows progress, and reports the compiler's errors."""

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
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.committed import committed_module
from schedlab.base.toolchain.diagnosis import check_source, first_lines, policies_mentioned_in
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.tools import (
    find_make,
    find_system_compiler,
    require_compiler,
    run_captured,
)
from schedlab.environment import require_execution
from schedlab.errors import BuildFailed, WrongUsage
from schedlab.paths import BUILD_FOLDER, IS_INSTALLED, ROOT

KERNEL_PROGRAM = BUILD_FOLDER / "kernel.elf"
DISK_IMAGE = BUILD_FOLDER / "disk.img"
SIMULATOR_PROGRAM = BUILD_FOLDER / "sim" / "schedlab-sim"
BUILT_FILES = {
    "kernel": KERNEL_PROGRAM,
    "disk": DISK_IMAGE,
    "simulator": SIMULATOR_PROGRAM,
    "mkfs": BUILD_FOLDER / "mkfs",
}
"""Files that machines start from, and the program that makes disks, by their names in manifests."""
SIMULATOR_LIBRARY = "build/sim/libschedlab-sim.so"
"""The shared library of the simulator for Python."""
POLICY_COST = BUILD_FOLDER / "policy_cost.elf"
POLICY_LIST = BUILD_FOLDER / "policy_list"
MODEL_LIBRARY = BUILD_FOLDER / "model" / "libschedlab-model.so"
"""The shared library that computes the monitor's frames from a trace (model/model.h)."""
WASM_MODULE = BUILD_FOLDER / "page" / "machine.wasm"
"""The simulator and the monitor's model as a WebAssembly module, for web pages."""

# The line that `make --trace` prints before it makes a target.
_MADE_TARGET = re.compile(
    r"^\S*[Mm]akefile:\d+: .*target '([^']+)'|^\S+\.mk:\d+: .*target '([^']+)'"
)


def build(*targets: str, variables: Mapping[str, str] | None = None) -> None:
    """Updates targets of the Makefile.

    Only one process builds at a time; others wait. `variables`: variables of the Makefile.
    """
    if IS_INSTALLED:
        missing = [target for target in targets if not (ROOT / target).exists()]
        if missing:
            require_checkout(", ".join(missing))
        return
    if not (ROOT / "Makefile").exists():
        raise BuildFailed(f"{ROOT} has no Makefile; use a complete checkout")
    require_execution(ROOT, "copy the checkout to another file system")
    require_compiler()
    need("make")
    settings = [f"{name}={value}" for name, value in (variables or {}).items()]
    with working("building: another build ends first") as update, build_lock():
        run_make((*targets, *settings), update)


def require_checkout(feature: str) -> None:
    """Raises WrongUsage if pip installed this package, because `feature` needs a checkout."""
    if IS_INSTALLED:
        raise WrongUsage(
            f"{feature}: the installed package has the simulator with the built-in "
            "policies and compiles nothing; use a checkout of schedlab for your own "
            "policies and for other machines"
        )


@cache
def wasm_module() -> bytes:
    """Returns the WebAssembly module: the one in the repository if it is up to date, or else a
    built one.

    It is kept in memory, so that later requests of pages need not wait for other builds.
    """
    return committed_module() or build_wasm_module()


def build_wasm_module() -> bytes:
    """Builds the WebAssembly module and returns it."""
    build(str(WASM_MODULE.relative_to(ROOT)))
    return WASM_MODULE.read_bytes()


@contextmanager
def build_lock() -> Iterator[None]:
    """Holds the lock of the folder build/, which it creates if necessary."""
    BUILD_FOLDER.mkdir(exist_ok=True)
    with (BUILD_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_command(targets: tuple[str, ...]) -> list[str]:
    """Returns the make command without the option -j."""
    variables = {**require_compiler().variables(), **_system_compiler_variables()}
    settings = [f"{name}={value}" for name, value in variables.items()]
    return [find_make() or "make", "--no-print-directory", "--trace", *settings, *targets]


def _system_compiler_variables() -> dict[str, str]:
    """Returns the Makefile's variables for using this host's own compiler."""
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
    command = [*make_command(targets), f"-j{count_host_cpus()}"]
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
    """Returns how many targets make would make now."""
    dry_run = run_captured([*make_command(targets), "--dry-run"], cwd=ROOT, env=environment)
    if dry_run.returncode:
        raise_failure(dry_run.stderr)
    return sum(1 for line in dry_run.stdout.splitlines() if _MADE_TARGET.match(line))


def show_progress(make: subprocess.Popen[str], total: int, update: Update) -> None:
    """Shows make's progress until it ends."""
    made_count = 0
    assert make.stdout is not None
    for line in make.stdout:
        match = _MADE_TARGET.match(line)
        if match:
            made_count += 1
            update(
                f"building {made_count}/{total} ({percent(made_count / total, 0)}): {match[1] or match[2]}"
            )


def raise_failure(message: str) -> NoReturn:
    """Raises an error for a failed build.

    If make's output names policies, it is about mistakes in them; otherwise BuildFailed has the
    output.
    """
    for source in policies_mentioned_in(message):
        check_source(source)
    raise BuildFailed(
        "the build failed; if the messages below do not name a file that you changed, run"
        f" `./schedlab doctor`:\n{first_lines(message)}"
    )
