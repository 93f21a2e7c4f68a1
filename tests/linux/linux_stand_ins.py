# SPDX-License-Identifier: MIT
"""Replaces the guest's packages by stand-ins where no guest is booted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from schedlab.base.files.atomic import file_hash
from schedlab.machines.linux.elf import LOADER_NAME
from schedlab.machines.linux.image import BENCHMARKS
from schedlab.machines.linux.packages import Packages
from schedlab.paths import ROOT

CHRT = '#!/bin/sh\n[ "$2" = --pid ] || { shift 2; exec "$@"; }\n'
SERVER = """#!/bin/sh
echo "$@" | sed "s/--while $PPID /--while PARENT /" >>"$LOG"
[ "$1" = stop ] || exit "${SERVE:-0}"
"""


def stand_in_packages(tree: Path) -> Packages:
    """Returns files that contain their own names; sysbench needs a library that chrt does not
    need."""
    needs = {"busybox": [], "chrt": [LOADER_NAME, "libc.so.6"], **{name: [] for name in BENCHMARKS}}
    needs["sysbench"] = [LOADER_NAME, "libc.so.6", "libone.so.1"]
    kernel = tree / "kernel" / "usr" / "lib" / "modules" / "7.3.4"
    places = [kernel / "vmlinuz"]
    places += [tree / "programs" / name for name in needs]
    places += [tree / "libraries" / name for name in needs["sysbench"]]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    sums = {str(path.relative_to(tree)): file_hash(path) for path in places}
    return Packages(tree, {}, sums, needs)


def run_script(
    folder: Path,
    command: str,
    programs: Mapping[str, str],
    in_force: str,
    problem: str = "",
    **variables: str,
) -> tuple[int, list[str]]:
    """Returns the exit status of the guest's run.sh and the lines of its log.

    The programs are in the same folder as `chrt`. The server's files name the active policy
    `in_force` and the problem `problem`.
    """
    control, place = folder / "control", folder / "bin"
    for directory in (control, place, folder / "result"):
        directory.mkdir()
    (control / "sched_status").write_text(f"Scheduler status\nPolicy: {in_force}\n")
    (control / "sched_problem").write_text(problem)
    for name, text in {"chrt": CHRT, **programs}.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    environment = {
        "PATH": f"{place}:{os.environ['PATH']}",
        "RESULT": str(folder / "result"),
        "WORKLOAD_CONTROL": str(control),
        "LOG": str(folder / "log"),
    }
    policy = "scx:it" if "SCHEDULER" in variables else "wrr"
    result = subprocess.run(
        ["sh", ROOT / "linux/guest/run.sh", "7", "0.5", policy, command, "--set", "a=1"],
        env={**os.environ, **environment, **variables},
        cwd=folder,
        check=False,
    )
    return result.returncode, (folder / "log").read_text().splitlines()
