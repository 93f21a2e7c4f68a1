# SPDX-License-Identifier: MIT
"""A host whose processor is of another kind than x86-64."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands import doctor
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import guest, parts
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.machines.spike_install import installed_spike
from schedlab.runs import perform
from schedlab.runs.plan import Plan


@pytest.fixture(autouse=True)
def aarch64(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A laptop, with nothing fetched."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr("shutil.which", lambda name: None if name == "spike" else f"/x/{name}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    guest.find_qemu.cache_clear()


def test_spike_is_not_fetched_and_other_machines_are_named() -> None:
    with pytest.raises(MachineUnfit) as error:
        installed_spike()
    assert "x86-64 alone, and this host is aarch64" in str(error.value)
    assert "`machine='sim'` for studies" in str(error.value)
    assert "`machine='qemu'` for programs" in str(error.value)


def test_nothing_is_built_for_a_machine_that_is_not_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunSpec("mixed", PolicyChoice("rr"), (), 1, Spike(), 1, 10**6, 10**9, 64)
    monkeypatch.setattr("schedlab.machines.spike.find_spike", installed_spike)
    monkeypatch.setattr(perform, "check_policies", lambda *_: None)
    monkeypatch.setattr(perform, "read_catalogue", dict)
    monkeypatch.setattr(perform, "supply", lambda *_: pytest.fail("it builds"))
    with pytest.raises(MachineUnfit, match="Spike comes ready for x86-64 alone"):
        perform.perform(Plan(Path("x"), (run,)))


def test_linux_guests_are_refused_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "schedlab.machines.linux.packages.packages", lambda: pytest.fail("it fetches")
    )
    for need in (guest.find_qemu, lambda: parts.build_linux("linux-host")):
        with pytest.raises(MachineUnfit, match="built on and for x86-64, and this host is aarch64"):
            need()


def test_the_doctor_calls_such_a_host_healthy_and_says_what_to_use_instead() -> None:
    (guests,) = doctor.linux_guest()
    for finding in (doctor.spike(), guests):
        assert (finding.status, finding.healthy) == ("absent", True)
        assert "this host is aarch64" in finding.advice
        assert "machine='qemu'" in finding.advice
