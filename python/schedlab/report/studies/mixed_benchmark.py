# SPDX-License-Identifier: MIT
"""Study 4's mixed benchmark, figures 9 and 10: two interactive processes beside 2 to 40 others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from schedlab.collection import Collection, Kept
from schedlab.metrics import state_intervals
from schedlab.report.charts import latencies, lines
from schedlab.report.model import Block, Cell, Column, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.texts import (
    cell,
    combined,
    how_measured,
    if_known,
    measured_table,
    number,
    of_rows,
    traces,
)
from schedlab.report.studies.ticks import at_ticks, boosts
from schedlab.report.study_tables import (
    NOTHING,
    Comparison,
    Line,
    Measured,
    compared_table,
    measure,
)
from schedlab.statistics import ANYWHERE
from schedlab.studies import select
from schedlab.studies.experiments import MIXED_SIZES, OTHERS
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal import INTERACTIVE_TICKS, STUDY_4_WORK, ideal_mixed_benchmark
from schedlab.trace import Trace

CPUS = 1
SCHEDULERS = {"RR": "rr:table-scan", "MLFQ": "mlfq:allotment-boost"}
"""As the authors' output calls them, and the presets that are like them."""
KINDS = {"interactive": "inter", "CPU-bound": "cpu"}
"""The processes, and their groups in our runs."""
FIGURES = {"RR": 9, "MLFQ": 10}


def experiment(size: int) -> str:
    """With so many CPU-bound processes."""
    return f"s4-mixed-{size}"


@dataclass(frozen=True)
class Benchmark:
    """Reads a collection's runs of the benchmark."""

    collection: Collection

    def mean(self, size: int, policy: str, kind: str) -> Measured:
        """Mean turnaround of the processes of one kind, in ticks."""
        rows = self.collection.groups
        if len(rows):
            rows = rows.filter(pl.col("group") == KINDS[kind])
        value = pl.col("turnaround_mean_ns").first() / pl.col("tick_ns").first()
        setup = self.collection.one(experiment(size), policy, CPUS)
        return measure(setup, of_rows(self.collection, rows, value))

    def sizes(self, policy: str) -> list[int]:
        """Which were run, without a failure."""
        return [
            size
            for size in MIXED_SIZES
            if (setup := self.collection.one(experiment(size), policy, CPUS)) and setup.succeeded
        ]

    def by_seed(self, policy: str, kind: str) -> dict[int, tuple[float, ...]]:
        """By size: a value for each of the seeds that all sizes have."""
        found = {size: self.mean(size, policy, kind).values for size in self.sizes(policy)}
        seeds = min((len(values) for values in found.values()), default=0)
        return {size: values[:seeds] for size, values in found.items()} if seeds else {}


def section(collection: Collection, doubts: Doubts) -> Section:
    """Tables, charts, shapes, and why it is so."""
    found = Benchmark(collection)
    blocks: list[Block] = [Text(_INTRODUCTION)]
    for scheduler in SCHEDULERS:
        blocks += [*_chart(found, scheduler), _table(found, scheduler)]
    blocks += [Text(_SHAPES), _shapes(found), Text(_why(collection)), *_latencies(found)]
    return Section(
        "The mixed benchmark: figures 9 and 10",
        (*blocks, *doubts.at("section 4.2")),
        tuple(_own_policies(found)),
    )


_INTRODUCTION = f"""
Two **interactive** processes write a line to a file and sleep 5 ticks, twenty times; beside them, \
2 to 40 **CPU-bound** ones compute {STUDY_4_WORK:.0f} ticks each. One CPU. What counts is the mean \
time from fork to end. Ideally an interactive process needs {INTERACTIVE_TICKS:.0f} ticks however \
many compute, and n CPU-bound ones that share the CPU equally all need n × {STUDY_4_WORK:.0f}. The \
study's text has the curves without numbers: *study* is its authors' own output, *rerun* their \
programs run again for schedlab, on another machine.
"""


