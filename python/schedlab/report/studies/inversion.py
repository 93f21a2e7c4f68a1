# SPDX-License-Identifier: MIT
"""Measures priority inversion over a pipe, which study 3 leaves open:
what runs while the reader waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import polars as pl

from schedlab.analysis.comparison.statistics import Within
from schedlab.metrics import state_intervals
from schedlab.report.charts import drawn, states
from schedlab.report.model import Block, Chart
from schedlab.report.studies.queries import Queries, first, in_ticks, number, traces
from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.runs.collection import Repeated, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.trace import Trace

IDEAL_TICKS = 4.0
"""Ticks that the writer computes per byte (workloads/study3.c, -y): the
reader's wait without inversion.
"""
_FEW_PERCENT = 1.0
"""Percentage of the reader's waits below which hogs count as absent."""
_INVERSION = "s3-inversion"
_BY_RANK = ("reader", "hog", "writer")
"""Groups, the highest rank first."""
_WAITS_FOR = {
    ("reader", "blocked: pipe"): "waits for the writer",
    ("writer", "blocked: pipe"): "waits for the reader",
    ("reader", "blocked: sleep"): "sleeps",
}


@dataclass(frozen=True)
class Wait:
    """The reader's wait for one byte, in ticks."""

    begin_ns: int
    end_ns: int
    length: float
    hogs: float
    """Ticks of the wait when a hog had the CPU."""
    longest_turn: float
    """Longest uninterrupted time of a hog in the wait, in ticks."""


@dataclass(frozen=True)
class Story:
    """The waits in the traces of a configuration."""

    setup: Repeated
    runs: tuple[tuple[StoredRun, Trace, tuple[Wait, ...]], ...]
    """Empty if a run failed or has no trace."""

    def measure(
        self, value: Callable[[tuple[Wait, ...]], float], within: Within = (0, math.inf)
    ) -> Measured:
        """Returns the measurement of a number computed from each run's waits.

        `within`: the range of possible values.
        """
        numbers: Numbers = {run.folder: value(waits) for run, _, waits in self.runs if waits}
        return measure(self.setup, numbers, within)


class InversionQueries(Queries):
    """Queries of study 3's page about priority inversion on one CPU."""

    byte_ticks = IDEAL_TICKS

    @cached_property
    def _stories(self) -> Mapping[str, Story]:
        return {
            policy: story_of(repeated)
            for policy in (*EXPERIMENTS[_INVERSION].study_policies, *self.shipped)
            if (repeated := self.collection.one(_INVERSION, policy, 1))
        }

    def inverted_policies(self) -> list[str]:
        """Returns the policies that ran the experiment."""
        return list(self._stories)

    def wait(self, policy: str, which: str) -> Measured:
        """Returns the reader's wait for a byte in ticks: mean, first, last or longest."""
        pick: dict[str, Callable[[list[float]], float]] = {
            "mean": fmean,
            "longest": max,
            "first": lambda lengths: lengths[0],
            "last": lambda lengths: lengths[-1],
        }
        return self._stories[policy].measure(
            lambda waits: pick[which]([wait.length for wait in waits])
        )

    def hogs_in_first(self, policy: str) -> Measured:
        """Returns the ticks of the first wait when hogs have the CPU."""
        return self._stories[policy].measure(lambda waits: waits[0].hogs)

    def hogs_part(self, policy: str) -> Measured:
        """Returns the percentage of the reading task's waiting time during which hogs ran."""
        return self._stories[policy].measure(hogs_part, (0.0, 100.0))

    def hogs_part_of_first(self, policy: str) -> Measured:
        """Returns the percentage of the first wait when hogs ran."""
        return self._stories[policy].measure(lambda waits: hogs_part(waits[:1]))

    def hogs_turn(self, policy: str) -> Measured:
        """Returns the longest uninterrupted time of a hog during the reader's waits, in ticks."""
        return self._stories[policy].measure(lambda waits: max(wait.longest_turn for wait in waits))

    def readers_response(self, policy: str) -> Measured:
        """Returns the reader's response time in ticks: from its fork until it first runs."""
        value, rows = in_ticks(first("response_mean_ns")), self._group("reader")
        return self.of(_INVERSION, policy, value, rows, cpus=1)

    def no_hog_was_left(self, policy: str) -> bool:
        """Returns whether hogs ran in almost none of the reader's waits."""
        part = self.hogs_part(policy).mean
        return part is not None and part < _FEW_PERCENT

    def inversion_picture(self, policy: str) -> list[Block]:
        """Returns the chart of the first run's first wait, or [] without a wait."""
        story = self._stories.get(policy)
        if story is None or not any(waits for _, _, waits in story.runs):
            return []
        return list(drawn(picture, policy, story))


def story_of(repeated: Repeated) -> Story:
    """Returns the waits of all runs of a configuration."""
    return Story(
        repeated, tuple((run, trace, waits_in(run, trace)) for run, trace in traces(repeated))
    )


def waits_in(run: StoredRun, trace: Trace) -> tuple[Wait, ...]:
    """Returns the waits from when the reader blocks on the pipe until it runs again."""
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
    waits = []
    for begin in blocked.sort():
        later = runs_again.filter(runs_again > begin)
        if len(later):
            waits.append(_wait(int(begin), int(later[0]), of_hogs, trace.header.tick_ns))
    return tuple(waits)


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
    """Returns the percentage of the waits when hogs ran."""
    return 100 * sum(wait.hogs for wait in waits) / sum(wait.length for wait in waits)


def picture(policy: str, story: Story) -> Chart:
    """Draws the first run's first wait with a margin: a row for each task."""
    run, trace, first = next((run, trace, waits[0]) for run, trace, waits in story.runs if waits)
    around = story.setup.setup.tick_ns * 3
    return states(
        f"study-3-inversion-{policy.replace(':', '-')}",
        trace,
        title=f"The reader's first wait under {policy}",
        caption=f"Seed {run.seed}. The reader blocks at {first.begin_ns / 1e6:.1f} ms and runs "
        f"again at {first.end_ns / 1e6:.1f} ms; hogs run for {first.hogs:.1f} of the"
        f" {first.length:.1f} ticks in between.",
        groups=_BY_RANK,
        causes=_WAITS_FOR,
        begin_ns=max(0, first.begin_ns - around),
        end_ns=first.end_ns + around,
    )
