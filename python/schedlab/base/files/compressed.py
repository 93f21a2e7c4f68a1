# SPDX-License-Identifier: MIT
"""Opens compressed files and single-file tar archives, with a limit on the unpacked size."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from schedlab.errors import FileRefused

_READERS: dict[bytes, Callable[[Path], IO[bytes] | Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\0": lzma.open,
    b"BZh": bz2.open,
}
"""Readers by magic bytes."""
_REFUSED = {
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "zstd -d FILE"),
    b"PK\3\4": ("a zip archive", "unzip FILE"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "7z x FILE"),
}
"""Formats that Python's library cannot read, with the command that unpacks them."""
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_BYTES_MAX, _RATIO_MAX, _SMALL_BYTES = 4 << 30, 200, 256 << 20
_NAMES_SHOWN = 5
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, MemoryError)
"""Exceptions of the readers other than OSError with a number."""
_MEMBERS_MAX = 1000


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yields the file itself, or a temporary file with its unpacked content.

    Names in archives are only displayed, never used as paths. Raises FileRefused for unsupported
    formats, archives without exactly one file, damaged files, and files that unpack to too much.
    """
    with path.open("rb") as file:
        begin = file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC))
    for magic, (what, command) in _REFUSED.items():
        if begin.startswith(magic):
            raise FileRefused(
                f"{path}: this is {what}; unpack it with "
                f"`{command.replace('FILE', path.name)}` and pass the result"
            )
    reader = next((read for magic, read in _READERS.items() if begin.startswith(magic)), None)
    if reader is None and not _is_tar(begin):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        place = Path(folder) / "unpacked"
        limit = min(_BYTES_MAX, max(_SMALL_BYTES, _RATIO_MAX * path.stat().st_size))
        try:
            if reader:
                with reader(path) as source:
                    _copy(path, source, place, limit)
            with (place if reader else path).open("rb") as file:
                is_tar = _is_tar(file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC)))
            if is_tar:
                place = _only_member(path, place if reader else path, Path(folder), limit)
        except (*_DAMAGED, OSError) as error:
            if getattr(error, "errno", None):  # the disk's fault, not the file's
                raise
            raise FileRefused(f"{path}: damaged or incomplete ({error}); copy it again") from None
        yield place


def _is_tar(begin: bytes) -> bool:
    return begin[_TAR_MAGIC_AT:] == _TAR_MAGIC


def _only_member(path: Path, archive: Path, folder: Path, limit: int) -> Path:
    """Unpacks the only file of an archive."""
    place = folder / "member"
    with tarfile.open(archive, "r:") as members:
        files = [member for member in islice(members, _MEMBERS_MAX) if member.isreg()]
        if len(files) != 1:
            shown = ", ".join(repr(member.name[:60]) for member in files[:_NAMES_SHOWN])
            raise FileRefused(
                f"{path}: the archive has {len(files)} files ({shown}{', …' if len(files) > _NAMES_SHOWN else ''});"
                f" unpack it by `tar xf {path.name}`, and give the recording itself."
                f"{_hint([member.name for member in files])}"
            )
        source = members.extractfile(files[0])
        assert source
        with source:
            _copy(path, source, place, limit)
    return place


def _hint(names: list[str]) -> str:
    """Returns a hint about known kinds of archives, from their file names; otherwise ""."""
    last = {name.rpartition("/")[2] for name in names}
    if "metadata.textproto" in last or any("/formats/" in f"/{name}" for name in names):
        return (
            " It is a collection of SchedViz, with the kernel's raw buffers, which no tool makes text of: record with"
            " `trace-cmd record -e sched` instead"
        )
    if "metadata" in last:
        return " It is a CTF trace of LTTng: `babeltrace2 --clock-seconds FOLDER >FILE.txt` makes text of it"
    return ""


def _copy(path: Path, source: IO[bytes], place: Path, limit: int) -> None:
    written_bytes = 0
    with place.open("xb") as target:
        while block := source.read(1 << 20):
            written_bytes += len(block)
            if written_bytes > limit:
                raise FileRefused(
                    f"{path}: unpacks to more than {limit >> 20:,} MiB; if that is right, "
                    "unpack it yourself and pass the result"
                )
            target.write(block)
