# SPDX-License-Identifier: MIT
"""Queries of study 4's page: traces by tick, the mixed benchmark and the sleeper."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import polars as pl

from schedlab.analysis.comparison.statistics import UNBOUNDED
from schedlab.base.display.numbers import NO_VALUE
from schedlab.metrics import state_intervals
from schedlab.report.charts import draw_if_possible, latencies
from schedlab.report.charts.schedules import MEASURED, PUBLISHED
from schedlab.report.model import Block, Cell, Column, Table
from schedlab.report.studies.authors_output import AuthorsOutput, count_same_ticks, published_ticks
from schedlab.report.studies.queries import in_ticks, number, traces
from schedlab.report.studies.ticks import (
    at_ticks,
    begin_tick,
    boosts,
    drawn_turns,
    turns,
    usual,
)
from schedlab.report.study_tables import Measurement, measure_seeds
from schedlab.runs.collection import StoredRun
from schedlab.studies.experiments import MIXED_SIZES
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal_times import SLEEPER_TICKS, STUDY_4_WORK, ideal_mixed_benchmark
from schedlab.trace import Trace

TRACE = "s4-trace"
_SIZES_MIN = 2


class Queries(AuthorsOutput):
    """Queries of study 4's page. Times are in ticks."""

    schedulers: ClassVar = {"RR": "rr:table-scan", "MLFQ": "mlfq:allotment-boost"}
    trace_experiment = TRACE
    experiments = tuple(f"s4-mixed-{size}" for size in MIXED_SIZES)
    work = STUDY_4_WORK
    requested_sleep_ticks = SLEEPER_TICKS
    sleepers: ClassVar = {
        "s4-sleeper": "right after the others",
        "s4-sleeper-late": "200 ticks after the others",
    }
    """Experiments, and when the sleeper of each starts."""

    scans: ClassVar = {
        "s4-scan-6": "interactive, next to 6",
        "s4-scan-20": "interactive, next to 20",
        "s4-scan-40": "interactive, next to 40",
        "s4-scan-sleeper": "the sleeper, 200 ticks after the others",
    }
    """Experiments that compare the study's scan of the process table with lists."""
    forks: ClassVar = {
        f"s4-fork-{hundredths}": f"0.{hundredths}" for hundredths in (30, 34, 38, 42, 46)
    }
    """Experiments with the sleeper, by the ticks that the parent computes for each fork."""
    changes_late = "s4-turns-interactive"
    """The experiment with a task that first computes and later sleeps."""
    with_and_without_boost = "s4-boost"
    """The experiment with a task that computes while new tasks keep arriving."""
    next_to_shortest_first = "s4-short-jobs"
    """The experiment with policies that know how long a task runs."""
    implementations: ClassVar = {
        "lists": "mlfq:allotment-boost",
        "a scan of the table": "mlfq:table-scan",
    }

    def turnaround_with_scan(self, experiment: str, policy: str) -> Measurement:
        """Returns the mean turnaround of the interactive tasks, or of the sleeper, in ticks."""
        group = "sleeper" if experiment.endswith("sleeper") else self.kinds["interactive"]
        value = in_ticks(pl.col("turnaround_mean_ns").first())
        return self.of(experiment, policy, value, self._group(group))

    def wakeup_of_late(self, which: str, policy: str) -> Measurement:
        """Returns the median or longest wake-up latency of the task that sleeps later, in ticks."""
        value = in_ticks(pl.col(f"wakeup_latency_{which}_ns").first())
        return self.of(self.changes_late, policy, value, self._group("changes"))

    def share_of_old(self, policy: str) -> Measurement:
        """Returns the share of the CPU of the task that computes while new tasks keep arriving, in percent."""
        rows = self._group("old")
        return self.of(self.with_and_without_boost, policy, pl.col("share").first() * 100, rows)

    def next_to_shortest(self, kind: str, policy: str) -> Measurement:
        """Returns the mean turnaround of a kind of tasks under a policy that may know how long they run, in ticks."""
        value = in_ticks(pl.col("turnaround_mean_ns").first())
        return self.of(self.next_to_shortest_first, policy, value, self._group(self.kinds[kind]))

    # --- figures 7 and 8

    def has_trace(self, scheduler: str) -> bool:
        """Returns whether there is a trace of its three tasks."""
        return bool(self._runs_with_trace(scheduler))

    def missing_trace_text(self, scheduler: str) -> str:
        """Returns why there is no trace."""
        setup = self.setup(TRACE, scheduler)
        measured = measure_seeds(setup, {})
        if measured.has_failed:
            return f"{measured.missing}: {measured.why}"
        return "no trace" if setup else "not run"

    def _runs_with_trace(self, scheduler: str) -> list[tuple[StoredRun, Trace]]:
        """Returns the runs of the three tasks with their traces."""
        return traces(self.setup(TRACE, scheduler), runs_max=1)

    def _ticks(self, scheduler: str) -> pl.DataFrame:
        """Returns the measured tick-by-tick schedule of the three tasks."""
        ((run, trace),) = self._runs_with_trace(scheduler)
        return at_ticks(trace, _pids(run, "cpu"))

    def tick_by_tick(self, scheduler: str) -> SimpleNamespace:
        """Returns how many ticks of the study's figure have the same
        task, on the same level, here.
        """
        return count_same_ticks(published_ticks(self.study, scheduler), self._ticks(scheduler))

    def ticks_until_first_end(self, scheduler: str) -> SimpleNamespace:
        """Returns the same as `tick_by_tick`, until the first task ends in the study's figure."""
        printed = published_ticks(self.study, scheduler)
        first_end = printed.group_by("process").agg(pl.col("tick").max())["tick"].min()
        return count_same_ticks(printed.filter(pl.col("tick") <= first_end), self._ticks(scheduler))

    def ticks_of_authors(self, scheduler: str) -> list[int]:
        """Returns how many ticks each task runs in the study's figure."""
        return published_ticks(self.study, scheduler).group_by("process").len()["len"].to_list()

    def schedule(self, scheduler: str, until: int | None) -> pl.DataFrame:
        """Returns the published and the measured time slices of the same
        ticks, at most the first `until`.
        """
        printed = published_ticks(self.study, scheduler).rename({"process": "pid"})
        ticks_of_run = self._ticks(scheduler)
        ticks_of_run = ticks_of_run.with_columns(
            tick=pl.col("tick").cast(pl.Int64) - ticks_of_run["tick"].cast(pl.Int64).min()
        )
        if ticks_of_run["level"].null_count() == len(ticks_of_run):
            printed = printed.with_columns(level=pl.lit(None, pl.Int64))
        last = printed["tick"].max() if until is None else until - 1
        return pl.concat(
            drawn_turns(kind, ticks.filter(pl.col("tick") <= last))
            for kind, ticks in ((PUBLISHED, printed), (MEASURED, ticks_of_run))
        )

    def usual_slice(self, scheduler: str) -> SimpleNamespace:
        """Returns the most frequent length of a time slice in ticks, and
        the fraction of slices with it.
        """
        length, part = usual(turns(self._ticks(scheduler))["length"])
        return SimpleNamespace(length=length, part=part)

    def run_begins(self) -> int:
        """Returns the machine's tick at the beginning of the run."""
        ((_, trace),) = self._runs_with_trace("MLFQ")
        return begin_tick(trace)

    def boosts_seen(self) -> list[int]:
        """Returns the machine's ticks when a task of the trace is boosted."""
        return boosts(self._ticks("MLFQ"))

    def levels_table(self) -> Table:
        """Returns a table of the study's setting of each level and the behaviour in the trace."""
        ticks = self._ticks("MLFQ")
        raised = boosts(ticks)
        before_boost = ticks.filter(pl.col("machine_tick") < raised[0]) if raised else ticks
        all_turns = turns(ticks)
        rows, behind = [], []
        for level in range(3, -1, -1):
            length, part = usual(all_turns.filter(pl.col("level") == level)["length"])
            stays = before_boost.filter(pl.col("level") == level).group_by("pid").len()["len"]
            stay, of_all = usual(stays)
            set_to = {
                name: figure.text if figure else "none"
                for name in ("slice", "allotment")
                for figure in (self.figure("section 3.2.1", f"priority {level}", name),)
            }
            cells = (
                str(level),
                set_to["slice"],
                f"{length} ({100 * part:.0f} %)",
                set_to["allotment"],
                f"{stay} ({100 * of_all:.0f} %)" if level else NO_VALUE,
            )
            rows.append(tuple(map(Cell, cells)))
            behind.append(
                {"level": level}
                | set_to
                | {
                    "usual time slice": length,
                    "part of time slices": part,
                    "stay": stay if level else None,
                }
            )
        return Table(
            "study-4-levels",
            "The levels, published and measured",
            (
                Column("level", align="left"),
                Column("set", "turn, ticks"),
                Column("commonest in the trace", "turn, ticks"),
                Column("set", "allotment, ticks"),
                Column("used before the first boost", "allotment, ticks"),
            ),
            tuple(rows),
            pl.DataFrame(behind),
            "In brackets: the part of all time slices on the level that have this length, and the"
            " part of the processes that stay this long. Two consecutive time slices of one"
            " process count as one; some are cut by a boost or by the end of the other processes.",
        )

    # --- figures 9 and 10

    def ideal(self, kind: str, size: int) -> float:
        """Returns the ideal turnaround in ticks."""
        return dict(zip(self.kinds, ideal_mixed_benchmark(size), strict=True))[kind]

    def _sizes_run(self, scheduler: str) -> list[int]:
        """Returns the sizes that were run without a failure."""
        return [
            size
            for size in self.sizes
            if (setup := self.setup(f"s4-mixed-{size}", scheduler)) and setup.succeeded
        ]

    def _by_seed(self, scheduler: str, kind: str) -> dict[int, tuple[float, ...]]:
        """Returns the values by size, for the seeds that all sizes have."""
        values_by_size = {
            size: values
            for size in self.sizes
            if (values := self.compared_turnaround(kind, scheduler, size).values)
        }
        seeds = min((len(values) for values in values_by_size.values()), default=0)
        return {size: values[:seeds] for size, values in values_by_size.items()} if seeds else {}

    def shape_title(self, shape: str) -> str:
        """Returns the title of the columns that compare the shape."""
        if shape == "slope":
            return "ticks for each CPU-bound process more"
        sizes = self._by_seed("RR", "interactive")
        return (
            f"times as long, {_range_text(sizes)} CPU-bound" if len(sizes) > 1 else "times as long"
        )

    def rerun_sizes(self) -> str:
        """Returns the smallest and the largest size of the rerun, in words."""
        return _range_text(self._points("RR", "interactive", "rerun"))

    def _points(self, scheduler: str, kind: str, source: Source) -> dict[int, float]:
        """Returns the published turnarounds by size."""
        return {
            size: figure.value
            for size in self.sizes
            if (figure := self.authors(kind, scheduler, size, source)) and figure.is_number
        }

    def curve(self, shape: str, whose: str, scheduler: str, kind: str) -> Measurement:
        """Returns `growth`, the last value ÷ the first, or `slope`, of the best-fitting line."""
        if whose == "measured":
            return _shape_by_seed(shape, self._by_seed(scheduler, kind))
        points = (
            {size: self.ideal(kind, size) for size in self.sizes}
            if whose == "ideal"
            else self._points(scheduler, kind, "rerun" if whose == "rerun" else "authors")
        )
        shape_fit = _shape(shape, points)
        return (
            Measurement((), NO_VALUE)
            if shape_fit is None
            else Measurement((shape_fit,), within=UNBOUNDED)
        )

    def growth_to_most(self) -> Measurement:
        """Returns the measured growth for interactive tasks under MLFQ, between the extreme sizes.

        It is missing unless both sizes were run.
        """
        measured = self._by_seed("MLFQ", "interactive")
        return _shape_by_seed(
            "growth",
            {
                size: measured[size]
                for size in (min(self.sizes), max(self.sizes))
                if size in measured
            },
        )

    def sizes_with_slow_interactive(self) -> int:
        """Returns the number of sizes of the benchmark where, in the authors' output under
        round-robin, interactive tasks take longer than CPU-bound tasks.
        """
        pairs = [
            [self.authors(kind, "RR", size) for kind in ("interactive", "CPU-bound")]
            for size in self.sizes
        ]
        return sum(bool(one and other and one.value > other.value) for one, other in pairs)

    def fork_distance(self, size: int) -> Measurement:
        """Returns the ticks between the first and the last fork of a CPU-bound task, under round-robin."""
        spread = in_ticks(pl.col("fork_ns").max() - pl.col("fork_ns").min())
        rows = self._processes("group", self.kinds["CPU-bound"])
        return self.of(f"s4-mixed-{size}", "RR", spread, rows)

    def _largest(self, scheduler: str) -> tuple[int, list[tuple[StoredRun, Trace]]]:
        """Returns the largest number of CPU-bound tasks that was run, and
        the first seed's run and trace.
        """
        sizes = self._sizes_run(scheduler)
        if not sizes:
            return 0, []
        return sizes[-1], traces(self.setup(f"s4-mixed-{sizes[-1]}", scheduler), runs_max=1)

    def round_robin_findings(self) -> SimpleNamespace | None:
        """Returns findings about interactive tasks in a trace of round-robin,
        in ticks; None without a trace.
        """
        size, trace_data = self._largest("RR")
        if not trace_data:
            return None
        ((run, trace),) = trace_data
        pids = _pids(run, "inter")
        if not pids:
            return SimpleNamespace(size=size, seed=run.seed, sleeps=0)
        processes, tick_ns = run.metrics().processes, trace.header.tick_ns
        alone_ns, last_ns = (
            number(processes.filter(pl.col("group") == group)["exit_ns"].max())
            for group in ("cpu", "inter")
        )
        away = _times_away(trace, pids).filter(pl.col("again_ns") < alone_ns)
        sleeps = _sleeps(trace, pids)
        return SimpleNamespace(
            size=size,
            seed=run.seed,
            back=number((away["again_ns"] - away["begin_ns"]).median()) / tick_ns,
            started_sleeps=len(sleeps.filter(pl.col("begin_ns") < alone_ns)) / len(pids),
            sleeps=len(sleeps) / len(pids),
            later=(last_ns - alone_ns) / tick_ns,
        )

    def feedback_findings(self) -> SimpleNamespace | None:
        """Returns findings under MLFQ until the CPU-bound tasks leave the
        top level; None without a trace.
        """
        size, trace_data = self._largest("MLFQ")
        if not trace_data:
            return None
        ((run, trace),) = trace_data
        ticks, tick_ns = at_ticks(trace, _pids(run, "cpu")), trace.header.tick_ns
        raised = boosts(ticks)
        until = raised[0] if raised else number(ticks["machine_tick"].max()) + 1
        ticks_at_top = ticks.filter(
            (pl.col("level") == pl.col("level").max()) & (pl.col("machine_tick") < until)
        )
        if ticks_at_top.is_empty():
            return SimpleNamespace(size=size, allotment=0)
        sunk_ns = (number(ticks_at_top["machine_tick"].max()) + 1) * tick_ns
        pids = _pids(run, "inter")
        sleeps = _sleeps(trace, pids)
        sleeps_before_demotion = len(sleeps.filter(pl.col("begin_ns") < sunk_ns)) / len(pids)
        later = len(sleeps) / len(pids) - sleeps_before_demotion
        ends = run.metrics().processes.filter(pl.col("pid").is_in(pids))["exit_ns"].mean()
        allotment, _ = usual(ticks_at_top.group_by("pid").len()["len"])
        return SimpleNamespace(
            size=size,
            seed=run.seed,
            allotment=allotment,
            lasted=sunk_ns / tick_ns - number(ticks["machine_tick"].min()),
            started_sleeps=sleeps_before_demotion,
            sleeps=sleeps_before_demotion + later,
            round=(number(ends) - sunk_ns) / tick_ns / later if later else 0.0,
        )

    def wakeups_chart(self) -> list[Block]:
        """Returns the chart of the interactive tasks' wake-up latencies."""
        size = max(set(self._sizes_run("RR")) & set(self._sizes_run("MLFQ")), default=0)
        traces_by_policy = {
            policy: [trace for _, trace in traces(self.setup(f"s4-mixed-{size}", policy))]
            for policy in self.schedulers.values()
        }
        if not size or not all(traces_by_policy.values()):
            return []
        return list(
            draw_if_possible(
                latencies,
                "study-4-wakeups",
                traces_by_policy,
                title=f"Wake-ups next to {size} CPU-bound processes",
                caption="The time from an interactive process's wake-up until it runs.",
                group=self.kinds["interactive"],
            )
        )

    def sizes_of_built_in(self) -> list[int]:
        """Returns the numbers of CPU-bound tasks that ran under built-in policies."""
        return [size for size in self.sizes if self.built_in_policies_run(f"s4-mixed-{size}")]

    # --- the sleeper

    def _of_sleeper(self, experiment: str, scheduler: str, value: pl.Expr) -> Measurement:
        """Evaluates an expression over the sleeper's row of each run."""
        ticks = (value / pl.col("tick_ns")).first()
        rows = self._processes("group", "sleeper")
        return self.of(experiment, scheduler, ticks, rows)

    def slept(self, experiment: str, scheduler: str) -> Measurement:
        """Returns the ticks from the sleeper's call of sleep() until it runs again.

        The sleeper does nothing else after its first run.
        """
        value = pl.col("turnaround_ns") - pl.col("response_ns")
        return self._of_sleeper(experiment, scheduler, value)

    def from_fork(self, experiment: str, scheduler: str) -> Measurement:
        """Returns the time from the sleeper's fork to its exit."""
        return self._of_sleeper(experiment, scheduler, pl.col("turnaround_ns"))

    def waited(self, experiment: str, scheduler: str) -> Measurement:
        """Returns the sleeper's longest wake-up latency, in ticks."""
        return self._of_sleeper(experiment, scheduler, pl.col("wakeup_latency_max_ns"))

    def rerun_of_sleeper(self, scheduler: str) -> Figure | None:
        """Returns the rerun's time from the sleeper's fork to its exit."""
        return self.figure("section 4.3", "sleeper", scheduler, "rerun")


