# SPDX-License-Identifier: MIT
"""Measures priority inversion over a pipe, which study 3 leaves open:
what runs while the reader waits.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import polars as pl

from schedlab.analysis.comparison.statistics import ValueRange
from schedlab.metrics import state_intervals
from schedlab.report.charts import draw_if_possible, states
from schedlab.report.model import Block, Chart
from schedlab.report.studies.queries import Queries, first, in_ticks, number, traces
from schedlab.report.study_tables import Measurement, NumbersByRun, measure_seeds
from schedlab.runs.collection import ConfigurationRuns, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.trace import Trace

IDEAL_TICKS = 4.0
"""Ticks that the writer computes per byte (workloads/study3.c, -y): the
reader's wait without inversion.
"""
_NEGLIGIBLE_PERCENT = 1.0
"""Percentage of the reader's waits below which hogs count as absent."""
_INVERSION_EXPERIMENT = "s3-inversion"
_GROUPS_BY_RANK = ("reader", "hog", "writer")
"""Groups, the highest rank first."""
_WAITS_FOR = {
    ("reader", "blocked: pipe"): "waits for the writer",
    ("writer", "blocked: pipe"): "waits for the reader",
    ("reader", "blocked: sleep"): "sleeps",
}


@dataclass(frozen=True)
class ReaderWait:
    """The reader's wait for one byte, in ticks."""

    begin_ns: int
    end_ns: int
    length: float
    hogs: float
    """Ticks of the wait when a hog had the CPU."""
    longest_turn: float
    """Longest uninterrupted time of a hog in the wait, in ticks."""


@dataclass(frozen=True)
class PolicyWaits:
    """The waits in the traces of a configuration."""

    setup: ConfigurationRuns
    runs: tuple[tuple[StoredRun, Trace, tuple[ReaderWait, ...]], ...]
    """Empty if a run failed or has no trace."""

    def measure(
        self, value: Callable[[tuple[ReaderWait, ...]], float], within: ValueRange = (0, math.inf)
    ) -> Measurement:
        """Returns the measurement of a number computed from each run's waits.

        `within`: the range of possible values.
        """
        numbers: NumbersByRun = {run.folder: value(waits) for run, _, waits in self.runs if waits}
        return measure_seeds(self.setup, numbers, within)


class InversionQueries(Queries):
    """Queries of study 3's page about priority inversion on one CPU."""

    byte_ticks = IDEAL_TICKS
    uninterrupted_quanta = "mlfq:whole-quanta"
    """The other reading of the study's time slices, which also ran the experiment."""

    @cached_property
    def _waits_by_policy(self) -> Mapping[str, PolicyWaits]:
        """Returns the reader's waits under each policy that ran the experiment."""
        policies = EXPERIMENTS[_INVERSION_EXPERIMENT].study_policies
        return {
            policy: waits_of_policy(repeated)
            for policy in (*policies, self.uninterrupted_quanta, *self.built_in)
            if (repeated := self.collection.one(_INVERSION_EXPERIMENT, policy, 1))
        }

    def inverted_policies(self) -> list[str]:
        """Returns the policies that ran the experiment."""
        return list(self._waits_by_policy)

    def wait(self, policy: str, which: str) -> Measurement:
        """Returns the reader's wait for a byte in ticks: mean, first, last or longest."""
        pick: dict[str, Callable[[list[float]], float]] = {
            "mean": fmean,
            "longest": max,
            "first": lambda lengths: lengths[0],
            "last": lambda lengths: lengths[-1],
        }
        return self._waits_by_policy[policy].measure(
            lambda waits: pick[which]([wait.length for wait in waits])
        )

    def hogs_in_first(self, policy: str) -> Measurement:
        """Returns the ticks of the first wait when hogs have the CPU."""
        return self._waits_by_policy[policy].measure(lambda waits: waits[0].hogs)

    def hogs_part(self, policy: str) -> Measurement:
        """Returns the percentage of the reading task's waiting time during which hogs ran."""
        return self._waits_by_policy[policy].measure(hogs_part, (0.0, 100.0))

    def hogs_part_of_first(self, policy: str) -> Measurement:
        """Returns the percentage of the first wait when hogs ran."""
        return self._waits_by_policy[policy].measure(lambda waits: hogs_part(waits[:1]))

    def hogs_turn(self, policy: str) -> Measurement:
        """Returns the longest uninterrupted time of a hog during the reader's waits, in ticks."""
        return self._waits_by_policy[policy].measure(
            lambda waits: max(wait.longest_turn for wait in waits)
        )

    def readers_response(self, policy: str) -> Measurement:
        """Returns the reader's response time in ticks: from its fork until it first runs."""
        value, rows = in_ticks(first("response_mean_ns")), self._group("reader")
        return self.of(_INVERSION_EXPERIMENT, policy, value, rows, cpus=1)

    def no_hog_was_left(self, policy: str) -> bool:
        """Returns whether hogs ran in almost none of the reader's waits."""
        hogs_fraction = self.hogs_part(policy).mean
        return hogs_fraction is not None and hogs_fraction < _NEGLIGIBLE_PERCENT

    def inversion_picture(self, policy: str) -> list[Block]:
        """Returns the chart of the first run's first wait, or [] without a wait."""
        policy_waits = self._waits_by_policy.get(policy)
        if policy_waits is None or not any(waits for _, _, waits in policy_waits.runs):
            return []
        return list(draw_if_possible(draw_wait, policy, policy_waits))


