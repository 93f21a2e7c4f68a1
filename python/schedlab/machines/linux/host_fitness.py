# SPDX-License-Identifier: MIT
"""Checks whether the Linux kernel of this machine can load policies, and reports what is missing."""

from __future__ import annotations

import gzip
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from schedlab.base.host.processor import need_linux_guests
from schedlab.errors import WrongUsage
from schedlab.machines.linux.kernel import NEEDED_OPTIONS, find_config

_STATE_FILE = "sys/kernel/sched_ext/state"
_SCHED_EXT, _BTF = "CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"
_KERNEL_FIX = (
    "boot Linux 6.15 or newer with these options, such as the kernel of Debian's trixie-backports; or"
    " use a guest: `machine='linux'`"
)


def require_fit_host(root: Path = Path("/")) -> None:
    """Raises WrongUsage or MachineUnfit, with what to do, unless this machine can load policies.

    `root`: the root folder; tests pass another one.
    """
    need_linux_guests()
    problems = list(_missing_features(root))
    if problems:
        raise WrongUsage("; ".join(problems), what="`machine='host'`")


def _missing_features(root: Path) -> Iterator[str]:
    """Yields what the running kernel lacks, in words."""
    options = [name for name, is_present in _check_features(root) if not is_present]
    if options:
        missing_options = " and ".join(f"{name} ({NEEDED_OPTIONS[name]})" for name in options)
        yield f"Linux {platform.release()} {_missing_verb(root, options)} {missing_options}: {_KERNEL_FIX}"
    if not options and not (root / "dev/fuse").exists():
        yield "/dev/fuse is missing: run `modprobe fuse`"
    if os.geteuid() != 0:
        yield "only root may load a scheduler: begin the command with sudo"
    if other := find_loaded_scheduler(root):
        yield (
            f"the scheduler {other} is loaded already: end the program that loaded it, for"
            " example with `schedlab-linux stop` or `systemctl stop scx`"
        )


def _check_features(root: Path) -> Iterator[tuple[str, bool]]:
    yield _SCHED_EXT, (root / _STATE_FILE).exists()
    yield _BTF, (root / "sys/kernel/btf/vmlinux").exists()


def _missing_verb(root: Path, options: list[str]) -> str:
    """Returns the verb of a message. Without a kernel configuration, it is unknown what is missing."""
    text = _read_kernel_config(root)
    is_disabled = text and not any(f"{name}=y" in text for name in options)
    return "was built without" if is_disabled else "does not show"


def _read_kernel_config(root: Path) -> str:
    """Returns the running kernel's configuration, or "" if it is not found."""
    with suppress(OSError, EOFError):
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    return find_config(root / "boot" / "vmlinuz", platform.release())


def find_loaded_scheduler(root: Path = Path("/")) -> str:
    """Returns the name of the loaded sched_ext scheduler, or ""."""
    try:
        if (root / _STATE_FILE).read_text().strip() == "disabled":
            return ""
        return (root / "sys/kernel/sched_ext/root/ops").read_text().strip() or "without a name"
    except FileNotFoundError:
        return ""
