# SPDX-License-Identifier: MIT
"""Stands in for the guest's packages where no guest is booted."""

from __future__ import annotations

from pathlib import Path

from schedlab.base.files.whole import file_hash
from schedlab.machines.linux.elf import LOADER
from schedlab.machines.linux.image import BENCHMARKS
from schedlab.machines.linux.packages import Packages


def stand_in_packages(tree: Path) -> Packages:
    """Files that hold their own names; sysbench needs a library that chrt does not."""
    needs = {"busybox": [], "chrt": [LOADER, "libc.so.6"], **{name: [] for name in BENCHMARKS}}
    needs["sysbench"] = [LOADER, "libc.so.6", "libone.so.1"]
    kernel = tree / "kernel" / "usr" / "lib" / "modules" / "7.3.4"
    places = [kernel / "vmlinuz"]
    places += [tree / "programs" / name for name in needs]
    places += [tree / "libraries" / name for name in needs["sysbench"]]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    sums = {str(path.relative_to(tree)): file_hash(path) for path in places}
    return Packages(tree, {}, sums, needs)
