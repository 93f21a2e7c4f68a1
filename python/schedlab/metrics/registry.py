# SPDX-License-Identifier: MIT
"""The metric registry, with one entry per metric: name, column, unit, title, direction, meaning.

To add a metric, add one entry, whose `value` is computed from a table of the run. Tables of runs,
comparisons, sweeps, reports and labs read the registry. docs/metrics.md defines the metrics.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from schedlab.base.display.numbers import (
    NO_VALUE,
    NUMBER,
    PER_SECOND,
    POINTS,
    SHARE,
    TIME,
    Bounds,
    Quantity,
    duration,
    format_index,
    percent,
    three_digits,
)
from schedlab.metrics import steady, tails
from schedlab.metrics.accounts import COUNTS, LONGEST_WAIT
from schedlab.trace.model import Integers

Better = Literal["lower", "higher"]
Scope = Literal["run", "group", "both"]
Rows = Literal["processes", "wakeups", "jobs", "cpus"]
"""Tables that metrics are computed from: the workload's processes, wake-ups or jobs, or the CPUs."""
Grain = Literal["none", "clock", "mean of clock", "whole"]
"""Step between possible values: arbitrarily small; a step of the clock; that ÷ processes; 1."""

ANYWHERE: Bounds = (-math.inf, math.inf)
POSITIVE: Bounds = (0, math.inf)
FRACTION: Bounds = (0, 1)
REPORTED_PREFIX = "told-"
"""Prefix of the names of metrics that programs report, and the trace does not otherwise contain."""


@dataclass(frozen=True)
class Kind:
    """A kind of number, shared by several columns: unit, resolution, range and format."""

    quantity: Quantity
    grain: Grain
    within: Bounds
    show: Callable[[Any], str]
    """Formats a single value."""
    digits: int | None = None
    """Decimals in tables of reports; None: the significant ones."""


def _format_count(value: int | None) -> str:
    return NO_VALUE if value is None else f"{value:,}"


_KINDS = (
    ("fairness_.*", Kind(NUMBER, "none", FRACTION, format_index, 3)),
    ("(steady_)?slowdown_.*", Kind(NUMBER, "none", POSITIVE, three_digits, 3)),
    (".*_mean_ns", Kind(TIME, "mean of clock", POSITIVE, duration)),
    (".*_ns", Kind(TIME, "clock", POSITIVE, duration)),
    (".*share", Kind(SHARE, "none", FRACTION, percent)),
    ("share_error.*", Kind(POINTS, "none", POSITIVE, three_digits)),
    (".*_per_second", Kind(PER_SECOND, "none", POSITIVE, three_digits)),
    (".*_per_.*", Kind(NUMBER, "none", POSITIVE, three_digits)),
    (f"{REPORTED_PREFIX}.*", Kind(NUMBER, "none", ANYWHERE, three_digits)),
    (".*", Kind(NUMBER, "whole", POSITIVE, _format_count)),
)
"""Patterns of column names; the first match decides the kind of a column."""


def kind_of(column: str) -> Kind:
    """Returns the kind of a column, by its name."""
    return next(kind for pattern, kind in _KINDS if re.fullmatch(pattern, column))


@dataclass(frozen=True, eq=False)
class Metric:
    """A number computed for a run, or for each group of its processes."""

    column: str
    """The column in tables, with the unit in its name."""
    meaning: str
    family: str = ""
    short: str = ""
    """The title within the family."""
    name: str = ""
    """Short name for users, such as in options; "": comparisons omit the metric."""
    title: str = ""
    """The full title; "": the family and the short title."""
    better: Better | None = None
    """Which direction is better; None: neither."""
    best: str = ""
    """The best possible value, and what it depends on."""
    scope: Scope = "both"
    rows: Rows | None = None
    value: pl.Expr | None = None
    """Computes the metric from the table `rows`; None: another module computes it."""
    derived: bool = False
    """True if the metric is computed on demand, instead of stored in the run's tables."""
    may_lack: bool = True
    """True if a run may have no value."""
    only_if_requested: bool = False
    """True if comparisons include it only on request; with more metrics, more findings are random."""
    in_tables: bool = True
    """True if the tables of `./schedlab run` show it. A metric without a family is never shown."""
    in_groups: bool = False
    """True if these tables also show it for each group."""
    in_reports: bool = True
    error: str = ""
    """Column with the half width of this metric's confidence interval from one run.

    Reports show the metric only of runs that have this value.
    """

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", f"{self.family}, {self.short}")

    @property
    def ideal(self) -> str:
        """The meaning and the best value."""
        return f"{self.meaning}; at best {self.best}" if self.best else self.meaning

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.column)

    @property
    def covers_only_ended(self) -> bool:
        """True if it covers only processes that ended.

        If some did not end, different policies would be measured on different processes, so the
        value is null.
        """
        return self.column.startswith(("turnaround_", "slowdown_", "fairness_turnaround"))


