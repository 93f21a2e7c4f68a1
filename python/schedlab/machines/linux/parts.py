# SPDX-License-Identifier: MIT
"""Builds the parts of runs on Linux: the kernel, the guest's image, schedlab's programs."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from schedlab.base.host.processor import need_linux_guests
from schedlab.base.toolchain.build import build, build_lock
from schedlab.base.toolchain.needs import need
from schedlab.paths import BUILD, ROOT

LINUX = BUILD / "linux"
PROGRAMS = LINUX / "programs.tar"
SDK = BUILD / "linux-sdk"
RUN_SCRIPT = ROOT / "linux" / "guest" / "run.sh"


def supply_linux(names: Iterable[str]) -> dict[str, Path]:
    """Updates parts and returns their paths."""
    makers = {
        "linux_kernel": kernel,
        "linux_image": image,
        "linux_programs": programs,
    }
    return {name: makers[name]() for name in names}


def kernel() -> Path:
    """Returns the newest suitable kernel, fetched if necessary."""
    from schedlab.machines.linux.packages import packages

    return packages().kernel.bootable


def image() -> Path:
    """Returns the guest's image with all programs; a job's own image has only some of them."""
    from schedlab.machines.linux.image import BENCHMARKS, base_image
    from schedlab.machines.linux.packages import packages

    return base_image(packages(), BENCHMARKS)


def build_linux(*targets: str) -> None:
    """Builds targets that need the unpacked packages.

    make gets a link to them, because their folder's name may contain blanks.
    """
    from schedlab.machines.linux.packages import packages

    need_linux_guests()
    need("system-compiler")
    with build_lock():
        fresh = SDK.with_name(f"{SDK.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(packages().sdk)
        fresh.replace(SDK)
    build(*targets, variables={"LINUX_SDK": str(SDK.relative_to(ROOT))})


def programs() -> Path:
    """Returns the archive of the loader, BPF objects, workloads and their script.

    The same contents give the same archive.
    """
    build_linux("linux-host", "linux-workloads")
    with build_lock():
        content = archive(contents())
        if not PROGRAMS.exists() or PROGRAMS.read_bytes() != content:
            PROGRAMS.write_bytes(content)
    return PROGRAMS


def contents() -> dict[str, Path]:
    """Returns the archive's files by their names in it."""
    workloads = [*ROOT.glob("workloads/*.c"), *ROOT.glob("workloads/linux/*.c")]
    return {
        "run.sh": RUN_SCRIPT,
        "schedlab-linux": LINUX / "schedlab-linux",
        **{f"bpf/{path.name}": path for path in LINUX.glob("bpf/*.bpf.o")},
        **{f"workloads/{source.stem}": LINUX / source.stem for source in workloads},
    }


def archive(files: dict[str, Path]) -> bytes:
    """Returns a tar archive without times and owners; all files are executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            entry.mode = 0o755
            with path.open("rb") as file:
                tar.addfile(entry, file)
    return packed.getvalue()
