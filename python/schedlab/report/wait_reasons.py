# SPDX-License-Identifier: MIT
"""Explains why the tasks of a workload waited, under each policy (docs/explain.md)."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import polars as pl

from schedlab.analysis.explanation import Blames, Explained, WaitQuery, explain
from schedlab.analysis.explanation.explained_waits import ExplainedWait
from schedlab.analysis.explanation.waits import Wait
from schedlab.analysis.explanation.words import ProcessNames, sum_equal_parts
from schedlab.analysis.tables import TraceTables
from schedlab.base.display.markdown import code, literal
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.policies import known_policies
from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics import wakeup_latencies
from schedlab.report import charts
from schedlab.report.charts.processes import chart_processes
from schedlab.report.model import Block, Cell, Chart, Column, Row, Table, Text
from schedlab.report.wording import cpus_text
from schedlab.report.workload_tables import ShownWait, WaitLinks, Workload
from schedlab.runs.collection import ConfigurationRuns, StoredRun

_SETUPS_MAX = 12
"""Maximum number of a workload's configurations that are explained."""
_TRACE_BYTES_MAX = 16 << 20
"""Maximum size in bytes of an explained trace. For larger traces, the page names the command instead."""
_PICTURES_MAX = 4
"""Maximum number of configurations whose longest wait is drawn."""
_ROWS_MAX = 6
"""Maximum number of tasks in a picture, in addition to the waiting task."""
_P99, _MAXIMUM = "wakeup_latency_p99_ns", "wakeup_latency_max_ns"
SHARES_NAMED_MAX = 3
"""Maximum number of a wait's parts that the text names."""


def explain_waits(workload: Workload) -> tuple[Sequence[Block], WaitLinks]:
    """Returns tables and charts of the first seed's waits, and links
    to the pictures of single waits.

    They show what ran during the waits, and each configuration's longest wait.
    """
    places = [
        index
        for index, setup in enumerate(workload.setups[:_SETUPS_MAX])
        if _can_be_explained(setup)
    ]
    has_several_counts = len({workload.setups[place].setup.cpus for place in places}) > 1
    explained_setups: list[tuple[ConfigurationRuns, Explained]] = []
    pictures: list[Chart] = []
    links: dict[tuple[int, str], ShownWait] = {}
    for place in places:
        setup = workload.setups[place]
        trace = setup.runs[0].trace()
        tables = TraceTables(trace)
        explained = explain(trace, WaitQuery(worst=1), known_policies(), tables)
        if not explained.waits:
            continue
        explained_setups.append((setup, explained))
        if len(explained_setups) > _PICTURES_MAX:
            continue
        for columns, what, wait in _waits_to_draw(tables, explained.longest[0].wait):
            wait_charts = list(
                charts.draw_if_possible(
                    _draw_wait, workload, setup, tables, has_several_counts, what, wait
                )
            )
            pictures += wait_charts
            links |= {
                (place, column): ShownWait(chart.name, wait.duration_ns)
                for chart in wait_charts
                for column in columns
            }
    return list(_wait_blocks(workload, explained_setups, has_several_counts, pictures)), links


def _wait_blocks(
    workload: Workload,
    explained_setups: Sequence[tuple[ConfigurationRuns, Explained]],
    has_several_counts: bool,
    pictures: Sequence[Chart],
) -> Iterator[Block]:
    """Yields the tables and charts on the waits of a workload.

    `has_several_counts`: the runs have different numbers of CPUs.
    """
    if not explained_setups:
        return
    seeds = sorted({setup.runs[0].seed for setup, _ in explained_setups})
    caption = f"All waits in the measured window, from one run of each policy: seed {', '.join(map(str, seeds))}."
    delay_data = pl.concat(
        explained.delays.select(
            pl.lit(_setup_name(setup, has_several_counts)).alias("setup"), pl.all()
        )
        for setup, explained in explained_setups
    )
    yield from charts.draw_if_possible(
        charts.causes,
        f"causes-{workload.stem}",
        delay_data,
        title=f"{workload.title}: causes of waiting",
        caption=caption,
    )
    yield waits_table(
        f"longest-waits-{workload.stem}",
        "The longest wait under each policy",
        [(_setup_cells(setup), explained.longest[0]) for setup, explained in explained_setups],
    )
    yield from pictures
    yield Text(
        f"For more, explain a run: {code(_explain_command(explained_setups[0][0].runs[0]))}."
    )


def _waits_to_draw(tables: TraceTables, longest: Wait) -> Iterator[tuple[Sequence[str], str, Wait]]:
    """Yields the drawn waits of a run: the summary's columns that show the wait, its kind, and the wait."""
    groups = dict(_wakeup_waits(tables))
    same_columns = [column for column, wait in groups.items() if _is_same_wait(wait, longest)]
    yield same_columns, "longest", longest
    percentile_wait = groups.get(_P99)
    if percentile_wait and not _is_same_wait(percentile_wait, longest):
        yield [_P99], "p99", percentile_wait


def _wakeup_waits(tables: TraceTables) -> Iterator[tuple[str, Wait]]:
    """Yields the wake-up latencies behind columns of the summary.

    Percentiles are rounded up to a wait.
    """
    processes = chart_processes(tables.trace)
    workload = processes.names.filter(pl.col("role") == "workload")["life"]
    latencies = wakeup_latencies(tables.states, processes.window)
    latencies = latencies.filter(pl.col("life").is_in(workload.implode())).sort(
        "latency_ns", "begin_ns"
    )
    for column, fraction in ((_P99, 0.99), (_MAXIMUM, 1.0)):
        if len(latencies):
            row = latencies.row(ceil(fraction * (len(latencies) - 1)), named=True)
            yield column, Wait(row["life"], None, "wake-up", row["begin_ns"], row["end_ns"])