FACTS: Mapping[str, str] = {
    "clock_step_ns": "step of the machine's clock",
    "truncated": "whether the trace was cut off",
    "lost_records": "lost records of the trace",
    "root_pid": "PID of the process that began the window",
    "begin_ns": "begin of the window",
    "end_ns": "end of the window",
    "elapsed_cycles": "the window's length in cycles",
    "group": "label of the group",
    "longest_wait_of": "group and PID of the process with the longest wait",
}
"""Columns of a run's tables that are not metrics, with their meanings."""

_HIDDEN: dict[str, Any] = {"in_tables": False, "in_reports": False}
_TAILS = {
    "p95": ("95th percentile", "95th", "95 of 100"),
    "p99": ("99th percentile", "99th", "99 of 100"),
    "p999": ("99.9th percentile", "999th", "999 of 1,000"),
}
"""For each tail, by its part of the column's name: short title, suffix of the metric's name, meaning."""


def _tail_metric(of: str, ends: str, part: str, prefix: str = "") -> Metric:
    """Returns the metric of one tail of a distribution, such as turnaround_p99_ns."""
    title, name, most = _TAILS[part]
    return Metric(
        f"{of}_{part}{ends}",
        f"{prefix}the value that {most} processes do not exceed; null for fewer than {tails.PROCESSES_NEEDED[part]:,}",
        of,
        title,
        f"{of}-{name}",
        better="lower",
        derived=True,
        only_if_requested=True,
    )


def _time_metrics(of: str, meaning: str, best: str, *, has_tails: bool = True) -> Iterator[Metric]:
    """Yields the metrics of one time of processes: mean, median, tails and maximum."""
    value = pl.col(f"{of}_ns")
    common: dict[str, Any] = {"better": "lower", "rows": "processes"}

    def one(how: str, title: str, value: pl.Expr, **more: Any) -> Metric:
        column = f"{of}_{how}_ns"
        meaning_of_statistic = f"{meaning}: {title} over processes"
        return Metric(column, meaning_of_statistic, of, title, value=value, **common, **more)

    yield one("mean", "mean", value.mean(), name=of, best=best)
    yield one("median", "median", value.median(), in_groups=True, in_reports=False)
    if has_tails:
        yield from (_tail_metric(of, "_ns", part, f"{meaning}: ") for part in _TAILS)
    yield one("max", "maximum", value.max())


def _count_metrics() -> Iterator[Metric]:
    meanings = {
        "selections": "times picked",
        "wakeups": "times woken",
        "blocks": "times blocked",
        "yields": "times a process yielded the CPU",
        "preemptions": "times a process was preempted",
        "migrations": "times moved to another CPU",
    }
    for column in COUNTS:
        yield Metric(
            column,
            meanings[column],
            title=column,
            rows="processes",
            value=pl.col(column).sum(),
            may_lack=False,
            in_groups=column == "selections",
            **_HIDDEN,
        )


def _group_metric(column: str, meaning: str, title: str, **more: Any) -> Metric:
    return Metric(column, meaning, title=title, scope="group", **_HIDDEN, **more)


_STEADY = {
    "turnaround": ("_ns", "turnaround", "lower", ""),
    "slowdown": ("", "turnaround ÷ running time", "lower", "1"),
    "response": ("_ns", "from fork to the first run", "lower", "0"),
}
_STATISTICS = {
    "mean": "mean",
    "median": "median",
    **{part: title for part, (title, _, _) in _TAILS.items()},
    "error": "half the width of the mean's 95 % interval, by batch means",
}
AFTER_WARM_UP = "after the warm-up"


