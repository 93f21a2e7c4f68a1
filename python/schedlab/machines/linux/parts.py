# SPDX-License-Identifier: MIT
"""Builds the parts of runs on Linux: the kernel, the guest's image, schedlab's programs."""

from collections.abc import Iterable
from pathlib import Path

from schedlab.base.files.archive import make_tar
from schedlab.base.host.processor import need_linux_guests
from schedlab.base.toolchain.build import build, build_lock
from schedlab.base.toolchain.needs import need
from schedlab.paths import BUILD_FOLDER, ROOT

LINUX_BUILD = BUILD_FOLDER / "linux"
PROGRAMS_ARCHIVE = LINUX_BUILD / "programs.tar"
SDK_LINK = BUILD_FOLDER / "linux-sdk"
RUN_SCRIPT = ROOT / "linux" / "guest" / "run.sh"


def build_linux_parts(names: Iterable[str]) -> dict[str, Path]:
    """Updates parts and returns their paths."""
    makers = {
        "linux_kernel": find_kernel_image,
        "linux_image": build_image,
        "linux_programs": build_programs_archive,
    }
    return {name: makers[name]() for name in names}


def find_kernel_image() -> Path:
    """Returns the newest suitable kernel, fetched if necessary."""
    from schedlab.machines.linux.packages import packages

    return packages().kernel.bootable


def build_image() -> Path:
    """Returns the guest's image with all programs; jobs get smaller ones."""
    from schedlab.machines.linux.image import BENCHMARKS, base_image
    from schedlab.machines.linux.packages import packages

    return base_image(packages(), BENCHMARKS)


def build_linux(*targets: str) -> None:
    """Builds make targets that need the unpacked packages.

    make gets a link to the packages, because their folder's name may contain blanks.
    """
    from schedlab.machines.linux.packages import packages

    need_linux_guests()
    need("system-compiler")
    with build_lock():
        fresh = SDK_LINK.with_name(f"{SDK_LINK.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(packages().sdk)
        fresh.replace(SDK_LINK)
    build(*targets, variables={"LINUX_SDK": str(SDK_LINK.relative_to(ROOT))})


def build_programs_archive() -> Path:
    """Returns the archive of the loader, BPF objects, workloads and their script.

    The same contents give the same archive.
    """
    build_linux("linux-host", "linux-workloads")
    with build_lock():
        content = make_archive(archive_contents())
        if not PROGRAMS_ARCHIVE.exists() or PROGRAMS_ARCHIVE.read_bytes() != content:
            PROGRAMS_ARCHIVE.write_bytes(content)
    return PROGRAMS_ARCHIVE


def archive_contents() -> dict[str, Path]:
    """Returns the archive's files by their names in it."""
    workloads = [*ROOT.glob("workloads/*.c"), *ROOT.glob("workloads/linux/*.c")]
    return {
        "run.sh": RUN_SCRIPT,
        "schedlab-linux": LINUX_BUILD / "schedlab-linux",
        **{f"bpf/{path.name}": path for path in LINUX_BUILD.glob("bpf/*.bpf.o")},
        **{f"workloads/{source.stem}": LINUX_BUILD / source.stem for source in workloads},
    }


def make_archive(files: dict[str, Path]) -> bytes:
    """Returns a tar archive without times and owners; all files are executable."""
    return make_tar({name: (path.read_bytes(), 0o755) for name, path in files.items()})
