# SPDX-License-Identifier: MIT
"""Finds GNU's C++ library, which Spike's library needs; the pinned compiler has a different one."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from schedlab.base.files.atomic import alone
from schedlab.base.toolchain.tools import output
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, mirror
from schedlab.machines.linux.apt import PrivateApt
from schedlab.paths import cache_folder, in_caches

PACKAGE, SUITE = "libstdc++-12-dev", "bookworm"
"""Headers of the oldest supported release; newer libraries have all its symbols."""
_PLACE = "gnu/libstdc++-12"
_LIBRARY = re.compile(r"(/\S+/lib(?:stdc\+\+|gcc_s)\.so\S*) \(0x")
"""A library in the output of ldd."""


def with_gnu_library(user: Path) -> Iterator[str]:
    """Yields compiler and linker options for the C++ library that a shared library of this host uses.

    Raises MachineUnfit if its headers are missing and cannot be fetched.
    """
    # The host's libraries may need a newer C library than programs are linked with.
    yield from ("-nostdinc++", "-nostdlib++", "-Wl,--allow-shlib-undefined")
    for folder in _headers(Path("/usr/include")) or _fetched_headers():
        yield from ("-I", str(folder))
    yield from _LIBRARY.findall(output("ldd", str(user)))


def _headers(include: Path) -> tuple[Path, ...]:
    """Returns the folders of the oldest headers, or () if there are none."""
    for version in sorted(include.glob("c++/[0-9]*"), key=lambda path: int(path.name)):
        machine = [*include.glob(f"x86_64-*/c++/{version.name}"), *version.glob("x86_64-*")]
        if machine:
            return version, machine[0]
    return ()


def _fetched_headers() -> tuple[Path, ...]:
    """Returns the headers of Debian's package, fetched once and checked by the archive's signature."""
    place = in_caches(_PLACE)
    if place.exists():
        return _headers(place / "usr" / "include")
    if not apt.KEYRING.exists() or shutil.which("apt-get") is None:
        raise MachineUnfit(
            "the driver of Spike needs the headers of GNU's C++ library; install g++ "
            "or libstdc++-dev"
        )
    place = cache_folder() / _PLACE
    with alone(place.parent):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=place.parent, prefix="fetch-") as scratch:
                _fetch(Path(scratch))
                (Path(scratch) / "tree").rename(place)
    return _headers(place / "usr" / "include")


def _fetch(scratch: Path) -> None:
    source = PrivateApt(scratch / "apt", mirror.mirrors()[0], [SUITE])
    source.update()
    source.download(source.describe([PACKAGE]), scratch)
    (package,) = scratch.glob("*.deb")
    source.run("dpkg-deb", "--extract", str(package), str(scratch / "tree"))