def _steady() -> Iterator[Metric]:
    """Yields the metrics of arriving jobs."""
    meaning = "processes that ended, without the first tenth to arrive"
    yield Metric("steady_jobs", meaning, AFTER_WARM_UP, "processes", derived=True, in_reports=False)
    for of, (ends, words, better, best) in _STEADY.items():
        for statistic, title in _STATISTICS.items():
            name = {"mean": f"steady-{of}", "p99": f"steady-{of}-99th"}.get(statistic, "")
            yield Metric(
                f"steady_{of}_{statistic}{ends}",
                f"{words}: {title}, over jobs that ended, without the first tenth to arrive",
                AFTER_WARM_UP,
                f"{of}, {title}",
                "" if name == "steady-response-99th" else name,
                f"{of} {AFTER_WARM_UP}, {title}",
                "lower" if better else None,
                best if statistic == "mean" else "",
                derived=True,
                only_if_requested=True,
                in_tables=statistic == "mean",
                in_reports=bool(name),
                error=f"steady_{of}_error{ends}",
            )


_LATENCY, _LATE = pl.col("latency_ns"), pl.col("lateness_ns")
# Computed from one integer sum, because a mean of quotients would be rounded several times.
_OVERHEAD = pl.when(pl.col("overhead_share").is_not_null().all()).then(
    pl.col("scheduler_cycles").sum() / pl.col("all_cycles").first()
)
_CPU_WAKE_ENERGY_NS = 20_000
_ENERGY = (
    (
        pl.col("running_ns")
        + pl.col("idle_ns") // 10
        + pl.col("switches_from_idle") * _CPU_WAKE_ENERGY_NS
    )
    .sum()
    .cast(pl.Int64)
)
_FROM_WAKEUP = "from a wake-up to the next run"
_WAKEUP = "wake-up latency"

