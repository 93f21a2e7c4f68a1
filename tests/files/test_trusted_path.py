# SPDX-License-Identifier: MIT
"""Tests what another user of a machine could prepare for root's monitor.

The test acts as that user: it creates files, and then changes their owner.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schedlab.base.files.trusted_path import Untrusted, open_trusted

STRANGER = 4711


def opened(path: Path | str) -> bytes:
    descriptor = open_trusted(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "inner" / "file"
    made.parent.mkdir(mode=0o755)
    made.write_bytes(b"kept")
    return made


@pytest.fixture
def as_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the test's files to another user, because root's files are always trusted."""
    for path in (*tmp_path.rglob("*"), tmp_path):
        if os.getuid() == 0:
            os.lchown(path, STRANGER, STRANGER)
    before = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: before + 1 if before else 0)


def test_user_paths_are_open(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent.parent / "link").symlink_to("inner")
    (file.parent.parent / "whole").symlink_to(file)
    for path in (file, file.parent.parent / "link" / "file", file.parent.parent / "whole"):
        assert opened(path) == b"kept"
    monkeypatch.chdir(file.parent)
    assert opened("../inner//file") == b"kept"
    assert opened("/dev/null") == b""


def test_missing_files_are_errors_as_usual(file: Path) -> None:
    (file.parent / "round").symlink_to("round")
    for path, error in (
        (file.with_name("none"), FileNotFoundError),
        (file / "x", NotADirectoryError),
        (file.parent, IsADirectoryError),
        (file.with_name("round"), OSError),
    ):
        with pytest.raises(error):
            opened(path)


def test_a_folder_that_others_write_to(file: Path) -> None:
    file.parent.chmod(0o777)
    with pytest.raises(Untrusted, match="other users can write"):
        opened(file)
    file.parent.chmod(0o1777)
    assert opened(file) == b"kept"


def test_a_file_with_two_names(file: Path) -> None:
    file.with_name("second").hardlink_to(file)
    with pytest.raises(Untrusted, match="several hard links"):
        opened(file.with_name("second"))


def test_a_strangers_folder(file: Path, as_another: None) -> None:
    with pytest.raises(Untrusted, match="a folder of another user"):
        opened(file)


def test_foreign_files_in_a_sticky_folder(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = Path("/tmp") / f"schedlab-{tmp_path.name}-{os.getpid()}"
    link = path.with_suffix(".link")
    path.write_bytes(b"kept")
    link.symlink_to("/dev/null")
    try:
        if os.getuid() == 0:
            os.lchown(path, STRANGER, STRANGER)
            os.lchown(link, STRANGER, STRANGER)
        request.getfixturevalue("as_another")
        with pytest.raises(Untrusted, match="belongs to another user"):
            opened(path)
        with pytest.raises(Untrusted, match="a link that belongs to another user"):
            opened(link)
    finally:
        path.unlink()
        link.unlink()


def test_who_called_sudo_is_trusted_with_all_but_links(
    file: Path, as_another: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = file.with_name("link")
    owner = file.stat().st_uid
    link.symlink_to("file")
    if os.getuid() == 0:
        os.lchown(link, owner, owner)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert opened(file) == b"kept"
    with pytest.raises(Untrusted, match="a link that belongs to another user"):
        opened(link)
    monkeypatch.setenv("SUDO_UID", "x")
    with pytest.raises(Untrusted, match="a folder of another user"):
        opened(file)
