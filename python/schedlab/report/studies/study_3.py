# SPDX-License-Identifier: MIT
"""Queries of study 3's page: six metrics of three workloads."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from types import SimpleNamespace
from typing import ClassVar, Literal

import polars as pl

from schedlab.analysis.comparison.best import rank_policies
from schedlab.machines import SIMULATOR
from schedlab.metrics import state_intervals
from schedlab.metrics.registry import Better
from schedlab.report.charts import boxes, draw_if_possible
from schedlab.report.model import Block
from schedlab.report.studies import queries
from schedlab.report.studies.inversion import InversionQueries
from schedlab.report.studies.queries import first, in_ticks, number, traces
from schedlab.report.studies.ticks import waiting_by_level
from schedlab.report.study_tables import Measurement, measure_seeds
from schedlab.runs.collection import StoredRun
from schedlab.studies.experiments import UNREFRESHED_QUANTA
from schedlab.studies.figures import Figure
from schedlab.studies.ideal_times import STUDY_3_WORK, ideal_batch
from schedlab.studies.proposals import Test, read_proposals
from schedlab.trace import Trace

_BUILT_IN_TEST = "as-shipped"
"""The proposal that tests the built-in feedback queue."""

_BOOSTED_COLUMN = "overhead_share"
"""The column of the test of boosts in the mixed workload."""


@dataclass(frozen=True)
class Remedy:
    """A test of a remedy that section 3.1.3 proposes."""

    proposes: str
    test: Test


class DrawbackQueries(queries.Queries):
    """Queries about the tests of the study's proposals, which have one CPU."""

    def remedies(self) -> list[Remedy]:
        """Returns the tests that were run, with the remedies that the study proposes."""
        return [
            Remedy(proposal.proposes, test)
            for proposal in read_proposals((self.study.number,))
            if proposal.name != _BUILT_IN_TEST
            for test in proposal.tests
            if test.machine == SIMULATOR and self.ran(test.label)
        ]

    def remedies_without_effect(self) -> int:
        """Returns the number of tests where the remedy makes no significant difference."""
        orders = (
            self.order(
                {
                    which: self.drawback(remedy.test, getattr(remedy.test, which))
                    for which in ("off", "on")
                }
            )
            for remedy in self.remedies()
        )
        return sum("≈" in order for order in orders if isinstance(order, str))

    def boosted(
        self, value: pl.Expr, which: Literal["off", "on"], rows: pl.DataFrame | None = None
    ) -> Measurement:
        """Evaluates an expression over the rows of each run of the mixed workload on the kernel.

        `which`: "on" if starved tasks rise to a higher level, else "off".
        """
        tests = (
            test
            for proposal in read_proposals((self.study.number,))
            for test in proposal.tests
            if test.column == _BOOSTED_COLUMN
        )
        test = next(tests)
        policy = _policy_title(getattr(test, which))
        return self.of(test.label, policy, value, rows, cpus=int(test.cpus))

    def drawback(self, test: Test, policy: str) -> Measurement:
        """Returns the metric of a test under a policy: a share in percent, or a time in ticks."""
        column = first(test.column)
        value: pl.Expr = column * 100 if test.column == "share" else in_ticks(column)
        return self.of(test.label, _policy_title(policy), value, self._group(test.group), cpus=1)

    def drawback_of(self, group: str, which: Literal["off", "on"]) -> Measurement:
        """Returns the metric of the first test of this group, without or with its remedy."""
        test = self._of_group(group)
        return self.drawback(test, getattr(test, which)) if test else Measurement()

    def built_in_queue(self, test: Test) -> Measurement:
        """Returns the metric under the built-in feedback queue."""
        return self.drawback(test, "mlfq")

    def _of_group(self, group: str) -> Test | None:
        """Returns the first test whose tasks belong to this group, or None."""
        tests = (remedy.test for remedy in self.remedies())
        return next((test for test in tests if test.group == group), None)

    def drawback_trace(self, group: str, which: Literal["off", "on"]) -> Trace | None:
        """Returns the first seed's trace of the first test of this group, or None without one."""
        test = self._of_group(group)
        if test is None:
            return None
        return self.first_trace(test.label, _policy_title(getattr(test, which)), 1)


def _policy_title(policy: str) -> str:
    """Returns a policy with settings in the form of a configuration's title."""
    name, *settings = policy.split()
    return " ".join((name, ",".join(settings))).strip()


_TOP_LEVEL = 3