def published(size: int, scheduler: str, kind: str, source: Source) -> Figure | None:
    """What the authors, or the rerun, have for it."""
    found = [
        each
        for each in select(study=4, place="section 4.2", source=source)
        if each.row == f"{size} CPU-bound" and each.column == f"{scheduler} {kind}"
    ]
    return found[0] if found else None


def _table(found: Benchmark, scheduler: str) -> Table:
    policy = SCHEDULERS[scheduler]
    ideals = {
        size: dict(zip(KINDS, ideal_mixed_benchmark(size), strict=True)) for size in MIXED_SIZES
    }
    return compared_table(
        f"study-4-figure-{FIGURES[scheduler]}-table",
        f"Mean turnaround under {scheduler} ({policy}), ticks",
        ("CPU-bound",),
        [
            Line(
                (str(size),),
                {
                    kind: Comparison(
                        published(size, scheduler, kind, "authors"),
                        found.mean(size, policy, kind),
                        ideals[size][kind],
                        rerun=published(size, scheduler, kind, "rerun"),
                    )
                    for kind in KINDS
                },
            )
            for size in MIXED_SIZES
        ],
        how_measured(found.collection, map(experiment, MIXED_SIZES)),
    )


def _chart(found: Benchmark, scheduler: str) -> list[Block]:
    policy = SCHEDULERS[scheduler]
    rows = [
        {"size": size, "ticks": value, "kind": kind}
        for size in MIXED_SIZES
        if (setup := found.collection.one(experiment(size), policy, CPUS))
        for kind in KINDS
        for value in found.mean(size, policy, kind).values or (None,) * len(setup.runs)
    ]
    if not rows:
        return []
    printed = [
        {"size": size, "ticks": figure.value, "kind": kind}
        for size in MIXED_SIZES
        for kind in KINDS
        if (figure := published(size, scheduler, kind, "authors"))
    ]
    number = FIGURES[scheduler]
    return [
        lines(
            f"study-4-figure-{number}",
            pl.DataFrame(rows, schema={"size": pl.Int64, "ticks": pl.Float64, "kind": pl.String}),
            title=f"The mixed benchmark under {scheduler}: the study's figure {number}",
            caption="Mean time from fork to end.",
            x="size",
            y="ticks",
            x_title="CPU-bound processes",
            y_title="mean turnaround, ticks",
            series="kind",
            policies=False,
            order=list(KINDS),
            ideal=pl.DataFrame({"size": list(MIXED_SIZES), "ticks": INTERACTIVE_TICKS}),
            ideal_title="ideal, interactive",
            published=pl.DataFrame(printed),
        )
    ]


_SHAPES = """
Ticks of the study are 10 ms of its machine and its emulator, so figures are to be compared by \
their shape: how many times as long it takes beside the most processes as beside the fewest, and \
how many ticks each CPU-bound process more adds (the slope of a straight line through all points).
"""


def _shapes(found: Benchmark) -> Table:
    rows, behind = [], []
    for scheduler, policy in SCHEDULERS.items():
        for kind in KINDS:
            name = f"{scheduler}, {kind}"
            here = found.by_seed(policy, kind)
            cells: list[Cell] = []
            for what, decimals in (("growth", 1), ("slope", 1)):
                there = [_shape(what, _points(scheduler, kind, s)) for s in ("authors", "rerun")]
                ours = _shape_by_seed(what, here)
                ideal = _shape(what, _ideal_points(kind))
                cells += [
                    *(Cell(NOTHING if n is None else f"{n:.{decimals}f}") for n in there),
                    cell(ours, decimals),
                    Cell(NOTHING if ideal is None else f"{ideal:.{decimals}f}", "muted"),
                ]
                behind.append(
                    {
                        "series": name,
                        "shape": what,
                        "published": there[0],
                        "rerun": there[1],
                        "measured": ours.mean,
                        "ideal": ideal,
                    }
                )
            rows.append((Cell(name), *cells))
    kinds = ("study", "rerun", "here", "ideal")
    headings = (_growth_heading(found), "ticks for each CPU-bound process more")
    return Table(
        "study-4-shapes",
        "Shapes of the four curves",
        (
            Column("", align="left"),
            *(Column(kind, heading) for heading in headings for kind in kinds),
        ),
        tuple(rows),
        pl.DataFrame(behind, infer_schema_length=None),
        "Growth: of the study and here from the fewest to the most; of the rerun from "
        f"{_ends(_points('RR', 'interactive', 'rerun'))}.",
    )


