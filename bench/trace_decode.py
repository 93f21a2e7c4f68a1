# SPDX-License-Identifier: MIT
"""How fast traces are decoded and checked, in events a second of one CPU's time; and whole runs.

Usage: python bench/trace_decode.py [--events N] [--cpus N] [--rounds N]

The trace is that of a small simulated machine, repeated with other PIDs until it
is long enough, in blocks of 64 KiB per CPU as the kernel writes them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / name) for name in ("python", "tests/shared")
]

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable

import numpy as np

from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics import compute
from schedlab.runs.worker import measure
from schedlab.trace import Kind, export, read, validate
from schedlab.trace.format import RECORD
from trace_simulator import Script, header, simulate

_BLOCK = 2048
_PATTERN_STEPS = 100_000
_RUN_STEPS = 4_000
"""They make 5,000 events: the trace of a usual run of a study."""


def make_trace(path: Path, events: int, cpus: int, steps: int = _PATTERN_STEPS) -> int:
    """Writes a valid trace of about so many events, or of these steps; gives how many they are."""
    script = Script(cpus=cpus, steps=steps, marks=False, drain=True)
    records = simulate(random.Random(1), script)
    pattern = np.frombuffer(b"".join(record.pack() for record in records), RECORD)
    edge = (pattern["kind"] == Kind.START) | (pattern["kind"] == Kind.END)
    starts, body, ends = (
        pattern[pattern["kind"] == Kind.START],
        pattern[~edge],
        pattern[pattern["kind"] == Kind.END],
    )
    repeats = max(events // len(body), 1)
    copies = [repeated(body, number) for number in range(repeats)]
    whole = np.concatenate([starts, *copies, moved_in_time(ends, repeats)])
    whole["sequence"] = np.arange(len(whole))
    is_end = whole["kind"] == Kind.END
    whole["second"][is_end] = np.bincount(whole["cpu"], minlength=cpus)[whole["cpu"][is_end]]
    path.write_bytes(header(cpus) + in_blocks(whole, cpus).tobytes())
    return len(whole)


def repeated(body: np.ndarray, number: int) -> np.ndarray:
    """A later copy of the pattern, by other processes."""
    copy = moved_in_time(body, number)
    step = int(body["process"].max()) + 1
    shift = np.uint32(number * step)
    is_pid = np.isin(copy["kind"], (Kind.SWITCH, Kind.WAKEUP, Kind.FORK)) & (copy["first"] > 0)
    # There, `process` is an attribute.
    of_policy = np.isin(copy["kind"], (Kind.POLICY, Kind.TUNABLE))
    copy["process"][(copy["process"] > 0) & ~of_policy] += shift
    copy["first"][is_pid] += shift
    return copy


def moved_in_time(records: np.ndarray, number: int) -> np.ndarray:
    """The same, later; cycle counters go on too."""
    copy = records.copy()
    copy["time"] += np.uint64(number * 10**9)
    counts = np.isin(copy["kind"], (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT))
    copy["second"][counts] += np.uint64(number * 10**9)
    return copy


def in_blocks(records: np.ndarray, cpus: int) -> np.ndarray:
    """Records in the order in which CPUs' blocks are full."""
    blocks = []
    for cpu in range(cpus):
        rows = np.flatnonzero(records["cpu"] == cpu)
        blocks += [rows[at : at + _BLOCK] for at in range(0, len(rows), _BLOCK)]
    blocks.sort(key=lambda rows: int(rows[-1]))
    return records[np.concatenate(blocks)]


def perfetto_speed(path: Path, cpus: int) -> float:
    """Events a second that are written for Perfetto."""
    events = make_trace(path, 1_000_000, cpus)
    trace = read(path)
    output = path.with_suffix(".perfetto")
    export(trace, output, "perfetto")  # the first one also loads the library
    return events / best(2, lambda: export(trace, output, "perfetto"))


def run_speed(folder: Path, cpus: int) -> float:
    """Runs a second that are measured, from a trace's file to the tables' files."""
    make_trace(folder / TRACE_FILE, 0, cpus, _RUN_STEPS)

    def measure_some() -> None:
        for _ in range(20):
            measure(folder)

    return 20 / best(3, measure_some)


def best(rounds: int, work: Callable[[], object]) -> float:
    """The shortest CPU time of some tries, in seconds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    """Makes a trace, measures, prints a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.bin"
        events = make_trace(path, arguments.events, arguments.cpus)
        trace = read(path)
        result = {
            "events": events,
            "decode_per_second": events / best(arguments.rounds, lambda: read(path)),
            "validate_per_second": events / best(arguments.rounds, lambda: validate(trace)),
            "decode_and_validate_per_second": events
            / best(arguments.rounds, lambda: validate(read(path))),
            "metrics_per_second": events / best(1, lambda: compute(trace)),
            "perfetto_per_second": perfetto_speed(path.with_name("short.bin"), arguments.cpus),
            "runs_per_second": run_speed(Path(directory), arguments.cpus),
        }
    print(json.dumps({name: round(value) for name, value in result.items()}))


if __name__ == "__main__":
    main()
