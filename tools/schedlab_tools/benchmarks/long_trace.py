# SPDX-License-Identifier: MIT
"""Compares the time for measuring a long trace of many CPUs with the time for simulating it."""

import json
import re
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.host.isolated import call_command, request_text
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM, build
from schedlab.base.toolchain.policies import DEFAULT_POLICY
from schedlab.errors import SchedlabError
from schedlab.workload.binary_steps import encode_workload_text
from schedlab_tools.benchmarks.monitor_model import HOGS_AND_TALKERS
from schedlab_tools.benchmarks.results import output_of
from schedlab_tools.targets import Aim

CPUS = 256
_PAIRS = 500
_UNTIL_NS = 3_860_000_000
_ROUNDS = 3
_LIMIT_REACHED = 3


@dataclass(frozen=True)
class Measured:
    """CPU seconds are the least of several rounds, because other load on the host can only add to them."""

    records: int
    simulator_s: float
    measuring_s: float
    """CPU time from the file to the tables."""
    peak_bytes: int
    """Peak memory of the measuring process, including Python."""

    def aims(self) -> list[Aim]:
        """Returns targets and results."""
        title = f"measuring a trace of {CPUS} CPUs"
        return [
            Aim(f"{title} over simulating it", self.measuring_s / self.simulator_s, 1, "times"),
            Aim(f"memory for that, {self.records:,} records", self.peak_bytes / 1e6, 500, "MB"),
        ]


def measure() -> Measured:
    """Measures 2.5 million decisions on 256 CPUs, 12 million records. Rounds alternate, so that
    both see the same host load.
    """
    build("simulator")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        trace, workload = Path(folder) / "trace.bin", Path(folder) / "workload"
        workload.write_bytes(encode_workload_text(HOGS_AND_TALKERS.format(half=_PAIRS)))
        rounds = [(_simulated(workload, trace), _measure_in_process(trace)) for _ in range(_ROUNDS)]
        return Measured(
            records=(trace.stat().st_size - 64) // 32,
            simulator_s=min(seconds for seconds, _ in rounds),
            measuring_s=min(round_figures["seconds"] for _, round_figures in rounds),
            peak_bytes=int(max(round_figures["peak_bytes"] for _, round_figures in rounds)),
        )


def _simulated(workload: Path, trace: Path) -> float:
    """Returns the CPU seconds of a run."""
    options = [
        "--policy",
        DEFAULT_POLICY,
        "--cpus",
        str(CPUS),
        "--limit",
        str(_UNTIL_NS),
        "--speed",
    ]
    text = output_of([SIMULATOR_PROGRAM, *options, "--trace", trace, workload], _LIMIT_REACHED)
    match = re.search(r"^cpu_seconds ([\d.]+)$", text, re.MULTILINE)
    if not match:
        raise SchedlabError("schedlab-sim printed no line `cpu_seconds SECONDS`")
    return float(match[1])


def _measure_in_process(trace: Path) -> dict[str, float]:
    """Measures a trace in another process; returns the CPU seconds and the peak memory."""
    result = subprocess.run(
        call_command(measured),
        input=request_text(trace=trace),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


def measured(trace: str) -> dict[str, float]:
    """Measures a trace; returns the CPU seconds and the peak memory of this process."""
    from schedlab import metrics

    begin = time.process_time()
    metrics.measure(trace)
    seconds = time.process_time() - begin
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "peak_bytes": peak_bytes}
