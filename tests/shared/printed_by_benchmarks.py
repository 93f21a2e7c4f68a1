# SPDX-License-Identifier: MIT
"""Outputs of benchmarks, with invented figures."""

from __future__ import annotations

from schedlab.paths import ROOT
from schedlab.studies.linux_experiments import FAIR_CLASS

OUTPUTS = ROOT / "tests" / "outputs"
RATES = {FAIR_CLASS: 1000.0, "wrr:linux": 1001.0, "lottery:linux": 990.0}


def sysbench(policy: str, seed: int, name: str = "sysbench-1-thread") -> str:
    """Returns its output with a given rate and longest latency; WRR's figures lie between the
    fair policy's.
    """
    text = (OUTPUTS / f"{name}.txt").read_text()
    lines = {
        "events per second": f"    events per second: {RATES[policy] + 2 * seed:10.2f}",
        "max": f"         max: {seed + 1:10.2f}",
    }
    return "\n".join(lines.get(line.split(":")[0].strip(), line) for line in text.splitlines())