def _growth_heading(found: Benchmark) -> str:
    sizes = found.by_seed(SCHEDULERS["RR"], "interactive")
    return f"times as long, {_ends(sizes)} CPU-bound" if len(sizes) > 1 else "times as long"


def _ends(points: Mapping[int, object]) -> str:
    return f"{min(points)} to {max(points)}"


def _points(scheduler: str, kind: str, source: Source) -> dict[int, float]:
    return {
        size: figure.value
        for size in MIXED_SIZES
        if (figure := published(size, scheduler, kind, source)) and figure.finished
    }


def _ideal_points(kind: str) -> dict[int, float]:
    return {
        size: dict(zip(KINDS, ideal_mixed_benchmark(size), strict=True))[kind]
        for size in MIXED_SIZES
    }


def _shape(what: str, points: Mapping[int, float]) -> float | None:
    """`growth`: the last ÷ the first; `slope`: of the straight line that fits best."""
    if len(points) < 2:
        return None
    sizes, values = list(points), list(points.values())
    if what == "growth":
        return values[-1] / values[0]
    return float(np.polyfit(sizes, values, 1)[0])


def _shape_by_seed(what: str, by_size: Mapping[int, Sequence[float]]) -> Measured:
    if len(by_size) < 2:
        return Measured()
    seeds = range(len(next(iter(by_size.values()))))
    shapes = (
        _shape(what, {size: values[seed] for size, values in by_size.items()}) for seed in seeds
    )
    return Measured(tuple(each for each in shapes if each is not None), within=ANYWHERE)


def _why(collection: Collection) -> str:
    """From the traces beside the most CPU-bound processes that were run."""
    found = Benchmark(collection)
    told = []
    for scheduler, tell in (("RR", _why_round_robin), ("MLFQ", _why_feedback)):
        policy = SCHEDULERS[scheduler]
        sizes = found.sizes(policy)
        setup = collection.one(experiment(sizes[-1]), policy, CPUS) if sizes else None
        kept = traces(setup, most=1)
        if kept:
            told.append(f"- **{scheduler}**, {tell(sizes[-1], *kept[0])}")
    told.append(_about_computing(found))
    if len(told) < 2:
        return "*Why it is so is read from traces; there is none of this benchmark.*"
    return "Why it is so, from the traces:\n\n" + "\n".join(told)


def _about_computing(found: Benchmark) -> str:
    """Why the mean of those that compute is a little below the ideal."""
    size = max(MIXED_SIZES)
    policy = SCHEDULERS["RR"]
    rows = found.collection.processes
    if len(rows):
        rows = rows.filter(pl.col("group") == KINDS["CPU-bound"])
    spread = (pl.col("fork_ns").max() - pl.col("fork_ns").min()) / pl.col("tick_ns").first()
    setup = found.collection.one(experiment(size), policy, CPUS)
    there = published(size, "RR", "CPU-bound", "authors")
    needed = {
        "spread": measure(setup, of_rows(found.collection, rows, spread)),
        "mean": found.mean(size, policy, "CPU-bound"),
    }
    told = "- **CPU-bound**: " + if_known(
        needed,
        lambda n: (
            f"{size} of them take {n['mean']:,.0f} ticks under RR, the ideal is "
            f"{size * STUDY_4_WORK:,.0f}. It has all begin together; here the last is forked "
            f"{n['spread']:.0f} ticks after the first, and each one's time counts from its own "
            "fork."
        ),
    )
    if there is None:
        return told
    return told + (
        f" The authors' {there.text} are still less; how far apart their forks were is not known."
    )


