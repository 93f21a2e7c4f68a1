# SPDX-License-Identifier: MIT
"""Study 3: round-robin, lottery and feedback queue under three workloads and six metrics."""

from __future__ import annotations

import polars as pl

from schedlab.collection import Collection
from schedlab.metrics import state_intervals
from schedlab.report.charts import boxes, dots
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
    SPREAD,
    THROUGHPUT,
    TURNAROUND,
    WORKLOADS,
    Findings,
    Metric,
    mean_of,
    part_of_time,
    published_cell,
)
from schedlab.report.studies.texts import (
    how_measured,
    if_known,
    measured_table,
    number,
    traces,
)
from schedlab.report.studies.ticks import waiting_by_level
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table
from schedlab.report.wording import listed
from schedlab.studies.experiments import OTHERS
from schedlab.studies.ideal import STUDY_3_WORK


def page(collection: Collection) -> Page | None:
    """Study 3's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s3-") for run in collection):
        return None
    found, doubts = Findings(collection), Doubts(3)
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
    blocks: list[Block] = [table, Text(_EXPLANATIONS[metric.name](found))]
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


def _for_all(found: Findings, workload: str, value: pl.Expr, what: str) -> dict[str, Measured]:
    """A number of each scheduler's runs, as `RR: what`."""
    return {
        f"{name}: {what}": found.of_processes(workload, policy, value)
        for name, policy in SCHEDULERS.items()
    }


def _each(known: dict[str, float], what: str, decimals: int = 1) -> str:
    """`20.4 (RR), 16.1 (Lottery) and 14.4 (MLFQ)`."""
    return listed([f"{known[f'{name}: {what}']:.{decimals}f} ({name})" for name in SCHEDULERS])


def _about_turnaround(found: Findings) -> str:
    needed = {
        **_for_all(found, "CPU-bound", SPREAD, "last fork"),
        **{
            f"{name}: parent waits": found.of_parent("CPU-bound", policy, mean_of("waiting_ns"))
            for name, policy in SCHEDULERS.items()
        },
    }
    cpu_bound = "**CPU-bound.** " + if_known(
        needed,
        lambda n: (
            f"The last process is forked {_each(n, 'last fork')} ticks after the first: the "
            "parent that forks them competes for the CPUs with those that it has forked, and waits "
            f"for {_each(n, 'parent waits')} ticks in all. The later they come, the fewer are "
            "there at a time, and the shorter each takes: a short turnaround is no merit of a "
            "scheduler that lets the parent wait, and the ideal beside it, which has the same "
            "arrivals, falls with it. The study tells neither when its processes came nor how long "
            "they computed."
        ),
    )
    return f"{cpu_bound}\n\n{_about_files(found)}\n\n{_about_groups(found)}"


def _about_files(found: Findings) -> str:
    """Why the three schedulers do not differ in the IO-bound workload."""
    needed = {
        **_for_all(found, "IO-bound", mean_of("blocked_ns"), "blocked"),
        **_for_all(found, "IO-bound", mean_of("waiting_ns"), "waiting"),
        **_for_all(found, "IO-bound", mean_of("running_ns"), "running"),
    }
    told = "**IO-bound.** " + if_known(
        needed,
        lambda n: (
            f"A process is blocked for {_each(n, 'blocked')} ticks, waits for a CPU for "
            f"{_each(n, 'waiting')} and runs for {_each(n, 'running', 2)}."
        ),
    )
    return f"{told} {_why_blocked(found)}".strip()


def _why_blocked(found: Findings) -> str:
    """Of one run under round-robin: what its processes are blocked on."""
    kept = traces(found.setup("IO-bound", SCHEDULERS["RR"]), most=1)
    if not kept:
        return ""
    run, trace = kept[0]
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
        return ""
    first = blocked.row(0, named=True)
    reason = str(first["cause"]).removeprefix("blocked: ")
    return (
        f"Of the time blocked, {first['part']:.0f} % are spent waiting for the {reason} "
        f"(round-robin, seed {run.seed}). That is what takes long, whatever the scheduler."
    )


def _about_groups(found: Findings) -> str:
    needed = {
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "cpu"), "computing"),
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "io"), "writing"),
    }
    return (
        "**Mixed.** "
        + if_known(
            needed,
            lambda n: (
                f"Those that compute take {_each(n, 'computing')} ticks, those that write "
                f"{_each(n, 'writing')}. {_where_they_wait(found)}"
            ),
        ).strip()
    )


def _where_they_wait(found: Findings) -> str:
    """Of one run under MLFQ: on which level those that compute spend their time waiting."""
    kept = traces(found.setup("Mixed", SCHEDULERS["MLFQ"]), most=1)
    if not kept:
        return ""
    run, trace = kept[0]
    rows = run.metrics().processes.filter(pl.col("group") == "cpu")
    waits = waiting_by_level(trace, rows["pid"].to_list())
    if waits.is_empty():
        return ""
    below = waits.filter(pl.col("level") < _TOP_LEVEL)["waiting_ns"]
    part = number(below.sum()) / number(waits["waiting_ns"].sum())
    return (
        f"Under MLFQ those that compute spend {100 * part:.0f} % of "
        f"the time that they wait for a CPU below the highest level (seed {run.seed}): their first "
        "quantum is used up, and whoever is new, or comes back from the disk, goes first."
    )


