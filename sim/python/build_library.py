# SPDX-License-Identifier: MIT
"""Puts the simulator's C library beside the Python package: `make` builds it, as everywhere."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "build/sim/libschedlab-sim.so"


class LibraryHook(BuildHookInterface[BuilderConfig]):
    """Called by hatchling for each wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            raise SystemExit(
                "schedlab-simulator: a source distribution would lack the C sources, which lie "
                "outside this folder. Build a wheel: pip wheel ./sim/python"
            )
        library = make(Path(self.root).parents[1])
        build_data["force_include"][str(library)] = f"schedlab_simulator/{library.name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        # No part of it is compiled for one Python.
        build_data["tag"] = f"py3-none-{platform}"


def make(root: Path) -> Path:
    """The library, up to date."""
    if not (root / "sim" / "sim.mk").exists():
        raise SystemExit(
            f"schedlab-simulator: {root} is no checkout of schedlab, whose C sources this needs"
        )
    command = ["make", "--no-print-directory", "-C", str(root), LIBRARY]
    if os.environ.get("SCHEDLAB_CLANG"):
        command.append(f"CLANG={os.environ['SCHEDLAB_CLANG']}")
    (root / "build").mkdir(exist_ok=True)
    with (root / "build" / ".lock").open(
        "w"
    ) as lock:  # one build at a time, as schedlab.base.toolchain.build
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            raise SystemExit("schedlab-simulator: make is needed: install make and clang") from None
        except subprocess.CalledProcessError:
            raise SystemExit(
                "schedlab-simulator: the C library could not be built; the messages above say why. "
                "SCHEDLAB_CLANG names another clang than clang-19"
            ) from None
    return root / LIBRARY
