# SPDX-License-Identifier: MIT
"""Study 4's figures 7 and 8: who runs at each tick, and on what level."""

from __future__ import annotations

import polars as pl

from schedlab.report.charts import drawn, levels
from schedlab.report.model import Block, Cell, Column, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.mixed_runs import CPUS, SCHEDULERS
from schedlab.report.studies.texts import traces
from schedlab.report.studies.ticks import at_ticks, begin_tick, boosts, turns, usual
from schedlab.report.study_tables import measure
from schedlab.report.wording import listed
from schedlab.runs.collection import Collection
from schedlab.studies import select
from schedlab.trace import Trace

TRACE = "s4-trace"


def section(collection: Collection, doubts: Doubts) -> Section:
    """Both figures, and what the traces say of turns, levels and boosts."""
    blocks: list[Block] = [Text(_TRACED)]
    for number, scheduler in ((8, "RR"), (7, "MLFQ")):
        kept = traces(collection.one(TRACE, SCHEDULERS[scheduler], CPUS), most=1)
        if not kept:
            blocks.append(Text(f"Figure {number}: {_why_not(collection, scheduler)}.", "note"))
            continue
        run, trace = kept[0]
        pids = [int(p) for p in run.metrics().processes.filter(pl.col("group") == "cpu")["pid"]]
        ticks = at_ticks(trace, pids)
        blocks.extend(
            drawn(
                levels,
                f"study-4-figure-{number}",
                trace,
                title=f"Three CPU-bound processes under {scheduler}: the study's figure {number}",
                caption=f"Seed {run.seed}, tick {trace.header.tick_ns / 1e6:g} ms.",
                end_ns=_first_ticks(trace) if scheduler == "RR" else None,
            )
        )
        if scheduler == "RR":
            blocks.append(Text(_about_turns(ticks)))
        else:
            blocks += [_rules(ticks), Text(_about_boosts(ticks, begin_tick(trace)))]
    return Section(
        "Correctness: figures 7 and 8",
        (*blocks, *doubts.named("rising-by-waking", "slice-is-allotment")),
    )


_SHOWN_TICKS = 60
"""Under round-robin all is said in these."""


def _first_ticks(trace: Trace) -> int:
    return (begin_tick(trace) + _SHOWN_TICKS) * trace.header.tick_ns


_TRACED = """
The study's kernel printed at each tick which process ran and on what level. Here that is read from \
the trace: who has the CPU in the middle of each tick, and what the policy remarked when it picked \
it.
"""


def _why_not(collection: Collection, scheduler: str) -> str:
    setup = collection.one(TRACE, SCHEDULERS[scheduler], CPUS)
    measured = measure(setup, {})
    if measured.failed:
        return f"{measured.missing}: {measured.why}"
    return "the trace is not there" if setup else "not run"


def _about_turns(ticks: pl.DataFrame) -> str:
    (figure,) = select(study=4, place="section 4.1", quantity="turn")
    length, part = usual(turns(ticks)["length"])
    return (
        f"In the study each of the three runs for {figure.text} tick at a time. Here "
        f"{100 * part:.0f} % of the turns last {length}."
    )


def _rules(ticks: pl.DataFrame) -> Table:
    """What the study set for each level, and what the trace shows."""
    raised = boosts(ticks)
    first = ticks.filter(pl.col("machine_tick") < raised[0]) if raised else ticks
    all_turns = turns(ticks)
    rows, behind = [], []
    for level in range(3, -1, -1):
        length, part = usual(all_turns.filter(pl.col("level") == level)["length"])
        stay, of_all = usual(first.filter(pl.col("level") == level).group_by("pid").len()["len"])
        slice_set, allotment_set = (_setting(level, name) for name in ("slice", "allotment"))
        rows.append(
            (
                Cell(str(level)),
                Cell(slice_set),
                Cell(f"{length} ({100 * part:.0f} %)"),
                Cell(allotment_set),
                Cell(f"{stay} ({100 * of_all:.0f} %)" if level else "–", "plain"),
            )
        )
        behind.append(
            {
                "level": level,
                "slice": slice_set,
                "usual turn": length,
                "part of turns": part,
                "allotment": allotment_set,
                "stay": stay if level else None,
            }
        )
    return Table(
        "study-4-levels",
        "The levels, as set and as seen",
        (
            Column("level", align="left"),
            Column("set", "turn, ticks"),
            Column("commonest in the trace", "turn, ticks"),
            Column("set", "allotment, ticks"),
            Column("used before the first boost", "allotment, ticks"),
        ),
        tuple(rows),
        pl.DataFrame(behind),
        "In brackets: the part of all turns on the level that last so long, and of the processes "
        "that stay so long. Two turns of one process on end count as one; a boost and the end of the "
        "others cut some.",
    )


def _setting(level: int, column: str) -> str:
    found = [
        each.text
        for each in select(study=4, place="section 3.2.1", kind="setting")
        if each.row == f"priority {level}" and each.column == column
    ]
    return found[0] if found else "none"


def _about_boosts(ticks: pl.DataFrame, begin: int) -> str:
    bounds = {
        each.column.split(",")[0]: each.text
        for each in select(study=4, place="section 4.1", quantity="time of a boost, bound")
    }
    (period,) = select(study=4, place="section 3.2.1", quantity="boost period")
    raised = boosts(ticks)
    told = (
        f"In the study all rise before tick {bounds['first']} and again after tick "
        f"{bounds['second']}. "
    )
    if not raised:
        return told + "In this trace nobody rises."
    seen = listed([str(tick) for tick in raised])
    return (
        f"{told}Here they rise at the machine's ticks {seen}, multiples of {period.text}; the run "
        f"begins at tick {begin}, so these are its ticks "
        f"{listed([str(tick - begin) for tick in raised])}. A boost counts from the start of the "
        "machine. If the figure counts from the start of the run, the study's was started at least "
        f"{int(period.text) - int(bounds['first'])} ticks after its machine, as when a "
        "command is typed at a shell."
    )