def _is_same_wait(wait: Wait, other: Wait) -> bool:
    """Returns whether both are the same wait of a task."""
    return (wait.life, wait.begin_ns) == (other.life, other.begin_ns)


def _draw_wait(
    workload: Workload,
    setup: ConfigurationRuns,
    tables: TraceTables,
    has_several_counts: bool,
    wait_kind: str,
    wait: Wait,
) -> Chart:
    """Draws a wait, and what the tasks did that caused it."""
    names = ProcessNames(tables)
    shares = sum_equal_parts(Blames(tables).of(wait.life, wait.begin_ns, wait.end_ns), names)
    # The tasks that ran longest, or that were waited for, come first.
    other_lives = dict.fromkeys(
        life
        for share in shares
        for life in (*share.chain, share.life)
        if life is not None and life != wait.life
    )
    wait_title = (
        "The longest wait" if wait_kind == "longest" else "The 99th percentile of wake-up latency"
    )
    return charts.one_wait(
        f"{wait_kind}-wait-{workload.stem}-{slug(_setup_name(setup, has_several_counts))}",
        tables.trace,
        title=f"{wait_title} under {_setup_name(setup, has_several_counts)}: {names[wait.life]},"
        f" after {WAIT_BEGINNING_TEXTS[wait.kind]}",
        caption=f"Between the dashed lines: {duration(wait.duration_ns)}. Machine {literal(setup.setup.machine)},"
        f" seed {setup.runs[0].seed}.",
        lives=[wait.life, *list(other_lives)[:_ROWS_MAX]],
        begin_ns=wait.begin_ns,
        end_ns=wait.end_ns,
    )


def _can_be_explained(setup: ConfigurationRuns) -> bool:
    """Returns whether the first run succeeded and has a trace that is not too large."""
    first = setup.runs[0]
    file = first.folder / TRACE_FILE
    return first.succeeded and file.is_file() and file.stat().st_size <= _TRACE_BYTES_MAX


def _setup_name(setup: ConfigurationRuns, with_cpus: bool) -> str:
    """Returns the policy, followed by the number of CPUs if `with_cpus`."""
    policy = setup.setup.policy_title
    return f"{policy}, {cpus_text([setup.setup.cpus])}" if with_cpus else policy


def _setup_cells(setup: ConfigurationRuns) -> Mapping[str, object]:
    """Returns the first cells of a row."""
    return {"policy": setup.setup.policy_title, "CPUs": setup.setup.cpus}


def _explain_command(run: StoredRun) -> str:
    return shlex.join(("./schedlab", "explain", str(run.folder)))


def waits_table(
    name: str, title: str, waits: Sequence[tuple[Mapping[str, object], ExplainedWait]]
) -> Table:
    """Returns a table with a row per wait.

    `waits`: the first cells of each row by heading, and the wait.
    """
    first_cells = waits[0][0]
    return Table(
        name=name,
        title=title,
        columns=(
            *(
                Column(key, align="left" if isinstance(value, str) else "right")
                for key, value in first_cells.items()
            ),
            Column("process", align="left"),
            Column("after", align="left"),
            Column("at, ms"),
            Column("waited"),
            Column("caused by", align="left"),
        ),
        rows=tuple(_wait_row(begin, wait) for begin, wait in waits),
        data=pl.DataFrame([part for begin, wait in waits for part in _share_records(begin, wait)]),
        caption="The causes of a wait sum to it exactly. The table shows the largest; its files have all.",
        keys=len(first_cells),
    )


WAIT_BEGINNING_TEXTS = {
    "response": "its fork",
    "wake-up": "a wake-up",
    "turn": "a time slice",
    "found": "the trace's beginning",
}


def _wait_row(first_cells: Mapping[str, object], explained: ExplainedWait) -> Row:
    """Returns the row of a wait. `first_cells`: its first cells by heading."""
    wait, shares = explained.wait, explained.shares
    reasons = "; ".join(
        f"{share.words} ({duration(share.duration_ns)})" for share in shares[:SHARES_NAMED_MAX]
    )
    hidden = f"; {len(shares) - SHARES_NAMED_MAX} more" if len(shares) > SHARES_NAMED_MAX else ""
    return (
        *(Cell(str(value)) for value in first_cells.values()),
        Cell(explained.name),
        Cell(WAIT_BEGINNING_TEXTS[wait.kind]),
        Cell(f"{wait.begin_ns / 1e6:,.3f}"),
        Cell(duration(wait.duration_ns)),
        Cell(reasons + hidden),
    )


def _share_records(
    first_cells: Mapping[str, object], wait: ExplainedWait
) -> Iterator[dict[str, object]]:
    """Yields a record for each cause of a wait, for the data behind the table."""
    for share in wait.shares:
        yield {
            **{key.lower(): value for key, value in first_cells.items()},
            "process": wait.name,
            "kind": wait.wait.kind,
            "begin_ns": wait.wait.begin_ns,
            "wait_ns": wait.wait.duration_ns,
            "part": share.words,
            "part_ns": share.duration_ns,
        }
