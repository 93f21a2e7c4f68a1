# SPDX-License-Identifier: MIT
"""Has QEMU's two threads take turns, without which a repeatable guest is not (linux/qemu/taking_turns.c)."""

from __future__ import annotations

from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.paths import BUILD, ROOT

LIBRARY = BUILD / "linux" / "taking_turns.so"
NAME = "taking_turns.so"
"""In the folder of a boot: the path of a library that is loaded first may not hold a blank."""


def preload(folder: Path) -> list[str]:
    """Returns what stands before QEMU's command, which is started from within `folder`."""
    build(str(LIBRARY.relative_to(ROOT)))
    link = folder / NAME
    link.unlink(missing_ok=True)
    link.symlink_to(LIBRARY)
    return ["env", f"LD_PRELOAD=./{NAME}"]