@dataclass(frozen=True)
class Metric:
    """One of the study's tables, by its definitions. A million of its cycles is a tick."""

    table: int
    value: pl.Expr
    """The value in terms of the summary's columns."""
    digits: int
    best: Callable[..., str]
    """The function that returns the best of several values: `min` or `max`."""


METRICS = {
    "turnaround": Metric(1, in_ticks(first("turnaround_mean_ns")), 2, min),
    "response": Metric(2, in_ticks(first("response_mean_ns")), 3, min),
    "throughput": Metric(3, first("finished") * first("tick_ns") / first("elapsed_ns"), 3, max),
    "overhead": Metric(4, first("overhead_with_idle_share") * 100, 2, min),
    "fairness": Metric(5, first("fairness_turnaround"), 3, max),
}
_QUARTILES = (
    pl.col("response_ns").quantile(0.75, "linear") - pl.col("response_ns").quantile(0.25, "linear")
) / first("tick_ns")
_SPREAD_OF_FORKS = in_ticks(pl.col("fork_ns").max() - pl.col("fork_ns").min())


def fcfs_turnaround(arrivals: Iterable[float], work: float, cpus: int) -> float:
    """Returns the mean turnaround if CPUs serve tasks in order of arrival,
    to completion, without overhead.

    For equal tasks, no schedule without preemption has a lower mean.
    """
    free_at = [0.0] * cpus
    times = []
    for arrival in sorted(arrivals):
        end = max(free_at[0], arrival) + work
        heapq.heapreplace(free_at, end)
        times.append(end - arrival)
    return fmean(times)


