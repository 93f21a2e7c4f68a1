# SPDX-License-Identifier: MIT
"""The section on time slices. The length of time slices decides most comparisons of CPU-bound tasks."""

from collections.abc import Sequence

import polars as pl

from schedlab.analysis.comparison.formatting import column_decimals, estimate_in_column
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME, Measure
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.numbers import number_as_text, percent, with_fitting_unit
from schedlab.report.model import Cell, Column, Section, Table, Text
from schedlab.report.wording import cpus_text
from schedlab.runs.collection import Collection

TURNAROUND, RESPONSE, OVERHEAD = (
    MEASURES_BY_NAME[name] for name in ("turnaround", "response", "overhead")
)
_METRICS = (TURNAROUND, RESPONSE, OVERHEAD)
_RUNNING_TIME_SPREAD_MAX = 0.02
"""Maximum relative difference of the running times of tasks with equal work."""


def time_slice_section(collection: Collection, rankable: Sequence[Suite]) -> Section | None:
    """Returns the section on the suite of equal CPU-bound tasks with
    the clearest result, or None.
    """
    equal_tests = _equal_work_tests(collection)
    suitable_suites = [
        suite for suite in rankable if all(measure in suite.measures for measure in _METRICS)
    ]
    suitable_suites = [
        suite for suite in suitable_suites if (suite.experiment, suite.cpus) in equal_tests
    ]
    if not suitable_suites:
        return None
    suite = max(
        suitable_suites,
        key=lambda suite: suite.ratio(suite.policies_by_mean(TURNAROUND)[-1], TURNAROUND),
    )
    slices = _slice_lengths(collection, suite)
    processes = equal_tests[suite.experiment, suite.cpus]
    return Section(
        "Why: the length of time slices",
        (
            Text(_explanation_text(suite, slices, processes)),
            _slices_table(suite, slices, processes),
        ),
    )


def _equal_work_tests(collection: Collection) -> dict[tuple[str, int], int]:
    """Returns the number of tasks by experiment and CPUs, where all tasks had equal work.

    In each run, the same number of tasks, more than CPUs, ran to
    completion, and none was ever woken.
    """
    runs = (
        collection.processes.filter(pl.col("role") == "workload")
        .group_by("run", "experiment", "cpus")
        .agg(
            count=pl.len(),
            spread=pl.col("running_ns").max() / pl.col("running_ns").min() - 1,
            ended=pl.col("exit_ns").is_not_null().all(),
            woken=pl.col("wakeups").sum(),
        )
    )
    suites = runs.group_by("experiment", "cpus", maintain_order=True).agg(
        equal=(
            (pl.col("spread") < _RUNNING_TIME_SPREAD_MAX) & pl.col("ended") & (pl.col("woken") == 0)
        ).all()
        & (pl.col("count").min() == pl.col("count").max())
        & (pl.col("count").min() > pl.col("cpus").first()),
        count=pl.col("count").first(),
    )
    return {
        (experiment, cpus): count for experiment, cpus, equal, count in suites.iter_rows() if equal
    }


def _slice_lengths(collection: Collection, suite: Suite) -> dict[str, Estimate]:
    """Returns the mean time slice in ns by policy, the shortest first: running time ÷ picks."""
    suite_rows = collection.summary.filter(
        (pl.col("experiment") == suite.experiment)
        & (pl.col("cpus") == suite.cpus)
        & (pl.col("tick_ns") == suite.tick_ns)
        & (pl.col("machine") == suite.machine)
        & pl.col("seed").is_in(suite.seeds)
        & pl.col("policy").is_in(suite.policies_with(TURNAROUND))
    ).select("policy", turn=pl.col("running_ns") / pl.col("selections"))
    slices = {
        policy: estimate(part["turn"].to_list(), MEASURES_BY_NAME["turnaround"].within)
        for (policy,), part in suite_rows.partition_by("policy", as_dict=True).items()
    }
    return dict(sorted(slices.items(), key=lambda item: item[1].mean))


def _explanation_text(suite: Suite, slices: dict[str, Estimate], processes: int) -> str:
    """Returns the section's text: how the length of time slices determines turnaround, response and
    overhead.
    """
    slowest, longest_slices = suite.policies_by_mean(TURNAROUND)[-1], list(slices)[-1]

    def mean_text(policy: str, measure: Measure) -> str:
        return number_as_text(suite.means[policy, measure.name].mean, measure.quantity)

    def mean_slice_text(policy: str) -> str:
        return number_as_text(slices[policy].mean, TURNAROUND.quantity)

    ratio = suite.means[longest_slices, "turnaround"].mean / suite.means[slowest, "turnaround"].mean
    bound = (processes + suite.cpus) / (2 * processes)
    return (
        f"`{suite.title}` on {cpus_text([suite.cpus])} runs {processes} processes of equal work that never"
        " block. If n such processes advance together on m CPUs, all end last. If they run one"
        f" after the other, the mean turnaround is (n + m) ÷ 2n of that, here {percent(bound)}."
        f" `{slowest}` has the highest mean, with time slices of {mean_slice_text(slowest)}:"
        f" {mean_text(slowest, TURNAROUND)}. `{longest_slices}` has the longest time slices"
        f" ({mean_slice_text(longest_slices)}):"
        f" {mean_text(longest_slices, TURNAROUND)}, or {percent(ratio)}. Policies with short time slices are"
        " between the two if chance or levels let some processes get ahead. Long time slices cost"
        f" response, {mean_text(longest_slices, RESPONSE)} instead of {mean_text(slowest, RESPONSE)} on"
        f" average, and save overhead, {mean_text(longest_slices, OVERHEAD)} instead of"
        f" {mean_text(slowest, OVERHEAD)}. This is a property of a setting rather than of an"
        " algorithm: a tunable for the time slice moves a policy between the two. Processes that"
        " sleep and wake up have to wait for the long time slices of others."
    )


def _slices_table(suite: Suite, slices: dict[str, Estimate], processes: int) -> Table:
    """Returns the table of time slices and metrics, the policy with the
    shortest time slices first.
    """
    columns = [("time slice", TURNAROUND.quantity, slices)] + [
        (
            measure.title,
            measure.quantity,
            {policy: suite.means[policy, measure.name] for policy in slices},
        )
        for measure in _METRICS
    ]
    units = [
        with_fitting_unit(quantity, max(mean.mean for mean in means.values()))
        for _, quantity, means in columns
    ]
    digits = [
        column_decimals(list(means.values()), unit)
        for (_, _, means), unit in zip(columns, units, strict=True)
    ]
    rows = [
        (
            Cell(policy),
            *(
                Cell(estimate_in_column(means[policy], unit, decimals))
                for (_, _, means), unit, decimals in zip(columns, units, digits, strict=True)
            ),
        )
        for policy in slices
    ]
    slice_data = [
        {"policy": policy, "figure": title, "mean": mean.mean, "low": mean.low, "high": mean.high}
        for title, _, means in columns
        for policy, mean in means.items()
    ]
    return Table(
        "comparison-turns",
        f"Time slices of {suite.title}, {cpus_text([suite.cpus])}",
        (
            Column("policy", align="left"),
            *(
                Column(f"{title}, {unit.unit}")
                for (title, _, _), unit in zip(columns, units, strict=True)
            ),
        ),
        tuple(rows),
        pl.DataFrame(slice_data),
        f"Sorted by time slice: running time ÷ times picked. {processes} processes, {len(suite.seeds)} seeds.",
    )
