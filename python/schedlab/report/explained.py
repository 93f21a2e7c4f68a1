# SPDX-License-Identifier: MIT
"""Why the processes of a workload waited, under each policy (docs/explain.md)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import polars as pl

from schedlab.analysis.explanation import Asked, Blames, Explained, explain
from schedlab.analysis.explanation.explained import ExplainedWait
from schedlab.analysis.explanation.waits import Wait
from schedlab.analysis.explanation.words import Names, described
from schedlab.analysis.tables import TraceTables
from schedlab.base.display.markdown import code, literal
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.policies import known_policies
from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics import wakeup_latencies
from schedlab.report import charts
from schedlab.report.charts.processes import people_of
from schedlab.report.model import Block, Cell, Chart, Column, Row, Table, Text
from schedlab.report.wording import cpus
from schedlab.report.workload_tables import Links, ShownWait, Workload
from schedlab.runs.collection import Kept, Repeated

_SETUPS = 12
"""The most setups of a workload of which a run is explained."""
_TRACE_BYTES = 16 << 20
"""A longer trace is left to the command."""
_PICTURES = 4
"""The most setups of which a picture shows the longest wait."""
_ROWS = 6
"""Processes in it besides the one that waits."""
_P99, _MAXIMUM = "wakeup_latency_p99_ns", "wakeup_latency_max_ns"
WORDS = 3
"""Parts of a wait that are told."""


def explanations(workload: Workload) -> tuple[Sequence[Block], Links]:
    """What waiting went by with, and the longest wait of each setup, of its first seed's run; and pictures of single
    waits."""
    places = [
        place for place, each in enumerate(workload.setups[:_SETUPS]) if _can_be_explained(each)
    ]
    several = len({workload.setups[place].setup.cpus for place in places}) > 1
    waited: list[tuple[Repeated, Explained]] = []
    pictures: list[Chart] = []
    links: dict[tuple[int, str], ShownWait] = {}
    for place in places:
        each = workload.setups[place]
        trace = each.runs[0].trace()
        tables = TraceTables(trace)
        told = explain(trace, Asked(worst=1), known_policies(), tables)
        if not told.waits:
            continue
        waited.append((each, told))
        if len(waited) > _PICTURES:
            continue
        for columns, what, wait in _those_shown(tables, told.longest[0].wait):
            found = list(charts.drawn(_picture, workload, each, tables, several, what, wait))
            pictures += found
            links |= {
                (place, column): ShownWait(chart.name, wait.duration_ns)
                for chart in found
                for column in columns
            }
    return list(_blocks(workload, waited, several, pictures)), links


def _blocks(
    workload: Workload,
    waited: Sequence[tuple[Repeated, Explained]],
    several: bool,
    pictures: Sequence[Chart],
) -> Iterator[Block]:
    if not waited:
        return
    seeds = sorted({each.runs[0].seed for each, _ in waited})
    caption = (
        f"All waits in what is measured, of one run of each: seed {', '.join(map(str, seeds))}."
    )
    data = pl.concat(
        told.delays.select(pl.lit(_name(each, several)).alias("setup"), pl.all())
        for each, told in waited
    )
    yield from charts.drawn(
        charts.causes,
        f"causes-{workload.stem}",
        data,
        title=f"{workload.title}: what waiting went by with",
        caption=caption,
    )
    yield waits_table(
        f"longest-waits-{workload.stem}",
        "The longest wait under each policy",
        [(_setup(each), told.longest[0]) for each, told in waited],
    )
    yield from pictures
    yield Text(f"More of any run: {code(_command(waited[0][0].runs[0]))}.")


def _those_shown(tables: TraceTables, longest: Wait) -> Iterator[tuple[Sequence[str], str, Wait]]:
    """The waits of a run that have pictures: columns of the summary that tell of each, what it is, and the wait."""
    told = dict(_wakeups_told(tables))
    same = [column for column, wait in told.items() if _is_one(wait, longest)]
    yield same, "longest", longest
    typical = told.get(_P99)
    if typical and not _is_one(typical, longest):
        yield [_P99], "p99", typical


def _wakeups_told(tables: TraceTables) -> Iterator[tuple[str, Wait]]:
    """The wake-ups of which columns of the summary tell. Between two that a percentile lies between: the longer."""
    people = people_of(tables.trace)
    workload = people.names.filter(pl.col("role") == "workload")["life"]
    woken = wakeup_latencies(tables.states, people.window)
    woken = woken.filter(pl.col("life").is_in(workload.implode())).sort("latency_ns", "begin_ns")
    for column, part in ((_P99, 0.99), (_MAXIMUM, 1.0)):
        if len(woken):
            row = woken.row(ceil(part * (len(woken) - 1)), named=True)
            yield column, Wait(row["life"], None, "wake-up", row["begin_ns"], row["end_ns"])


def _is_one(wait: Wait, other: Wait) -> bool:
    return (wait.life, wait.begin_ns) == (other.life, other.begin_ns)


def _picture(
    workload: Workload,
    each: Repeated,
    tables: TraceTables,
    several: bool,
    what: str,
    wait: Wait,
) -> Chart:
    """A wait, and what those did that it was for."""
    names = Names(tables)
    shares = described(Blames(tables).of(wait.life, wait.begin_ns, wait.end_ns), names)
    # Those that ran longest, or were waited for, first.
    others = dict.fromkeys(
        life
        for share in shares
        for life in (*share.chain, share.life)
        if life is not None and life != wait.life
    )
    called = "The longest wait" if what == "longest" else "The 99th percentile of wake-up latency"
    return charts.one_wait(
        f"{what}-wait-{workload.stem}-{slug(_name(each, several))}",
        tables.trace,
        title=f"{called} under {_name(each, several)}: {names[wait.life]}, after {AFTER[wait.kind]}",
        caption=f"Between the dashed lines: {duration(wait.duration_ns)}. Machine {literal(each.setup.machine)},"
        f" seed {each.runs[0].seed}.",
        lives=[wait.life, *list(others)[:_ROWS]],
        begin_ns=wait.begin_ns,
        end_ns=wait.end_ns,
    )


def _can_be_explained(each: Repeated) -> bool:
    first = each.runs[0]
    file = first.folder / TRACE_FILE
    return first.succeeded and file.is_file() and file.stat().st_size <= _TRACE_BYTES


def _name(each: Repeated, several: bool) -> str:
    policy = each.setup.policy_title
    return f"{policy}, {cpus([each.setup.cpus])}" if several else policy


def _setup(each: Repeated) -> Mapping[str, object]:
    """What a row begins with."""
    return {"policy": each.setup.policy_title, "CPUs": each.setup.cpus}


def _command(run: Kept) -> str:
    return shlex.join(("./schedlab", "explain", str(run.folder)))


def waits_table(
    name: str, title: str, waits: Sequence[tuple[Mapping[str, object], ExplainedWait]]
) -> Table:
    """A row for each wait, and what the row begins with, by headings: the same of all of them."""
    lead = waits[0][0]
    return Table(
        name=name,
        title=title,
        columns=(
            *(
                Column(key, align="left" if isinstance(value, str) else "right")
                for key, value in lead.items()
            ),
            Column("process", align="left"),
            Column("after", align="left"),
            Column("at, ms"),
            Column("waited"),
            Column("went by with", align="left"),
        ),
        rows=tuple(_row(begin, told) for begin, told in waits),
        data=pl.DataFrame([part for begin, told in waits for part in _parts(begin, told)]),
        caption="The parts of a wait add up to it exactly; the largest are told here, all in the data.",
        keys=len(lead),
    )


AFTER = {
    "response": "its fork",
    "wake-up": "a wake-up",
    "turn": "a turn",
    "found": "the beginning",
}


def _row(lead: Mapping[str, object], told: ExplainedWait) -> Row:
    wait, shares = told.wait, told.shares
    words = "; ".join(f"{share.words} ({duration(share.duration_ns)})" for share in shares[:WORDS])
    hidden = f"; {len(shares) - WORDS} more" if len(shares) > WORDS else ""
    return (
        *(Cell(str(value)) for value in lead.values()),
        Cell(told.name),
        Cell(AFTER[wait.kind]),
        Cell(f"{wait.begin_ns / 1e6:,.3f}"),
        Cell(duration(wait.duration_ns)),
        Cell(words + hidden),
    )


def _parts(lead: Mapping[str, object], told: ExplainedWait) -> Iterator[dict[str, object]]:
    for share in told.shares:
        yield {
            **{key.lower(): value for key, value in lead.items()},
            "process": told.name,
            "kind": told.wait.kind,
            "begin_ns": told.wait.begin_ns,
            "wait_ns": told.wait.duration_ns,
            "part": share.words,
            "part_ns": share.duration_ns,
        }
