# SPDX-License-Identifier: MIT
"""Folders of runs of a simulated machine, with traces and what was measured in them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from schedlab import results
from schedlab.machines.base import TRACE_FILE
from schedlab.metrics import Metrics, compute
from trace_simulator import Script, load, simulate, write

MANIFEST = {
    "label": "some work",
    "workload": "mixed -n 3",
    "policy": "rr",
    "tunables": {},
    "cpus": 2,
    "tick_ns": 1_000_000,
    "machine": "spike",
    "status": "success",
    "message": "",
}


def keep(folder: Path, seed: int, **changed: Any) -> Metrics:
    """A run's folder, as `./schedlab run` leaves it; what was measured."""
    script = Script(cpus=2, steps=300)
    records = simulate(random.Random(seed), script)
    folder.mkdir(parents=True)
    write(folder / TRACE_FILE, records, script)
    found = compute(load(records, script))
    found.write(folder / results.METRICS)
    results.write_json(folder / results.MANIFEST, {**MANIFEST, "seed": seed, **changed})
    return found
