# SPDX-License-Identifier: MIT
"""Tests archives: equal files give equal bytes, and a malicious archive is refused without
effects."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.base.files import archive
from schedlab.base.files.archive import unpack, write_archive
from schedlab.errors import FileRefused


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    write_archive(one, {"x/b": tmp_path / "b", "a": b"one"})
    (tmp_path / "b").touch()
    (tmp_path / "b").chmod(0o600)
    write_archive(other, {"a": b"one", "x/b": b"two"})
    assert one.read_bytes() == other.read_bytes()
    unpack(one, tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"one"
    assert (tmp_path / "out/x/b").read_bytes() == b"two"


def of_names(*names: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as packed:
            for name in names:
                packed.writestr(zipfile.ZipInfo(name), b"x")

    return make


def link(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        member = zipfile.ZipInfo("a")
        member.create_system, member.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        packed.writestr(member, "/etc/passwd")


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a", bytes(64 << 20))


def overlapping(path: Path) -> None:
    """Makes an archive whose names all refer to one stream of a few kilobytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a", bytes(8 << 20))
        first = packed.filelist[0]
        for number in range(100):
            member = zipfile.ZipInfo(f"a{number}")
            for key in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(member, key, getattr(first, key))
            packed.filelist.append(member)


def another_size(path: Path) -> None:
    """Makes an archive that states a size of one byte, and contains more."""
    write_archive(path, {"a": bytes(1 << 20)})
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<L", 1 << 20), struct.pack("<L", 1)))


def cut_off(path: Path) -> None:
    write_archive(path, {"a": bytes(1000)})
    path.write_bytes(path.read_bytes()[:-30])


def damaged(path: Path) -> None:
    write_archive(path, {"a": b"some text of which a byte is changed"})
    content = bytearray(path.read_bytes())
    content[40] ^= 0xFF
    path.write_bytes(content)


def long_list(path: Path) -> None:
    write_archive(path, {"a": b""})
    content = bytearray(path.read_bytes())
    content[-10:-6] = struct.pack("<L", archive._LISTING_BYTES_MAX + 1)
    path.write_bytes(content)


def nowhere(path: Path) -> None:
    """Makes an archive whose directory points before the start of the file."""
    write_archive(path, {"a": b""})
    content = bytearray(path.read_bytes())
    content[-6:-2] = struct.pack("<L", 0xFFFFFF)
    path.write_bytes(content)


def encrypted(path: Path) -> None:
    write_archive(path, {"a": b""})
    content = bytearray(path.read_bytes())
    for sign in (b"PK\3\4", b"PK\1\2"):
        flags = content.index(sign) + (6 if sign == b"PK\3\4" else 8)
        content[flags] |= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (of_names("../x"), "not a name that schedlab uses"),
        (of_names("a/../../x"), "not a name that schedlab uses"),
        (of_names("/tmp/x"), "not a name that schedlab uses"),
        (of_names("a\\..\\x"), "not a name that schedlab uses"),
        (of_names(".hidden"), "not a name that schedlab uses"),
        (of_names("a/"), "not a name that schedlab uses"),
        (of_names("\x1b[31m\n"), "not a name that schedlab uses"),
        (of_names("a", "A"), "two files in it have the same name"),
        (of_names("a", "a/b"), "a file and a folder"),
        (of_names("a/b", "a"), "a file and a folder"),
        (link, "is not a file"),
        (bomb, "unpacked it would have more than 16 MiB"),
        (overlapping, "unpacked it would have more than 16 MiB"),
        (another_size, "CRC|cut off"),
        (cut_off, "not a zip file, or truncated"),
        (damaged, "not a usable archive"),
        (long_list, "too many files"),
        (encrypted, "encrypted"),
        (nowhere, "its directory is damaged"),
        (lambda path: path.write_bytes(b""), "not a zip file"),
        (lambda path: path.write_bytes(bytes(5000)), "not a zip file"),
    ],
)
def test_what_attacks_is_refused(make: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    path, out = tmp_path / "bad.zip", tmp_path / "out"
    make(path)
    with pytest.raises(FileRefused, match=words) as caught:
        unpack(path, out)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} <= {"bad.zip", "out"}
    if out.exists():
        assert all(not path.is_symlink() for path in out.rglob("*"))
