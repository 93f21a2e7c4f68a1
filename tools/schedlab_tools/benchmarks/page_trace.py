# SPDX-License-Identifier: MIT
"""How fast the page that stands alone opens a long trace, and how fast any of its moments is reached: in Node.js,
which runs WebAssembly by the same engine as Chromium."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from schedlab.base.toolchain.build import MODULE, machine_module
from schedlab.base.toolchain.policies import STANDARD
from schedlab.monitor.standalone.build import PAGE
from schedlab.monitor.standalone.modules import bundled
from schedlab_tools.benchmarks.live_model import Scene, simulate
from schedlab_tools.benchmarks.simulator_speed import Aim

CPUS = 64
PROCESSES = 4096
_UNTIL_NS = 890_000_000
"""A trace of 100 MB."""


@dataclass(frozen=True)
class Opened:
    """CPU seconds, of a page's session."""

    records: int
    cpus: int
    ordering_s: float
    feeding_s: float
    """By the model alone."""
    taking_s: float
    """By the model and what steps back need, copies of it among that."""
    seek_s: float
    """The longest of 20, with its frame."""
    copies_bytes: int

    def aims(self) -> list[Aim]:
        """What was asked for, and what came out."""
        opening_s = self.ordering_s + self.taking_s
        return [
            Aim("opening it", opening_s, 5, "s"),
            Aim("3,000,000 records into the model", 3e6 * self.feeding_s / self.records, 1, "s"),
            Aim("the longest of 20 seeks", self.seek_s, 1, "s"),
            Aim("copies for seeks", self.copies_bytes / 1e6, 201.4, "MB"),
        ]


def measure() -> Opened | None:
    """A trace of 64 CPUs and 4,096 processes; None: there is no Node.js."""
    node = which("node")
    if not node:
        return None
    machine_module()
    scene = Scene(f"{STANDARD}-{PROCESSES}", PROCESSES, CPUS, STANDARD, _UNTIL_NS, 0)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        trace, script = Path(folder) / "trace.bin", Path(folder) / "measure.cjs"
        simulate(scene, trace)
        script.write_text(bundled(PAGE / "measure.js", {}))
        command = [node, str(script), str(MODULE), str(trace), STANDARD]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Opened(**json.loads(said))
