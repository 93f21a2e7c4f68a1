# SPDX-License-Identifier: MIT
"""Writes a guest's initial ramdisk: a cached base archive, followed by the archive of a job.

Replaces the program cpio: it needs no root privileges for devices and ownership, and the same
content gives the same bytes on every host.
"""

import hashlib
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from schedlab.base.files.atomic import atomic_write, file_hash, lock_folder
from schedlab.errors import WrongUsage
from schedlab.machines.linux.elf import LOADER_NAME
from schedlab.machines.linux.packages import Packages, packages_folder
from schedlab.paths import ROOT

INIT_SCRIPT = ROOT / "linux" / "guest" / "init"
_FORMAT = "1"
"""Version of the archive format; a change invalidates all cached archives."""

_UNUSED_SECONDS = 7 * 24 * 3600

BENCHMARKS = ("sysbench", "stress-ng", "hackbench", "rt-app")
"""Benchmarks that a guest has by default; a guest with fewer boots a little faster."""
_INIT_PROGRAMS = ("chrt",)

_FOLDERS = (
    *("bin", "sbin", "usr", "usr/bin", "usr/sbin", "lib", "lib/x86_64-linux-gnu", "lib64"),
    *("dev", "proc", "sys", "run", "tmp", "root", "etc", "job", "result"),
)
_CONSOLE = (5, 1)
"""Device numbers of /dev/console, which Linux opens for its first process."""
_PASSWD_CONTENT = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUP_CONTENT = b"root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Entry:
    """A file, folder or device of an archive."""

    name: str
    mode: int  # file type and permissions (st_mode)
    content: bytes | Path = b""
    device: tuple[int, int] = (0, 0)  # major and minor number

    def read(self) -> bytes:
        return self.content.read_bytes() if isinstance(self.content, Path) else self.content


def file_entry(name: str, content: bytes | Path) -> Entry:
    """Returns an executable file's entry, regardless of its mode on the host."""
    return Entry(name, stat.S_IFREG | 0o755, content)


def directory_entry(name: str) -> Entry:
    return Entry(name, stat.S_IFDIR | 0o755)


def archive_bytes(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yields an archive in the format that Linux unpacks at boot (cpio's "newc").

    It contains names, modes and contents, but no times or owners.
    """
    number = 0
    for number, entry in enumerate(entries, 1):
        yield from _entry_bytes(entry, number)
    yield from _entry_bytes(Entry("TRAILER!!!", 0), number + 1)


def _entry_bytes(entry: Entry, number: int) -> Iterator[bytes]:
    """Yields the entry in the format cpio "newc"."""
    content = entry.read()
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    # inode, mode, user, group, links, time, size, device of the file, device that it is, name, sum
    fields = (number, entry.mode, 0, 0, links, 0, len(content), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    yield header + alignment_padding(len(header))
    yield content + alignment_padding(len(content))


def alignment_padding(size: int) -> bytes:
    """Returns zeros up to a multiple of four bytes."""
    return bytes(-size % 4)


def base_image(packages: Packages, programs: Iterable[str]) -> Path:
    """Returns the archive that all jobs share (init, programs, libraries); writes it if it is missing."""
    entries = list(base_entries(packages, programs))
    path = packages_folder() / "images" / f"{image_key(entries, packages)}.cpio"
    if not path.exists():
        with lock_folder(packages_folder()):
            path.parent.mkdir(exist_ok=True)
            remove_old_images(path.parent)
            if not path.exists():
                write_image(entries, path)
    path.touch()
    return path


def image_key(entries: Iterable[Entry], packages: Packages) -> str:
    """Returns a hash that identifies the archive's content."""
    digest = hashlib.sha256(_FORMAT.encode())
    for entry in entries:
        content_key = content_hash(entry.content, packages)
        digest.update(f"{entry.name}\0{entry.mode}\0{entry.device}\0{content_key}\n".encode())
    return digest.hexdigest()[:24]


def content_hash(content: bytes | Path, packages: Packages) -> str:
    """Returns the SHA-256 hash of a file; uses the known hashes of packages' files."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    if content.is_relative_to(packages.tree):
        return packages.sums[str(content.relative_to(packages.tree))]
    return file_hash(content)


def remove_old_images(place: Path) -> None:
    """Deletes images not used for a week, such as images of old packages."""
    for path in place.iterdir():
        if time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
            path.unlink()


def write_image(entries: Iterable[Entry], path: Path) -> None:
    with atomic_write(path) as new, new.open("wb") as file:
        file.writelines(archive_bytes(entries))


def base_entries(packages: Packages, programs: Iterable[str]) -> Iterator[Entry]:
    """Yields entries in unpacking order: a folder before its contents."""
    yield from map(directory_entry, _FOLDERS)
    yield Entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)
    yield file_entry("init", INIT_SCRIPT)
    yield file_entry("etc/passwd", _PASSWD_CONTENT)
    yield file_entry("etc/group", _GROUP_CONTENT)
    yield file_entry("bin/busybox", packages.program("busybox"))
    chosen = sorted({*_INIT_PROGRAMS, *programs})
    for name in chosen:
        yield file_entry(f"usr/bin/{name}", packages.program(name))
    for name in sorted({library for program in chosen for library in packages.needs[program]}):
        place = "lib64" if name == LOADER_NAME else "lib/x86_64-linux-gnu"
        yield file_entry(f"{place}/{name}", packages.library(name))


def job_entries(files: Mapping[str, bytes | Path], script: str) -> Iterator[Entry]:
    """Yields a job's files, all under /job."""
    folders: dict[str, None] = {}
    for name in files:
        for parent in reversed(check_job_path(name).parents):
            if parent.name:
                folders[f"job/{parent}"] = None
    yield from map(directory_entry, folders)
    yield file_entry("job/script", script.encode())
    for name in sorted(files):
        yield file_entry(f"job/{name}", files[name])


def check_job_path(name: str) -> PurePosixPath:
    """Returns a path inside of /job. Raises WrongUsage otherwise."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or name == "script":
        raise WrongUsage(
            f"'{name}': not a valid name of a job's file; name a path below /job without .., other than script"
        )
    return path


def write_ramdisk(base: Path, job: Iterable[Entry], path: Path) -> None:
    """Writes the cached archive followed by the job's archive; Linux unpacks both."""
    with path.open("wb") as out:
        with base.open("rb") as base_file:
            shutil.copyfileobj(base_file, out, 1 << 20)
        for piece in archive_bytes(job):
            out.write(piece)