_TOP_LEVEL = 3


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


def _about_response(found: Findings) -> str:
    needed = {
        name: found.of("IO-bound", policy, part_of_time("idle_ns"))
        for name, policy in SCHEDULERS.items()
    }
    responses = {
        f"{name}: response": found.metric(RESPONSE, "IO-bound", name) for name in SCHEDULERS
    }
    told = if_known(
        {**needed, **responses},
        lambda n: (
            "**IO-bound.** The CPUs are idle for "
            f"{listed([f'{n[name]:.0f} % ({name})' for name in SCHEDULERS])} of the time, so a "
            "new process mostly finds one at once, whatever the policy: "
            + _each({name: 1000 * value for name, value in n.items()}, "response", 0)
            + " thousandths of a tick."
        ),
    )
    there = {name: published_cell(RESPONSE, name, "IO-bound").value for name in SCHEDULERS}
    return (
        "**CPU-bound and mixed.** Under MLFQ a new process begins on the highest level, before all "
        "that have run for a tick; under the other two it waits among them."
        f"\n\n{told} That the lottery's was {there['Lottery'] / there['RR']:.0f} times "
        "round-robin's in the study does not come out here; why it was so there is not known."
    )


def _about_throughput(found: Findings) -> str:
    needed = {
        name: found.of("CPU-bound", policy, part_of_time("running_ns"))
        for name, policy in SCHEDULERS.items()
    }
    of_ideal = {
        f"throughput, {name}": found.metric(THROUGHPUT, "CPU-bound", name) for name in SCHEDULERS
    }
    cpu_bound = if_known(
        {**needed, **of_ideal},
        lambda n: (
            "**CPU-bound.** "
            + listed(
                [
                    f"{100 * n[f'throughput, {name}'] / BATCH.throughput:.1f} % of the ideal "
                    f"({name})"
                    for name in SCHEDULERS
                ]
            )
            + ". What is missing is the parent's time and the idle time (the table above), and "
            "what a process takes beyond its work, to begin and to end. The study's figure of "
            "round-robin is lower by what its CPUs schedule and idle: the processes' work was "
            "derived from just that."
        ),
    )
    parent = {
        f"{name}: waits": found.of_parent("Mixed", policy, mean_of("waiting_ns"))
        for name, policy in SCHEDULERS.items()
    }
    spread = _for_all(found, "Mixed", SPREAD, "last fork")
    mixed = if_known(
        {**parent, **spread},
        lambda n: (
            "**Mixed.** The throughput counts until the last process has ended, so it depends on "
            "when that one is forked. The parent waits for a CPU for "
            f"{_each(n, 'waits')} ticks in all, and forks its last child "
            f"{_each(n, 'last fork')} ticks after the first. It sleeps again and again and has "
            "a new quantum each time, so that under MLFQ it stays on a high level: what ends the "
            "run sooner is that this one process goes first."
        ),
    )
    return f"{cpu_bound}\n\n{mixed}"


def _about_overhead(found: Findings) -> str:
    needed = {
        workload: found.of(workload, SCHEDULERS["RR"], pl.col("overhead_share").first() * 100)
        for workload in WORKLOADS
    }
    counted = {
        f"counted, {workload}": found.metric(OVERHEAD, workload, "RR") for workload in WORKLOADS
    }
    return if_known(
        {**needed, **counted},
        lambda n: (
            "What the study calls overhead is all time between two processes, idle time included. "
            "The scheduler's own part of it, under round-robin: "
            + listed(
                [
                    f"{n[workload]:.2f} of {n[f'counted, {workload}']:.1f} % ({workload})"
                    for workload in WORKLOADS
                ]
            )
            + ". The rest is that there was nothing to run. So the table orders workloads and "
            "schedulers by how idle they leave the CPUs; the table of the CPUs' time above has "
            "both apart. How much of the study's figures is idle time is not known."
        ),
    )


def _about_fairness(found: Findings) -> str:
    needed = {
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "cpu"), "computing"),
        **_for_all(found, "Mixed", mean_of("turnaround_ns", "io"), "writing"),
    }
    return (
        "Jain's index of turnaround is 1 if all processes take equally long, whatever they ask "
        "for. "
        + if_known(
            needed,
            lambda n: (
                "In the mixed workload those that compute take "
                f"{_each(n, 'computing')} ticks and those that write {_each(n, 'writing')}: where "
                "the first are made to wait until they take as long as the second, the index is "
                "high. It does not say that the CPU was shared more evenly."
            ),
        )
    )


_EXPLANATIONS = {
    "turnaround": _about_turnaround,
    "response": _about_response,
    "throughput": _about_throughput,
    "overhead": _about_overhead,
    "fairness": _about_fairness,
}


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
            blocks.append(
                boxes(
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
