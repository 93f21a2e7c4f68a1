# SPDX-License-Identifier: MIT
"""Study 5: weighted round-robin and lottery in Linux, and a benchmark that tells little of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from schedlab.report.model import Cell, Column, Page, Section, Table, Text
from schedlab.report.studies import (
    linux_others,
    linux_sysbench,
    linux_tables,
    linux_threads,
    linux_wakeups,
)
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.events import EIGHT, LONGEST, ONE, Benchmark
from schedlab.report.studies.linux_runs import LinuxRuns
from schedlab.report.studies.linux_tables import QUANTITIES, SCHEDULERS, figure_of, ours
from schedlab.report.studies.texts import if_known, in_order
from schedlab.report.wording import NOTHING, listed
from schedlab.runs.collection import Collection
from schedlab.studies.figures import Figure
from schedlab.studies.linux_experiments import SYSBENCH
from schedlab.studies.pack import study_numbered


def page(collection: Collection) -> Page | None:
    """Study 5's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s5-") for run in collection):
        return None
    found, doubts, on_linux = (
        Benchmark(collection),
        Doubts(study_numbered(5)),
        LinuxRuns(collection),
    )
    ours = () if not _on_our_kernel(found) and on_linux.present else _ours(found, doubts)
    return Page(
        "study-5",
        "Study 5: WRR and lottery in Linux",
        _lead(found, on_linux),
        (
            Section("What was measured", (Text(_setting(on_linux)),)),
            *linux_sysbench.sections(on_linux),
            *ours,
            *linux_wakeups.section(on_linux),
            *linux_others.sections(on_linux),
            _claims(found, on_linux, doubts),
        ),
    )


def _on_our_kernel(found: Benchmark) -> bool:
    return any(found.collection.select(experiment=name) for name in (ONE, EIGHT))


def _ours(found: Benchmark, doubts: Doubts) -> tuple[Section, ...]:
    """What was measured on our own kernel."""
    return (
        linux_tables.section(found, doubts),
        linux_threads.one_thread(found),
        linux_threads.eight_threads(found),
        linux_threads.slices(found),
    )


def _setting(on_linux: LinuxRuns) -> str:
    return _SETTING.format(linux=_LINUX if on_linux.present else _NO_LINUX)


_SETTING = """
- **Machines.** The study changed Linux 5.15 and measured with sysbench, on a machine that it does \
not describe. Our own small kernel runs the same benchmark on one CPU of 1 GHz that takes a \
nanosecond for each instruction. {linux}
- **Benchmark** (`cpubench`). A thread does *events* for a set time; an event finds the primes up to \
10,000. Its *latency* is from its beginning to its end, whoever has the CPU meanwhile.
- **Schedulers.** Weighted round-robin (`wrr:linux`) and lottery (`lottery:linux`) as in the study's \
listings. CFS is Linux's own scheduler, of which we have none: on our kernel, its figures are \
published ones only.
- **Ideal.** None: one thread that always runs leaves a scheduler nothing to do better.
"""
_LINUX = (
    "And a stock Linux kernel runs in QEMU, with the same policy files in it through sched_ext, and "
    "sysbench itself (`--cpu-max-prime=10000`; the study names no options). Its own fair class, "
    "EEVDF since Linux 6.6, stands where the study has CFS."
)
_NO_LINUX = "Linux itself is not measured in these runs; `./schedlab run study-5 --machine linux` does that."


def _lead(found: Benchmark, on_linux: LinuxRuns) -> str:
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

    if not _on_our_kernel(found):
        return first + _lead_on_linux(on_linux)
    return f"{first}{if_known({**one, **eight}, sentence)} {_lead_on_linux(on_linux)}".rstrip()


def _lead_on_linux(on_linux: LinuxRuns) -> str:
    """Nothing, if that was not run."""
    if not on_linux.setups(SYSBENCH):
        return ""
    rates = {
        name: on_linux.printed(SYSBENCH, policy, "events_per_second")
        for name, policy in linux_sysbench.SCHEDULERS.items()
    }

    def sentence(n: dict[str, float]) -> str:
        order = in_order(rates, falling=True, paired=False)
        return (
            f"On a Linux kernel of today, the same three are "
            f"{100 * (max(n.values()) / min(n.values()) - 1):.1f} % apart: {order}, where ≈ may be "
            "chance."
        )

    return if_known(rates, sentence)


def _claims(found: Benchmark, on_linux: LinuxRuns, doubts: Doubts) -> Section:
    rows = [
        (
            "6.2",
            "WRR has the highest throughput, the lottery the lowest",
            _order({name: figure_of(name, "throughput", 6) for name in SCHEDULERS}, falling=True),
            _order_here(found, "throughput", falling=True),
            _order_on_linux(on_linux, "throughput", falling=True),
        ),
        (
            "5.3",
            "mean latencies are nearly the same",
            _order(
                {name: figure_of(name, "mean latency", 6) for name in SCHEDULERS}, falling=False
            ),
            _order_here(found, "mean latency", falling=False),
            _order_on_linux(on_linux, "mean latency", falling=False),
        ),
        (
            "6.4",
            "longest latencies follow complexity: WRR, lottery, CFS",
            _order(
                {name: figure_of(name, "maximum latency", 6) for name in SCHEDULERS}, falling=False
            ),
            _order_here(found, "maximum latency", falling=False),
            _order_on_linux(on_linux, "maximum latency", falling=False),
        ),
    ]
    columns = ("section", "the study says", "its figures", "our kernel, without CFS", "on Linux")
    table = Table(
        "study-5-claims",
        "What the study concludes",
        tuple(Column(name, align="left") for name in columns),
        tuple(tuple(Cell(text) for text in row) for row in rows),
        pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]),
    )
    return Section("What the study claims", (table, Text(_WITHOUT_CFS), *doubts.rest()))


_WITHOUT_CFS = """
*≈*: the difference may be chance (95 %; on our kernel, seed by seed). The figures are those of table 6; how \
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


def _order_on_linux(on_linux: LinuxRuns, quantity: str, falling: bool) -> str:
    """By counted instructions; a dash if that was not run."""
    if not on_linux.setups(SYSBENCH):
        return NOTHING
    _, decimals, figure = linux_sysbench.QUANTITIES[quantity]
    values = {
        name: on_linux.printed(SYSBENCH, policy, figure)
        for name, policy in linux_sysbench.SCHEDULERS.items()
    }
    if any(each.mean is None for each in values.values()):
        return "; ".join(f"{name}: {each.text(decimals)}" for name, each in values.items())
    return in_order(values, falling, paired=False)
