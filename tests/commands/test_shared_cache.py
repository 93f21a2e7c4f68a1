# SPDX-License-Identifier: MIT
"""Tests a cache that many users share: it is read and never written; doctor and clean report it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import Command
from schedlab.base.toolchain.needs import EXTRAS
from schedlab.commands import doctor
from schedlab.machines.spike_install import installed_spike, spike_folder
from schedlab.paths import find_in_caches
from schedlab.report import html


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("SCHEDLAB_SHARED_CACHE", str(tmp_path / "shared"))
    path = tmp_path / "shared" / "schedlab"
    path.mkdir(parents=True)
    return path


def test_private_cache_is_first(shared: Path, tmp_path: Path) -> None:
    user_cache = tmp_path / "own/schedlab"
    assert find_in_caches("x/y") == user_cache / "x/y"
    (shared / "x").mkdir()
    (shared / "x/y").touch()
    assert find_in_caches("x/y") == shared / "x/y"
    (user_cache / "x").mkdir(parents=True)
    (user_cache / "x/y").touch()
    assert find_in_caches("x/y") == user_cache / "x/y"


def test_spike_and_scripts_of_it_are_used(shared: Path, tmp_path: Path) -> None:
    (shared / "spike" / spike_folder().name).mkdir(parents=True)
    assert installed_spike().is_relative_to(shared)
    key = html.bundle_script("charts", "x")
    (script,) = (tmp_path / "own/schedlab").iterdir()
    script.rename(shared / script.name)
    (shared / script.name).write_text(key[:100])
    assert html.bundle_script("charts", "x") == key[:100]
    assert list((tmp_path / "own/schedlab").iterdir()) == []


def test_doctor_and_clean_show_the_shared_cache(
    shared: Path, schedlab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "spike").mkdir()
    result = schedlab("clean", "--all")
    assert result.returncode == 0
    assert (shared / "spike").is_dir()
    result = schedlab("clean")
    assert f"{shared} is shared" in " ".join(result.stdout.split())
    (finding,) = doctor.examine_shared_cache()
    assert (finding.status, finding.path) == ("absent", str(shared))
    assert "another release" in finding.advice
    monkeypatch.setattr("sys.prefix", str(shared / "python/x"))
    assert next(doctor.examine_shared_cache()).status == "ok"
    (shared / "spike").rmdir()
    shared.rmdir()
    assert "the folder is missing" in next(doctor.examine_shared_cache()).advice


def test_doctor_installs_what_all_commands_need(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements: list[tuple[str, ...]] = []
    monkeypatch.setattr(doctor, "need_extra", lambda *names: requirements.append(names))
    monkeypatch.setattr(doctor, "install_if_packaged", lambda *names: requirements.append(names))
    monkeypatch.setattr(doctor, "examine_all", list)
    assert CliRunner().invoke(doctor.doctor, ["--install", "--json"]).exit_code == 0
    extras, programs = requirements
    assert set(extras) == {*EXTRAS} - {"test"}
    assert {"system-compiler", "qemu", "sandbox"} <= set(programs)
