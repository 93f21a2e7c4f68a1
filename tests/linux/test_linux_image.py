# SPDX-License-Identifier: MIT
"""Tests the guest's initial ramdisk: equal content gives equal bytes, and changes rebuild it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from linux_stand_ins import stand_in_packages
from schedlab.errors import WrongUsage
from schedlab.machines.linux import image
from schedlab.machines.linux.elf import LOADER_NAME
from schedlab.machines.linux.packages import Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return stand_in_packages(tmp_path / "tree")


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpacks with GNU cpio, without the devices that only root may make."""
    folder.mkdir()
    with archive.open("rb") as file:
        subprocess.run(
            ["cpio", "--extract", "--make-directories", "--quiet", "--nonmatching", "dev/console"],
            cwd=folder,
            stdin=file,
            check=True,
        )
    return folder


needs_cpio = pytest.mark.skipif(
    not shutil.which("cpio"), reason="no cpio is here to read them with"
)


@needs_cpio
def test_an_image_holds_what_its_programs_need_and_no_more(
    packages: Packages, tmp_path: Path
) -> None:
    root = unpacked(image.base_image(packages, ["sysbench"]), tmp_path / "root")
    libraries = root / "lib" / "x86_64-linux-gnu"
    assert {path.name for path in (root / "usr" / "bin").iterdir()} == {"chrt", "sysbench"}
    assert {path.name for path in libraries.iterdir()} == {"libc.so.6", "libone.so.1"}
    assert (root / "lib64" / LOADER_NAME).read_text() == LOADER_NAME
    assert (root / "init").read_bytes() == image.INIT_SCRIPT.read_bytes()
    assert os.access(root / "bin" / "busybox", os.X_OK)
    bare = unpacked(image.base_image(packages, []), tmp_path / "bare")
    assert {path.name for path in (bare / "usr" / "bin").iterdir()} == {"chrt"}


@needs_cpio
def test_a_jobs_files_come_behind(packages: Packages, tmp_path: Path) -> None:
    (tmp_path / "host file").write_bytes(b"\0\1")
    (tmp_path / "host file").chmod(0o600)
    files: dict[str, bytes | Path] = {"objects/deep/a.o": b"abc", "b c": tmp_path / "host file"}
    ramdisk = tmp_path / "ramdisk"
    job = image.job_entries(files, "true")
    image.write_ramdisk(image.base_image(packages, []), job, ramdisk)
    base = image.base_image(packages, []).read_bytes()
    content = ramdisk.read_bytes()
    assert content.startswith(base)
    (tmp_path / "second").write_bytes(content[len(base) :])
    root = unpacked(tmp_path / "second", tmp_path / "root") / "job"
    assert (root / "objects" / "deep" / "a.o").read_bytes() == b"abc"
    assert (root / "b c").read_bytes() == b"\0\1"
    assert (root / "script").read_text() == "true"
    assert all(os.access(path, os.X_OK) for path in root.rglob("*"))


def test_the_same_content_gives_the_same_bytes(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = image.base_image(packages, ["sysbench"]).read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    other = stand_in_packages(tmp_path / "other tree")
    os.utime(other.program("sysbench"), (1, 1))
    other.program("sysbench").chmod(0o600)
    assert image.base_image(other, ["sysbench"]).read_bytes() == first


def test_image_is_rebuilt_only_after_changes(
    packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = image.base_image(packages, ["sysbench"])
    made = first.stat().st_ino
    assert image.base_image(packages, ["sysbench"]).stat().st_ino == made
    assert image.base_image(packages, []) != first
    init = tmp_path / "init"
    init.write_text("#!/bin/busybox sh\n")
    monkeypatch.setattr(image, "INIT_SCRIPT", init)
    assert image.base_image(packages, ["sysbench"]) != first
    assert first.exists()


@pytest.mark.parametrize("name", ["/etc/passwd", "../init", "a/../../init", "script", ""])
def test_no_file_of_a_job_gets_out_of_its_folder(name: str) -> None:
    with pytest.raises(WrongUsage, match="name a path below /job"):
        list(image.job_entries({name: b""}, ""))
