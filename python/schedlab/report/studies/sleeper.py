# SPDX-License-Identifier: MIT
"""Study 4's sleeper: how long a sleep of 5 ticks lasts beside 20 that compute."""

from __future__ import annotations

import polars as pl

from schedlab.report.model import Block, Column, Section, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.mixed_runs import CPUS, SCHEDULERS
from schedlab.report.studies.texts import how_measured, if_known, measured_table, of_rows
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table, measure
from schedlab.report.wording import listed
from schedlab.runs.collection import Collection
from schedlab.studies import select
from schedlab.studies.experiments import OTHERS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import SLEEPER_TICKS

SLEEPERS = {
    "s4-sleeper": "right after the others",
    "s4-sleeper-late": "200 ticks after the others",
}
"""When the sleeper starts."""


def section(collection: Collection, doubts: Doubts) -> Section:
    """Its table, why it is so, and the policies as shipped."""
    lines = []
    for name, when in SLEEPERS.items():
        for scheduler, policy in SCHEDULERS.items():
            first = name == "s4-sleeper"
            lines.append(
                Line(
                    (when, scheduler),
                    {
                        "slept, ticks": Comparison(
                            published_sleep(scheduler, "study") if first else None,
                            slept(collection, name, policy),
                            SLEEPER_TICKS,
                            decimals=0,
                        ),
                        "fork to end, ticks": Comparison(
                            rerun=published_sleep(scheduler, "rerun") if first else None,
                            here=_turnaround(collection, name, policy),
                        ),
                    },
                )
            )
    table = compared_table(
        "study-4-sleeper",
        "A process that sleeps 5 ticks beside 20 that compute",
        ("the sleeper starts", "scheduler"),
        lines,
        how_measured(collection, SLEEPERS),
    )
    return Section(
        "The sleeper: section 4.3",
        (
            table,
            Text(_about_sleeper(collection)),
            *doubts.at("section 4.3"),
            *_own_sleepers(collection),
        ),
    )


def published_sleep(scheduler: str, source: str) -> Figure | None:
    quantity = "sleep" if source == "study" else "turnaround"
    found = [
        each
        for each in select(study=4, place="section 4.3", kind="measurement", quantity=quantity)
        if each.column == scheduler and each.source == source
    ]
    return found[0] if found else None


def _of_sleeper(collection: Collection, name: str, policy: str, value: pl.Expr) -> Measured:
    rows = collection.processes
    if len(rows):
        rows = rows.filter(pl.col("group") == "sleeper")
    ticks = (value / pl.col("tick_ns")).first()
    return measure(collection.one(name, policy, CPUS), of_rows(collection, rows, ticks))


def slept(collection: Collection, name: str, policy: str) -> Measured:
    """From the call of sleep() until it runs again: all that it does after it first ran."""
    return _of_sleeper(collection, name, policy, pl.col("turnaround_ns") - pl.col("response_ns"))


def _turnaround(collection: Collection, name: str, policy: str) -> Measured:
    return _of_sleeper(collection, name, policy, pl.col("turnaround_ns"))


def _about_sleeper(collection: Collection) -> str:
    waited = pl.col("wakeup_latency_max_ns")
    told = []
    for name, when in SLEEPERS.items():
        needed = {
            f"{when}, {scheduler}": _of_sleeper(collection, name, policy, waited)
            for scheduler, policy in SCHEDULERS.items()
        }
        told.append(
            if_known(
                needed,
                lambda n, when=when: (  # type: ignore[misc]
                    f"Started {when}, it waits after its wake-up for "
                    f"{n[f'{when}, RR']:.1f} ticks under round-robin and "
                    f"{n[f'{when}, MLFQ']:.1f} under MLFQ."
                ),
            )
        )
    return (
        " ".join(told)
        + " What it waits for is a turn of everybody who goes before it. Round-robin lets all go "
        "before it, whenever it comes. Under MLFQ it is those on the highest level, with turns of "
        "2 ticks; each CPU-bound process is there for its first 8 ticks, 160 ticks for all 20. "
        + _about_five(collection)
    )


def _about_five(collection: Collection) -> str:
    """Do the study's 5 ticks come out, and when?"""
    policy = SCHEDULERS["MLFQ"]
    needed = {when: slept(collection, name, policy) for name, when in SLEEPERS.items()}
    figure = published_sleep("MLFQ", "study")
    asked = figure.text if figure else ""

    def sentence(n: dict[str, float]) -> str:
        met = [when for when in n if f"{n[when]:.0f}" == asked]
        told = listed([f"{n[when]:.0f} if it starts {when}" for when in n])
        if not met:
            return f"The study's {asked} ticks do not come out: it sleeps {told}."
        return (
            f"So the study's {asked} ticks come out if it starts {listed(met)}: it sleeps {told}."
        )

    return if_known(needed, sentence) + _about_rerun(collection)


def _about_rerun(collection: Collection) -> str:
    there = {name: published_sleep(name, "rerun") for name in SCHEDULERS}
    needed = {
        name: _turnaround(collection, "s4-sleeper", policy) for name, policy in SCHEDULERS.items()
    }
    return "\n\n" + if_known(
        needed,
        lambda n: (
            "The rerun's times from fork to end are "
            + listed(
                [
                    f"{figure.value / n[name]:.1f} times ours ({name})"
                    for name, figure in there.items()
                    if figure
                ]
            )
            + ": another machine's ticks; why so many more is not known."
        ),
    )


def _own_sleepers(collection: Collection) -> list[Block]:
    policies = [
        policy for policy in OTHERS if any(collection.one(name, policy, CPUS) for name in SLEEPERS)
    ]
    if not policies:
        return []
    return [
        measured_table(
            "study-4-sleeper-policies",
            "How long the sleeper sleeps under the policies as shipped, ticks",
            "policy",
            [(Column(when, "started"), 0) for when in SLEEPERS.values()],
            {policy: [slept(collection, name, policy) for name in SLEEPERS] for policy in policies},
        )
    ]