def _pids(run: Kept, kind: str) -> list[int]:
    rows = run.metrics().processes.filter(pl.col("group") == KINDS[kind])
    return [int(pid) for pid in rows["pid"]]


def _why_round_robin(size: int, run: Kept, trace: Trace) -> str:
    processes, tick_ns = run.metrics().processes, trace.header.tick_ns
    pids = _pids(run, "interactive")
    ends = {kind: processes.filter(pl.col("group") == group) for kind, group in KINDS.items()}
    alone_ns = number(ends["CPU-bound"]["exit_ns"].max())
    last_ns = number(ends["interactive"]["exit_ns"].max())
    away = _times_away(trace, pids).filter(pl.col("again_ns") < alone_ns)
    usual_ns = number((away["again_ns"] - away["begin_ns"]).median())
    sleeps = _sleeps(trace, pids)
    before = len(sleeps.filter(pl.col("begin_ns") < alone_ns)) / len(pids)
    told = f"{size} CPU-bound (seed {run.seed}): "
    if usual_ns:
        told += (
            "each time that an interactive process gives up the CPU to sleep or to wait for the "
            f"disk, it is back after a turn of all others, {usual_ns / tick_ns:.1f} ticks (median). "
        )
    return told + (
        f"So it has begun {before:.1f} of its {len(sleeps) / len(pids):.0f} sleeps when the last "
        f"CPU-bound process ends, and ends itself {(last_ns - alone_ns) / tick_ns:.0f} ticks "
        "later: interactive processes outlast those that compute, and each of these more adds all "
        f"of its work to their time. {_outlasting()}"
    )


def _outlasting() -> str:
    """Is it so in the authors' output, too?"""
    pairs = [
        [published(size, "RR", kind, "authors") for kind in ("interactive", "CPU-bound")]
        for size in MIXED_SIZES
    ]
    longer = sum(bool(one and other and one.value > other.value) for one, other in pairs)
    return (
        f"In {longer} of the authors' {len(pairs)} rows, too, the interactive ones take longer "
        "than the CPU-bound."
    )


def _sleeps(trace: Trace, pids: list[int]) -> pl.DataFrame:
    return state_intervals(trace).filter(
        pl.col("pid").is_in(pids) & (pl.col("cause") == "blocked: sleep")
    )


