# SPDX-License-Identifier: MIT
"""Tests `./schedlab record`: on this machine where it may be traced, and with tools that fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Command
from schedlab import trace
from schedlab.errors import MachineUnfit
from schedlab.machines.folder import TRACE_FILE
from schedlab.recordings import recorder
from schedlab.recordings.reader import PERF

TRACEFS = Path("/sys/kernel/tracing/instances")


def need_tracing(tool: str) -> None:
    """Skips the test unless this machine may be recorded."""
    if os.geteuid() or not os.access(TRACEFS, os.W_OK):
        pytest.skip("the kernel's tracefs is not mounted here, or not writable")
    if tool == "perf" and not PERF.find():
        pytest.skip("perf is not installed")


@pytest.mark.parametrize("tool", ["perf", "tracefs"])
def test_a_command_is_recorded(schedlab: Command, tmp_path: Path, tool: str) -> None:
    need_tracing(tool)
    before = set(TRACEFS.glob("schedlab-*"))  # of a recorder that was killed
    out = tmp_path / "out"
    work = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.1"
    result = schedlab(
        *("record", "--with", tool, "--no-page", "--json", "--out", str(out), "--"),
        *("sh", "-c", work),
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["manifest"]["workload"].startswith("sh -c 'i=0;")
    recording = trace.read(out / "recorded" / TRACE_FILE)
    trace.validate(recording)
    assert "sleep" in {process["name"] for process in answer["metrics"]["processes"]}
    assert {path.name for path in out.iterdir()} in (
        {"recorded", "perf.data"},
        {"recorded", "trace.txt"},
    )
    assert set(TRACEFS.glob("schedlab-*")) <= before


@pytest.mark.parametrize("tool", ["perf", "tracefs"])
def test_a_command_that_cannot_be_started_leaves_nothing(
    schedlab: Command, tmp_path: Path, tool: str
) -> None:
    need_tracing(tool)
    before = set(TRACEFS.glob("schedlab-*"))  # of a recorder that was killed
    out = tmp_path / "out"
    result = schedlab("record", "--with", tool, "--out", str(out), "--", "./no-such-program")
    assert result.returncode == 2
    assert "./no-such-program: cannot be started" in result.stderr
    assert not out.exists()
    assert set(TRACEFS.glob("schedlab-*")) <= before


def test_the_next_recorder_removes_what_a_killed_one_left(
    schedlab: Command, tmp_path: Path
) -> None:
    need_tracing("tracefs")
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = TRACEFS / f"schedlab-{ended.pid}"
    left.mkdir()
    out = tmp_path / "out"
    result = schedlab("record", "--with", "tracefs", "--no-page", "--out", str(out), "--", "true")
    assert result.returncode == 0, result.stderr
    assert not left.exists()


def test_a_recorder_that_fails_gives_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "perf"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo perf version 9.9 && exit\n')
    with program.open("a") as file:
        file.write("echo access to performance monitoring is limited >&2; exit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with (
        pytest.raises(MachineUnfit, match="the recorder failed: access to performance"),
        recorder.recording("perf", tmp_path, []),
    ):
        raise AssertionError("it records nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perf"]


def test_only_the_recorder_is_elevated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineUnfit, match="there is no sudo"):
        recorder.privileged()
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\nexit 0\n")
    sudo.chmod(0o755)
    assert recorder.privileged() == ["sudo", "--non-interactive", "--"]
    sudo.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(MachineUnfit, match="sudo gave no root rights"):
        recorder.privileged()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_under_sudo_the_command_runs_as_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.chown(tmp_path, 65534, 65534)
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    with (tmp_path / "id").open("w") as file:
        number = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            assert recorder.run_command(["id", "-u"]) == 0
        finally:
            os.dup2(number, 1)
            os.close(number)
    assert (tmp_path / "id").read_text() == "65534\n"
