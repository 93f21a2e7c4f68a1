# SPDX-License-Identifier: MIT
"""Priority inversion over a pipe, which study 3 had no time for: who runs while the reader waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from schedlab.comparison.statistics import Within
from schedlab.metrics import state_intervals
from schedlab.report.charts import gantt
from schedlab.report.model import Chart
from schedlab.report.studies.texts import number, traces
from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.runs.collection import Kept, Repeated
from schedlab.trace import Trace

IDEAL_TICKS = 4.0
"""What the writer computes for a byte (workloads/study3.c, -y): the wait, were it served at once."""


@dataclass(frozen=True)
class Wait:
    """The reader's wait for one byte. Times in ticks."""

    begin_ns: int
    end_ns: int
    length: float
    hogs: float
    """The part of that time for which hogs had the CPU."""
    longest_turn: float
    """How long one of them had it without a break, at most."""


@dataclass(frozen=True)
class Story:
    """What the traces of a setup tell."""

    setup: Repeated
    runs: tuple[tuple[Kept, Trace, tuple[Wait, ...]], ...]
    """None if one failed or kept no trace."""

    def measure(
        self, value: Callable[[tuple[Wait, ...]], float], within: Within = (0, math.inf)
    ) -> Measured:
        """A number of each run's waits, and what is possible."""
        numbers: Numbers = {run.folder: value(waits) for run, _, waits in self.runs if waits}
        return measure(self.setup, numbers, within)


def story_of(repeated: Repeated) -> Story:
    """The stories of all runs of a setup."""
    return Story(
        repeated, tuple((run, trace, waits_in(run, trace)) for run, trace in traces(repeated))
    )


def waits_in(run: Kept, trace: Trace) -> tuple[Wait, ...]:
    """Waits from when the reader blocks on the pipe until it runs again."""
    groups = dict(run.metrics().processes.select("pid", "group").iter_rows())
    intervals = state_intervals(trace)
    running = intervals.filter(pl.col("state") == "running").select("pid", "begin_ns", "end_ns")
    readers = [pid for pid, group in groups.items() if group == "reader"]
    hogs = [pid for pid, group in groups.items() if group == "hog"]
    blocked = intervals.filter(pl.col("pid").is_in(readers) & (pl.col("cause") == "blocked: pipe"))[
        "begin_ns"
    ]
    runs_again = running.filter(pl.col("pid").is_in(readers))["begin_ns"].sort()
    of_hogs = running.filter(pl.col("pid").is_in(hogs)).sort("begin_ns")
    found = []
    for begin in blocked.sort():
        later = runs_again.filter(runs_again > begin)
        if len(later):
            found.append(_wait(int(begin), int(later[0]), of_hogs, trace.header.tick_ns))
    return tuple(found)


def _wait(begin: int, end: int, hogs: pl.DataFrame, tick_ns: int) -> Wait:
    meanwhile = hogs.filter((pl.col("begin_ns") < end) & (pl.col("end_ns") > begin)).select(
        "pid",
        pl.max_horizontal("begin_ns", pl.lit(begin)).alias("begin_ns"),
        pl.min_horizontal("end_ns", pl.lit(end)).alias("end_ns"),
    )
    lengths = meanwhile["end_ns"] - meanwhile["begin_ns"]
    longest = number(lengths.max())
    return Wait(
        begin, end, (end - begin) / tick_ns, int(lengths.sum()) / tick_ns, longest / tick_ns
    )


def hogs_part(waits: tuple[Wait, ...]) -> float:
    """The part of the reader's waits together in which hogs ran, in percent."""
    return 100 * sum(wait.hogs for wait in waits) / sum(wait.length for wait in waits)


def picture(policy: str, story: Story) -> Chart:
    """The first run's first wait, and a little around it."""
    run, trace, first = next((run, trace, waits[0]) for run, trace, waits in story.runs if waits)
    around = story.setup.setup.tick_ns * 3
    return gantt(
        f"study-3-inversion-{policy.replace(':', '-')}",
        trace,
        title=f"The reader's first wait under {policy}",
        caption=f"Seed {run.seed}. The reader blocks at {first.begin_ns / 1e6:.1f} ms and runs "
        f"again at {first.end_ns / 1e6:.1f} ms; hogs run for {first.hogs:.1f} of the "
        f"{first.length:.1f} ticks between.",
        begin_ns=max(0, first.begin_ns - around),
        end_ns=first.end_ns + around,
    )