def _times_away(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """When one of them begins to sleep or to wait for the disk, and when it runs again."""
    intervals = state_intervals(trace).filter(pl.col("pid").is_in(pids)).sort("pid", "begin_ns")
    runs = pl.when(pl.col("state") == "running").then(pl.col("begin_ns"))
    return (
        intervals.with_columns(again=runs.backward_fill().over("pid"))
        .filter(pl.col("cause").cast(pl.String).is_in(["blocked: sleep", "blocked: disk"]))
        .select("begin_ns", pl.col("again").alias("again_ns"))
    )


def _why_feedback(size: int, run: Kept, trace: Trace) -> str:
    ticks = at_ticks(trace, _pids(run, "CPU-bound"))
    raised = boosts(ticks)
    until = raised[0] if raised else number(ticks["machine_tick"].max()) + 1
    top = ticks.filter(
        (pl.col("level") == pl.col("level").max()) & (pl.col("machine_tick") < until)
    )
    if top.is_empty():
        return f"{size} CPU-bound: no level was told."
    sunk_ns = (number(top["machine_tick"].max()) + 1) * trace.header.tick_ns
    pids = _pids(run, "interactive")
    sleeps = _sleeps(trace, pids)
    before = len(sleeps.filter(pl.col("begin_ns") < sunk_ns)) / len(pids)
    after = len(sleeps) / len(pids) - before
    ends = run.metrics().processes.filter(pl.col("pid").is_in(pids))["exit_ns"].mean()
    each = (number(ends) - sunk_ns) / trace.header.tick_ns / after if after else 0.0
    begin = number(ticks["machine_tick"].min()) * trace.header.tick_ns
    lasted = (sunk_ns - begin) / trace.header.tick_ns
    return (
        f"{size} CPU-bound (seed {run.seed}): the CPU-bound ones stay on the highest level until "
        "each has used its allotment of 8 ticks, for "
        f"{lasted:.0f} ticks in all; the interactive ones share it with them, and have begun "
        f"{before:.1f} of their {before + after:.0f} sleeps by then. From there on they go first, and a "
        f"round of writing and sleeping takes {each:.1f} ticks. So their time grows by the 8 ticks "
        "of each CPU-bound process more."
    )


def _latencies(found: Benchmark) -> list[Block]:
    """How long the interactive processes wait for the CPU when they have been woken."""
    size = max(set(found.sizes(SCHEDULERS["RR"])) & set(found.sizes(SCHEDULERS["MLFQ"])), default=0)
    kept = {
        policy: [trace for _, trace in traces(found.collection.one(experiment(size), policy, CPUS))]
        for policy in SCHEDULERS.values()
    }
    if not size or not all(kept.values()):
        return []
    return [
        latencies(
            "study-4-wakeups",
            kept,
            title=f"Wake-ups beside {size} CPU-bound processes",
            caption="From the wake-up of an interactive process until it runs.",
            group=KINDS["interactive"],
        )
    ]


def _own_policies(found: Benchmark) -> list[Section]:
    """What was run of the policies as shipped."""
    run = {
        (policy, size)
        for policy in OTHERS
        for size in MIXED_SIZES
        if found.collection.one(experiment(size), policy, CPUS)
    }
    policies = [policy for policy in OTHERS if any(policy == other for other, _ in run)]
    sizes = sorted({size for _, size in run})
    if not policies:
        return [Section("The same under the policies as shipped", (Text("Not run."),))]
    columns = [(Column(str(size), f"{kind}, beside"), 1) for kind in KINDS for size in sizes]
    table = measured_table(
        "study-4-policies",
        "Mean turnaround in ticks, beside so many CPU-bound processes",
        "policy",
        columns,
        {
            policy: [found.mean(size, policy, kind) for kind in KINDS for size in sizes]
            for policy in policies
        },
        how_measured(found.collection, map(experiment, sizes), policies),
    )
    return [Section("The same under the policies as shipped", (table,))]


def claims(found: Benchmark) -> list[tuple[str, str, str, Measured]]:
    """Place, what the study says, what the authors' output comes to, and ours."""
    size = max(MIXED_SIZES)
    few = min(MIXED_SIZES)
    growth = _shape("growth", _points("MLFQ", "interactive", "authors"))
    there = [published(size, s, "CPU-bound", "authors") for s in ("MLFQ", "RR")]
    ratio = there[0].value / there[1].value if there[0] and there[1] else 0.0
    here = found.by_seed(SCHEDULERS["MLFQ"], "interactive")
    ends = {n: here[n] for n in (few, size) if n in here}
    return [
        (
            "4.2",
            f"interactive processes under MLFQ hardly take longer (beside {size}, ÷ beside {few})",
            f"{growth:.1f}",
            _shape_by_seed("growth", ends),
        ),
        (
            "4.2",
            f"CPU-bound ones take as long under MLFQ as under RR (ratio, {size})",
            f"{ratio:.2f}",
            _ratio(found, size),
        ),
    ]


def _ratio(found: Benchmark, size: int) -> Measured:
    return combined(
        found.mean(size, SCHEDULERS["MLFQ"], "CPU-bound"),
        found.mean(size, SCHEDULERS["RR"], "CPU-bound"),
        lambda mlfq, rr: mlfq / rr,
    )
