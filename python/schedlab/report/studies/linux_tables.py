# SPDX-License-Identifier: MIT
"""Study 5's tables 5 and 6: one thread that computes, under three schedulers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from schedlab.report.model import Block, Section, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.events import LONGEST, MEAN, ONE, Benchmark
from schedlab.report.studies.texts import how_measured, if_known
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table
from schedlab.report.wording import listed
from schedlab.studies import published
from schedlab.studies.figures import Figure

SCHEDULERS = {"CFS": None, "Lottery": "lottery:linux", "WRR": "wrr:linux"}
"""As the study's tables call them, and the presets that are like them. CFS is Linux's own."""
RUNS = (1, 2, 3)
"""Of each scheduler, in the study."""

Measure = Callable[[Benchmark, str, str], Measured]
QUANTITIES: dict[str, tuple[str, int, Measure]] = {
    "throughput": ("events a second", 2, lambda found, *cell: found.throughput(*cell)),
    "mean latency": ("mean latency, ms", 3, lambda found, *cell: found.latency(*cell, MEAN)),
    "maximum latency": (
        "longest latency, ms",
        3,
        lambda found, *cell: found.latency(*cell, LONGEST),
    ),
}
"""By the published figures' quantity: heading, decimals of ours, and how it is measured."""


def section(found: Benchmark, doubts: Doubts) -> Section:
    """Beside ours, and why they are others."""
    return Section("Tables 5 and 6 on our own kernel", tuple(_tables(found, doubts)))


def figure_of(row: str, quantity: str, table: int) -> Figure | None:
    """As published; None if there is none of that row."""
    column = "row" if table == 5 else "column"
    found = [
        each
        for each in published(5, table)
        if getattr(each, column) == row and each.quantity == quantity
    ]
    return found[0] if found else None


def ours() -> dict[str, str]:
    """The schedulers that we have policies for, and which."""
    return {name: policy for name, policy in SCHEDULERS.items() if policy}


def _tables(found: Benchmark, doubts: Doubts) -> list[Block]:
    how = how_measured(found.collection, (ONE,))
    names = {
        name: f"{name} ({policy or 'no policy of ours'})" for name, policy in SCHEDULERS.items()
    }
    return [
        compared_table(
            "study-5-table-5",
            "Each run, one thread: the study's table 5",
            ("scheduler", "run"),
            [
                Line((names[name], str(run)), _compared(found, name, run))
                for name in SCHEDULERS
                for run in RUNS
            ],
            f"Ours: the seed of that number. {how}",
        ),
        compared_table(
            "study-5-table-6",
            "Means of the runs, one thread: the study's table 6",
            ("scheduler",),
            [Line((names[name],), _compared(found, name)) for name in SCHEDULERS],
            how,
        ),
        Text(_why_other(found)),
        *doubts.at("table 5", "table 6"),
    ]


def _compared(found: Benchmark, scheduler: str, run: int | None = None) -> dict[str, Comparison]:
    """By quantity, one run of table 5 and ours of that seed; None: the means of table 6."""
    policy = SCHEDULERS[scheduler]
    lines = {}
    for quantity, (heading, decimals, of) in QUANTITIES.items():
        published_figure = (
            figure_of(scheduler, quantity, 6)
            if run is None
            else figure_of(f"{scheduler} {run}", quantity, 5)
        )
        here = of(found, ONE, policy) if policy else None
        if here and run is not None:
            here = _of_run(here, run)
        lines[heading] = Comparison(published_figure, here, decimals=decimals)
    return lines


def _of_run(measured: Measured, run: int) -> Measured:
    """The value of one seed."""
    if measured.mean is None:
        return measured
    return Measured(measured.values[run - 1 : run])


def _why_other(found: Benchmark) -> str:
    there = {
        name: [
            figure.value
            for run in RUNS
            if (figure := figure_of(f"{name} {run}", "maximum latency", 5))
        ]
        for name in SCHEDULERS
    }
    latency = figure_of("WRR", "mean latency", 6)
    told = if_known(
        {"mean latency": found.latency(ONE, "wrr:linux", MEAN)},
        lambda n: (
            f"An event takes {n['mean latency']:.3f} ms here and {latency.text if latency else '–'} "
            "ms there: another CPU, not another scheduler."
        ),
    )
    worst = max(there, key=lambda name: max(there[name]))
    return (
        f"{told}\n\n**The longest latency** of table 6 is a mean of three maxima, and a single run "
        f"can make it: {worst}'s {max(there[worst]):.2f} ms in one of three. The medians of the "
        "three are "
        + listed([f"{median(values):.2f} ms ({name})" for name, values in there.items()])
        + f". {_longest_here(found)} What else ran on the study's machine in that moment is not known."
    )


def _longest_here(found: Benchmark) -> str:
    needed = {
        f"{name}: {what}": found.latency(ONE, policy, value)
        for name, policy in ours().items()
        for what, value in (("longest", LONGEST), ("mean", MEAN))
    }
    return if_known(
        needed,
        lambda n: (
            "Here, where nothing else runs, the longest is hardly above the mean: "
            + listed(
                [
                    f"{n[f'{name}: longest']:.3f} against {n[f'{name}: mean']:.3f} ms ({name})"
                    for name in ours()
                ]
            )
            + "."
        ),
    )