METRICS: tuple[Metric, ...] = (
    Metric("elapsed_ns", "the window's length", "processes", "time measured", scope="run",
           may_lack=False, in_reports=False),
    Metric("processes", "processes of the workload", title="processes", rows="processes", value=pl.len(),
           may_lack=False, **_HIDDEN),
    Metric("finished", "processes that ended in the window", title="finished", rows="processes",
           value=pl.col("exit_ns").count(), may_lack=False, **_HIDDEN),
    *_time_metrics("turnaround", "from fork to exit", "the process's own work and sleeps"),
    Metric("slowdown_mean", "turnaround ÷ (time on a CPU + time blocked): mean over processes", "slowdown", "mean",
           "slowdown", better="lower", best="1", derived=True, only_if_requested=True),
    *(_tail_metric("slowdown", "", part) for part in _TAILS),
    *_time_metrics("response", "from fork to the first run", "0"),
    *_time_metrics("waiting", "runnable and not running", "0", has_tails=False),
    Metric(LONGEST_WAIT, "the longest uninterrupted time ready to run without a CPU", "waiting",
           "longest single wait", better="lower", rows="processes", value=pl.col(LONGEST_WAIT).max(), in_reports=False),
    Metric("running_ns", "all time on CPUs", "processes", "CPU time", rows="processes",
           value=pl.col("running_ns").sum(), may_lack=False, in_reports=False),
    Metric("blocked_ns", "all time blocked", title="blocked", rows="processes", value=pl.col("blocked_ns").sum(),
           **_HIDDEN),
    *_count_metrics(),
    Metric("completion_ns", "from the first fork to the last exit; null unless all ended", name="completion",
           title="completion", better="lower", best="all work ÷ CPUs, or the longest process", scope="run", **_HIDDEN),
    _group_metric("share", "running time ÷ that of the whole workload", "CPU share", name="share",
                  best="the ideal share"),
    _group_metric("ideal_share", "the policy's best possible share, by weighted max-min", "ideal share",
                  in_groups=True),
    _group_metric("share_error_points", "share minus the share that the workload demands by its attributes",
                  "share error", name="share-error", better="lower", best="0"),
    Metric("wakeup_latency_median_ns", f"{_FROM_WAKEUP}: median", _WAKEUP, "median", "wakeup-median",
           better="lower", best="0", rows="wakeups", value=_LATENCY.median(), in_groups=True),
    Metric("wakeup_latency_p99_ns", f"{_FROM_WAKEUP}: the value that 99 of 100 wake-ups do not exceed", _WAKEUP,
           "99th percentile", "wakeup-99th", better="lower", best="0", rows="wakeups",
           value=_LATENCY.quantile(0.99, "linear"), in_groups=True),
    Metric("wakeup_latency_max_ns", f"{_FROM_WAKEUP}: maximum", _WAKEUP, "maximum", "wakeup-max",
           better="lower", best="0", rows="wakeups", value=_LATENCY.max()),
    Metric("jobs", "jobs of tasks with deadlines", title="jobs", rows="jobs", value=pl.len().cast(pl.Int64), **_HIDDEN),
    Metric("misses", "jobs not completed by their deadlines", title="jobs missed", rows="jobs",
           value=(_LATE > 0).sum().cast(pl.Int64), **_HIDDEN),
    Metric("miss_share", "jobs not completed by their deadlines, ÷ jobs", "deadlines", "missed",
           "misses", "deadlines missed", "lower", "0", rows="jobs", value=(_LATE > 0).mean(), in_tables=False),
    Metric("job_response_max_ns", "from a job's release to its completion: maximum", title="response of jobs, maximum",
           better="lower", rows="jobs", value=pl.col("response_ns").max(), **_HIDDEN),
    Metric("lateness_mean_ns", "from deadline to completion of a job, negative if early: mean over jobs", "deadlines",
           "lateness, mean", rows="jobs", value=_LATE.mean(), in_reports=False),
    Metric("lateness_max_ns", "from deadline to completion of a job, negative if early: maximum", "deadlines",
           "lateness, maximum", rows="jobs", value=_LATE.max(), in_groups=True),
    Metric("tardiness_mean_ns", "lateness, or 0 if negative: mean over jobs", "deadlines", "tardiness, mean",
           rows="jobs", value=_LATE.clip(0).mean()),
    Metric("root_running_ns", "CPU time of the root", title="CPU time of the root", scope="run", may_lack=False,
           **_HIDDEN),
    Metric("other_running_ns", "CPU time of all other processes", title="CPU time of others", scope="run",
           may_lack=False, **_HIDDEN),
    Metric("idle_ns", "idle time of the CPUs", title="idle", scope="run", rows="cpus", value=pl.col("idle_ns").sum(),
           may_lack=False, **_HIDDEN),
    Metric("scheduler_entries", "times a CPU entered the scheduler", title="scheduler entries", scope="run",
           rows="cpus", value=pl.col("scheduler_entries").sum(), may_lack=False, **_HIDDEN),
    Metric("scheduler_cycles", "cycles in the scheduler", title="scheduler cycles", scope="run", rows="cpus",
           value=pl.col("scheduler_cycles").sum(), may_lack=False, **_HIDDEN),
    Metric("throughput_per_second", "processes finished per second", "throughput", "per second", "throughput",
           "throughput", "higher", "what the CPUs' time allows"),
    Metric("throughput_per_million_cycles", "processes finished", "throughput", "per million cycles", scope="run",
           in_reports=False),
    Metric("overhead_share", "CPU time from leaving one process to entering the next, without idling", "overhead",
           "scheduler", "overhead", "overhead", "lower", "0", scope="run", rows="cpus", value=_OVERHEAD),
    Metric("overhead_with_idle_share", "CPU time from leaving one process to entering the next, with idling",
           "overhead", "idle counted in", scope="run", rows="cpus",
           value=pl.col("overhead_with_idle_share").mean(), in_reports=False),
    Metric("context_switches", "switches between processes; few cost little, many let all processes advance together",
           "context switches", "process to process", "switches", "context switches", scope="run", rows="cpus",
           value=pl.col("context_switches").sum(), may_lack=False),
    Metric("switches_to_idle", "switches from process to idle", "context switches", "to idle", scope="run", rows="cpus",
           value=pl.col("switches_to_idle").sum(), may_lack=False, in_reports=False),
    Metric("switches_from_idle", "switches from idle to process", "context switches", "from idle", scope="run",
           rows="cpus", value=pl.col("switches_from_idle").sum(), may_lack=False, in_reports=False),
    Metric("energy_proxy_ns", "CPU time in use, a tenth of the idle time, and 20 µs for each CPU that wakes from idle",
           title="energy (proxy)", name="energy", better="lower", scope="run", rows="cpus", value=_ENERGY,
           only_if_requested=True, may_lack=False, **_HIDDEN),
    Metric("fairness_turnaround", "Jain's index over turnaround", "fairness (Jain)", "of turnaround", "fairness",
           "fairness of turnaround (Jain)", "higher", "1, which processes of unequal work cannot reach", scope="run"),
    Metric("fairness_share", "Jain's index over share ÷ asked share", "fairness (Jain)", "of share ÷ ideal",
           "share-fairness", "fairness of share ÷ ideal (Jain)", "higher", "1", scope="run"),
    Metric("response_iqr_ns", "interquartile range of the response times of all processes", name="predictability",
           title="predictability (IQR of response)", better="lower", best="0", derived=True, **_HIDDEN),
    Metric("share_error_max_points", "the largest distance of a group from the share that it demands",
           name="share-error", title="share error, largest of a group", better="lower",
           best="0, and always about 0 if all processes end", scope="run", derived=True, **_HIDDEN),
    Metric("events_per_second", "events per second, as the program reports them (`cpubench`)", name="events",
           title="events per second", better="higher", best="what the CPUs' time allows", scope="run", derived=True,
           **_HIDDEN),
    *_steady(),
)  # fmt: skip
"""All metrics, in the order of tables."""

