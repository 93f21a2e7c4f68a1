# SPDX-License-Identifier: MIT
"""Study 3: round-robin, lottery and feedback queue under three workloads and six metrics."""

from __future__ import annotations

import polars as pl

from schedlab.report.charts import boxes, dots, drawn
from schedlab.report.model import Block, Column, Page, Section, Text
from schedlab.report.studies import inversion, six_metrics_claims
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.six_metrics import (
    BATCH,
    FAIRNESS,
    METRICS,
    OVERHEAD,
    RESPONSE,
    RESPONSE_QUARTILES,
    SCHEDULERS,
    THROUGHPUT,
    TURNAROUND,
    WORKLOADS,
    Findings,
    Metric,
    part_of_time,
    published_cell,
)
from schedlab.report.studies.six_metrics_reasons import EXPLANATIONS
from schedlab.report.studies.texts import how_measured, if_known, measured_table
from schedlab.report.study_tables import Comparison, Line, compared_table
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import OTHERS
from schedlab.studies.ideal import STUDY_3_WORK
from schedlab.studies.pack import study_numbered


def page(collection: Collection) -> Page | None:
    """Study 3's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s3-") for run in collection):
        return None
    found, doubts = Findings(collection), Doubts(study_numbered(3))
    return Page(
        "study-3",
        "Study 3: three schedulers, six metrics",
        _lead(found),
        (
            Section("What was measured", (Text(_SETTING),)),
            Section(
                "Tables 1 to 5",
                (_time_table(found),),
                tuple(_metric_section(found, metric, doubts) for metric in METRICS),
            ),
            _predictability(found),
            six_metrics_claims.section(found, doubts),
            inversion.section(collection),
            _own_policies(found),
        ),
    )


_SETTING = """
- **Workloads.** *CPU-bound*: 40 processes that compute. *IO-bound*: 40 that create and write a \
file. *Mixed*: 50, of which two of three compute; they are forked in groups of five, with a sleep \
after each. The study gives the numbers of processes and no more: how much they compute and write \
was derived from its tables.
- **Units.** The clock of the study's kernel counts a million cycles from one timer tick to the \
next. So *a million cycles is a tick*, and the times of this page are both.
- **Schedulers.** Round-robin over the process table (`rr:table-scan`); a lottery with 100 tickets \
for each process (`lottery:equal-lfsr`); a feedback queue with quanta of 1, 2 and 4 ticks, the \
lowest level without end, and no boost (`mlfq:four-quanta`). Three CPUs.
- **Seeds.** The study printed means of ten runs. Ours differ in their seeds, which move the \
moments of the forks and the lottery's draws. In brackets: the 95 % interval of the mean.
"""


def _lead(found: Findings) -> str:
    """The page in three sentences."""
    there = {name: published_cell(THROUGHPUT, name, "Mixed").value for name in SCHEDULERS}
    told = (
        "The study ran three workloads on three CPUs under round-robin, a lottery and a feedback "
        "queue (MLFQ), and compared turnaround, response, throughput, overhead, fairness and "
        "predictability. There, MLFQ has the best value in "
        f"{six_metrics_claims.best_published('MLFQ')} of the fifteen cells of its tables, and in the "
        f"mixed workload {there['MLFQ'] / there['RR']:.1f} times round-robin's throughput. "
    )
    needed = {
        "best cells": six_metrics_claims.best_here(found, "MLFQ"),
        "throughput, MLFQ": found.metric(THROUGHPUT, "Mixed", "MLFQ"),
        "throughput, RR": found.metric(THROUGHPUT, "Mixed", "RR"),
        "response, MLFQ": found.metric(RESPONSE, "Mixed", "MLFQ"),
        "response, RR": found.metric(RESPONSE, "Mixed", "RR"),
        "turnaround, MLFQ": found.metric(TURNAROUND, "Mixed", "MLFQ"),
        "turnaround, RR": found.metric(TURNAROUND, "Mixed", "RR"),
    }
    return told + if_known(
        needed,
        lambda n: (
            f"Here it has the best value in {n['best cells']:.0f} of them; in the mixed workload "
            f"its throughput is {n['throughput, MLFQ'] / n['throughput, RR']:.2f} times "
            f"round-robin's, a new process waits {n['response, MLFQ']:.2f} ticks for its first "
            f"turn (round-robin: {n['response, RR']:.2f}), and "
            f"ends after {n['turnaround, MLFQ']:.1f} ticks on average ({n['turnaround, RR']:.1f})."
        ),
    )


def _metric_section(found: Findings, metric: Metric, doubts: Doubts) -> Section:
    table = compared_table(
        f"study-3-table-{metric.table}",
        f"{metric.name.capitalize()}, {metric.unit}: the study's table {metric.table}",
        ("scheduler", "policy"),
        [
            Line(
                (scheduler, policy),
                {
                    workload: _comparison(found, metric, workload, scheduler)
                    for workload in WORKLOADS
                },
            )
            for scheduler, policy in SCHEDULERS.items()
        ],
        how_measured(found.collection, WORKLOADS.values()),
    )
    blocks: list[Block] = [table, Text(EXPLANATIONS[metric.name](found))]
    if metric is TURNAROUND:
        blocks += _figure_3(found)
    return Section(f"{metric.name.capitalize()}", (*blocks, *doubts.at(f"table {metric.table}")))


def _comparison(found: Findings, metric: Metric, workload: str, scheduler: str) -> Comparison:
    ideal, why = _ideal(found, metric, workload, scheduler)
    return Comparison(
        published_cell(metric, scheduler, workload),
        found.metric(metric, workload, scheduler),
        ideal,
        decimals=metric.decimals,
        notes={"ideal": why} if why else {},
    )


def _ideal(
    found: Findings, metric: Metric, workload: str, scheduler: str
) -> tuple[float | None, str]:
    """And where it comes from. Only of processes that compute alone does one know it."""
    if workload != "CPU-bound":
        return None, ""
    if metric is TURNAROUND:
        return found.served_in_order(scheduler).mean, (
            "Each process served to its end, in the order of their arrivals in these runs, by "
            "three CPUs that do nothing else: of equal processes, no schedule without preemption "
            f"has a lower mean. Had all come at once: {BATCH.least_turnaround:.1f}; if all share "
            f"the CPUs equally then: {BATCH.shared_turnaround:.1f}."
        )
    if metric is THROUGHPUT:
        return BATCH.throughput, (
            f"40 processes of {STUDY_3_WORK} ticks on three CPUs that do nothing else, all there "
            "from the start."
        )
    if metric is FAIRNESS:
        return 1.0, "Equal processes that all take equally long."
    return None, ""


def _figure_3(found: Findings) -> list[Block]:
    measured = [
        {"scheduler": name, "ticks": value}
        for name in SCHEDULERS
        for value in found.metric(TURNAROUND, "IO-bound", name).values
    ]
    if not measured:
        return []
    printed = [
        {"scheduler": name, "ticks": published_cell(TURNAROUND, name, "IO-bound").value}
        for name in SCHEDULERS
    ]
    return [
        dots(
            "study-3-figure-3",
            pl.DataFrame(measured),
            title="Turnaround of the IO-bound workload: the study's figure 3",
            caption="Mean turnaround of 40 processes that write a file.",
            category="scheduler",
            value="ticks",
            x_title="mean turnaround, ticks",
            policies=False,
            category_order=list(SCHEDULERS),
            published=pl.DataFrame(printed),
        )
    ]


_TIME_COLUMNS = (
    Column("the processes", "% of the CPUs' time"),
    Column("the parent", "% of the CPUs' time"),
    Column("idle", "% of the CPUs' time"),
    Column("scheduler, ours", "overhead, %"),
    Column("idle counted in, the study's", "overhead, %"),
)


def _time_table(found: Findings) -> Block:
    values = (
        *(part_of_time(name) for name in ("running_ns", "root_running_ns", "idle_ns")),
        pl.col("overhead_share").first() * 100,
        OVERHEAD.value,
    )
    return measured_table(
        "study-3-cpu-time",
        "Where the CPUs' time went",
        "workload, scheduler",
        [(column, 2) for column in _TIME_COLUMNS],
        {
            f"{workload}, {name}": [found.of(workload, policy, value) for value in values]
            for workload in WORKLOADS
            for name, policy in SCHEDULERS.items()
        },
        "The first three add up to 100 %; the scheduler's time is part of them. "
        + how_measured(found.collection, WORKLOADS.values(), SCHEDULERS.values()),
    )


def _predictability(found: Findings) -> Section:
    blocks: list[Block] = [Text(_PREDICTABILITY)]
    for figure, workload in ((4, "Mixed"), (5, "CPU-bound")):
        rows = found.responses(workload)
        if len(rows):
            blocks.extend(
                drawn(
                    boxes,
                    f"study-3-figure-{figure}",
                    rows,
                    title=f"Response times, {workload}: the study's figure {figure}",
                    caption="Each process of each run is a value.",
                    category="scheduler",
                    value="ticks",
                    x_title="response, ticks",
                    policies=False,
                    category_order=[f"{name} ({policy})" for name, policy in SCHEDULERS.items()],
                )
            )
    blocks.append(
        measured_table(
            "study-3-predictability",
            "Interquartile range of response, ticks",
            "scheduler",
            [(Column(workload), 3) for workload in WORKLOADS],
            {
                title: [
                    found.of_processes(workload, policy, RESPONSE_QUARTILES)
                    for workload in WORKLOADS
                ]
                for title, policy in (
                    *((f"{name} ({policy})", policy) for name, policy in SCHEDULERS.items()),
                    *((policy, policy) for policy in OTHERS),
                )
            },
            "Of the processes of a run; the mean over runs. Below the study's three: the policies "
            f"as shipped. {how_measured(found.collection, WORKLOADS.values())}",
        )
    )
    return Section("Predictability: figures 4 and 5", tuple(blocks))


_PREDICTABILITY = """
The study draws box plots of response times and takes their interquartile range for predictability. \
It prints no number of them; of figure 4 its text says that MLFQ varies least and the lottery most.
"""


def _own_policies(found: Findings) -> Section:
    columns = [
        (Column(metric.name, workload), metric.decimals)
        for workload in WORKLOADS
        for metric in (TURNAROUND, RESPONSE)
    ]
    table = measured_table(
        "study-3-policies",
        "Mean turnaround and response, ticks",
        "policy",
        columns,
        {
            policy: [
                found.of(workload, policy, metric.value)
                for workload in WORKLOADS
                for metric in (TURNAROUND, RESPONSE)
            ]
            for policy in OTHERS
        },
    )
    return Section(
        "The same under the policies as shipped",
        (
            Text(
                "With the same work, on three CPUs. A turnaround of the "
                "CPU-bound workload is to be read with what is said above of the parent."
            ),
            table,
        ),
    )