def waits_of_policy(repeated: ConfigurationRuns) -> PolicyWaits:
    """Returns the waits of all runs of a configuration."""
    return PolicyWaits(
        repeated,
        tuple((run, trace, find_reader_waits(run, trace)) for run, trace in traces(repeated)),
    )


def find_reader_waits(run: StoredRun, trace: Trace) -> tuple[ReaderWait, ...]:
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
    hog_runs = running.filter(pl.col("pid").is_in(hogs)).sort("begin_ns")
    waits = []
    for begin in blocked.sort():
        later = runs_again.filter(runs_again > begin)
        if len(later):
            waits.append(_make_wait(int(begin), int(later[0]), hog_runs, trace.header.tick_ns))
    return tuple(waits)


def _make_wait(begin: int, end: int, hogs: pl.DataFrame, tick_ns: int) -> ReaderWait:
    """Returns the wait from `begin` to `end` (ns). `hogs`: the intervals when hogs ran."""
    hog_runs = hogs.filter((pl.col("begin_ns") < end) & (pl.col("end_ns") > begin)).select(
        "pid",
        pl.max_horizontal("begin_ns", pl.lit(begin)).alias("begin_ns"),
        pl.min_horizontal("end_ns", pl.lit(end)).alias("end_ns"),
    )
    lengths = hog_runs["end_ns"] - hog_runs["begin_ns"]
    longest = number(lengths.max())
    return ReaderWait(
        begin, end, (end - begin) / tick_ns, int(lengths.sum()) / tick_ns, longest / tick_ns
    )


def hogs_part(waits: tuple[ReaderWait, ...]) -> float:
    """Returns the percentage of the waits when hogs ran."""
    return 100 * sum(wait.hogs for wait in waits) / sum(wait.length for wait in waits)


def draw_wait(policy: str, policy_waits: PolicyWaits) -> Chart:
    """Draws the first run's first wait with a margin: a row for each task."""
    run, trace, first = next(
        (run, trace, waits[0]) for run, trace, waits in policy_waits.runs if waits
    )
    margin_ns = policy_waits.setup.setup.tick_ns * 3
    return states(
        f"study-3-inversion-{policy.replace(':', '-')}",
        trace,
        title=f"The reader's first wait under {policy}",
        caption=f"Seed {run.seed}. The reader blocks at {first.begin_ns / 1e6:.1f} ms and runs "
        f"again at {first.end_ns / 1e6:.1f} ms; hogs run for {first.hogs:.1f} of the"
        f" {first.length:.1f} ticks in between.",
        groups=_GROUPS_BY_RANK,
        causes=_WAITS_FOR,
        begin_ns=max(0, first.begin_ns - margin_ns),
        end_ns=first.end_ns + margin_ns,
    )
