# SPDX-License-Identifier: MIT
"""A stand-in for a machine whose kernel has sched_ext."""

from __future__ import annotations

from pathlib import Path

STATE, OPS = "sys/kernel/sched_ext/state", "sys/kernel/sched_ext/root/ops"
BTF, FUSE = "sys/kernel/btf/vmlinux", "dev/fuse"


def fit_root(root: Path) -> Path:
    """Creates the file tree of a machine without a loaded scheduler, and returns its path."""
    for name, text in ((STATE, "disabled\n"), (BTF, ""), (FUSE, "")):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
