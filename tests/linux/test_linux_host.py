# SPDX-License-Identifier: MIT
"""Tests `run --machine host` with stand-ins for a kernel with sched_ext: refusals and endings."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from fit_hosts import BTF, FUSE, OPS, STATE, fit_root
from linux_stand_ins import CHRT
from processes import wait_until
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage
from schedlab.machines import HOST, machine_named
from schedlab.machines.linux.host import HostLinux, require_fit_host
from schedlab.machines.linux.parts import make_archive
from schedlab.machines.spec import RunSpec


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root folder of a suitable machine, whose user is root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return fit_root(tmp_path / "root")


@pytest.fixture
def machine(root: Path) -> HostLinux:
    return HostLinux(root)


@pytest.fixture
def run(machine: HostLinux) -> RunSpec:
    return RunSpec(
        workload="mixed -n 4",
        policy=PolicyChoice("rr"),
        settings=(),
        cpus=machine.cpus_max,
        machine=machine_named(HOST),
        seed=7,
        tick_ns=machine.tick_ns,
        limit_ns=60_000_000_000,
        memory_mib=machine.memory_mib,
    )


# --- missing requirements


def without(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).unlink()


def with_scheduler(root: Path) -> None:
    (root / STATE).write_text("enabled\n")
    (root / OPS).parent.mkdir()
    (root / OPS).write_text("rusty_1.2\n")


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (without(STATE), ["CONFIG_SCHED_CLASS_EXT", "6.15 or newer", "machine='linux'"]),
        (without(BTF), ["CONFIG_DEBUG_INFO_BTF", "6.15 or newer", "machine='linux'"]),
        (without(FUSE), ["/dev/fuse is missing: run `modprobe fuse`"]),
        (with_scheduler, ["the scheduler rusty_1.2 is loaded already", "end the program"]),
    ],
)
def test_missing_programs_are_reported_in_a_line_with_the_fix(
    root: Path, change: Callable[[Path], object], messages: list[str]
) -> None:
    require_fit_host(root)
    change(root)
    with pytest.raises(WrongUsage) as caught:
        require_fit_host(root)
    assert caught.value.exit_status == 2
    error_text = str(caught.value)
    assert all(message in error_text for message in ["machine='host'", *messages]), error_text
    assert "\n" not in error_text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cpus": 4096}, "cpus=4096.* always uses all"),
        ({"memory_mib": 1}, "memory_mib=1.* always uses all"),
        ({"tick_ns": 123}, "tick_ns=123.*the Linux kernel"),
    ],
)
def test_the_machine_is_taken_as_it_is(
    machine: HostLinux, run: RunSpec, changed: dict[str, object], message: str
) -> None:
    machine.check(run)
    with pytest.raises(WrongUsage, match=message):
        machine.check(replace(run, **changed))  # type: ignore[arg-type]


# --- a complete run

SERVER = """#!/bin/sh
case "$1" in
serve)
    mkdir -p "$WORKLOAD_CONTROL"
    printf 'Scheduler status\\nPolicy: rr\\n' >"$WORKLOAD_CONTROL/sched_status"
    : >"$WORKLOAD_CONTROL/sched_problem"
    echo enabled >"$STATE"
    echo events >"$RESULT/trace.bin"
    ;;
stop) echo disabled >"$STATE" ;;
esac
echo "$1" >>"$LOG"
"""


@pytest.fixture
def parts(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Programs of the run; the server changes the state that the stand-in shows."""
    programs = {"run.sh": ROOT / "linux" / "guest" / "run.sh"}
    for name, text in (("schedlab-linux", SERVER), ("chrt", CHRT)):
        programs[name] = tmp_path / name
        programs[name].write_text(text)
    (tmp_path / "programs.tar").write_bytes(make_archive(programs))
    monkeypatch.setenv("STATE", str(root / STATE))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("WORKLOAD_CONTROL", str(tmp_path / "control"))
    return {"linux_programs": tmp_path / "programs.tar"}


def begun(
    machine: HostLinux, run: RunSpec, parts: dict[str, Path], tmp_path: Path
) -> tuple[subprocess.Popen[bytes], Path, Path]:
    """Starts a run; returns the process, its folder and its scratch folder."""
    folder, scratch = tmp_path / "run", tmp_path / "a 'scratch'"
    folder.mkdir()
    scratch.mkdir()
    command = machine.prepare_command(run, parts, folder, scratch)
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(command, stdout=console, stderr=console, start_new_session=True)
    return process, folder, scratch


def test_a_run_leaves_what_a_guest_does(
    machine: HostLinux, run: RunSpec, parts: dict[str, Path], tmp_path: Path, root: Path
) -> None:
    run = replace(run, workload="mixed & echo $WORKLOAD_TICK_US; exit 0")
    process, folder, scratch = begun(machine, run, parts, tmp_path)
    outcome = machine.outcome(process.wait(60), folder, scratch, folder / "console.log")
    assert outcome.succeeded, outcome.message
    assert sorted(path.name for path in folder.iterdir()) == ["console.log", "trace.bin"]
    assert f"{run.tick_ns // 1000}\n" in (folder / "console.log").read_text()
    assert (tmp_path / "log").read_text().split() == ["serve", "stop"]
    assert (root / STATE).read_text() == "disabled\n"


def at_home_in(folder: Path) -> list[str]:
    """Returns the processes whose working directory is the folder."""
    process_names = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            process_names += [process.name] if (process / "cwd").readlink() == folder else []
    return process_names


def test_interrupted_run_leaves_nothing(
    machine: HostLinux, run: RunSpec, parts: dict[str, Path], tmp_path: Path, root: Path
) -> None:
    pid_file = tmp_path / "pid"
    work = f"mixed & sleep 1000 & echo $! >{pid_file}.new; mv {pid_file}.new {pid_file}; wait"
    process, _, scratch = begun(machine, replace(run, workload=work), parts, tmp_path)
    wait_until(pid_file.exists)
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(60)
    wait_until(lambda: not at_home_in(scratch))
    assert (root / STATE).read_text() == "disabled\n"
