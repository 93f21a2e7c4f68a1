# SPDX-License-Identifier: MIT
"""Tests that a command that a Linux guest lacks is refused before the boot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schedlab.errors import WrongUsage
from schedlab.machines.linux import commands, packages
from schedlab.machines.linux.commands import check_command, guest_commands


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Packages whose busybox has two commands."""
    busybox = tmp_path / "busybox"
    busybox.write_text("#!/bin/sh\nprintf 'ls\\nsleep\\n'\n")
    busybox.chmod(0o755)
    (tmp_path / "sysbench").touch()
    stub_packages = SimpleNamespace(program=lambda name: tmp_path / name)
    monkeypatch.setattr(packages, "cached_packages", lambda: stub_packages)
    commands.guest_commands.cache_clear()
    yield
    commands.guest_commands.cache_clear()


@pytest.mark.usefixtures("unpacked")
def test_what_a_guest_has() -> None:
    available_commands = guest_commands()
    assert (
        available_commands is not None and {"ls", "sleep", "sysbench", "exec"} <= available_commands
    )
    for line in ("sleep 3", "sysbench cpu run", "mixed", "cpu-bound -n 3", "foo | bar", "x=1 y"):
        check_command(line, available_commands)


@pytest.mark.usefixtures("unpacked")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("foo", "the guest has no program 'foo'."),
        ("sysbnch cpu run", "no program 'sysbnch'; did you mean 'sysbench'?"),
        ("cpu-bound -q 3", "cpu-bound -q: there is no such option"),
    ],
)
def test_what_it_has_not_is_refused(line: str, words: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        check_command(line, guest_commands())
    assert words in str(refused.value)
