# SPDX-License-Identifier: MIT
"""Finds GNU's C++ library, which Spike's library is linked with.

schedlab's own compiler has a different C++ library.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from schedlab.base.files.atomic import fetch_once
from schedlab.base.toolchain.tools import program_output
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, mirror
from schedlab.machines.linux.apt import PrivateApt
from schedlab.paths import cache_folder, find_in_caches

PACKAGE, SUITE = "libstdc++-12-dev", "bookworm"
"""Headers of the oldest supported release; newer libraries have all its symbols."""
_CACHE_PATH = "gnu/libstdc++-12"
_LIBRARY = re.compile(r"(/\S+/lib(?:stdc\+\+|gcc_s)\.so\S*) \(0x")
"""A library in the output of ldd."""


def gnu_library_options(user: Path) -> Iterator[str]:
    """Yields compiler and linker options for the GNU C++ library that `user`, a shared library,
    needs.

    Raises MachineUnfit if its headers are missing and cannot be fetched.
    """
    # The host's C++ library may need a newer C library than the C library that schedlab links with.
    yield from ("-nostdinc++", "-nostdlib++", "-Wl,--allow-shlib-undefined")
    for folder in _find_headers(Path("/usr/include")) or _fetch_headers():
        yield from ("-I", str(folder))
    yield from _LIBRARY.findall(program_output("ldd", str(user)))


def _find_headers(include: Path) -> tuple[Path, ...]:
    """Returns the include folders of the oldest installed version, or () if there is none."""
    for version in sorted(include.glob("c++/[0-9]*"), key=lambda path: int(path.name)):
        machine_folder = [*include.glob(f"x86_64-*/c++/{version.name}"), *version.glob("x86_64-*")]
        if machine_folder:
            return version, machine_folder[0]
    return ()


def _fetch_headers() -> tuple[Path, ...]:
    """Returns the headers of Debian's package, which are fetched once; the archive's signature is checked."""
    place = find_in_caches(_CACHE_PATH)
    if place.exists():
        return _find_headers(place / "usr" / "include")
    if not apt.KEYRING.exists() or shutil.which("apt-get") is None:
        raise MachineUnfit(
            "the driver of Spike needs the headers of GNU's C++ library; install g++ "
            "or libstdc++-dev"
        )
    place = fetch_once(cache_folder() / _CACHE_PATH, _fetch_package)
    return _find_headers(place / "usr" / "include")


def _fetch_package(scratch: Path) -> Path:
    source = PrivateApt(scratch / "apt", mirror.list_mirrors()[0], [SUITE])
    source.update()
    source.download(source.describe([PACKAGE]), scratch)
    (package,) = scratch.glob("*.deb")
    source.run("dpkg-deb", "--extract", str(package), str(scratch / "tree"))
    return scratch / "tree"
