# SPDX-License-Identifier: MIT
"""Study 4's mixed benchmark, figures 9 and 10: two interactive processes beside 2 to 40 others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from schedlab.comparison.statistics import ANYWHERE
from schedlab.report.charts import drawn, latencies, lines
from schedlab.report.model import Block, Cell, Column, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.mixed_reasons import why
from schedlab.report.studies.mixed_runs import (
    CPUS,
    KINDS,
    SCHEDULERS,
    Benchmark,
    experiment,
    published,
)
from schedlab.report.studies.texts import cell, combined, how_measured, measured_table, traces
from schedlab.report.study_tables import NOTHING, Comparison, Line, Measured, compared_table
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import MIXED_SIZES, OTHERS
from schedlab.studies.figures import Source
from schedlab.studies.ideal import INTERACTIVE_TICKS, STUDY_4_WORK, ideal_mixed_benchmark

FIGURES = {"RR": 9, "MLFQ": 10}


def section(collection: Collection, doubts: Doubts) -> Section:
    """Tables, charts, shapes, and why it is so."""
    found = Benchmark(collection)
    blocks: list[Block] = [Text(_INTRODUCTION)]
    for scheduler in SCHEDULERS:
        blocks += [*_chart(found, scheduler), _table(found, scheduler)]
    blocks += [Text(_SHAPES), _shapes(found), Text(why(collection)), *_latencies(found)]
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
        f"{_ends(_points('RR', 'interactive', 'rerun'))}. Here: the numbers of processes that were "
        "run.",
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
        *drawn(
            latencies,
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