class Queries(InversionQueries, DrawbackQueries):
    """Queries by workload, with the study's names."""

    cpus = 3
    schedulers: ClassVar = {
        "RR": "rr:table-scan",
        "Lottery": "lottery:equal-lfsr",
        "MLFQ": "mlfq:four-quanta",
    }
    workloads: ClassVar = {"CPU-bound": "s3-cpu", "IO-bound": "s3-io", "Mixed": "s3-mixed"}
    """The workloads of the study's tables, and schedlab's experiments."""
    unrefreshed_quanta = UNREFRESHED_QUANTA
    """The feedback queue if a process that blocks keeps the rest of its quantum."""
    barrage = "s3-barrage"
    """The experiment with a task that computes while new tasks keep arriving."""
    fifo: ClassVar = {"s3-fifo-cpu": "CPU-bound", "s3-fifo-mixed": "Mixed"}
    """Experiments with first-in-first-out, and their workloads."""
    fifo_policies: ClassVar = {"RR": "rr", "FIFO": "rr slice=1000"}
    work = STUDY_3_WORK
    batch = ideal_batch(40, STUDY_3_WORK, cpus)
    """The ideal if the 40 CPU-bound tasks arrive at once."""

    def _evaluate(
        self, workload: str, scheduler: str, value: pl.Expr, rows: pl.DataFrame | None = None
    ) -> Measurement:
        """Evaluates an expression over the rows of each run of a workload under a scheduler."""
        return self.of(self.workloads[workload], scheduler, value, rows)

    @cached_property
    def _children(self) -> pl.DataFrame:
        """Returns the tasks of the workloads of all runs."""
        return self._processes("role", "workload")

    # --- tables 1 to 5

    def metric(self, name: str, workload: str, scheduler: str, costs: bool = False) -> Measurement:
        """Returns a cell of the study's tables. `costs`: with the study costs."""
        experiment = self.workloads[workload]
        if costs:
            experiment = self.experiment_with_study_costs(experiment)
        return self.of(experiment, scheduler, METRICS[name].value)

    def metric_of(self, name: str, experiment: str, policy: str) -> Measurement:
        """Returns a metric of the study in any experiment."""
        return self.of(experiment, policy, METRICS[name].value)

    def reading(self, name: str, workload: str, policy: str) -> Measurement:
        """Returns a metric of a workload under one interpretation of the study's feedback queue."""
        return self.of(self.workloads[workload], policy, METRICS[name].value)

    def other_reading_ran(self) -> bool:
        """True if the runs include the policy for the other interpretation of the study's time slices."""
        return self.setup(self.workloads["CPU-bound"], self.uninterrupted_quanta) is not None

    def printed(self, name: str, workload: str, scheduler: str) -> Figure | None:
        """Returns the published value of a cell."""
        return self.figure(f"table {METRICS[name].table}", scheduler, workload)

    def ideal(self, name: str, workload: str, scheduler: str) -> Measurement | float | None:
        """Returns the ideal value of a cell, which is known for CPU-bound tasks; otherwise None."""
        if workload != "CPU-bound":
            return None
        if name == "turnaround":
            return self._served_in_order(scheduler)
        return {"throughput": self.batch.throughput, "fairness": 1.0}.get(name)

    def _served_in_order(self, scheduler: str) -> Measurement:
        """Returns `fcfs_turnaround` for the arrivals of each run."""
        rows, folders = self._children, {}
        if len(rows):
            workload_rows = rows.filter(pl.col("experiment") == self.workloads["CPU-bound"])
            for (run,), run_rows in workload_rows.group_by("run", maintain_order=True):
                arrivals = (run_rows["fork_ns"] - run_rows["fork_ns"].min()) / run_rows["tick_ns"]
                ticks = fcfs_turnaround(arrivals, self.work, self.cpus)
                folders[self.collection.runs[int(str(run))].folder] = ticks
        return measure_seeds(self.setup(self.workloads["CPU-bound"], scheduler), folders)

    def part_of_time(self, column: str, workload: str, scheduler: str) -> Measurement:
        """Returns a column's fraction of all CPUs' time in the window, in percent."""
        value = first(column) * 100 / (first("cpus") * first("elapsed_ns"))
        return self._evaluate(workload, scheduler, value)

    def overhead(self, workload: str, scheduler: str) -> Measurement:
        """Returns the scheduler's fraction of CPU time, in percent."""
        return self._evaluate(workload, scheduler, first("overhead_share") * 100)

    def last_fork(self, workload: str, scheduler: str) -> Measurement:
        """Returns the ticks from the first task's fork to the last task's fork."""
        return self._evaluate(workload, scheduler, _SPREAD_OF_FORKS, self._children)

    def mean_time(self, column: str, workload: str, scheduler: str) -> Measurement:
        """Returns the mean time of a task, in ticks."""
        return self._evaluate(workload, scheduler, in_ticks(pl.col(column).mean()), self._children)

    def group_turnaround(self, group: str, scheduler: str) -> Measurement:
        """Returns the turnaround of a task of this group of the mixed workload, in ticks."""
        group_turnarounds = pl.col("turnaround_ns").filter(pl.col("group") == group)
        return self._evaluate(
            "Mixed", scheduler, in_ticks(group_turnarounds.mean()), self._children
        )

    def thousandths(self, name: str, workload: str, scheduler: str) -> Measurement:
        """Returns a time in thousandths of a tick."""
        return self._evaluate(workload, scheduler, METRICS[name].value * 1000)

    def throughput_of_ideal(self, scheduler: str) -> Measurement:
        """Returns the throughput of the CPU-bound workload, in percent of the ideal."""
        value = METRICS["throughput"].value * 100 / self.batch.throughput
        return self._evaluate("CPU-bound", scheduler, value)

    def _first_trace(self, workload: str, scheduler: str) -> tuple[StoredRun, Trace] | None:
        """Returns the first seed's run and trace, or None without a trace."""
        return next(iter(traces(self.setup(self.workloads[workload], scheduler), runs_max=1)), None)

    def mostly_blocked_on(self) -> SimpleNamespace | None:
        """Returns the main cause of blocking of IO-bound tasks under
        round-robin, and its percentage of time.
        """
        first_trace = self._first_trace("IO-bound", "RR")
        if first_trace is None:
            return None
        run, trace = first_trace
        pids = run.metrics().processes.filter(pl.col("group") == "io")["pid"].implode()
        blocked = (
            state_intervals(trace)
            .filter((pl.col("state") == "blocked") & pl.col("pid").is_in(pids))
            .group_by(pl.col("cause").cast(pl.String))
            .agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("time"))
            .with_columns(part=100 * pl.col("time") / pl.col("time").sum())
            .sort("time", descending=True)
        )
        if blocked.is_empty():
            return None
        first = blocked.row(0, named=True)
        cause = str(first["cause"]).removeprefix("blocked: ")
        return SimpleNamespace(cause=cause, part=first["part"], seed=run.seed)

    def waits_below_the_top(self) -> SimpleNamespace | None:
        """Returns the percentage of the computing tasks' waiting below
        the top level, under MLFQ.
        """
        first_trace = self._first_trace("Mixed", "MLFQ")
        if first_trace is None:
            return None
        run, trace = first_trace
        rows = run.metrics().processes.filter(pl.col("group") == "cpu")
        waits = waiting_by_level(trace, rows["pid"].to_list())
        if waits.is_empty():
            return None
        below = waits.filter(pl.col("level") < _TOP_LEVEL)["waiting_ns"]
        percentage = 100 * number(below.sum()) / number(waits["waiting_ns"].sum())
        return SimpleNamespace(part=percentage, seed=run.seed)

    # --- figures 4 and 5

    def spread(self, workload: str, scheduler: str) -> Measurement:
        """Returns the interquartile range of response within a run, in ticks."""
        return self._evaluate(workload, scheduler, _QUARTILES, self._children)

    def longest_response(self, workload: str, scheduler: str) -> Measurement:
        """Returns the longest response of a run, in ticks."""
        return self._evaluate(
            workload, scheduler, in_ticks(pl.col("response_ns").max()), self._children
        )

    def response_chart(self, workload: str, figure: int) -> list[Block]:
        """Returns the chart of all tasks' response times, under the
        schedulers without failed runs.
        """
        rows = self._children
        if rows.is_empty():
            return []
        titles = {policy: f"{name} ({policy})" for name, policy in self.schedulers.items()}
        experiment = self.workloads[workload]
        setups = {policy: self.setup(experiment, policy) for policy in titles}
        policies = [policy for policy, setup in setups.items() if setup and setup.succeeded]
        chosen = rows.filter(
            (pl.col("experiment") == experiment) & pl.col("policy").is_in(policies)
        ).select(
            pl.col("policy").replace_strict(titles, return_dtype=pl.String).alias("scheduler"),
            (pl.col("response_ns") / pl.col("tick_ns")).alias("ticks"),
        )
        by_scheduler = pl.col("scheduler").cast(pl.Enum(list(titles.values())))
        chosen = chosen.sort(by_scheduler, maintain_order=True)
        if chosen.is_empty():
            return []
        words = {1.0: "the narrowest", 3.0: "the widest"}
        spread_words = {
            titles[policy]: words[rank.value]
            for name, policy in self.schedulers.items()
            if (rank := self.figure(f"figure {figure}", name, workload))
        }
        return list(
            draw_if_possible(
                boxes,
                f"study-3-figure-{figure}",
                chosen,
                title=f"Response times, {workload}: the study's figure {figure}",
                caption=f"""Each process of each run is a value. The study's figure was not printed in numbers{
                    ". Published in words: the narrowest and the widest spread"
                    if spread_words
                    else ""
                }.""",
                series="scheduler",
                value="ticks",
                x_title="response (ticks)",
                order=list(titles.values()),
                published=spread_words,
            )
        )

    # --- starvation

    def under_barrage(self, name: str, scheduler: str) -> Measurement:
        """Returns the old task's share in percent or its longest wait, or the new tasks' mean response, in ticks."""
        group, value = {
            "share": ("old", first("share") * 100),
            "wait": ("old", in_ticks(first("longest_wait_ns"))),
            "response": ("new", in_ticks(first("response_mean_ns"))),
        }[name]
        return self.of(self.barrage, self.schedulers[scheduler], value, self._group(group), cpus=1)

    # --- boosts

    def boost_ratio(self, name: str) -> Measurement:
        """Returns a metric of the mixed workload with boosts, divided by its value without them.

        `name`: a metric of tables 1 to 5, `scheduler` for the scheduler's own part of the overhead, or `spread` for the
        interquartile range of response.
        """
        rows = self._children if name == "spread" else None
        if name in METRICS:
            value = METRICS[name].value
        else:
            value = {"spread": _QUARTILES, "scheduler": first(_BOOSTED_COLUMN)}[name]
        with_boosts, without = (self.boosted(value, which, rows) for which in ("on", "off"))
        return self.ratio(with_boosts, without)

    # --- sample schedules

    def sample_order(self) -> pl.DataFrame:
        """Returns figure 1's schedule.

        The text states only the order, so each time slice is one tick.
        """
        order = pl.read_csv(self.study.folder / "figure-1.csv").rename({"process": "series"})
        return order.select(
            pl.lit("published").alias("kind"),
            pl.lit("").alias("row"),
            "series",
            pl.col("turn").cast(pl.Float64).alias("begin"),
            (pl.col("turn") + 1).cast(pl.Float64).alias("end"),
        )

    def sample_share(self, experiment: str, group: str) -> Measurement:
        """Returns the CPU share of a task of the sample workload, in percent."""
        return self.of(
            experiment, "lottery", 100 * pl.col("share").first(), self._group(group), cpus=1
        )

    # --- claims

    def gain_printed(self, name: str, workload: str, more: str, less: str) -> float:
        """Returns by how many percent the first published figure exceeds the second."""
        above, below = (
            self._printed_value(name, workload, scheduler) for scheduler in (more, less)
        )
        return (above / below - 1) * 100

    def _printed_value(self, name: str, workload: str, scheduler: str) -> float:
        """Returns the published number of a cell."""
        figure = self.printed(name, workload, scheduler)
        if figure is None:
            raise ValueError(f"the study has no {name} of {workload} under {scheduler}")
        return figure.value

    def order_published(self, name: str, workload: str, falling: bool) -> str:
        """Returns the order of the three schedulers by published figures."""
        figures = {
            scheduler: self.printed(name, workload, scheduler) for scheduler in self.schedulers
        }
        return self.order_of_published(
            {scheduler: f for scheduler, f in figures.items() if f}, falling
        )

    def order_measured(self, name: str, workload: str, falling: bool) -> str | Measurement:
        """Returns the three schedulers' names in measured order, or why a measurement is missing."""
        return self.order(
            {scheduler: self.metric(name, workload, scheduler) for scheduler in self.schedulers},
            falling,
        )

    def scheduler_of_spread(self, rank: str) -> str:
        """Returns the scheduler with the narrowest or the widest spread, according to the study."""
        rank_text = {"narrowest": "1", "widest": "3"}[rank]
        ranks = (self.figure("figure 4", scheduler, "Mixed") for scheduler in self.schedulers)
        return next(figure.row for figure in ranks if figure and figure.text == rank_text)

    def _spreads(self) -> dict[str, Measurement]:
        """Returns the interquartile range of response times under each scheduler."""
        return {scheduler: self.spread("Mixed", scheduler) for scheduler in self.schedulers}

    def spread_rank(self, scheduler: str) -> str | Measurement:
        """Returns the rank of a scheduler's spread, 1 for the narrowest, or
        the first missing measurement.
        """
        spreads = self._spreads()
        missing = next((measured for measured in spreads.values() if measured.mean is None), None)
        order = sorted(spreads, key=lambda scheduler: spreads[scheduler].mean or 0.0)
        return missing or str(order.index(scheduler) + 1)

    def spreads_text(self) -> str:
        """Returns all three spreads in words, the narrowest first; "" if one is missing."""
        means = {scheduler: measured.mean for scheduler, measured in self._spreads().items()}
        known_means = {scheduler: mean for scheduler, mean in means.items() if mean is not None}
        if len(known_means) < len(means):
            return ""
        texts = (
            f"{scheduler} {known_means[scheduler]:.2f}"
            for scheduler in sorted(known_means, key=lambda scheduler: known_means[scheduler])
        )
        return f"Interquartile ranges in ticks: {', '.join(texts)}."

    def best_printed(self, scheduler: str) -> int:
        """Returns the number of cells of tables 1 to 5 where the
        scheduler has the best published value.
        """
        return self._count_best(scheduler, self._printed_value)

    def best(self, scheduler: str) -> Measurement:
        """Returns the number of cells where the scheduler has the best mean. The number is the same for all seeds."""
        means: dict[tuple[str, str, str], float] = {}
        for name in METRICS:
            for workload in self.workloads:
                for candidate in self.schedulers:
                    measured = self.metric(name, workload, candidate)
                    if measured.mean is None:
                        return measured
                    means[name, workload, candidate] = measured.mean
        return Measurement((self._count_best(scheduler, lambda *key: means[key]),))

    def best_in_texts(self, scheduler: str) -> Measurement:
        """Returns the number of cells where the scheduler is the winner
        by the comparison page's test.

        The test is schedlab.analysis.comparison.best.
        """
        best_count = 0
        for name, metric in METRICS.items():
            for workload in self.workloads:
                values = {
                    scheduler: self.metric(name, workload, scheduler).values
                    for scheduler in self.schedulers
                }
                if len({len(sample) for sample in values.values()}) != 1 or not all(
                    values.values()
                ):
                    return Measurement()
                better: Better = "lower" if metric.best is min else "higher"
                best_count += rank_policies(values, better).tied_for_best == (scheduler,)
        return Measurement((float(best_count),))

    def _count_best(self, scheduler: str, value: Callable[[str, str, str], float]) -> int:
        best_count = 0
        for name, metric in METRICS.items():
            for workload in self.workloads:
                values = {
                    scheduler: value(name, workload, scheduler) for scheduler in self.schedulers
                }
                best_count += (
                    metric.best(values, key=lambda scheduler: values[scheduler]) == scheduler
                )
        return best_count
