# SPDX-License-Identifier: MIT
"""Tests runs on Linux without a guest: the guest's job, its results, and refusals."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from built_once import build_once
from conftest import ROOT
from linux_stand_ins import SERVER, run_script
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage
from schedlab.machines import LINUX_MACHINES, machine_named
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.machine import (
    _SERVER_ENDED,
    FreeLinux,
    Linux,
    guest_command,
)
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec
from schedlab.paths import BUILD_FOLDER
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab.workload.workload_files import read_workload_file

RUN = RunSpec(
    workload="mixed -n 4",
    policy=PolicyChoice("wrr", "linux"),
    settings=(("quantum_us", 2000),),
    cpus=2,
    machine=machine_named("linux"),
    seed=7,
    tick_ns=Linux.tick_ns,
    limit_ns=90_500_000_000,
    memory_mib=Linux.memory_mib,
)
FILE = ROOT / "workloads" / "files" / "cpu-bound.json"


# --- the guest's job


@pytest.mark.parametrize(
    ("workload", "command"),
    [
        ("mixed -n 4", "mixed -n 4"),
        ("mixed & cpu-bound; wait", "mixed & cpu-bound; wait"),
        ("sysbench cpu --time=5 run", "measure 'sysbench cpu --time=5 run'"),
        ("echo 'a b' | cat", """measure 'echo '"'"'a b'"'"' | cat'"""),
        ("measure 'sleep 1'", "measure 'sleep 1'"),
    ],
)
def test_programs_without_a_window_are_measured_completely(workload: str, command: str) -> None:
    assert guest_command(replace(RUN, workload=workload)) == command


def test_a_job_is_the_run(tmp_path: Path) -> None:
    run = replace(RUN, workload="sysbench cpu run; hackbench -l 5; /usr/bin/rt-appx")
    for machine in (Linux(), FreeLinux()):
        job = machine.job(run, {"linux_programs": tmp_path / "p"}, tmp_path, tmp_path)
        unpack, start = job.script.split(" && exec sh run.sh ")
        begin = machine.begin_s
        assert unpack == f"tar -xf programs.tar && rm programs.tar && export BEGIN_AT={begin}"
        assert start == f"{run.machine.arguments(run)}\n"
        assert (job.cpus, job.seed, job.limit_s) == (2, 7, begin + 290.5)
        assert job.memory_mib == run.memory_mib
        assert job.repeatable == machine.repeatable
        assert job.programs == ("sysbench", "hackbench")


# --- refusals


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"tick_ns": 1_000_000},
            "tick_ns=1000000.*the Linux kernel has a fixed tick of 4ms; leave it out",
        ),
        ({"memory_mib": 128}, "memory_mib=128.*; choose 512 or more"),
        ({"workload": "  "}, "name a program of the guest"),
        ({"workload": "a\nb"}, "one line of printable characters"),
        ({"cpus": 1000}, "cpus=1000.* has 1 to"),
    ],
)
@pytest.mark.parametrize("machine", LINUX_MACHINES)
def test_what_cannot_be_is_refused_before_anything_is_started(
    tmp_path: Path, machine: str, changed: dict[str, object], message: str
) -> None:
    run = replace(RUN, machine=machine_named(machine), **changed)  # type: ignore[arg-type]
    with pytest.raises(WrongUsage, match=message):
        Plan(tmp_path, (run,)).check()


def test_groups_are_refused_if_the_scheduler_does_not_know_them(tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    path.write_text('{"tasks": {"a": {"taskgroup": "/a", "run": 1}}}')
    for choice in (PolicyChoice("fair"), PolicyChoice("scx", "bpfland")):
        run = replace(
            RUN, policy=choice, settings=(), workload=str(path), file=read_workload_file(path)
        )
        with pytest.raises(WrongUsage, match=f"policy=.{choice}.* has groups of tasks"):
            Plan(tmp_path, (run,)).check()


def test_the_fair_class_is_of_linux_alone(tmp_path: Path) -> None:
    fair = replace(RUN, policy=PolicyChoice("fair"), settings=())
    for machine in LINUX_MACHINES:
        check_policies({}, Plan(tmp_path, (replace(fair, machine=machine_named(machine)),)))
    for machine in ("spike", "qemu", "sim"):
        with pytest.raises(WrongUsage, match=r"policy='fair'.* add .machine='linux'"):
            check_policies({}, Plan(tmp_path, (replace(fair, machine=machine_named(machine)),)))
    for wrong in (
        replace(fair, settings=(("slice", 1),)),
        replace(fair, policy=PolicyChoice("fair", "x")),
    ):
        with pytest.raises(WrongUsage, match="of fair '"):
            check_policies({}, Plan(tmp_path, (wrong,)))


# --- results


def ended(
    folder: Path,
    word: str | None,
    left: Mapping[str, str],
    machine_status: int = 0,
    console: str = "",
) -> Outcome:
    """Returns the outcome of a guest that wrote these results; without a word, it wrote nothing."""
    log = folder / "console.log"
    log.write_text(console)
    (folder / "ramdisk.cpio").write_text("")
    if word is not None:
        with tarfile.open(folder / "results.tar", "w") as tar:
            for name, text in {
                **{f"result/{k}": v for k, v in left.items()},
                "status": word,
            }.items():
                entry = tarfile.TarInfo(name.replace("trace", TRACE_FILE))
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
    return Linux().outcome(machine_status, folder, folder, log)


def test_a_run_leaves_trace_and_console_and_nothing_else(tmp_path: Path) -> None:
    left = {"trace": "events", "server": "serving\n", "output": "done\n"}
    assert ended(tmp_path, "0\n", left, console="boot\n") == Outcome("success")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["console.log", "trace.bin"]
    assert (tmp_path / "trace.bin").read_text() == "events"
    assert (tmp_path / "console.log").read_text() == "boot\n\nserving\n\ndone\n"


@pytest.mark.parametrize(
    ("word", "status", "console", "expected", "message"),
    [
        ("1", 0, "", "failed", "the workload failed"),
        ("103", 0, "", "failed", "did not load the policy"),
        ("104", 0, "", "failed", "unloaded the policy"),
        ("102", 0, "", "limit", "reached its time limit"),
        ("limit", 0, "", "hung", "time limit"),
        (None, 0, "boot\nKernel panic - not syncing: lost\n", "panic", "not syncing: lost"),
        (None, -9, "boot\n", "killed", "ended by SIGKILL"),
        (None, 1, "boot\n", "failed", "without handing over its results"),
    ],
)
def test_end_of_a_run_is_reported_with_its_cause(
    tmp_path: Path, word: str | None, status: int, console: str, expected: str, message: str
) -> None:
    logs = {"server": "verified not\n", "output": "lines\n" * 50 + "the last\n"}
    outcome = ended(tmp_path, word, logs, status, console)
    assert outcome.status == expected
    assert message in outcome.message
    if expected == "failed" and word:
        assert ("the last" if word == "1" else "verified not") in outcome.message


# --- the script of the guest, with stand-ins for the guest's programs


def scripted(
    folder: Path, command: str, in_force: str = "wrr", **more: str
) -> tuple[int, list[str]]:
    """Returns the exit status of run.sh, and the commands that its server received."""
    return run_script(folder, command, {"schedlab-linux": SERVER}, in_force, **more)


def test_the_script_serves_runs_and_stops(tmp_path: Path) -> None:
    command = 'echo "$WORKLOAD_SEED $WORKLOAD_TICK_US"; echo wrong >&2; cat'
    status, calls = scripted(tmp_path, command)
    assert status == 0
    trace = tmp_path / "result" / "trace.bin"
    serve = f"serve --background --while PARENT --seed 7 --policy wrr --set a=1 --trace {trace} --trace-memory"
    assert calls == [serve, "stop"]
    assert (tmp_path / "result" / "output").read_text() == "7 4000\nwrong\n"


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        ({"command": "exit 3"}, 1),
        ({"command": "sleep 60"}, 102),
        ({"command": "true", "SERVE": "2"}, 103),
        ({"command": "true", "in_force": "fair", "problem": "it stalled"}, 104),
        ({"command": "true", "in_force": "fair"}, 0),
    ],
)
def test_script_names_the_failure(tmp_path: Path, ways: dict[str, str], expected: int) -> None:
    status, calls = scripted(tmp_path, **ways)
    assert status == expected
    assert ("stop" in calls) == (expected != 103)


def test_the_script_ends_with_a_server_whose_trace_is_full(tmp_path: Path) -> None:
    ends = '(sleep 0.2; rm "$WORKLOAD_CONTROL"/sched_status) &'
    server = f'#!/bin/sh\necho "$@" >>"$LOG"\n[ "$1" != serve ] || {ends}\n'
    status, _ = run_script(tmp_path, "sleep 60", {"schedlab-linux": server}, "wrr")
    assert status == _SERVER_ENDED


# --- workloads as Linux programs


def workload(program: str, *arguments: str, control: Path | None = None, status: int = 0) -> str:
    """Returns a workload's standard error, which includes its marks."""
    build_once(f"build/linux/{program}")
    result = subprocess.run(
        [BUILD_FOLDER / "linux" / program, *arguments],
        env={
            **os.environ,
            "WORKLOAD_TICK_US": "100",
            "WORKLOAD_MARKS": "1",
            "WORKLOAD_CONTROL": str(control or "/nowhere"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == status, result.stderr
    return result.stderr


LADDER = ("-n", "1", "-i", "1000", "-f", "3")


def test_workload_sets_attributes_through_files(tmp_path: Path) -> None:
    status = tmp_path / "sched_status"
    for number, name in (("1", "priority"), ("2", "tickets"), ("3", "weight")):
        status.write_text("")
        marks = workload("ladder", *LADDER, "-a", number, control=tmp_path)
        pid, attribute, value = status.read_text().split()
        assert (attribute, value) == (name, "3")
        assert f"mark {pid} group cpu" in marks
    workload("ladder", *LADDER, "-a", "3")  # without a server, none is notified
    status.unlink()
    status.mkdir()
    output = workload("ladder", *LADDER, "-a", "3", control=tmp_path, status=1)
    assert "setweight: Is a directory" in output


def test_any_command_can_be_measured(tmp_path: Path) -> None:
    marks = [
        line.split(" ", 2)[2].strip()
        for line in workload("measure", "/bin/sleep 0.01; true").splitlines()
    ]
    assert marks == ["group root", "begin", "group sleep", "end"]
    assert "1 processes failed" in workload("measure", "exit 3", status=1)
    assert "name one command" in workload("measure", status=2)
