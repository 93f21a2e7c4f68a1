# SPDX-License-Identifier: MIT
"""Tests what commands need in addition to libraries: system programs and extras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schedlab import environment
from schedlab.base.toolchain import needs, tools
from schedlab.base.toolchain.needs import (
    PROGRAMS,
    installation_advice,
    need,
    need_extra,
)
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.environment import Environment
from schedlab.errors import WrongUsage
from schedlab.machines.qemu import Qemu
from schedlab.machines.spec import RunSpec
from schedlab.runs import perform
from schedlab.runs.plan import Plan


class Host:
    """A host with a separate PATH, to which a test adds programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"

    def add(self, name: str, body: str = "exit 0") -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def add_apt(self, known: str, installs: str = "") -> None:
        """Adds an apt-get that logs its calls and knows packages."""
        made = "".join(
            f': >"{self.folder}/{name}"; /bin/chmod +x "{self.folder}/{name}"\n'
            for name in installs.split()
        )
        self.add(
            "apt-get",
            'case "$*" in *--print-uris*) echo "\'http://x\' x.deb 1500000 SHA256:0"; exit ;; esac\n'
            f'echo "$*" >>"{self.calls}"\ncase "$*" in *" install "*)\n{installs and made};; esac',
        )
        cases = " | ".join(known.split())
        self.add("apt-cache", f'case $3 in {cases}) echo "Package: $3" ;; *) exit 100 ;; esac')
        self.add("env", 'shift\nexec "$@"')

    def called(self) -> str:
        return self.calls.read_text() if self.calls.exists() else ""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SCHEDLAB_CLANG", raising=False)
    monkeypatch.setattr(needs, "_allowed_managers", {"apt"})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    caches = (tools.find_system_compiler, tools.find_package, needs.package_manager)
    for cached in caches:
        cached.cache_clear()
    yield Host(tmp_path)
    for cached in caches:
        cached.cache_clear()


def test_missing_programs_are_installed_without_a_question(host: Host) -> None:
    host.add_apt("zstd device-tree-compiler", "zstd dtc")
    need("zstd", "dtc")
    (call,) = host.called().splitlines()
    assert call.endswith("zstd device-tree-compiler")


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install --no-install-recommends device-tree-compiler zstd"),
        ("dnf", "sudo dnf install dtc zstd"),
        ("pacman", "sudo pacman -S dtc zstd"),
        ("brew", "brew install dtc zstd"),
        ("other", "by this system's own means"),
    ],
)
def test_command_is_printed_if_it_may_not_run(
    host: Host, monkeypatch: pytest.MonkeyPatch, manager: str, command: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    host.add(manager)
    with pytest.raises(WrongUsage, match="dtc, zstd") as caught:
        need("dtc", "zstd")
    assert command in str(caught.value)


def test_a_library_installs_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_allowed_managers", set())
    host.add_apt("device-tree-compiler", "dtc")
    with pytest.raises(WrongUsage):
        need("dtc")
    assert host.called() == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_a_debian_command(host: Host, name: str) -> None:
    host.add("apt-get")
    assert "|" not in installation_advice([name])
    assert "sudo apt-get install" in installation_advice([name])


def test_an_extra_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Environment(tmp_path / "python" / "key")
    path.python.parent.mkdir(parents=True)
    path.python.touch()
    installed: list[str] = []
    monkeypatch.setattr(
        environment, "_install", lambda python, extra, folder: installed.append(extra)
    )
    monkeypatch.setattr(needs, "current_environment", lambda: path)
    need_extra("sql")
    need_extra("sql", "sweep")
    assert installed == ["sql", "sweep"]
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Disk", (), {"free": 10**6}))
    with pytest.raises(WrongUsage, match="1 MB free"):
        need_extra("monitor")


def test_make_is_from_the_compiler_extra_or_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned, other = tmp_path / "own/bin/make", tmp_path / "bin/gmake"
    for program in (pinned, other):
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert tools.find_make() == str(pinned)
    pinned.unlink()
    assert tools.find_make() == str(other)
    other.unlink()
    assert tools.find_make() is None


def test_all_missing_requirements_are_listed_at_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.add("dnf")
    monkeypatch.setattr(perform, "read_catalogue", dict)
    monkeypatch.setattr(perform, "check_policies", lambda *_: None)
    run = RunSpec("mixed", PolicyChoice("rr"), (), 1, Qemu(), 1, 10**6, 10**9, 64)
    with pytest.raises(WrongUsage, match=r"sudo dnf install qemu-system-riscv-core$"):
        perform.perform(Plan(Path("x"), (run,)))
