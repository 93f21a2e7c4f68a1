# SPDX-License-Identifier: MIT
"""The section on time slices. The length of time slices decides most comparisons of CPU-bound tasks."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schedlab.analysis.comparison.formatting import column_decimals, in_column
from schedlab.analysis.comparison.measures import BY_NAME, Measure
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.numbers import fitting, number_as_text, percent
from schedlab.report.model import Cell, Column, Section, Table, Text
from schedlab.runs.collection import Collection

TURNAROUND, RESPONSE, OVERHEAD = (BY_NAME[name] for name in ("turnaround", "response", "overhead"))
_SHOWN = (TURNAROUND, RESPONSE, OVERHEAD)
_ALIKE = 0.02
"""Maximum relative difference of the running times of tasks with equal work."""


def section(collection: Collection, contest: Sequence[Suite]) -> Section | None:
    """Returns the section on the suite of equal CPU-bound tasks with
    the clearest result, or None.
    """
    equal = _of_equal_work(collection)
    fit = [suite for suite in contest if all(measure in suite.measures for measure in _SHOWN)]
    fit = [suite for suite in fit if (suite.experiment, suite.cpus) in equal]
    if not fit:
        return None
    suite = max(fit, key=lambda suite: suite.ratio(suite.order(TURNAROUND)[-1], TURNAROUND))
    turns = _turns(collection, suite)
    processes = equal[suite.experiment, suite.cpus]
    return Section(
        "Why: the length of time slices",
        (Text(_words(suite, turns, processes)), _table(suite, turns, processes)),
    )


def _of_equal_work(collection: Collection) -> dict[tuple[str, int], int]:
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
        equal=((pl.col("spread") < _ALIKE) & pl.col("ended") & (pl.col("woken") == 0)).all()
        & (pl.col("count").min() == pl.col("count").max())
        & (pl.col("count").min() > pl.col("cpus").first()),
        count=pl.col("count").first(),
    )
    return {
        (experiment, cpus): count for experiment, cpus, equal, count in suites.iter_rows() if equal
    }


def _turns(collection: Collection, suite: Suite) -> dict[str, Estimate]:
    """Returns the mean time slice in ns by policy, the shortest first: running time ÷ picks."""
    mine = collection.summary.filter(
        (pl.col("experiment") == suite.experiment)
        & (pl.col("cpus") == suite.cpus)
        & (pl.col("tick_ns") == suite.tick_ns)
        & (pl.col("machine") == suite.machine)
        & pl.col("seed").is_in(suite.seeds)
        & pl.col("policy").is_in(suite.having(TURNAROUND))
    ).select("policy", turn=pl.col("running_ns") / pl.col("selections"))
    turns = {
        policy: estimate(part["turn"].to_list(), BY_NAME["turnaround"].within)
        for (policy,), part in mine.partition_by("policy", as_dict=True).items()
    }
    return dict(sorted(turns.items(), key=lambda item: item[1].mean))


def _words(suite: Suite, turns: dict[str, Estimate], processes: int) -> str:
    highest, long = suite.order(TURNAROUND)[-1], list(turns)[-1]

    def words_of(policy: str, measure: Measure) -> str:
        return number_as_text(suite.means[policy, measure.name].mean, measure.quantity)

    def turn(policy: str) -> str:
        return number_as_text(turns[policy].mean, TURNAROUND.quantity)

    ratio = suite.means[long, "turnaround"].mean / suite.means[highest, "turnaround"].mean
    bound = (processes + suite.cpus) / (2 * processes)
    return (
        f"`{suite.title}` on {_cpus(suite)} runs {processes} processes of equal work that never"
        " block. If n such processes advance together on m CPUs, all end last. If they run one"
        f" after the other, the mean turnaround is (n + m) ÷ 2n of that, here {percent(bound)}."
        f" `{highest}` has the highest mean, with time slices of {turn(highest)}:"
        f" {words_of(highest, TURNAROUND)}. `{long}` has the longest time slices ({turn(long)}):"
        f" {words_of(long, TURNAROUND)}, or {percent(ratio)}. Policies with short time slices are"
        " between the two if chance or levels let some processes get ahead. Long time slices cost"
        f" response, {words_of(long, RESPONSE)} instead of {words_of(highest, RESPONSE)} on"
        f" average, and save overhead, {words_of(long, OVERHEAD)} instead of"
        f" {words_of(highest, OVERHEAD)}. This is a property of a setting rather than of an"
        " algorithm: a tunable for the time slice moves a policy between the two. Processes that"
        " sleep and wake up have to wait for the long time slices of others."
    )


def _cpus(suite: Suite) -> str:
    return f"{suite.cpus} CPU{'' if suite.cpus == 1 else 's'}"


def _table(suite: Suite, turns: dict[str, Estimate], processes: int) -> Table:
    columns = [("time slice", TURNAROUND.quantity, turns)] + [
        (
            measure.title,
            measure.quantity,
            {policy: suite.means[policy, measure.name] for policy in turns},
        )
        for measure in _SHOWN
    ]
    units = [
        fitting(quantity, max(mean.mean for mean in means.values()))
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
                Cell(in_column(means[policy], unit, decimals))
                for (_, _, means), unit, decimals in zip(columns, units, digits, strict=True)
            ),
        )
        for policy in turns
    ]
    data = [
        {"policy": policy, "figure": title, "mean": mean.mean, "low": mean.low, "high": mean.high}
        for title, _, means in columns
        for policy, mean in means.items()
    ]
    return Table(
        "comparison-turns",
        f"Time slices of {suite.title}, {_cpus(suite)}",
        (
            Column("policy", align="left"),
            *(
                Column(f"{title}, {unit.unit}")
                for (title, _, _), unit in zip(columns, units, strict=True)
            ),
        ),
        tuple(rows),
        pl.DataFrame(data),
        f"Sorted by time slice: running time ÷ times picked. {processes} processes, {len(suite.seeds)} seeds.",
    )
