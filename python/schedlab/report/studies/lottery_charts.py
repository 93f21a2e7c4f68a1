# SPDX-License-Identifier: MIT
"""Study 1's figure 3, and how shares come about as time goes on."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from schedlab.report.charts import lines, shares_over_time
from schedlab.report.model import Chart
from schedlab.report.studies.lottery_runs import (
    THESIS,
    LotteryRuns,
    competition,
    lottery_test,
    original,
    share_figure,
)
from schedlab.report.study_tables import first_trace, run_rows
from schedlab.studies.experiments import ALL_CPUS
from schedlab.studies.ideal import ideal_group_shares


@dataclass(frozen=True)
class Drawn:
    """A line of figure 3."""

    table: int
    group: str
    name: str


_FIGURE_3 = (Drawn(3, "A", "a"), Drawn(6, "A+B", "ab"), Drawn(6, "E+F+G+H", "efgh"))
_PICKED = "selections, the study's program"
_RUN = "CPU time, while all compete"


def figure_3(runs: LotteryRuns) -> list[Chart]:
    """A chart for each of its lines."""
    return [chart for each in _FIGURE_3 if (chart := _line(runs, each)) is not None]


def _line(runs: LotteryRuns, drawn: Drawn) -> Chart | None:
    test = lottery_test(drawn.table)
    row = test.rows[drawn.group]
    measured = []
    for cpus in ALL_CPUS:
        picked, run = (
            runs.of_group(column, drawn.group) for column in ("percent_picked", "percent_run")
        )
        setup = runs.setup(original(test), THESIS, cpus)
        measured += run_rows(setup, picked, series=_PICKED, cpus=cpus)
        setup = runs.setup(competition(test), THESIS, cpus)
        measured += run_rows(setup, run, series=_RUN, cpus=cpus)
    if not measured:
        return None
    printed = [
        {"series": _PICKED, "cpus": cpus, "value": each.value}
        for cpus in ALL_CPUS
        if (each := share_figure(test, row, cpus)) is not None
    ]
    ideal = [
        {"cpus": cpus, "value": 100 * ideal_group_shares(test.table, cpus)[row]}
        for cpus in ALL_CPUS
    ]
    schema = {"series": pl.String, "cpus": pl.Int64, "value": pl.Float64}
    return lines(
        f"study-1-figure-3-{drawn.name}",
        pl.DataFrame(measured, schema=schema),
        title=f"The study's figure 3: {row} of table {test.table}",
        caption=f"Under `{THESIS}`.",
        x="cpus",
        y="value",
        x_title="CPUs",
        y_title="share (%)",
        series="series",
        policies=False,
        ideal=pl.DataFrame(ideal),
        published=pl.DataFrame(printed, schema=schema),
    )


def work_runs_out(runs: LotteryRuns) -> Chart | None:
    """Shares over time in the study's starvation check on one CPU, as its program has it."""
    trace = first_trace(runs.setup(original(lottery_test(6)), THESIS, 1))
    if trace is None:
        return None
    return shares_over_time(
        "study-1-work-runs-out",
        trace,
        title="The study's table 6 on one CPU, as time goes on",
        caption="The study's program, first seed. Those with most tickets are done first, and what"
        " is left goes to the others.",
        sliding_ticks=5,
    )


def two_share_a_cpu(runs: LotteryRuns) -> Chart | None:
    """Shares over time of three processes on two CPUs, which never change theirs."""
    trace = first_trace(runs.setup(competition(lottery_test(3)), THESIS, 2))
    if trace is None:
        return None
    return shares_over_time(
        "study-1-two-share-a-cpu",
        trace,
        title="The study's table 3 on two CPUs, as time goes on",
        caption="All compete, first seed. A process stays on the CPU that it was forked to: longer"
        " runs come no nearer to the ideal.",
    )
