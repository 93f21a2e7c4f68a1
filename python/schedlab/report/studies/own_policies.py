# SPDX-License-Identifier: MIT
"""How all our policies do in the tests of study 1: compact tables, which rank nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from schedlab.report.model import Cell, Column, Row, Table
from schedlab.report.studies.lottery_runs import LotteryRuns, competition
from schedlab.report.studies.texts import cell
from schedlab.report.studies.timing_runs import Suite, TimingRuns
from schedlab.report.study_tables import NOT_RUN, Measured
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiments import ALL_CPUS, EXPERIMENTS, OTHERS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion
from schedlab.studies.shares import TESTS

IDEAL = "ideal"


def completion_table(runs: TimingRuns, suite: Suite) -> Table:
    """Completion of each test, until all have ended, under all policies."""
    table = int(suite.place.split()[1])

    def ideal(test: str) -> Row:
        row = TIMING_TESTS[test]
        return tuple(
            Cell(f"{ideal_completion(table, row, cpus):.1f}", "muted") for cpus in ALL_CPUS
        )

    def measured(test: str, policy: str, cpus: int) -> Measured:
        return runs.measured(runs.completion, suite, test, cpus, policy)

    return _table(
        f"study-1-policies-{suite.name}",
        f"The {suite.name} tests under all policies: ticks until all have ended",
        "ticks",
        [(test, TIMING_TESTS[test], suite.experiment(test)) for test in TIMING_TESTS],
        measured,
        ideal,
        1,
    )


def shares_table(runs: LotteryRuns) -> Table:
    """How far shares are off the ideal in the lottery's tests, under all policies."""
    by_name = {test.name: test for test in TESTS}
    return _table(
        "study-1-policies-lottery",
        "The lottery tests under all policies: points off the ideal share",
        "points",
        [(test.name, f"{test.table}: {test.title}", competition(test)) for test in TESTS],
        lambda test, policy, cpus: runs.off_ideal(by_name[test], policy, cpus),
        None,
        1,
        "Tickets are what is wished for, also under a policy that knows none. A turn of `wrr` is 10 ms"
        " for each unit of weight, 50 ms by default: in a short window few have one.",
    )


def _table(
    name: str,
    title: str,
    unit: str,
    tests: Iterable[tuple[str, str, str]],
    measured: Callable[[str, str, int], Measured],
    ideal: Callable[[str], Row] | None,
    decimals: int,
    caption: str = "",
) -> Table:
    """A row a test and policy, a column a number of CPUs; `tests`: key, title, experiment."""
    columns = (
        Column("test", align="left"),
        Column("policy", align="left"),
        *(Column(cpus_text([cpus])) for cpus in ALL_CPUS),
    )
    rows: list[Row] = []
    data: list[dict[str, str | int | float | None]] = []
    starts = []
    for test, heading, experiment in tests:
        starts.append(len(rows))
        if ideal is not None:
            rows.append((Cell(""), Cell(IDEAL, "muted"), *ideal(test)))
        for policy in policies_of(experiment):
            found = [measured(test, policy, cpus) for cpus in ALL_CPUS]
            if all(each.missing == NOT_RUN and not each.values for each in found):
                continue
            rows.append((Cell(""), Cell(policy), *(cell(each, decimals) for each in found)))
            data += [
                {"test": heading, "policy": policy, "cpus": cpus, unit: each.mean}
                for cpus, each in zip(ALL_CPUS, found, strict=True)
            ]
        if len(rows) > starts[-1]:
            rows[starts[-1]] = (Cell(heading), *rows[starts[-1]][1:])
    schema = {"test": pl.String, "policy": pl.String, "cpus": pl.Int64, unit: pl.Float64}
    return Table(
        name,
        title,
        columns,
        tuple(rows),
        pl.DataFrame(data, schema=schema),
        f"{caption} Policies without a row were not run.".strip(),
        tuple(start for start in starts[1:] if start < len(rows)),
    )


def policies_of(experiment: str) -> list[str]:
    """Those of the study, and then all that we ship."""
    return list(dict.fromkeys((*EXPERIMENTS[experiment].own, *OTHERS)))
