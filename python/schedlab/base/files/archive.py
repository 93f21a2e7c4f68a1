# SPDX-License-Identifier: MIT
"""Writes zip and tar archives, and reads zip archives.

The same files give the same bytes. A malicious archive does no harm: the unpacked sizes are known
before anything is unpacked.
"""

import errno
import io
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from schedlab.base.files.atomic import atomic_write
from schedlab.base.files.reading import check_regular
from schedlab.errors import FileRefused

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = stat.S_IFREG | 0o644
_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,120}/){0,4}[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_END, _END_BYTES = b"PK\5\6", 22
_LISTING_BYTES_MAX = 16 << 20
"""Maximum bytes of an archive's list of files, which is read into memory."""
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(ValueError, OverflowError, RuntimeError),
)
"""Exceptions that Python's zip reader raises for invalid files."""
_BYTES_MAX = 4 << 30
_RATIO_MAX = 60
"""Maximum ratio of unpacked to packed size; texts and traces have ratios from 3 to 15."""
_SMALL_BYTES = 16 << 20
"""Unpacked bytes that are allowed at any ratio."""


def write_archive(path: Path, files: Mapping[str, bytes | Path]) -> None:
    """Writes an archive, which appears under its name when it is complete."""
    with (
        atomic_write(path) as new_path,
        zipfile.ZipFile(
            new_path, "w", zipfile.ZIP_DEFLATED, allowZip64=False, compresslevel=9
        ) as archive,
    ):
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system, member.external_attr = 3, _MODE << 16
            archive.writestr(member, content.read_bytes() if isinstance(content, Path) else content)


def make_tar(files: Mapping[str, tuple[bytes, int]], seconds: int = 0) -> bytes:
    """Returns a tar archive of contents and modes by name; all have the same time, and no owner."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, seconds
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def unpack(path: Path, folder: Path) -> None:
    """Unpacks an archive into an empty folder.

    Before anything is written, raises FileRefused for invalid archives, unsafe or repeated names,
    links, and archives that unpack to too much. Only damaged content is found later.
    """
    check_regular(path)
    try:
        _check_end(path)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(path, members)
            for member in members:
                target_path = folder / member.filename
                target_path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target_path.open("xb") as target:
                    while block := source.read(1 << 20):
                        target.write(block)
    except _DAMAGED as error:
        _raise_refusal(path, str(error) or "truncated")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        _raise_refusal(path, "it has a file and a folder of the same name")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _raise_refusal(path, "its directory is damaged")


def _check_end(path: Path) -> None:
    """Checks the last bytes of the archive, which say how long the list of files is."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES))
        end = file.read()
    if len(end) < _END_BYTES or not end.startswith(_END) or end[-2:] != b"\0\0":
        _raise_refusal(path, "not a zip file, or truncated")
    if int.from_bytes(end[12:16], "little") > _LISTING_BYTES_MAX:
        _raise_refusal(path, "it has too many files")


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    for name in names:
        if not _NAME.fullmatch(name) or ".." in name:
            _raise_refusal(path, f"{name[:80]!r} in it is not a name that schedlab uses")
    if len({name.lower() for name in names}) < len(names):
        _raise_refusal(path, "two files in it have the same name")
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            _raise_refusal(path, f"{member.filename} in it is not a file")
    bytes_max = min(_BYTES_MAX, max(_SMALL_BYTES, _RATIO_MAX * path.stat().st_size))
    if sum(member.file_size for member in members) > bytes_max:
        _raise_refusal(path, f"unpacked it would have more than {bytes_max >> 20} MiB")


def _raise_refusal(path: Path, why: str) -> NoReturn:
    raise FileRefused(
        f"not a usable archive: {why}", what=str(path), fix="copy or make it again"
    ) from None
