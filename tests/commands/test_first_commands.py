# SPDX-License-Identifier: MIT
"""Tests each command as the first one in a fresh checkout, whose path has unusual characters.

Slow work is cut short: the compiler returns earlier results, and machines refuse to run. Folders,
locks, build targets and their order are real.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer

import pytest

from conftest import ROOT
from fresh_checkout import committed, environment_of, fresh_checkout, quick_compiler
from schedlab.base.host.isolated import module_command
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.tools import require_compiler
from schedlab.machines.linux.parts import build_programs_archive
from schedlab.machines.spike import SPIKE_VARIABLE
from schedlab.machines.spike_install import PROGRAM, installed_spike

pytestmark = pytest.mark.xdist_group("first commands")  # shared files are made once

WORKLOAD = "workloads/files/lottery-low.json"
LIMIT_SECONDS = 300
REFUSAL = "this machine is a stand-in"


@dataclass(frozen=True)
class First:
    """A command line and its expected outcome."""

    words: str
    message: str = ""
    """Regular expression for a part of the output."""
    status: int | None = 0
    interrupted: bool = False
    """Whether Ctrl-C is sent after `message` is printed; otherwise the command runs until it ends."""
    long: bool = False
    """Whether it runs with --long only: it takes long, or builds what another command builds."""
    terminal: bool = False
    """Whether the command runs in a terminal; otherwise it prints into a pipe."""


DEPENDS = None
"""Status that depends on the host, for example on a kernel with sched_ext."""

COMMANDS = {
    "analyse": First("workloads/files/deadlines.json --policy edf", "0.929 of 1 CPU", long=True),
    "dev bench": First("", REFUSAL, 1),
    "dev bench shares": First(
        "--tests 1 --cpus 1 --seeds 1 --ticks 10 --policy rr", REFUSAL, 1, long=True
    ),
    "boot": First("--policy mlfq", REFUSAL, 3, long=True),
    "calibrate": First("--policy rr", REFUSAL, 1, long=True),
    "check": First("rr", "no rule broken", long=True),
    "demo": First("--no-browser", "Ctrl-C to end it", interrupted=True),
    "dev docs": First("--list", "the moving picture", long=True),
    "doctor": First("", "compiler", DEPENDS),
    "linux build": First("", "build/linux/schedlab-linux", long=True),
    "linux package": First("--out it", r"it/schedlab-linux_.*_amd64\.deb"),
    "linux serve": First("--dry-run", "CPUs", DEPENDS, long=True),
    "explain": First("RUN", "waits, ", long=True),
    "explore policy": First("rr --tasks 2", "of any length", long=True),
    "monitor": First("--machine sim --no-browser", "Ctrl-C to end it", interrupted=True, long=True),
    "new-policy": First("of-mine", "Wrote policies/of-mine.c"),
    "page": First("--policy stride", r"stride\.wasm", DEPENDS),
    "policies": First("", "round-robin"),
    "report": First("RUN --out report", "1 run,", long=True),
    "replay": First("RUN --policy mlfq", r"runs/\d", long=True),
    "run": First(f"--machine sim --workload {WORKLOAD} --policy rr --cpus 1", r"runs/\d"),
    "runs show": First("RUN", "turnaround", long=True),
    "score": First("rr", "Pareto front", long=True),
    "sweep": First(f"--workload {WORKLOAD} --policy rr --dry-run", "1 run", long=True),
    "test": First("tests/outputs -n 1", "passed"),
    "top": First("--machine sim", "Processes", interrupted=True, terminal=True),
    "verify": First("RUN", "1 of 1 runs are the same", long=True),
}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of programs that come first on the PATH."""
    build("all", "simulator", "host-tests", "policy-cost", "page")
    build_programs_archive()
    folder = tmp_path_factory.mktemp("quick")
    quick_compiler(folder)
    for machine in ("spike", "qemu-system-riscv64", "qemu-system-x86_64"):
        real = shutil.which(machine) or (installed_spike() / PROGRAM if machine == "spike" else "")
        passthrough_pattern = "*--help* | *--dump-dts* | *--version* | *' help'*"
        program = folder / machine
        program.write_text(
            f'#!/bin/sh\ncase "$*" in {passthrough_pattern}) exec "{real}" "$@" ;; esac\necho "{REFUSAL}"; exit 3\n'
        )
        program.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed(tmp_path_factory.mktemp("copied"))


def environment(prepared: Path) -> dict[str, str]:
    """Returns the environment with the prepared programs, and their Spike instead of the driver."""
    return environment_of(prepared, **{SPIKE_VARIABLE: "spike"})


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that another checkout made."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    words = f"run --machine sim --policy rr --cpus 1 --workload {ROOT / WORKLOAD} --out {folder}"
    subprocess.run(module_command("schedlab", *words.split()), check=True, capture_output=True)
    return folder


def make(path: Path, prepared: Path, target: str) -> None:
    """Calls make directly, without `./schedlab`."""
    command = ["make", "--silent", f"ZIG={require_compiler().clang[0]}", target]
    subprocess.run(command, cwd=path, env=environment(prepared), check=True, timeout=300)


def test_a_first_start_keeps_what_make_has_built(
    prepared: Path, copied: Path, tmp_path: Path
) -> None:
    path = fresh_checkout(copied, tmp_path / "checkout")
    make(path, prepared, "build/policy_list")
    built = path / "build/policy_list"
    before = built.stat()
    start = [str(path / "schedlab"), "policies"]
    subprocess.run(start, env=environment(prepared), capture_output=True, check=True)
    assert (built.stat().st_ino, built.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_what_another_compiler_has_built_is_never_used(
    prepared: Path, copied: Path, tmp_path: Path
) -> None:
    path = fresh_checkout(copied, tmp_path / "checkout")
    stale = path / "build/kernel/stale.o"
    stale.parent.mkdir(parents=True)
    stale.touch()
    (path / "build/.lock").touch()
    (path / "build/linux-sdk").symlink_to("/gone")
    (path / "build/.compiler").write_text("another compiler\n")
    make(path, prepared, "build/policy_list")
    assert not stale.parent.exists()
    # Locks and files that were not compiled survive.
    assert (path / "build/.lock").exists()
    assert (path / "build/linux-sdk").is_symlink()


def read(descriptor: int) -> str:
    """Returns the output, or "" after its end, which a terminal reports as an error."""
    with suppress(OSError):
        return os.read(descriptor, 1 << 16).decode(errors="replace")
    return ""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if COMMANDS[name].long else ())
        for name in COMMANDS
    ],
)
def test_as_the_first_one(
    name: str, prepared: Path, copied: Path, recorded: Path, tmp_path: Path
) -> None:
    first = COMMANDS[name]
    path = fresh_checkout(copied, tmp_path / "a: che[k] out, 100 % of 'it'")
    words = [str(recorded) if word == "RUN" else word for word in first.words.split()]
    ours, theirs = os.openpty() if first.terminal else os.pipe()
    with subprocess.Popen(
        [path / "schedlab", *name.split(), *words],
        cwd=path,
        env=environment(prepared),
        stdin=theirs if first.terminal else subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        output = ""
        # An expected text that never comes would be waited for without end.
        watchdog = Timer(LIMIT_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        while some := read(ours):
            output += some
            if first.interrupted and re.search(first.message, output):
                process.send_signal(signal.SIGINT)
                first = replace(first, interrupted=False)
        process.wait()
        watchdog.cancel()
    os.close(ours)
    assert re.search(first.message, output), output
    assert not re.search("Traceback|internal error", output), output
    expected = (0, 1, 2) if first.status is DEPENDS else (first.status,)
    assert process.returncode in expected, output
