# SPDX-License-Identifier: MIT
"""Explains why the tasks of a workload waited, under each policy (docs/explain.md)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import polars as pl

from schedlab.analysis.explanation import Blames, Explained, WaitQuery, explain
from schedlab.analysis.explanation.explained_waits import ExplainedWait
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
from schedlab.report.charts.processes import processes_of
from schedlab.report.model import Block, Cell, Chart, Column, Row, Table, Text
from schedlab.report.wording import cpus
from schedlab.report.workload_tables import Links, ShownWait, Workload
from schedlab.runs.collection import Repeated, StoredRun

_SETUPS = 12
"""Maximum number of a workload's configurations that are explained."""
_TRACE_BYTES = 16 << 20
"""Maximum size in bytes of an explained trace. For larger traces, the page names the command instead."""
_PICTURES = 4
"""Maximum number of configurations whose longest wait is drawn."""
_ROWS = 6
"""Maximum number of tasks in a picture, in addition to the waiting task."""
_P99, _MAXIMUM = "wakeup_latency_p99_ns", "wakeup_latency_max_ns"
WORDS = 3
"""Maximum number of a wait's parts that the text names."""


def explanations(workload: Workload) -> tuple[Sequence[Block], Links]:
    """Returns tables and charts of the first seed's waits, and links
    to the pictures of single waits.

    They show what ran during the waits, and each configuration's longest wait.
    """
    places = [
        place for place, setup in enumerate(workload.setups[:_SETUPS]) if _can_be_explained(setup)
    ]
    several = len({workload.setups[place].setup.cpus for place in places}) > 1
    waited: list[tuple[Repeated, Explained]] = []
    pictures: list[Chart] = []
    links: dict[tuple[int, str], ShownWait] = {}
    for place in places:
        setup = workload.setups[place]
        trace = setup.runs[0].trace()
        tables = TraceTables(trace)
        explained = explain(trace, WaitQuery(worst=1), known_policies(), tables)
        if not explained.waits:
            continue
        waited.append((setup, explained))
        if len(waited) > _PICTURES:
            continue
        for columns, what, wait in _those_shown(tables, explained.longest[0].wait):
            drawn = list(charts.drawn(_picture, workload, setup, tables, several, what, wait))
            pictures += drawn
            links |= {
                (place, column): ShownWait(chart.name, wait.duration_ns)
                for chart in drawn
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
    seeds = sorted({setup.runs[0].seed for setup, _ in waited})
    caption = f"All waits in the measured window, from one run of each policy: seed {', '.join(map(str, seeds))}."
    data = pl.concat(
        explained.delays.select(pl.lit(_name(setup, several)).alias("setup"), pl.all())
        for setup, explained in waited
    )
    yield from charts.drawn(
        charts.causes,
        f"causes-{workload.stem}",
        data,
        title=f"{workload.title}: causes of waiting",
        caption=caption,
    )
    yield waits_table(
        f"longest-waits-{workload.stem}",
        "The longest wait under each policy",
        [(_setup(setup), explained.longest[0]) for setup, explained in waited],
    )
    yield from pictures
    yield Text(f"For more, explain a run: {code(_command(waited[0][0].runs[0]))}.")


def _those_shown(tables: TraceTables, longest: Wait) -> Iterator[tuple[Sequence[str], str, Wait]]:
    """Yields the drawn waits of a run: the summary's columns that show the wait, its kind, and the wait."""
    groups = dict(_wakeup_waits(tables))
    same = [column for column, wait in groups.items() if _is_one(wait, longest)]
    yield same, "longest", longest
    typical = groups.get(_P99)
    if typical and not _is_one(typical, longest):
        yield [_P99], "p99", typical


def _wakeup_waits(tables: TraceTables) -> Iterator[tuple[str, Wait]]:
    """Yields the wake-up latencies behind columns of the summary.

    Percentiles are rounded up to a wait.
    """
    processes = processes_of(tables.trace)
    workload = processes.names.filter(pl.col("role") == "workload")["life"]
    woken = wakeup_latencies(tables.states, processes.window)
    woken = woken.filter(pl.col("life").is_in(workload.implode())).sort("latency_ns", "begin_ns")
    for column, part in ((_P99, 0.99), (_MAXIMUM, 1.0)):
        if len(woken):
            row = woken.row(ceil(part * (len(woken) - 1)), named=True)
            yield column, Wait(row["life"], None, "wake-up", row["begin_ns"], row["end_ns"])


def _is_one(wait: Wait, other: Wait) -> bool:
    return (wait.life, wait.begin_ns) == (other.life, other.begin_ns)


def _picture(
    workload: Workload,
    setup: Repeated,
    tables: TraceTables,
    several: bool,
    what: str,
    wait: Wait,
) -> Chart:
    """Draws a wait, and what the tasks did that caused it."""
    names = Names(tables)
    shares = described(Blames(tables).of(wait.life, wait.begin_ns, wait.end_ns), names)
    # The tasks that ran longest, or that were waited for, come first.
    others = dict.fromkeys(
        life
        for share in shares
        for life in (*share.chain, share.life)
        if life is not None and life != wait.life
    )
    called = "The longest wait" if what == "longest" else "The 99th percentile of wake-up latency"
    return charts.one_wait(
        f"{what}-wait-{workload.stem}-{slug(_name(setup, several))}",
        tables.trace,
        title=f"{called} under {_name(setup, several)}: {names[wait.life]}, after {AFTER[wait.kind]}",
        caption=f"Between the dashed lines: {duration(wait.duration_ns)}. Machine {literal(setup.setup.machine)},"
        f" seed {setup.runs[0].seed}.",
        lives=[wait.life, *list(others)[:_ROWS]],
        begin_ns=wait.begin_ns,
        end_ns=wait.end_ns,
    )


def _can_be_explained(setup: Repeated) -> bool:
    first = setup.runs[0]
    file = first.folder / TRACE_FILE
    return first.succeeded and file.is_file() and file.stat().st_size <= _TRACE_BYTES


def _name(setup: Repeated, several: bool) -> str:
    policy = setup.setup.policy_title
    return f"{policy}, {cpus([setup.setup.cpus])}" if several else policy


def _setup(setup: Repeated) -> Mapping[str, object]:
    """Returns the first cells of a row."""
    return {"policy": setup.setup.policy_title, "CPUs": setup.setup.cpus}


def _command(run: StoredRun) -> str:
    return shlex.join(("./schedlab", "explain", str(run.folder)))


def waits_table(
    name: str, title: str, waits: Sequence[tuple[Mapping[str, object], ExplainedWait]]
) -> Table:
    """Returns a table with a row per wait.

    `waits`: the first cells of each row by heading, and the wait.
    """
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
            Column("caused by", align="left"),
        ),
        rows=tuple(_row(begin, wait) for begin, wait in waits),
        data=pl.DataFrame([part for begin, wait in waits for part in _parts(begin, wait)]),
        caption="The causes of a wait sum to it exactly. The table shows the largest; its files have all.",
        keys=len(lead),
    )


AFTER = {
    "response": "its fork",
    "wake-up": "a wake-up",
    "turn": "a time slice",
    "found": "the trace's beginning",
}


def _row(lead: Mapping[str, object], explained: ExplainedWait) -> Row:
    wait, shares = explained.wait, explained.shares
    words = "; ".join(f"{share.words} ({duration(share.duration_ns)})" for share in shares[:WORDS])
    hidden = f"; {len(shares) - WORDS} more" if len(shares) > WORDS else ""
    return (
        *(Cell(str(value)) for value in lead.values()),
        Cell(explained.name),
        Cell(AFTER[wait.kind]),
        Cell(f"{wait.begin_ns / 1e6:,.3f}"),
        Cell(duration(wait.duration_ns)),
        Cell(words + hidden),
    )


def _parts(lead: Mapping[str, object], wait: ExplainedWait) -> Iterator[dict[str, object]]:
    for share in wait.shares:
        yield {
            **{key.lower(): value for key, value in lead.items()},
            "process": wait.name,
            "kind": wait.wait.kind,
            "begin_ns": wait.wait.begin_ns,
            "wait_ns": wait.wait.duration_ns,
            "part": share.words,
            "part_ns": share.duration_ns,
        }
