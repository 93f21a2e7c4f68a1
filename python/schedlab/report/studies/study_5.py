# SPDX-License-Identifier: MIT
"""Queries of study 5's page: events of its benchmark, runs on Linux, and both kernels."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations
from statistics import median
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import polars as pl

from schedlab.analysis.comparison.statistics import UNBOUNDED, Difference, difference
from schedlab.base.display.numbers import NO_VALUE
from schedlab.base.outputs import Figures
from schedlab.machines import LINUX_MACHINES
from schedlab.metrics import state_intervals
from schedlab.report.charts import draw_if_possible, ecdf
from schedlab.report.model import Block
from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks, traces
from schedlab.report.study_tables import Measurement, measure_seeds
from schedlab.runs.collection import StoredRun
from schedlab.runs.results import read_printed_figures
from schedlab.studies.experiments import DEFAULT_POLICIES, EXPERIMENTS, LINEAR_LOTTERY
from schedlab.studies.figures import Figure
from schedlab.studies.linux_experiments import (
    FAIR_CLASS,
    HACKBENCH,
    OTHER_STUDY_SUITES,
    STRESSORS,
    STUDY_SCHEDULERS,
    SYSBENCH_8,
)
from schedlab.trace import Kind, Trace

_NS_PER_MS = 1e6
_NS_PER_S = 1e9
_CONSTANT_GROWTH_MAX, _LOGARITHMIC_GROWTH_MAX = 1.1, 2.5
"""Largest ratios of the cost with 4,096 waiting tasks to the cost with 64, for constant and logarithmic growth."""
_LATENCIES = {
    "mean": pl.col("ms").mean(),
    "longest": pl.col("ms").max(),
    "95th": pl.col("ms").quantile(0.95, "linear"),
}


def _growth_text(ratio: float) -> str:
    """Returns the growth of a cost that multiplies by this ratio from 64 to 4,096 tasks, which double six times."""
    if ratio <= _CONSTANT_GROWTH_MAX:
        return "O(1)"
    return "O(log n)" if ratio <= _LOGARITHMIC_GROWTH_MAX else "O(n)"


class EventQueries(queries.Queries):
    """Queries about events, by experiment and policy."""

    def throughput(self, experiment: str, policy: str) -> Measurement:
        """Returns events per second of all threads, as the program reports them."""
        events = pl.col("value").filter(pl.col("name") == "events").sum()
        elapsed = pl.col("value").filter(pl.col("name") == "elapsed").sum()
        rate = pl.when(elapsed > 0).then(events * 1e9 / elapsed)
        return self.of(experiment, policy, rate, self.collection.values)

    def latency(self, experiment: str, policy: str, which: str) -> Measurement:
        """Returns an event's latency in ms: the mean, the longest, or the 95th percentile."""
        return self.of(experiment, policy, _LATENCIES[which], self._latencies)

    def _latencies_of(self, experiment: str, policies: Sequence[str]) -> pl.DataFrame:
        """Returns the latencies of all events under policies without failed runs.

        Columns: policy, ms.
        """
        rows = self._latencies
        setups = {policy: self.setup(experiment, policy) for policy in policies}
        complete = [policy for policy, setup in setups.items() if setup and setup.succeeded]
        if rows.is_empty():
            return pl.DataFrame(schema={"policy": pl.String, "ms": pl.Float64})
        return rows.filter(
            (pl.col("experiment") == experiment) & pl.col("policy").is_in(complete)
        ).select("policy", "ms")

    @cached_property
    def _latencies(self) -> pl.DataFrame:
        rows = self._values_reported_as("latency")
        return rows.with_columns(ms=pl.col("value") / _NS_PER_MS) if len(rows) else rows


def expired_slices(run: StoredRun, trace: Trace) -> pl.DataFrame:
    """Returns the threads' time slices that expired. Columns: pid, ms."""
    events = run.metrics().processes.filter(pl.col("group") == "event")["pid"]
    intervals = state_intervals(trace).filter(pl.col("pid").is_in(events.implode()))
    ended_by = pl.col("cause").cast(pl.String).shift(-1).over("pid")
    return (
        intervals.with_columns(then=ended_by)
        .filter((pl.col("state") == "running") & (pl.col("then") == "preempted: slice"))
        .select("pid", ((pl.col("end_ns") - pl.col("begin_ns")) / _NS_PER_MS).alias("ms"))
    )


