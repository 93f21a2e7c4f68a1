# SPDX-License-Identifier: MIT
"""Why the processes of a workload waited, under each policy (docs/explain.md)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import polars as pl

from schedlab.display.names import slug
from schedlab.explanation import Asked, Explained, explain
from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics.tables import duration
from schedlab.report import charts
from schedlab.report.markup import code, literal
from schedlab.report.model import Block, Cell, Chart, Column, Row, Table, Text
from schedlab.report.wording import cpus
from schedlab.report.workload_tables import Workload
from schedlab.runs.collection import Kept, Repeated
from schedlab.toolchain.policies import known_policies

_SETUPS = 12
"""The most setups of a workload of which a run is explained."""
_TRACE_BYTES = 16 << 20
"""A longer trace is left to the command."""
_PICTURES = 4
"""The most setups of which a picture shows the longest wait."""
_ROWS = 6
"""Processes in it besides the one that waits."""
WORDS = 3
"""Parts of a wait that are told."""


def explanations(workload: Workload) -> Iterator[Block]:
    """Gives what waiting went by with, and the longest wait of each setup, of its first seed's run."""
    found = [
        (each, explain(each.runs[0].trace(), Asked(worst=1), known_policies()))
        for each in _those(workload)
    ]
    waited = [(each, told) for each, told in found if told.waits]
    if not waited:
        return
    several = len({each.setup.cpus for each, _ in waited}) > 1
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
    yield _longest(workload, waited)
    for each, told in waited[:_PICTURES]:
        yield from charts.drawn(_picture, workload, each, told, several)
    yield Text(f"More of any run: {code(_command(waited[0][0].runs[0]))}.")


def _picture(workload: Workload, each: Repeated, told: Explained, several: bool) -> Chart:
    """The longest wait of a setup."""
    longest = told.longest[0]
    wait = longest.wait
    # Those that ran longest, or were waited for, first.
    others = dict.fromkeys(
        life
        for share in longest.shares
        for life in (*share.chain, share.life)
        if life is not None and life != wait.life
    )
    setup = each.setup
    return charts.one_wait(
        f"longest-wait-{workload.stem}-{slug(_name(each, several))}",
        each.runs[0].trace(),
        title=f"The longest wait under {_name(each, several)}: {longest.name}, after {AFTER[wait.kind]}",
        caption=f"Between the dashed lines: {duration(wait.duration_ns)}. Machine {literal(setup.machine)},"
        f" seed {each.runs[0].seed}.",
        lives=[wait.life, *list(others)[:_ROWS]],
        begin_ns=wait.begin_ns,
        end_ns=wait.end_ns,
    )


def _those(workload: Workload) -> list[Repeated]:
    """Setups whose first run can be explained."""
    return [
        each
        for each in workload.setups[:_SETUPS]
        if each.runs[0].succeeded
        and (each.runs[0].folder / TRACE_FILE).is_file()
        and (each.runs[0].folder / TRACE_FILE).stat().st_size <= _TRACE_BYTES
    ]


def _name(each: Repeated, several: bool) -> str:
    policy = each.setup.policy_title
    return f"{policy}, {cpus([each.setup.cpus])}" if several else policy


def _command(run: Kept) -> str:
    return shlex.join(("./schedlab", "explain", str(run.folder)))


def _longest(workload: Workload, found: list[tuple[Repeated, Explained]]) -> Table:
    rows, data = [], []
    for each, told in found:
        row, numbers = _row(each, told)
        rows.append(row)
        data += numbers
    return Table(
        name=f"longest-waits-{workload.stem}",
        title="The longest wait under each policy",
        columns=(
            Column("policy", align="left"),
            Column("CPUs"),
            Column("process", align="left"),
            Column("after", align="left"),
            Column("waited"),
            Column("went by with", align="left"),
        ),
        rows=tuple(rows),
        data=pl.DataFrame(data),
        caption="Its parts add up to it exactly; the largest are told here, all in the data.",
        keys=2,
    )


AFTER = {
    "response": "its fork",
    "wake-up": "a wake-up",
    "turn": "a turn",
    "found": "the beginning",
}


def _row(each: Repeated, told: Explained) -> tuple[Row, list[dict[str, object]]]:
    setup, (longest,) = each.setup, told.longest
    shares = longest.shares
    words = "; ".join(f"{share.words} ({duration(share.duration_ns)})" for share in shares[:WORDS])
    hidden = f"; {len(shares) - WORDS} more" if len(shares) > WORDS else ""
    cells = (
        Cell(setup.policy_title),
        Cell(str(setup.cpus)),
        Cell(longest.name),
        Cell(AFTER[longest.wait.kind]),
        Cell(duration(longest.wait.duration_ns)),
        Cell(words + hidden),
    )
    numbers = [
        {
            "policy": setup.policy_title,
            "cpus": setup.cpus,
            "process": longest.name,
            "kind": longest.wait.kind,
            "begin_ns": longest.wait.begin_ns,
            "wait_ns": longest.wait.duration_ns,
            "part": share.words,
            "part_ns": share.duration_ns,
        }
        for share in shares
    ]
    return cells, numbers
