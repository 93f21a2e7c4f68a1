# SPDX-License-Identifier: MIT
"""Puts into the wheel what the package needs of the checkout: `make` compiles the simulator and the monitor's model."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "build/sim/schedlab-sim",
    "build/sim/libschedlab-sim.so",
    "build/model/libschedlab-model.so",
)
TAKEN = (
    *("policies", "workloads", "shapes", "studies", "labs", "sweeps", "sim/costs"),
    *("model/model.h", "page/schedlab.html", "LICENSE"),
)
"""Files and folders of the checkout that the package reads."""


class CheckoutHook(BuildHookInterface[BuilderConfig]):
    """Called by hatchling for each wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        make(root)
        for name in (*COMPILED, *TAKEN):
            build_data["force_include"][str(root / name)] = f"schedlab/checkout/{name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        # No part of it is compiled for one Python.
        build_data["tag"] = f"py3-none-{platform}"


def make(root: Path) -> None:
    """Brings what is compiled up to date."""
    sys.path.insert(0, str(root / "python"))
    from schedlab.base.toolchain.tools import require_compiler

    command = ["make", f"-j{os.cpu_count() or 1}", "--no-print-directory", "-C", str(root)]
    command += [f"{name}={words}" for name, words in require_compiler().variables().items()]
    command += COMPILED
    (root / "build").mkdir(exist_ok=True)
    try:
        with (root / "build" / ".lock").open(
            "w"
        ) as lock:  # one build at a time, as of all commands
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SystemExit("schedlab: make is needed: install it") from None
    except subprocess.CalledProcessError:
        raise SystemExit(
            "schedlab: the simulator could not be built; the messages above say why"
        ) from None