def lost_steps(run: StoredRun, trace: Trace) -> float:
    """Returns how many steps of the machine's clock are lost in a tick, as a mean.

    Spike's clock advances in steps. When an interrupt arrives, Spike ends a step early: time advances
    by a whole step, but the CPU executes less. Returns 0 if the clock has no steps.

    """
    threads = run.metrics().processes.filter(pl.col("group") == "event")["pid"].to_list()
    rows = trace.rows(Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    rows = rows[trace.column("cpu")[rows] == 0]
    kind, process = trace.column("kind")[rows], trace.column("process")[rows]
    begins = np.flatnonzero(
        (kind[:-1] == Kind.SCHEDULER_EXIT)
        & np.isin(process[:-1], threads)
        & (kind[1:] == Kind.SCHEDULER_ENTER)
    )
    cycles = trace.column("second")[rows].astype(np.int64)
    times = trace.column("time_ns")[rows]
    took = int((times[begins + 1] - times[begins]).sum())
    counted = int((cycles[begins + 1] - cycles[begins]).sum())
    if not took or not trace.clock_step_ns:
        return 0.0
    lost_ns = took - counted * _NS_PER_S / trace.header.cycles_per_second
    return lost_ns / trace.clock_step_ns / (took / trace.header.tick_ns)


POLICIES = tuple(dict.fromkeys((*STUDY_SCHEDULERS, *DEFAULT_POLICIES)))
"""The policies in the order of all tables."""


class LinuxQueries(queries.Queries):
    """Queries about benchmarks on Linux. Figures are named as in schedlab.base.outputs."""

    def on_linux(self) -> bool:
        """Returns whether there is any run on Linux."""
        return any(
            self.ran(name)
            for name, experiment in EXPERIMENTS.items()
            if experiment.machine in LINUX_MACHINES
        )

    def linux_policies(self, experiments: Iterable[str] | str) -> list[str]:
        """Returns the policies that ran any of the experiments, the study's first."""
        names = [experiments] if isinstance(experiments, str) else list(experiments)
        return [p for p in POLICIES if any(self.ran(name, p) for name in names)]

    def printed_output(self, experiment: str, policy: str, figure: str) -> Measurement:
        """Returns a figure that a benchmark printed."""
        setup = self.setup(experiment, policy)
        runs = [run for run in (setup.runs if setup else ()) if run.succeeded]
        values = {run.folder: self._printed_by(run) for run in runs}
        return measure_seeds(
            setup, {at: all_[figure] for at, all_ in values.items() if figure in all_}
        )

    def _printed_by(self, run: StoredRun) -> Figures:
        """Returns the figures that a benchmark printed; empty if its output is not as expected."""
        if run.folder not in self._read:
            self._read[run.folder] = read_printed_figures(run.folder, str(run.manifest["workload"]))
        return self._read[run.folder]

    @cached_property
    def _read(self) -> dict[object, Figures]:
        """Returns the cache of benchmark outputs, by the run's folder."""
        return {}


def unpaired_difference(one: Measurement, other: Measurement) -> Difference | None:
    """Returns the difference `other` minus `one`; None if either is missing.

    Runs are unpaired, since each is a separate boot and equal seeds share nothing else.
    """
    if one.mean is None or other.mean is None:
        return None
    return difference(one.values, other.values, paired=False)


ONE, EIGHT = _ON_OUR_KERNEL = ("s5-cpubench", "s5-cpubench-8")
"""Experiments with one thread, as in the study, and with eight."""
_FIGURE_NAMES = {
    "throughput": "events_per_second",
    "mean latency": "latency_mean_ms",
    "maximum latency": "latency_max_ms",
}
"""Sysbench's names, by the quantity of published figures."""
_SIGNIFICANCE_LEVEL = 0.05
"""Significance level of differences."""
_SMALLEST_PRINTED_P = 0.001
_ONE_THREAD_POLICIES = tuple(dict.fromkeys((*EXPERIMENTS[ONE].study_policies, *DEFAULT_POLICIES)))


class Queries(LinuxQueries, EventQueries):
    """Queries of study 5's page.

    Schedulers have the study's names, and policies have schedlab's names.
    """

    schedulers: ClassVar = {"CFS": FAIR_CLASS, "Lottery": "lottery:linux", "WRR": "wrr:linux"}
    """The study's schedulers, and the corresponding policies on Linux."""
    on_schedlab_kernel: ClassVar = {**schedulers, "CFS": "cfs"}
    """The corresponding policies on schedlab's kernel."""
    operation_policies = ("wrr:arrays", "cfs")
    """The policies whose operations are compared with the study's table 1."""
    decision_policies = ("wrr:linux", "cfs", "lottery:linux", LINEAR_LOTTERY)
    """The policies whose decisions are compared with few and with many tasks."""
    quantities: ClassVar = {
        "throughput": "events a second",
        "mean latency": "mean latency, ms",
        "maximum latency": "longest latency, ms",
    }
    """Quantities, and their names in the tables."""
    pairs = tuple(combinations(schedulers, 2))
    stressors: ClassVar = {f"s5-linux-stress-{name}": name for name in STRESSORS}
    benchmarks: ClassVar = {
        HACKBENCH: "hackbench",
        **{f"s5-linux-stress-{name}": f"stress-ng, {name}" for name in STRESSORS},
    }
    suites: ClassVar = {f"s5-linux-{name}": name for name in OTHER_STUDY_SUITES}
    high_loads: ClassVar = {"s5-stress-6": 6, "s5-stress-40": 40}
    """Experiments with a shell, and the number of computing processes next to it."""
    by_priority = "s5-weights"
    """The experiment with tasks that compute, with different priorities."""
    priorities = (1, 2, 3, 4)
    mix, io, pattern = "s5-mix", "s5-io", "s5-pattern"
    """Experiments with deadlines next to batch jobs, with I/O, and with a task that sleeps in step with the ticks."""
    equal_tasks = ("first", "second")
    """The two equal tasks of the pattern."""

    def share_of_priority(self, priority: int, policy: str) -> Measurement:
        """Returns the running time of the computing task with this priority, in percent of all such tasks'."""
        computing = [f"w{value}" for value in self.priorities]
        times = pl.col("running_ns")
        time_at_priority = times.filter(pl.col("group") == f"w{priority}").sum()
        all_times = times.filter(pl.col("group").is_in(computing)).sum()
        value = 100 * time_at_priority / all_times
        return self.of(self.by_priority, policy, value, self.collection.groups)

    # --- other workloads

    def missed(self, task: str, policy: str) -> Measurement:
        """Returns the share of a task's deadlines that it misses, in percent."""
        value = first("miss_share") * 100
        return self.of(self.mix, policy, value, self._group(task), within=UNBOUNDED)

    def group_share(self, experiment: str, group: str, policy: str) -> Measurement:
        """Returns the CPU share of a group of tasks, in percent."""
        return self.of(experiment, policy, first("share") * 100, self._group(group))

    def unequal_points(self, policy: str) -> Measurement:
        """Returns how far the shares of the pattern's two equal tasks differ, in points."""
        one, other = (
            pl.col("share").filter(pl.col("group") == group).first() for group in self.equal_tasks
        )
        return self.of(self.pattern, policy, 100 * (one - other).abs(), self.collection.groups)

    # --- runs

    def on_our_kernel(self) -> bool:
        """Returns whether the study's benchmark ran on schedlab's kernel."""
        return any(self.collection.select(experiment=name) for name in _ON_OUR_KERNEL)

    def policies_shown(self, experiment: str) -> list[str]:
        """Returns the study's policies, and the others that were run."""
        policies = EXPERIMENTS[experiment].study_policies
        return [
            p
            for p in (*_ONE_THREAD_POLICIES, LINEAR_LOTTERY)
            if p in policies or self.ran(experiment, p)
        ]

    # --- tables 5 and 6

    def published_figure(self, quantity: str, name: str, run: str = "") -> Figure | None:
        """Returns the published figure of a run (table 5), or the mean without `run` (table 6)."""
        for figure in self.study.figures:
            place_and_row = (figure.place, figure.row) if run else (figure.place, figure.column)
            expected_place = ("table 5", f"{name} {run}") if run else ("table 6", name)
            if place_and_row == expected_place and figure.quantity == quantity:
                return figure
        return None

    @cached_property
    def _operations(self) -> dict[tuple[str, str], list[int]]:
        """Returns the numbers of instructions with few and with many waiting tasks, by operation and policy."""
        rows = self.printed_table("operations")
        return {(policy, operation): [int(few), int(many)] for policy, operation, few, many in rows}

    def growth(self, operation: str, policy: str) -> str:
        """Returns how the instructions of an operation grow with the tasks; of all operations if empty."""
        costs = [
            cost
            for (of_policy, name), cost in self._operations.items()
            if of_policy == policy and operation in ("", name)
        ]
        growth = _growth_text(max(many / few for few, many in costs))
        if not operation:
            return growth
        ((few, many),) = costs
        return f"{growth}: {few:,} → {many:,}"

    def titled(self, name: str, experiment: str) -> str:
        """Returns a scheduler with the policy that represents it."""
        if experiment == ONE:
            return f"{name} ({self.on_schedlab_kernel[name]})"
        return f"{name} ({'the kernel’s fair class' if name == 'CFS' else self.schedulers[name]})"

    def digits(self, quantity: str, experiment: str) -> int:
        """Returns the decimals of measured figures. Sysbench prints two; a clock step is 0.0005 ms."""
        return 2 if quantity == "throughput" or experiment != ONE else 4

    def measured_figure(
        self, quantity: str, name: str, experiment: str, run: str = ""
    ) -> Measurement:
        """Returns the measured figure of the seed with that number; without `run`, of all seeds."""
        policy = self.on_schedlab_kernel[name] if experiment == ONE else self.schedulers[name]
        if experiment != ONE:
            measured = self.printed_output(experiment, policy, _FIGURE_NAMES[quantity])
        elif quantity == "throughput":
            measured = self.throughput(experiment, policy)
        else:
            which = "mean" if quantity == "mean latency" else "longest"
            measured = self.latency(experiment, policy, which)
        if run and measured.mean is not None:
            return Measurement(measured.values[int(run) - 1 : int(run)])
        return measured

    def running(self, experiment: str, policy: str) -> Measurement:
        """Returns the percentage of time when the threads run."""
        return self.of(experiment, policy, first("running_ns") * 100 / first("elapsed_ns"))

    def overhead(self, experiment: str, policy: str) -> Measurement:
        """Returns the scheduler's percentage of the time."""
        return self.summary(experiment, policy, "overhead_share", 100)

    def _means(self, quantity: str) -> dict[str, Figure]:
        """Returns the published means of a quantity by scheduler."""
        return {name: f for name in self.schedulers if (f := self.published_figure(quantity, name))}

    def longest_printed(self) -> SimpleNamespace:
        """Returns the maximum of the three runs' longest latencies,
        its scheduler, and all medians.
        """
        runs = {
            name: [
                f.value
                for run in "123"
                if (f := self.published_figure("maximum latency", name, run))
            ]
            for name in self.schedulers
        }
        worst = max(runs, key=lambda name: max(runs[name]))
        medians = {name: median(values) for name, values in runs.items()}
        return SimpleNamespace(name=worst, worst=max(runs[worst]), medians=medians)

    # --- one thread

    def slowest_and_fastest_policy(self) -> SimpleNamespace:
        """Returns the slowest and the fastest policy by throughput,
        and their difference in percent.

        `work`: the scheduler's part of it. Raises NoMeasurement.
        """
        rates = {policy: self.throughput(ONE, policy) for policy in self.policies_shown(ONE)}
        shares = {policy: self.overhead(ONE, policy) for policy in rates}
        rate, share = (
            {policy: measured.value for policy, measured in rates_of_kind.items()}
            for rates_of_kind in (rates, shares)
        )
        fast, slow = (extreme(rate, key=lambda policy: rate[policy]) for extreme in (max, min))
        return SimpleNamespace(
            fast=fast,
            slow=slow,
            spread=100 * (rate[fast] / rate[slow] - 1),
            work=share[slow] - share[fast],
        )

    def clock_step_of_tick(self, policy: str) -> Measurement:
        """Returns the clock's step in percent of a tick."""
        return self.of(ONE, policy, in_ticks(100 * first("clock_step_ns")))

    def steps_lost(self) -> list[float]:
        """Returns the lost clock steps per tick under the slowest and the
        fastest policy; [] without traces.

        Raises NoMeasurement.
        """
        extremes = self.slowest_and_fastest_policy()
        trace_pairs = [
            traces(self.setup(ONE, policy), runs_max=1) for policy in (extremes.slow, extremes.fast)
        ]
        return [lost_steps(*runs[0]) for runs in trace_pairs] if all(trace_pairs) else []

    def _rates_by_seed(self) -> list[tuple[float, ...]]:
        """Returns the throughput of each seed under each policy."""
        return [self.throughput(ONE, policy).values for policy in self.policies_shown(ONE)]

    def has_several_seeds(self) -> bool:
        """True if each policy was run with several seeds."""
        return all(len(rates) > 1 for rates in self._rates_by_seed())

    def same_for_all_seeds(self) -> int:
        """Returns the number of policies with the same throughput for all seeds."""
        return sum(len(set(rates)) == 1 for rates in self._rates_by_seed())

    # --- eight threads

    def latencies_chart(self) -> list[Block]:
        """Returns the chart of all events' latencies; [] if there are none."""
        latencies = self._latencies_of(EIGHT, _ONE_THREAD_POLICIES)
        if not len(latencies):
            return []
        return list(
            draw_if_possible(
                ecdf,
                "study-5-latencies",
                latencies,
                title="Latency of an event, eight threads",
                caption="All events of all runs.",
                value="ms",
                x_title="latency of an event (ms)",
                y_title="events (%)",
            )
        )

    def expired_slices_ms(self, policy: str) -> list[float]:
        """Returns the lengths of expired time slices in ms; [] without a trace."""
        traces_of_eight = traces(self.setup(EIGHT, policy))
        return [
            length for run, trace in traces_of_eight for length in expired_slices(run, trace)["ms"]
        ]

    def usual_slice_ms(self, policy: str) -> float:
        """Returns the median of these lengths in ms; 0 if there are none."""
        lengths = self.expired_slices_ms(policy)
        return median(lengths) if lengths else 0.0

    def setting(self, row: str) -> Figure | None:
        """Returns a setting of the study's time slices."""
        figures = (figure for figure in self.study.figures if figure.place == "section 3.3.3")
        return next((figure for figure in figures if figure.row == row), None)

    # --- sysbench on Linux

    def linux_figures(self, experiment: str, figure: str) -> dict[str, Measurement]:
        """Returns figures of the study's schedulers; for eight threads,
        of all policies that were run.
        """
        study_policies = list(self.schedulers.values())
        policies = self.linux_policies(experiment) if experiment == SYSBENCH_8 else study_policies
        return {policy: self.printed_output(experiment, policy, figure) for policy in policies}

    def linux_order(self, experiment: str, quantity: str, falling: bool) -> str | Measurement:
        """Returns the unpaired order `WRR ≈ CFS > Lottery`, or the first missing measurement."""
        values = {
            name: self.printed_output(experiment, name, _FIGURE_NAMES[quantity])
            for name in self.schedulers
        }
        return self.order(values, falling, paired=False)

    def difference_published(self, quantity: str, pair: tuple[str, str]) -> str:
        """Returns the second's published mean minus the first's."""
        first, second = (self.published_figure(quantity, name) for name in pair)
        return _signed(second.value - first.value) if first and second else NO_VALUE

    def _difference(
        self, quantity: str, pair: tuple[str, str], experiment: str
    ) -> Difference | None:
        """Returns the difference of a pair of schedulers' measured figures; None if either is
        missing.
        """
        first, second = (
            self.printed_output(experiment, self.schedulers[name], _FIGURE_NAMES[quantity])
            for name in pair
        )
        return unpaired_difference(first, second)

    def difference_measured(self, quantity: str, pair: tuple[str, str], experiment: str) -> str:
        """Returns the second's measured mean minus the first's, with its interval."""
        difference = self._difference(quantity, pair, experiment)
        if difference is None:
            return NO_VALUE
        if difference.p_value is None:
            return _signed(difference.change)
        low, high = (
            f"{round(bound, 2) + 0.0:.2f}" for bound in (difference.low, difference.high)
        )  # no -0
        return f"{_signed(difference.change)} [{low}, {high}]"

    def chance_of_difference(self, quantity: str, pair: tuple[str, str], experiment: str) -> str:
        """Returns whether the difference is significant, with its p-value, in words."""
        difference = self._difference(quantity, pair, experiment)
        if difference is None:
            return NO_VALUE
        if difference.p_value is None:
            return "unknown (one run)"
        text = (
            f"p = {difference.p_value:.2g}"
            if difference.p_value >= _SMALLEST_PRINTED_P
            else "p < 0.001"
        )
        return f"yes ({text})" if difference.p_value < _SIGNIFICANCE_LEVEL else f"no ({text})"

    # --- wake-ups

    def woken(self, experiment: str, policy: str, column: str) -> Measurement:
        """Returns a time of the workers, in ms."""
        return self.of(experiment, policy, first(column) * 1e-6, self._group("worker"))

    def under_load(self, column: str, group: str, experiment: str, policy: str) -> Measurement:
        """Returns a time of the shell, or of the processes that compute next to it, in ms."""
        return self.of(experiment, policy, first(column) * 1e-6, self._group(group))

    def rounds(self, experiment: str, policy: str) -> Measurement:
        """Returns the number of rounds of all message tasks."""
        return self.of(
            experiment, policy, pl.col("value").sum(), self._values_reported_as("rounds")
        )

    def share_of_computing(self, experiment: str, policy: str) -> Measurement:
        """Returns the CPU share of the computing tasks, in percent."""
        return self.of(experiment, policy, first("share") * 100, self._group("cpu"))

    def wakeups(self, experiment: str) -> dict[str, Measurement]:
        """Returns the 99th percentile of wake-up latency under each policy that was run, in ms."""
        return {
            policy: self.woken(experiment, policy, "wakeup_latency_p99_ns")
            for policy in self.linux_policies(experiment)
        }

    def place_of_wrr(self, experiment: str) -> SimpleNamespace | None:
        """Returns the rank of WRR among several policies, and its ratio to Linux's
        fair class; None without runs.
        """
        means = {
            policy: measured.mean or 0.0 for policy, measured in self.wakeups(experiment).items()
        }
        if "wrr:linux" not in means or len(means) == 1:
            return None
        place = 1 + sorted(means, key=lambda policy: means[policy]).index("wrr:linux")
        last, fair = place == len(means), means.get(FAIR_CLASS)
        return SimpleNamespace(
            last=last,
            rank="last" if last else f"{place} of {len(means)}",
            times=f"{means['wrr:linux'] / fair:.3g}" if fair else "",
        )

    # --- further benchmarks

    def result(self, experiment: str, policy: str) -> Measurement:
        """Returns hackbench's seconds, or stress-ng's operations per second."""
        figure = "elapsed_s" if experiment == HACKBENCH else "bogo_ops_per_second"
        return self.printed_output(experiment, policy, figure)

    def unlike_fair_class(self, experiment: str) -> list[tuple[str, float]]:
        """Returns the significant differences of policies from Linux's fair class, in percent."""
        fair, unlike = self.result(experiment, FAIR_CLASS), []
        for policy in self.linux_policies(experiment):
            change = unpaired_difference(fair, self.result(experiment, policy))
            sure = change and change.p_value is not None and change.p_value < _SIGNIFICANCE_LEVEL
            if policy != FAIR_CLASS and change and sure and fair.mean:
                unlike.append((policy, 100 * change.change / fair.mean))
        return unlike

    def mean_turnaround(self, experiment: str, policy: str) -> Measurement:
        """Returns the mean turnaround in ms."""
        return self.summary(experiment, policy, "turnaround_mean_ns", 1e-6)

    # --- claims

    def order_in_study(self, quantity: str, falling: bool) -> str:
        """Returns the published order: `CFS = WRR < Lottery`."""
        return self.order_of_published(self._means(quantity), falling)

    def order_on_linux(self, quantity: str, experiment: str, falling: bool) -> str | Measurement:
        """Returns the measured order, or the first missing measurement; a
        dash if it was not run on Linux.
        """
        if experiment != ONE and not self.ran(experiment):
            return NO_VALUE
        values = {
            name: self.measured_figure(quantity, name, experiment) for name in self.schedulers
        }
        return self.order(values, falling, paired=experiment == ONE)


def _signed(number: float) -> str:
    return f"{round(number, 2) + 0.0:+.2f}"
