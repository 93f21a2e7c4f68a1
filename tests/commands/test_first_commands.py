# SPDX-License-Identifier: MIT
"""Each command as the first one in a fresh checkout, whose path has what paths seldom have.

What would take long ends early: the compiler hands out what this checkout has compiled, and machines
refuse to run anything. Folders, locks, what is built, in which order: all that is real.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest

from conftest import ROOT
from fresh_checkout import committed, environment_of, fresh_checkout, quick_compiler
from schedlab.base.host.interpreter import module_command
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.tools import compiler, makes_web_assembly
from schedlab.commands.cli import cli
from schedlab.machines.linux.parts import programs
from schedlab.machines.spike import SPIKE_VARIABLE
from schedlab.machines.spike_install import PROGRAM, installed_spike

pytestmark = pytest.mark.xdist_group("first commands")  # what they share is made once

WORKLOAD = "workloads/files/lottery-low.json"
REFUSAL = "this machine is a stand-in"


@dataclass(frozen=True)
class First:
    """What is typed, and what comes of it."""

    words: str
    says: str = ""
    """A part of what it prints; a regular expression."""
    status: int | None = 0
    interrupted: bool = False
    """By Ctrl-C, when it has said that; else it goes on."""
    long: bool = False
    terminal: bool = False
    """It is typed into one; else it prints into a pipe."""


def unserved(words: str) -> First:
    """No server is there to be asked."""
    return First(words, "no server runs", 2)


DEPENDS = None
"""The status: on what this host has, such as a kernel with sched_ext."""

COMMANDS = {
    "analyse": First("workloads/files/deadlines.json --policy edf", "0.929 of 1 CPU"),
    "dev bench": First("", REFUSAL, 1),
    "dev bench agreement": First(
        "--policy rr --cpus 1 --experiment s1-timing-mixed", "on spike: failed", 1
    ),
    "dev bench conformance": First("--policy rr", "scenarios as expected", 1),
    "dev bench contention": First("--policy rr --cpus 1", REFUSAL, 1),
    "dev bench deadlines": First("--help", "SimSo"),
    "dev bench monitor": First("", REFUSAL, 1),
    "dev bench monitor-model": First("", "records", long=True),
    "dev bench races": First("--tries 1", "own driver of Spike", 1),
    "dev bench shares": First("--tests 1 --cpus 1 --seeds 1 --ticks 10 --policy rr", REFUSAL, 1),
    "dev bench simulator": First("", "one core of this host", long=True),
    "dev bench study": First("--experiment s4-mixed-2", REFUSAL, 1),
    "dev bench throughput": First("--rounds 2 --policy rr --seconds 1", REFUSAL, 1),
    "boot": First("--policy mlfq", REFUSAL, 3),
    "branch": First("RUN --at 1ms --policy mlfq", "only runs on --machine spike have branches", 2),
    "calibrate": First("--policy rr", REFUSAL, 1),
    "check": First("rr", "no rule broken", long=True),
    "clean": First("", "Remove some"),
    "compare": First("RUN RUN", "byte for byte"),
    "completion": First("zsh", "#compdef schedlab"),
    "dask": First("certificate secret", "it is a secret"),
    "demo": First("--no-browser", "Ctrl-C ends it", interrupted=True),
    "dev docs": First("--list", "the moving picture"),
    "doctor": First("", "clang", DEPENDS),
    "linux boot": First("", "To leave", 1),
    "linux build": First("", "build/linux/schedlab-linux"),
    "linux package": First("--out it", r"it/schedlab-linux_.*_amd64\.deb"),
    "linux policies": unserved("--control empty"),
    "linux policy": unserved("rr --control empty"),
    "linux restore": First("--control empty"),
    "linux serve": First("--dry-run", "CPUs", DEPENDS),
    "linux set": unserved("1 5 --control empty"),
    "linux status": unserved("--control empty"),
    "linux stop": unserved(""),
    "linux tunable": unserved("--control empty"),
    "explain": First("RUN", "waits, "),
    "explore kernel": First("--seed 1", "own driver of Spike", 1),
    "explore policy": First("rr --tasks 2", "however long", long=True),
    "grade": First("nowhere policies/rr.c", "Labs that are ready: ", 2),
    "dev lint": First("--version", "pytest"),
    "import": First("README.md", "README.md", 2),
    "mcp": First("policies/rr.c", "is a file", 2),
    "monitor": First("--machine sim --no-browser", "Ctrl-C ends it", interrupted=True),
    "new-policy": First("of-mine", "Wrote policies/of-mine.c"),
    "page": First("--policy stride", r"stride\.wasm", DEPENDS),
    "policies": First("", "round-robin"),
    "python": First("--help", "notebook"),
    "query": First("--tables", "the name of its folder"),
    "report": First("RUN --out report", "1 run,"),
    "replay": First("RUN --policy mlfq", r"runs/\d"),
    "reproduce": First("--cpus 1", "No such option", 2),
    "run": First(f"--machine sim --workload {WORKLOAD} --policy rr --cpus 1", r"runs/\d"),
    "runs ls": First("", "holds no run"),
    "runs rm": First("RUN", "There is no terminal", 2),
    "runs show": First("RUN", "turnaround"),
    "score": First("rr", "Pareto front", long=True),
    "shape": First("", "512-cpus"),
    "dev soak": First("storm --hours 0.001", REFUSAL, 1),
    "sweep": First(f"--workload {WORKLOAD} --policy rr --dry-run", "1 run"),
    "test": First("tests/monitor/test_monitor_session.py -n 1 -k one_to_four", "1 passed"),
    "top": First("--machine sim", "Processes", interrupted=True, terminal=True),
    "trace": First("RUN", "trace.perfetto-trace"),
    "verify": First("RUN", "1 of 1 runs came out the same"),
    "workloads": First("", "lotterytest"),
}


def commands_of(group: click.Group, *before: str) -> Iterator[str]:
    """All that can be typed, from the parser itself."""
    for name, command in group.commands.items():
        words = (*before, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join(words)
        if isinstance(command, click.Group):
            yield from commands_of(command, *words)


def test_no_command_is_left_out() -> None:
    assert sorted(commands_of(cli)) == sorted(COMMANDS)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that come first on the PATH."""
    build("all", "simulator", "host-tests", "policy-cost", *(["page"] * makes_web_assembly()))
    programs()
    folder = tmp_path_factory.mktemp("quick")
    quick_compiler(folder)
    for machine in ("spike", "qemu-system-riscv64", "qemu-system-x86_64"):
        real = shutil.which(machine) or (installed_spike() / PROGRAM if machine == "spike" else "")
        asked = "*--help* | *--dump-dts* | *--version* | *' help'*"
        program = folder / machine
        program.write_text(
            f'#!/bin/sh\ncase "$*" in {asked}) exec "{real}" "$@" ;; esac\necho "{REFUSAL}"; exit 3\n'
        )
        program.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed(tmp_path_factory.mktemp("copied"))


