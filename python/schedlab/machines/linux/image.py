# SPDX-License-Identifier: MIT
"""Writes the guest's initial ramdisk: a cached base archive, followed by an archive for each job.

This module writes the archives instead of cpio. It needs no root privileges for devices and
ownership, and the same content gives the same bytes on every host.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from schedlab.base.files.atomic import alone, file_hash, written
from schedlab.errors import WrongUsage
from schedlab.machines.linux.elf import LOADER
from schedlab.machines.linux.packages import Packages, folder
from schedlab.paths import ROOT

INIT = ROOT / "linux" / "guest" / "init"
_FORMAT = "1"
"""Version of the archive format; a change invalidates all cached archives."""

_UNUSED_SECONDS = 7 * 24 * 3600

BENCHMARKS = ("sysbench", "stress-ng", "hackbench", "rt-app")
"""A guest's default benchmarks; boots with fewer are a little faster."""
_OF_INIT = ("chrt",)

_FOLDERS = (
    *("bin", "sbin", "usr", "usr/bin", "usr/sbin", "lib", "lib/x86_64-linux-gnu", "lib64"),
    *("dev", "proc", "sys", "run", "tmp", "root", "etc", "job", "result"),
)
_CONSOLE = (5, 1)
"""Device numbers of /dev/console, which Linux opens for its first process."""
_PASSWORDS = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUPS = b"root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Entry:
    """A file, folder or device of an archive."""

    name: str
    mode: int
    content: bytes | Path = b""
    device: tuple[int, int] = (0, 0)

    def read(self) -> bytes:
        return self.content.read_bytes() if isinstance(self.content, Path) else self.content


def file(name: str, content: bytes | Path) -> Entry:
    """Returns an executable file's entry, regardless of its mode on the host."""
    return Entry(name, stat.S_IFREG | 0o755, content)


def directory(name: str) -> Entry:
    return Entry(name, stat.S_IFDIR | 0o755)


def archive(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yields an archive in the format that Linux unpacks at boot (cpio's "newc").

    It contains names, modes and contents, but no times or owners.
    """
    number = 0
    for number, entry in enumerate(entries, 1):
        yield from _record(entry, number)
    yield from _record(Entry("TRAILER!!!", 0), number + 1)


def _record(entry: Entry, number: int) -> Iterator[bytes]:
    content = entry.read()
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    # inode, mode, user, group, links, time, size, device of the file, device that it is, name, sum
    fields = (number, entry.mode, 0, 0, links, 0, len(content), 0, 0, *entry.device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    yield head + padding(len(head))
    yield content + padding(len(content))


def padding(size: int) -> bytes:
    """Returns zeros up to a multiple of four bytes."""
    return bytes(-size % 4)


def base_image(packages: Packages, programs: Iterable[str]) -> Path:
    """Returns the archive that jobs share: init, programs and libraries; makes it if it is missing."""
    entries = list(base_entries(packages, programs))
    path = folder() / "images" / f"{key(entries, packages)}.cpio"
    if not path.exists():
        with alone(folder()):
            path.parent.mkdir(exist_ok=True)
            remove_old(path.parent)
            if not path.exists():
                write(entries, path)
    path.touch()
    return path


def key(entries: Iterable[Entry], packages: Packages) -> str:
    """Returns a hash that identifies the archive's content."""
    digest = hashlib.sha256(_FORMAT.encode())
    for entry in entries:
        what = sum_of(entry.content, packages)
        digest.update(f"{entry.name}\0{entry.mode}\0{entry.device}\0{what}\n".encode())
    return digest.hexdigest()[:24]


def sum_of(content: bytes | Path, packages: Packages) -> str:
    """Returns a SHA-256 hash; files of packages were hashed when they were verified."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    if content.is_relative_to(packages.tree):
        return packages.sums[str(content.relative_to(packages.tree))]
    return file_hash(content)


def remove_old(place: Path) -> None:
    """Deletes images not used for a week, such as images of old packages."""
    for path in place.iterdir():
        if time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
            path.unlink()


def write(entries: Iterable[Entry], path: Path) -> None:
    with written(path) as new, new.open("wb") as file:
        file.writelines(archive(entries))


def base_entries(packages: Packages, programs: Iterable[str]) -> Iterator[Entry]:
    """Yields entries in unpacking order: a folder before its contents."""
    yield from map(directory, _FOLDERS)
    yield Entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)
    yield file("init", INIT)
    yield file("etc/passwd", _PASSWORDS)
    yield file("etc/group", _GROUPS)
    yield file("bin/busybox", packages.program("busybox"))
    chosen = sorted({*_OF_INIT, *programs})
    for name in chosen:
        yield file(f"usr/bin/{name}", packages.program(name))
    for name in sorted({library for program in chosen for library in packages.needs[program]}):
        place = "lib64" if name == LOADER else "lib/x86_64-linux-gnu"
        yield file(f"{place}/{name}", packages.library(name))


def job_entries(files: Mapping[str, bytes | Path], script: str) -> Iterator[Entry]:
    """Yields a job's files, all under /job."""
    folders: dict[str, None] = {}
    for name in files:
        for parent in reversed(checked(name).parents):
            if parent.name:
                folders[f"job/{parent}"] = None
    yield from map(directory, folders)
    yield file("job/script", script.encode())
    for name in sorted(files):
        yield file(f"job/{name}", files[name])


def checked(name: str) -> PurePosixPath:
    """Returns a path inside of /job. Raises WrongUsage otherwise."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or name == "script":
        raise WrongUsage(f"'{name}': not a valid name of a job's file; it must be below /job")
    return path


def write_ramdisk(base: Path, job: Iterable[Entry], path: Path) -> None:
    """Writes the cached archive followed by the job's archive; Linux unpacks both."""
    with path.open("wb") as out:
        with base.open("rb") as first:
            shutil.copyfileobj(first, out, 1 << 20)
        for piece in archive(job):
            out.write(piece)
