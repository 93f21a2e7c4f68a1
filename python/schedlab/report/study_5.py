# SPDX-License-Identifier: MIT
"""Study 5: weighted round-robin and lottery in Linux, and a benchmark that tells little of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from schedlab.collection import Collection
from schedlab.report.model import Cell, Column, Page, Section, Table, Text
from schedlab.report.studies import linux_tables, linux_threads
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.events import EIGHT, LONGEST, ONE, Benchmark
from schedlab.report.studies.linux_tables import QUANTITIES, SCHEDULERS, figure_of, ours
from schedlab.report.studies.texts import if_known, in_order
from schedlab.report.wording import listed
from schedlab.studies.figures import Figure


def page(collection: Collection) -> Page | None:
    """Study 5's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s5-") for run in collection):
        return None
    found, doubts = Benchmark(collection), Doubts(5)
    return Page(
        "study-5",
        "Study 5: WRR and lottery in Linux",
        _lead(found),
        (
            Section("What was measured", (Text(_SETTING),)),
            linux_tables.section(found, doubts),
            linux_threads.one_thread(found),
            linux_threads.eight_threads(found),
            linux_threads.slices(found),
            _claims(found, doubts),
        ),
    )


_SETTING = """
- **Machines.** The study changed Linux 5.15 and measured with sysbench, on a machine that it does \
not describe. Here the same benchmark runs on our own small kernel: one CPU of 1 GHz that takes a \
nanosecond for each instruction. Linux itself is not measured here yet.
- **Benchmark** (`cpubench`). A thread does *events* for a set time; an event finds the primes up to \
10,000. Its *latency* is from its beginning to its end, whoever has the CPU meanwhile.
- **Schedulers.** Weighted round-robin (`wrr:linux`) and lottery (`lottery:linux`) as in the study's \
listings. CFS is Linux's own scheduler, of which we have none: its figures are published ones only.
- **Ideal.** None: one thread that always runs leaves a scheduler nothing to do better.
"""


def _lead(found: Benchmark) -> str:
    there = {name: figure_of(name, "throughput", 6) for name in SCHEDULERS}
    known = {name: figure.value for name, figure in there.items() if figure}
    apart = 100 * (max(known.values()) / min(known.values()) - 1)
    first = (
        "The study put weighted round-robin and a lottery into Linux and compared them with CFS by "
        "a benchmark of one thread that computes. There, the three are "
        f"{apart:.1f} % apart in throughput ("
        + listed([f"{name} {figure.text}" for name, figure in there.items() if figure])
        + " events a second), and from that and the longest latencies it ranks them. "
    )
    one = {f"{name}, one thread": found.throughput(ONE, policy) for name, policy in ours().items()}
    eight = {
        f"{name}, eight threads": found.latency(EIGHT, policy, LONGEST)
        for name, policy in ours().items()
    }

    def sentence(n: dict[str, float]) -> str:
        rates = [n[name] for name in one]
        return (
            f"Here the two are {100 * (max(rates) / min(rates) - 1):.1f} % apart, and one thread "
            "tells next to nothing of a scheduler; with eight threads the longest latency of an "
            "event is "
            + listed([f"{n[f'{name}, eight threads']:.0f} ms under {name}" for name in ours()])
            + "."
        )

    return first + if_known({**one, **eight}, sentence)


def _claims(found: Benchmark, doubts: Doubts) -> Section:
    rows = [
        (
            "6.2",
            "WRR has the highest throughput, the lottery the lowest",
            _order({name: figure_of(name, "throughput", 6) for name in SCHEDULERS}, falling=True),
            _order_here(found, "throughput", falling=True),
        ),
        (
            "5.3",
            "mean latencies are nearly the same",
            _order(
                {name: figure_of(name, "mean latency", 6) for name in SCHEDULERS}, falling=False
            ),
            _order_here(found, "mean latency", falling=False),
        ),
        (
            "6.4",
            "longest latencies follow complexity: WRR, lottery, CFS",
            _order(
                {name: figure_of(name, "maximum latency", 6) for name in SCHEDULERS}, falling=False
            ),
            _order_here(found, "maximum latency", falling=False),
        ),
    ]
    columns = ("section", "the study says", "its figures", "here, without CFS")
    table = Table(
        "study-5-claims",
        "What the study concludes",
        tuple(Column(name, align="left") for name in columns),
        tuple(tuple(Cell(text) for text in row) for row in rows),
        pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]),
    )
    return Section("What the study claims", (table, Text(_WITHOUT_CFS), *doubts.rest()))


_WITHOUT_CFS = """
*≈*: the difference may be chance (95 %, seed by seed). The figures are those of table 6; how \
much of ours is the schedulers' own work is told with the table of one thread.
"""


def _order(figures: Mapping[str, Figure | None], falling: bool) -> str:
    """As printed: `CFS = WRR < Lottery`."""
    known = {name: figure.value for name, figure in figures.items() if figure}
    names = sorted(known, key=lambda name: known[name], reverse=falling)
    told = names[0]
    for one, other in pairwise(names):
        sign = "=" if known[one] == known[other] else ">" if falling else "<"
        told += f" {sign} {other}"
    return told


def _order_here(found: Benchmark, quantity: str, falling: bool) -> str:
    _, decimals, of = QUANTITIES[quantity]
    values = {name: of(found, ONE, policy) for name, policy in ours().items()}
    if any(each.mean is None for each in values.values()):
        return "; ".join(f"{name}: {each.text(decimals)}" for name, each in values.items())
    return in_order(values, falling)
