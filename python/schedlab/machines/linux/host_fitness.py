# SPDX-License-Identifier: MIT
"""Checks whether this machine's Linux kernel can load policies, and reports what is missing."""

from __future__ import annotations

import gzip
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from schedlab.base.host.processor import need_linux_guests
from schedlab.errors import WrongUsage
from schedlab.machines.linux.kernel import NEEDED, config_of_kernel

_STATE = "sys/kernel/sched_ext/state"
_SCHED_EXT, _BTF = "CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"
_KERNEL_CURE = (
    "boot Linux 6.15 or newer with these options, such as the kernel of Debian's trixie-backports; or"
    " take a guest that has it: `machine='linux'`"
)


def need_fit_host(root: Path = Path("/")) -> None:
    """Raises WrongUsage with the remedies, or MachineUnfit. Tests pass another `root`."""
    need_linux_guests()
    lacking = list(_missing_features(root))
    if lacking:
        raise WrongUsage("; ".join(lacking), what="`machine='host'`")


def _missing_features(root: Path) -> Iterator[str]:
    options = [name for name, is_present in _parts(root) if not is_present]
    if options:
        wanting = " and ".join(f"{name} ({NEEDED[name]})" for name in options)
        yield f"Linux {platform.release()} {_how(root, options)} {wanting}: {_KERNEL_CURE}"
    if not options and not (root / "dev/fuse").exists():
        yield "/dev/fuse is not there: `modprobe fuse`"
    if os.geteuid() != 0:
        yield "only root may bring a scheduler to the kernel: begin the command with sudo"
    if other := loaded(root):
        yield (
            f"the scheduler {other} is loaded already: end the program that loaded it, such as by"
            " `schedlab-linux stop` or `systemctl stop scx`"
        )


def _parts(root: Path) -> Iterator[tuple[str, bool]]:
    yield _SCHED_EXT, (root / _STATE).exists()
    yield _BTF, (root / "sys/kernel/btf/vmlinux").exists()


def _how(root: Path, options: list[str]) -> str:
    """Returns the verb: without a configuration, it is unknown whether options are missing."""
    text = _config(root)
    known = text and not any(f"{name}=y" in text for name in options)
    return "was built without" if known else "does not show"


def _config(root: Path) -> str:
    """Returns the running kernel's configuration, or "" if it is not found."""
    with suppress(OSError, EOFError):
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    return config_of_kernel(root / "boot" / "vmlinuz", platform.release())


def loaded(root: Path = Path("/")) -> str:
    """Returns the name of the loaded sched_ext scheduler, or ""."""
    try:
        if (root / _STATE).read_text().strip() == "disabled":
            return ""
        return (root / "sys/kernel/sched_ext/root/ops").read_text().strip() or "without a name"
    except FileNotFoundError:
        return ""