def environment(prepared: Path) -> dict[str, str]:
    """In which its programs come first, and its Spike is taken instead of our driver."""
    return environment_of(prepared, **{SPIKE_VARIABLE: "spike"})


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that some other checkout has made."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    words = f"run --machine sim --policy rr --cpus 1 --workload {ROOT / WORKLOAD} --out {folder}"
    subprocess.run(module_command("schedlab", *words.split()), check=True, capture_output=True)
    return folder


def make(place: Path, prepared: Path, target: str) -> None:
    """Calls make as a user would that knows nothing of `./schedlab`."""
    command = ["make", "--silent", f"CLANG={Path(compiler().clang).name}", target]
    subprocess.run(command, cwd=place, env=environment(prepared), check=True, timeout=300)


def test_a_first_start_keeps_what_make_has_built(
    prepared: Path, copied: Path, tmp_path: Path
) -> None:
    place = fresh_checkout(copied, tmp_path / "checkout")
    make(place, prepared, "build/policy_list")
    built = place / "build/policy_list"
    before = built.stat()
    start = [str(place / "schedlab"), "policies"]
    subprocess.run(start, env=environment(prepared), capture_output=True, check=True)
    assert (built.stat().st_ino, built.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_what_another_compiler_has_built_is_never_used(
    prepared: Path, copied: Path, tmp_path: Path
) -> None:
    place = fresh_checkout(copied, tmp_path / "checkout")
    stale = place / "build/kernel/stale.o"
    stale.parent.mkdir(parents=True)
    stale.touch()
    (place / "build/.lock").touch()
    (place / "build/linux-sdk").symlink_to("/gone")
    (place / "build/.compiler").write_text("another compiler\n")
    make(place, prepared, "build/policy_list")
    assert not stale.parent.exists()
    # What holds others off, and what was not compiled.
    assert (place / "build/.lock").exists()
    assert (place / "build/linux-sdk").is_symlink()


def read(descriptor: int) -> str:
    """ "": nothing comes any more, which terminals tell by an error."""
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
    place = fresh_checkout(copied, tmp_path / "a: che[k] out, 100 % of 'it'")
    words = [str(recorded) if word == "RUN" else word for word in first.words.split()]
    ours, theirs = os.openpty() if first.terminal else os.pipe()
    with subprocess.Popen(
        [place / "schedlab", *name.split(), *words],
        cwd=place,
        env=environment(prepared),
        stdin=theirs if first.terminal else subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        said = ""
        while some := read(ours):
            said += some
            if first.interrupted and re.search(first.says, said):
                process.send_signal(signal.SIGINT)
                first = replace(first, interrupted=False)
        process.wait(timeout=120)
    os.close(ours)
    assert re.search(first.says, said), said
    assert not re.search("Traceback|internal error", said), said
    expected = (0, 1, 2) if first.status is DEPENDS else (first.status,)
    assert process.returncode in expected, said
