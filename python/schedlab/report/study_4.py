# SPDX-License-Identifier: MIT
"""Study 4: from round-robin to a feedback queue."""

from __future__ import annotations

import polars as pl

from schedlab.report.model import Cell, Column, Page, Section, Table, Text
from schedlab.report.studies import levels_seen, mixed_benchmark, sleeper
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.mixed_runs import SCHEDULERS, Benchmark, published
from schedlab.report.studies.texts import cell, if_known
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import MIXED_SIZES
from schedlab.studies.ideal import INTERACTIVE_TICKS, STUDY_4_WORK


def page(collection: Collection) -> Page | None:
    """Study 4's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s4-") for run in collection):
        return None
    doubts = Doubts(4)
    return Page(
        "study-4",
        "Study 4: from round-robin to a feedback queue",
        _lead(collection),
        (
            Section("What was measured", (Text(_introduction()),)),
            levels_seen.section(collection, doubts),
            mixed_benchmark.section(collection, doubts),
            sleeper.section(collection, doubts),
            _claims(collection, doubts),
        ),
    )


def _introduction() -> str:
    few, many = 2, 20
    ends = [published(size, "RR", "CPU-bound", "authors") for size in (few, many)]
    told = "The study's CPU-bound process counts to 200 million. "
    if ends[0] and ends[1]:
        told += (
            f"In its authors' output {few} of them take {ends[0].text} ticks under round-robin and "
            f"{many} take {ends[1].text}: ({ends[1].text} − {ends[0].text}) ÷ {many - few} = "
            f"{(ends[1].value - ends[0].value) / (many - few):.1f} for each. "
        )
    told += f"So ours compute {STUDY_4_WORK:.0f} ticks; for the trace, which shows two boosts, 350."
    return f"{_SETTING}- **Work.** {told}\n"


_SETTING = """
- **Schedulers.** Round-robin over the process table (`rr:table-scan`), and the study's feedback \
queue (`mlfq:allotment-boost`): four levels with slices of 2, 4, 8 and 32 ticks and allotments of \
8, 16 and 32; every 480 ticks all rise to the top. One CPU.
- **Experiments.** Three CPU-bound processes, traced tick by tick; two interactive processes beside \
2 to 40 CPU-bound ones; a process that sleeps 5 ticks beside 20 CPU-bound ones.
"""


def _lead(collection: Collection) -> str:
    found = Benchmark(collection)
    size = max(MIXED_SIZES)
    there = {name: published(size, name, "interactive", "authors") for name in SCHEDULERS}
    told = (
        "The study gave xv6 a feedback queue (MLFQ) with four levels and a boost, and asked how "
        "interactive processes fare beside many that compute. "
    )
    rr, mlfq = there["RR"], there["MLFQ"]
    if rr and mlfq:
        told += (
            f"There, beside {size} of them, they end after {rr.text} ticks under round-robin and "
            f"after {mlfq.text} under MLFQ. "
        )
    needed = {name: found.mean(size, policy, "interactive") for name, policy in SCHEDULERS.items()}
    return told + if_known(
        needed,
        lambda n: (
            f"Here they end after {n['RR']:,.0f} and {n['MLFQ']:,.0f} ticks, of which "
            f"{INTERACTIVE_TICKS:.0f} are their own sleeps: the feedback queue "
            "serves them first, but only once the others have sunk below them."
        ),
    )


def _claims(collection: Collection, doubts: Doubts) -> Section:
    found = Benchmark(collection)
    claims = mixed_benchmark.claims(found)
    for scheduler, policy in SCHEDULERS.items():
        figure = sleeper.published_sleep(scheduler, "study")
        claims.append(
            (
                "4.3",
                f"under {scheduler} a sleep of 5 ticks beside 20 others lasts so many",
                figure.text if figure else "–",
                sleeper.slept(collection, "s4-sleeper", policy),
            )
        )
    columns = ("section", "the study says", "its figures", "here")
    table = Table(
        "study-4-claims",
        "Statements of section 4",
        tuple(
            Column(name, align="right" if number > 1 else "left")
            for number, name in enumerate(columns)
        ),
        tuple(
            (Cell(place), Cell(says), Cell(there), cell(here, 2 if "ratio" in says else 1))
            for place, says, there, here in claims
        ),
        pl.DataFrame(
            [
                dict(zip(columns, (place, says, there, here.mean), strict=True))
                for place, says, there, here in claims
            ]
        ),
    )
    return Section("What the study claims", (table, *doubts.rest()))
