# SPDX-License-Identifier: MIT
"""Opens compressed files and single-file tar archives, with a limit on the unpacked size."""

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
"""Functions that open compressed files, by the file's first bytes."""
_UNSUPPORTED = {
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "zstd -d FILE"),
    b"PK\3\4": ("a zip archive", "unzip FILE"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "7z x FILE"),
}
"""Compressed formats that Python's library cannot read, and the commands that unpack them."""
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_BYTES_MAX, _RATIO_MAX, _SMALL_BYTES = 4 << 30, 200, 256 << 20
_NAMES_SHOWN = 5
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, MemoryError)
"""Exceptions that readers raise for a damaged file, apart from OSError with an errno."""
_MEMBERS_MAX = 1000


@contextmanager
def open_unpacked(path: Path) -> Iterator[Path]:
    """Yields a path to the unpacked content: a temporary file, or the file itself if not
    compressed.

    An archive must contain exactly one file. Names in archives are only displayed, never used as
    paths. Raises FileRefused for unsupported formats, other archives, damaged files, and files that
    unpack to too much.
    """
    with path.open("rb") as file:
        first_bytes = file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC))
    for magic, (kind, command) in _UNSUPPORTED.items():
        if first_bytes.startswith(magic):
            raise FileRefused(
                f"{path}: this is {kind}; unpack it with "
                f"`{command.replace('FILE', path.name)}` and pass the result"
            )
    reader = next((read for magic, read in _READERS.items() if first_bytes.startswith(magic)), None)
    if reader is None and not _is_tar(first_bytes):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        unpacked_path = Path(folder) / "unpacked"
        limit = min(_BYTES_MAX, max(_SMALL_BYTES, _RATIO_MAX * path.stat().st_size))
        try:
            if reader:
                with reader(path) as source:
                    _copy_limited(path, source, unpacked_path, limit)
            with (unpacked_path if reader else path).open("rb") as file:
                is_tar = _is_tar(file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC)))
            if is_tar:
                unpacked_path = _only_member(
                    path, unpacked_path if reader else path, Path(folder), limit
                )
        except (*_DAMAGED, OSError) as error:
            if getattr(error, "errno", None):  # an error of the disk, not of the file
                raise
            raise FileRefused(f"{path}: damaged or incomplete ({error}); copy it again") from None
        yield unpacked_path


def _is_tar(first_bytes: bytes) -> bool:
    return first_bytes[_TAR_MAGIC_AT:] == _TAR_MAGIC


def _only_member(path: Path, archive: Path, folder: Path, limit: int) -> Path:
    """Unpacks the only file of an archive."""
    place = folder / "member"
    with tarfile.open(archive, "r:") as members:
        files = [member for member in islice(members, _MEMBERS_MAX) if member.isreg()]
        if len(files) != 1:
            shown = ", ".join(repr(member.name[:60]) for member in files[:_NAMES_SHOWN])
            raise FileRefused(
                f"{path}: the archive has {len(files)} files ({shown}{', …' if len(files) > _NAMES_SHOWN else ''});"
                f" unpack it with `tar xf {path.name}`, and name the recording among them."
                f"{_hint_at_format([member.name for member in files])}"
            )
        source = members.extractfile(files[0])
        assert source
        with source:
            _copy_limited(path, source, place, limit)
    return place


def _hint_at_format(names: list[str]) -> str:
    """Returns a hint if the names in an archive belong to a known kind of archive; otherwise ""."""
    file_names = {name.rpartition("/")[2] for name in names}
    if "metadata.textproto" in file_names or any("/formats/" in f"/{name}" for name in names):
        return (
            " It is a collection of SchedViz, with the kernel's raw buffers, which no tool makes text of: record with"
            " `trace-cmd record -e sched` instead"
        )
    if "metadata" in file_names:
        return " It is a CTF trace of LTTng: `babeltrace2 --clock-seconds FOLDER >FILE.txt` makes text of it"
    return ""


def _copy_limited(path: Path, source: IO[bytes], place: Path, limit: int) -> None:
    """Copies a stream to a new file. Raises FileRefused beyond `limit` bytes."""
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