def _pids(run: StoredRun, group: str) -> list[int]:
    rows = run.metrics().processes.filter(pl.col("group") == group)
    return [int(pid) for pid in rows["pid"]]


def _sleeps(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """Returns the sleeps of these tasks in the trace."""
    return state_intervals(trace).filter(
        pl.col("pid").is_in(pids) & (pl.col("cause") == "blocked: sleep")
    )


def _times_away(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """Returns when one of these tasks starts to sleep or to wait for
    the disk, and when it runs again.
    """
    intervals = state_intervals(trace).filter(pl.col("pid").is_in(pids)).sort("pid", "begin_ns")
    runs = pl.when(pl.col("state") == "running").then(pl.col("begin_ns"))
    return (
        intervals.with_columns(again=runs.backward_fill().over("pid"))
        .filter(pl.col("cause").cast(pl.String).is_in(["blocked: sleep", "blocked: disk"]))
        .select("begin_ns", pl.col("again").alias("again_ns"))
    )


def _range_text(points: Mapping[int, object]) -> str:
    """Returns the smallest and the largest size in words."""
    return f"{min(points)} to {max(points)}"


def _shape(shape: str, points: Mapping[int, float]) -> float | None:
    """Returns `growth` or `slope` of a curve, as `Queries.curve` does; None for too few points."""
    if len(points) < _SIZES_MIN:
        return None
    sizes, values = list(points), list(points.values())
    if shape == "growth":
        return values[-1] / values[0]
    return float(np.polyfit(sizes, values, 1)[0])


def _shape_by_seed(shape: str, by_size: Mapping[int, Sequence[float]]) -> Measurement:
    """Returns the growth or slope for each seed."""
    if len(by_size) < _SIZES_MIN:
        return Measurement()
    seeds = range(len(next(iter(by_size.values()))))
    shapes = (
        _shape(shape, {size: values[seed] for size, values in by_size.items()}) for seed in seeds
    )
    return Measurement(
        tuple(seed_shape for seed_shape in shapes if seed_shape is not None), within=UNBOUNDED
    )
