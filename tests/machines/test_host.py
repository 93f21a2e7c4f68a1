# SPDX-License-Identifier: MIT
"""Tests hosts other than Linux on x86-64, emulated on this host where possible."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from built_once import build_once
from conftest import ROOT
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands import doctor
from schedlab.courses.submissions import wasm_policy
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import guest, parts
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.machines.spike_install import installed_spike
from schedlab.runs import perform
from schedlab.runs.plan import Plan

MACOS = """
import fcntl, os, sys, urllib.request, wasmtime
for module, name in (os, "waitid"), (os, "sched_getaffinity"), (os, "O_PATH"), (fcntl, "F_SETPIPE_SZ"):
    delattr(module, name)
sys.platform = "darwin"
from schedlab.commands.cli import main
sys.argv[0] = "schedlab"
main()
"""
"""Removes what Python lacks on macOS. Modules that Python itself would load there are loaded
first.
"""


SOLUTION = str(ROOT / "labs" / "shares" / "solution.c")


@pytest.fixture
def aarch64(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A laptop without fetched tools."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr("shutil.which", lambda name: None if name == "spike" else f"/x/{name}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    guest.find_qemu.cache_clear()


@pytest.mark.usefixtures("aarch64")
def test_spike_is_not_fetched_and_other_machines_are_named() -> None:
    with pytest.raises(MachineUnfit) as error:
        installed_spike()
    assert "Linux on x86-64, and this host is aarch64" in str(error.value)
    assert "`machine='sim'` for studies" in str(error.value)
    assert "`machine='qemu'` for programs" in str(error.value)


@pytest.mark.usefixtures("aarch64")
def test_nothing_is_built_for_a_machine_that_is_not_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunSpec("mixed", PolicyChoice("rr"), (), 1, Spike(), 1, 10**6, 10**9, 64)
    monkeypatch.setattr("schedlab.machines.spike.find_spike", installed_spike)
    monkeypatch.setattr(perform, "check_policies", lambda *_: None)
    monkeypatch.setattr(perform, "read_catalogue", dict)
    monkeypatch.setattr(perform, "build_parts", lambda *_: pytest.fail("it builds"))
    with pytest.raises(MachineUnfit, match="Spike is available only for Linux on x86-64"):
        perform.perform(Plan(Path("x"), (run,)))


@pytest.mark.usefixtures("aarch64")
def test_linux_guests_are_refused_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "schedlab.machines.linux.packages.packages", lambda: pytest.fail("it fetches")
    )
    for need in (guest.find_qemu, lambda: parts.build_linux("linux-host")):
        with pytest.raises(MachineUnfit, match="built only on x86-64, and this host is aarch64"):
            need()


@pytest.mark.usefixtures("aarch64")
def test_doctor_calls_such_a_host_healthy_and_names_the_alternative() -> None:
    (guests,) = doctor.examine_linux_guest()
    for finding in (doctor.examine_spike(), guests):
        assert (finding.status, finding.healthy) == ("absent", True)
        assert "this host is aarch64" in finding.advice
        assert "machine='qemu'" in finding.advice


def as_on_macos(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", MACOS, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)


def test_on_macos_the_simulator_runs_and_its_trace_is_the_same(tmp_path: Path) -> None:
    build_once("simulator")
    ran = as_on_macos("run", "--policy", "rr", "--cpus", "1", "--out", "runs", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "this host is macOS on x86_64: the simulator runs this instead" in ran.stderr
    made = as_on_macos("report", "runs", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "runs/report/index.html").exists()
    assert as_on_macos("verify", "runs", cwd=tmp_path).returncode == 0


def test_on_macos_submissions_are_graded_with_trust_alone(tmp_path: Path) -> None:
    # What the pretended host built, Linux could not link.
    build_once(str(wasm_policy.SIMULATOR_LIBRARY.relative_to(ROOT)), SIMULATOR_LIBRARY)
    refused = as_on_macos("grade", "shares", SOLUTION, cwd=tmp_path)
    assert refused.returncode == 2
    assert "this host cannot have one: use Linux with bubblewrap" in refused.stderr
    assert "--trust" in refused.stderr
    graded = as_on_macos("grade", "shares", SOLUTION, "--trust", "--out", "kept", cwd=tmp_path)
    assert "--trust: submissions are compiled without a sandbox" in graded.stderr
    assert graded.returncode == 0, graded.stderr
