# SPDX-License-Identifier: MIT
"""Tests that mkfs makes disk images and fsck checks them, both with clear messages."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from schedlab.base.toolchain.build import DISK_IMAGE

BUILD = DISK_IMAGE.parent
BLOCK = 4096
INODE_MAP_AT = 36
"""Field of the superblock: the first block of the bitmap of used inodes."""


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Builds the two programs."""
    build_once("host-tools")


def call(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Calls one of the programs."""
    command = [BUILD / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def make(folder: Path, *files: str | Path, blocks: int = 1000) -> Path:
    """Makes an image in the folder, and requires that mkfs prints nothing."""
    image = folder / "disk.img"
    result = call("mkfs", image, str(blocks), *files)
    assert (result.returncode, result.stderr) == (0, "")
    return image


@pytest.mark.parametrize("size", [0, 24 * BLOCK + 1])
def test_an_image_holds_files_and_is_clean(tmp_path: Path, size: int) -> None:
    """The image contains the file's bytes, and the checker reports nothing."""
    content = bytes(i * 31 % 251 for i in range(size))
    (tmp_path / "file").write_bytes(content)
    image = make(tmp_path, tmp_path / "file", f"{tmp_path}/file=other")
    assert image.stat().st_size == 1000 * BLOCK
    data = image.read_bytes()
    assert all(data.count(content[index : index + BLOCK]) >= 2 for index in range(0, size, BLOCK))
    assert call("fsck", image).returncode == 0


@pytest.mark.parametrize("count", [0, 62])
def test_boot_inodes_are_next_to_the_roots(tmp_path: Path, count: int) -> None:
    """The position does not depend on the number of programs.

    Otherwise a boot would read one more block for some numbers, and each program would start later
    in its tick.
    """
    (tmp_path / "file").write_bytes(b"text")
    data = make(tmp_path, *(f"{tmp_path}/file=file{n}" for n in range(count))).read_bytes()
    (map_start,) = struct.unpack_from("<I", data, INODE_MAP_AT)
    used = int.from_bytes(data[map_start * BLOCK : (map_start + 1) * BLOCK], "little")
    assert [number for number in range(8 + count) if not used >> number & 1] == [
        *range(2, 7),  # inode 1 is the root
        *range(7 + count, 8 + count),
    ]


@pytest.mark.parametrize("count", [0, 300])
def test_files_that_are_added_later_make_no_difference(tmp_path: Path, count: int) -> None:
    """The order is also irrelevant if the directory grows by a block."""
    (tmp_path / "file").write_bytes(bytes(100_000))
    (tmp_path / "small").write_text("text")
    first: list[str | Path] = [f"{tmp_path}/small=a{i}" for i in range(count)]
    later: list[str | Path] = [tmp_path / "file", *(f"{tmp_path}/small=b{i}" for i in range(100))]
    full_image = make(tmp_path, *first, *later, blocks=2000).read_bytes()
    old = make(tmp_path, *first, blocks=2000)
    new = tmp_path / "new.img"
    result = call("mkfs", new, "--add", old, *later)
    assert (result.returncode, result.stderr) == (0, "")
    assert new.read_bytes() == full_image
    assert call("fsck", new).returncode == 0


def test_only_an_image_of_mkfs_is_added_to(tmp_path: Path) -> None:
    image = make(tmp_path)
    content = bytearray(image.read_bytes())
    block_map = int.from_bytes(content[44:48], "little")
    last = int.from_bytes(content[56:60], "little") + 1
    content[block_map * BLOCK + last // 8] |= 1 << last % 8
    (tmp_path / "used").write_bytes(content)
    (tmp_path / "none").write_bytes(bytes(5 * BLOCK))
    (tmp_path / "short").write_bytes(b"text")
    for name, message in (
        ("used", "changed after mkfs"),
        ("none", "not a disk image"),
        ("short", "not a disk image"),
        ("missing", "No such file"),
    ):
        result = call("mkfs", tmp_path / "out.img", "--add", tmp_path / name)
        assert result.returncode == 1
        assert message in result.stderr
    assert not (tmp_path / "out.img").exists()
    result = call("mkfs", tmp_path / "out.img", "--add")
    assert result.returncode == 2


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    """Damages: a used block that is marked free, and an invalid superblock."""
    image = make(tmp_path)
    data = bytearray(image.read_bytes())
    first_data_block = int.from_bytes(data[56:60], "little")
    block_map = int.from_bytes(data[44:48], "little")
    data[block_map * BLOCK + first_data_block // 8] &= ~(1 << first_data_block % 8) & 0xFF
    image.write_bytes(data)
    result = call("fsck", image)
    assert result.returncode == 1
    assert f"block {first_data_block}" in result.stdout
    image.write_bytes(bytes(len(data)))
    assert call("fsck", image).returncode == 1
