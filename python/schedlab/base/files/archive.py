# SPDX-License-Identifier: MIT
"""Writes and reads archives: the same files give the same bytes, and malicious archives do no harm.

Archives are zip files, whose parts have known sizes before they are unpacked.
"""

from __future__ import annotations

import errno
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from schedlab.base.files.atomic import written
from schedlab.base.files.reading import check_regular
from schedlab.errors import FileRefused

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = stat.S_IFREG | 0o644
_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,120}/){0,4}[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_END, _END_BYTES = b"PK\5\6", 22
_LISTED_MAX = 16 << 20
"""Maximum bytes of an archive's directory, which is read into memory."""
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(ValueError, OverflowError, RuntimeError),
)
"""Exceptions of Python's zip reader for invalid files."""
_BYTES_MAX = 4 << 30
_TIMES_MAX = 60
"""Maximum compression ratio; texts and traces have ratios from 3 to 15."""
_SMALL = 16 << 20
"""Unpacked bytes that any archive may have."""


def write_archive(path: Path, files: Mapping[str, bytes | Path]) -> None:
    """Writes an archive atomically."""
    with (
        written(path) as new,
        zipfile.ZipFile(
            new, "w", zipfile.ZIP_DEFLATED, allowZip64=False, compresslevel=9
        ) as packed,
    ):
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system, member.external_attr = 3, _MODE << 16
            packed.writestr(member, content.read_bytes() if isinstance(content, Path) else content)


def unpack(path: Path, folder: Path) -> None:
    """Unpacks an archive into an empty folder.

    Raises FileRefused for invalid archives, unsafe or duplicate names, links, and archives that are
    too large. Files are written only after these checks; only damaged content is found later.
    """
    check_regular(path)
    try:
        _check_end(path)
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
            _check(path, members)
            for member in members:
                place = folder / member.filename
                place.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(member) as source, place.open("xb") as target:
                    while block := source.read(1 << 20):
                        target.write(block)
    except _DAMAGED as error:
        _refuse(path, str(error) or "it is cut off")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        _refuse(path, "a file in it has the name of a folder")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _refuse(path, "it says that files are where none can be")


def _check_end(path: Path) -> None:
    """Checks the end of the archive, which has the size of its directory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES))
        end = file.read()
    if len(end) < _END_BYTES or not end.startswith(_END) or end[-2:] != b"\0\0":
        _refuse(path, "not a zip file, or truncated")
    if int.from_bytes(end[12:16], "little") > _LISTED_MAX:
        _refuse(path, "it has too many files")


def _check(path: Path, members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    for name in names:
        if not _NAME.fullmatch(name) or ".." in name:
            _refuse(path, f"{name[:80]!r} in it is not a name that schedlab uses")
    if len({name.lower() for name in names}) < len(names):
        _refuse(path, "two files in it have the same name")
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            _refuse(path, f"{member.filename} in it is not a file")
    most = min(_BYTES_MAX, max(_SMALL, _TIMES_MAX * path.stat().st_size))
    if sum(member.file_size for member in members) > most:
        _refuse(path, f"unpacked it would have more than {most >> 20} MiB")


def _refuse(path: Path, why: str) -> NoReturn:
    raise FileRefused(f"{path}: not a usable archive: {why}") from None