BY_COLUMN: Mapping[str, Metric] = {metric.column: metric for metric in METRICS}
STEADY = tuple(BY_COLUMN[column] for column in steady.COLUMNS)


def meaning_of(column: str) -> str:
    """Returns the meaning of a column of a run's tables."""
    return FACTS.get(column) or BY_COLUMN[column].meaning


@cache
def values_of(rows: Rows) -> tuple[pl.Expr, ...]:
    """Returns the expressions of the columns that are computed from a table of the run."""
    return tuple(
        metric.value.alias(metric.column)
        for metric in METRICS
        if metric.rows == rows and metric.value is not None
    )


@cache
def _values_without_items(rows: Rows) -> pl.DataFrame:
    """Returns the values of a table of wake-ups or jobs that has no rows."""
    return _without_items(values_of(rows))


def _without_items(values: tuple[pl.Expr, ...]) -> pl.DataFrame:
    """Returns these values of a table that has no rows."""
    columns = {name for value in values for name in value.meta.root_names()}
    types = {"group": pl.String}
    return pl.DataFrame(schema={name: types.get(name, pl.Int64) for name in columns}).select(values)


def values_by_run(items: pl.DataFrame, runs: int, *values: pl.Expr) -> pl.DataFrame:
    """Returns a row with the values of each run's rows of a table that has a column `run`."""
    if runs == 1:
        return items.select(values)
    grouped = _aggregate(items, values, "run")
    if len(grouped) == runs:
        return grouped.sort("run").drop("run")
    return _values_at(grouped, _without_items(values), "run", np.arange(runs))


def values_by(items: pl.DataFrame, rows: Rows, key: str, numbers: Integers) -> pl.DataFrame:
    """Returns a row with the values of those wake-ups or jobs whose column `key` has each number."""
    nothing = _values_without_items(rows)
    if not len(items):
        return nothing[np.zeros(len(numbers), np.int64)]
    return _values_at(_aggregate(items, values_of(rows), key), nothing, key, numbers)


def _aggregate(items: pl.DataFrame, values: tuple[pl.Expr, ...], key: str) -> pl.DataFrame:
    return items.group_by(key).agg(values)


def _values_at(
    grouped: pl.DataFrame, nothing: pl.DataFrame, key: str, numbers: Integers
) -> pl.DataFrame:
    """Returns the row of `grouped` with each number in its column `key`, or else `nothing`."""
    present = grouped[key].to_numpy()
    place = np.full(max(int(present.max(initial=0)), int(numbers.max(initial=0))) + 1, len(present))
    place[present] = np.arange(len(present))
    values = pl.DataFrame([column for column in grouped.get_columns() if column.name != key])
    return values.vstack(nothing)[place[numbers]]
