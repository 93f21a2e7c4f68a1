# SPDX-License-Identifier: MIT
"""Tests the pages of studies 3, 4 and 5: published figures next to the matching measured
ones, and the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from feedback_reference import ALLOTMENT_BOOST, schedule
from kept_runs import keep_run
from page_contents import cells_of, opening_of, tables_of, texts_of
from schedlab.base.display.markdown import literal_with_code
from schedlab.report.build import page_maker
from schedlab.report.model import Cell, Page
from schedlab.report.studies import study_4, ticks
from schedlab.report.studies.authors_output import published_ticks
from schedlab.report.studies.inversion import find_reader_waits
from schedlab.report.studies.study_3 import fcfs_turnaround
from schedlab.runs.collection import Collection, read_collection
from schedlab.studies import published, select
from schedlab.studies.ideal_times import ideal_mixed_benchmark
from schedlab.studies.study import find_study
from schedlab.trace import Kind, MarkKind, ProcessState, Trace
from schedlab.trace.format import BlockReason
from trace_simulator import Record, Script, load

pytestmark = pytest.mark.xdist_group("study pages 3 to 5")  # shared data is made once

TICK_NS = 1_000_000
SEEDS = (1, 2, 3)
STUDY_3 = {
    "RR": "rr:table-scan",
    "Lottery": "lottery:equal-lfsr",
    "MLFQ": "mlfq:four-quanta",
}
STUDY_4 = {"RR": "rr:table-scan", "MLFQ": "mlfq:allotment-boost"}
WORKLOADS = {"CPU-bound": "s3-cpu", "IO-bound": "s3-io", "Mixed": "s3-mixed"}


# --- study 3


def summary_of(number: float) -> dict[str, Any]:
    """Returns one row of the summary; all figures derive from one number."""
    return {
        "elapsed_ns": int(40 * TICK_NS),
        "finished": int(number),
        "turnaround_mean_ns": number * TICK_NS,
        "response_mean_ns": number * TICK_NS / 10,
        "running_ns": 3 * TICK_NS,
        "root_running_ns": TICK_NS,
        "idle_ns": TICK_NS,
        "overhead_share": number / 10_000,
        "overhead_with_idle_share": number / 100,
        "fairness_turnaround": number / 100,
    }


def processes_of(number: float) -> list[dict[str, Any]]:
    """Returns two processes that compute, one that writes, and their parent."""
    return [
        {
            "pid": pid,
            "group": group,
            "role": role,
            "fork_ns": pid * TICK_NS,
            "exit_ns": 100 * TICK_NS,
            "turnaround_ns": int(number * TICK_NS),
            "response_ns": int(pid * number * TICK_NS),
            "running_ns": TICK_NS,
            "waiting_ns": TICK_NS,
            "blocked_ns": TICK_NS,
        }
        for pid, group, role in (
            (2, "root", "root"),
            (3, "cpu", "workload"),
            (4, "cpu", "workload"),
            (5, "io", "workload"),
        )
    ]


def number_of(workload: str, scheduler: str, seed: int) -> float:
    """Returns a distinct number for each cell and seed."""
    place = list(WORKLOADS).index(workload) * 3 + list(STUDY_3).index(scheduler)
    return 10 + 5 * place + seed


def keep_study_3(path: Path, failing: tuple[str, str, int] | None = None) -> None:
    for workload, experiment in WORKLOADS.items():
        for scheduler, policy in STUDY_3.items():
            for seed in SEEDS:
                number = number_of(workload, scheduler, seed)
                failed = (workload, scheduler, seed) == failing
                keep_run(
                    path,
                    experiment,
                    policy,
                    seed,
                    cpus=3,
                    tables={"summary": [summary_of(number)], "processes": processes_of(number)},
                    **({"status": "panic", "message": "out of memory"} if failed else {}),
                )


def at(cells: dict[tuple[str, ...], Cell], *key: str) -> Cell:
    """Returns the cell's number."""
    return cells[key]


def made(page: Page | None) -> Page:
    assert page is not None
    return page


def test_study_3_has_measured_figures_next_to_published_ones(tmp_path: Path) -> None:
    keep_study_3(tmp_path)
    tables = tables_of(made(page_maker(3)(read_collection([tmp_path]))))
    value = {
        1: lambda number: f"{number:.2f}",
        2: lambda number: f"{number / 10:.3f}",
        3: lambda number: f"{number / 40:.3f}",
        4: lambda number: f"{number:.2f}",
        5: lambda number: f"{number / 100:.3f}",
    }
    for number in range(1, 6):
        cells = cells_of(tables[f"study-3-table-{number}"])
        figures = published(3, number)
        assert len(figures) == 9
        for figure in figures:
            cell_key = (figure.row, figure.column)
            assert at(cells, *cell_key, "published").text == figure.text
            measured_text = at(cells, *cell_key, "measured").text
            assert measured_text.startswith(
                value[number](number_of(figure.column, figure.row, 2)) + " ["
            )
        shown = [cell.text for (*_, title), cell in cells.items() if title == "published"]
        assert sorted(shown) == sorted(figure.text for figure in figures)


def test_in_order_of_arrival() -> None:
    """Two CPUs, work 4: the third waits for the first, the fourth for the second."""
    assert fcfs_turnaround([0, 1, 2, 3], 4, 2) == (4 + 4 + 6 + 6) / 4
    assert fcfs_turnaround([10, 0], 4, 1) == 4


def test_study_3_shows_failed_and_missing_cells(tmp_path: Path) -> None:
    keep_study_3(tmp_path, failing=("Mixed", "MLFQ", 2))
    page = made(page_maker(3)(read_collection([tmp_path])))
    tables = tables_of(page)
    cells = cells_of(tables["study-3-table-1"])
    failed = cells["MLFQ", "Mixed", "measured"]
    assert (failed.text, failed.tone) == ("failed (1 of 3)", "failed")
    assert failed.why == "seed 2: panic, out of memory"
    assert cells["MLFQ", "Mixed", "published"].text == "90.06"
    assert "failed (1 of 3)" in opening_of(page)
    claim = cells_of(tables["study-3-claims"], labels=3)
    gained = claim["5.3", "MLFQ's throughput is larger than RR's by, %", "Mixed", "", "measured"]
    assert gained.tone == "failed"
    policies = cells_of(tables["study-3-policies"])
    assert policies["stride", "Mixed", "turnaround"].text == "not run"


def test_study_3_computes_its_claims(tmp_path: Path) -> None:
    keep_study_3(tmp_path)
    table = tables_of(made(page_maker(3)(read_collection([tmp_path]))))["study-3-claims"]
    cells = cells_of(table, labels=3)
    gained = ("5.3", "MLFQ's throughput is larger than RR's by, %", "Mixed", "")
    assert at(cells, *gained, "figure").text == "13"
    assert at(cells, *gained, "published tables").text == "198"
    seeds = [
        number_of("Mixed", "MLFQ", seed) / number_of("Mixed", "RR", seed) - 1 for seed in SEEDS
    ]
    assert at(cells, *gained, "measured").text.startswith(f"{100 * sum(seeds) / 3:.1f} [")
    claims = select(study=3, kind="claim")
    assert sorted(f.text for f in claims) == sorted(
        cell.text for (*_, title), cell in cells.items() if title == "figure" and cell.text != "–"
    )
    best = [cell.text for key, cell in cells.items() if "of 15" in key[1]]
    assert best[1] == "6"


def test_pages_need_runs(tmp_path: Path) -> None:
    """The runs must be of the page's study."""
    keep_run(tmp_path, "s1-timing-switch", "rr")
    for study in (3, 4, 5):
        assert page_maker(study)(read_collection([tmp_path])) is None


# --- study 4


def keep_study_4(path: Path, sizes: tuple[int, ...] = (2, 10, 40), seeds: int = 2) -> None:
    for size in sizes:
        for scheduler, policy in STUDY_4.items():
            for seed in range(1, seeds + 1):
                rows = [
                    {"group": group, "turnaround_mean_ns": time * TICK_NS}
                    for group, time in benchmark_times(size, scheduler, seed).items()
                ]
                keep_run(
                    path, f"s4-mixed-{size}", policy, seed,
                    tables={"summary": [{"elapsed_ns": 1}], "groups": rows},
                )  # fmt: skip


def benchmark_times(size: int, scheduler: str, seed: int) -> dict[str, float]:
    """Returns linear times: each process adds 3 ticks, or under RR 5."""
    slope = {"RR": 5, "MLFQ": 3}[scheduler]
    return {"inter": 100 + slope * size + seed, "cpu": 200 + slope * size + seed}


def test_study_4_has_measured_figures_next_to_published_ones(tmp_path: Path) -> None:
    keep_study_4(tmp_path)
    tables = tables_of(made(page_maker(4)(read_collection([tmp_path]))))
    shown = 0
    for figure in select(study=4, place="section 4.2", quantity="mean turnaround"):
        size = int(figure.row.split()[0])
        scheduler, kind = figure.column.split()
        number = {"RR": 9, "MLFQ": 10}[scheduler]
        cells = cells_of(tables[f"study-4-figure-{number}-table"])
        title = "published" if figure.source == "authors" else "rerun"
        assert cells[str(size), kind, title].text == figure.text
        shown += 1
        group = {"interactive": "inter", "CPU-bound": "cpu"}[kind]
        measured_text = cells[str(size), kind, "measured"].text
        if size in (2, 10, 40):
            mean = benchmark_times(size, scheduler, 1)[group] + 0.5
            assert measured_text.startswith(f"{mean:.1f} [")
        else:
            assert measured_text == "not run"
        ideal = ideal_mixed_benchmark(size)[kind == "CPU-bound"]
        assert cells[str(size), kind, "ideal"].text == f"{ideal:.1f}"
    assert shown == 88


def picks(rows: list[tuple[int, int, int]]) -> Iterator[Record]:
    """Returns a trace of one CPU with these picks: tick, PID and level of the process that
    runs afterwards.
    """
    number = iter(range(10**6))
    pids = sorted({pid for _, pid, _ in rows})
    yield Record(0, next(number), 0, Kind.START, 0, 0, 0)
    for pid in (1, *pids):
        yield Record(0, next(number), 0 if pid == 1 else 1, Kind.FORK, 0, pid, 0)
    running = 0
    for tick, pid, level in [(rows[0][0], 1, 0), *rows]:
        time = tick * TICK_NS
        yield Record(time, next(number), running, Kind.SCHEDULER_ENTER, 0, 0, time)
        if level:
            yield Record(time, next(number), pid, Kind.DECISION, 0, 2, level)
        if pid != running:
            yield Record(time, next(number), pid, Kind.SWITCH, 0, running, ProcessState.RUNNABLE)
        yield Record(time, next(number), pid, Kind.SCHEDULER_EXIT, 0, 0, time)
        if running == 0:
            yield Record(time, next(number), pid, Kind.MARK, 0, MarkKind.BEGIN, 0)
        running = pid
    end = (rows[-1][0] + 1) * TICK_NS
    yield Record(end, count := next(number), 0, Kind.END, 0, 0, count + 1)


def loaded(records: list[Record]) -> Trace:
    return load(records, Script(cpus=1))


def test_levels_are_read_tick_by_tick() -> None:
    """Each tick shows the running process and its level, by the rules of study 4; its boosts,
    turns and allotments.
    """
    rows = schedule(ALLOTMENT_BOOST, [3, 4, 5], begin=10, end=1000)
    trace = loaded(list(picks(rows)))
    tick_table = ticks.at_ticks(trace, [3, 4, 5])
    assert tick_table.select("machine_tick", "pid", "level").rows() == rows
    assert tick_table["tick"][0] == 0
    assert ticks.begin_tick(trace) == 10
    assert ticks.boosts(tick_table) == [480, 960]
    turns = ticks.turns(tick_table)
    assert turns["length"].sum() == len(rows)
    for level, length in ((3, 2), (2, 4), (1, 8)):
        assert ticks.usual(turns.filter(level=level)["length"])[0] == length


def test_the_authors_schedule_has_the_published_turns() -> None:
    """Figure 7: turns of 2, 4, 8 and 32 ticks on the four levels, of three processes."""
    published_turns = ticks.drawn_turns(
        "published", published_ticks(find_study(4), "MLFQ").rename({"process": "pid"})
    )
    assert set(published_turns["series"]) == {"A", "B", "C"}
    assert published_turns["begin"].min() == 0
    length = published_turns.with_columns(length=pl.col("end") - pl.col("begin"))
    for level, turn in ((3, 2), (2, 4), (1, 8), (0, 32)):
        lengths = length.filter(pl.col("row") == f"level {level}")["length"]
        assert ticks.usual(lengths)[0] == turn


def test_figure_8_shows_less_work_than_figure_7() -> None:
    """The authors' processes run 31 to 34 ticks in figure 8, and 342 to 344 in figure 7."""
    queries = study_4.Queries(find_study(4), Collection(()))
    assert sorted(queries.ticks_of_authors("RR")) == [31, 33, 34]
    assert sorted(queries.ticks_of_authors("MLFQ")) == [342, 344, 344]


# --- the reader and the writer


def test_waits_are_read_from_the_trace(tmp_path: Path) -> None:
    """The reader (3) blocks at 10, a hog (5) runs until 14, the writer (4) until 16: it waits 6."""
    number = iter(range(1000))

    def record(tick: int, process: int, kind: Kind, first: int = 0, second: int = 0) -> Record:
        return Record(tick * TICK_NS, next(number), process, kind, 0, first, second)

    def switch(tick: int, to: int, leaving: int, state: ProcessState) -> Iterator[Record]:
        yield record(tick, leaving, Kind.SCHEDULER_ENTER, 0, tick)
        yield record(tick, to, Kind.SWITCH, leaving, state)
        yield record(tick, to, Kind.SCHEDULER_EXIT, 0, tick)

    records = [record(0, 0, Kind.START)]
    records += [record(0, 0 if pid == 3 else 3, Kind.FORK, pid) for pid in (3, 4, 5)]
    records += switch(0, 3, 0, ProcessState.RUNNABLE)
    records.append(record(10, 3, Kind.BLOCK, BlockReason.PIPE))
    records += switch(10, 5, 3, ProcessState.BLOCKED)
    records += switch(14, 4, 5, ProcessState.RUNNABLE)
    records.append(record(16, 3, Kind.WAKEUP, 4, 0))
    records += switch(16, 3, 4, ProcessState.RUNNABLE)
    records.append(record(20, 0, Kind.END, 0, len(records) + 1))
    processes = [{"pid": pid, "group": g} for pid, g in ((3, "reader"), (4, "writer"), (5, "hog"))]
    tables = dict.fromkeys(("processes", "groups", "cpus", "values"), processes)
    keep_run(tmp_path, "s3-inversion", "priority", tables={"summary": [{"processes": 3}], **tables})
    (run,) = read_collection([tmp_path])
    (wait,) = find_reader_waits(run, loaded(records))
    assert (wait.length, wait.hogs, wait.longest_turn) == (6, 4, 4)


# --- study 5


def keep_study_5(path: Path) -> None:
    for experiment in ("s5-cpubench", "s5-cpubench-8"):
        for policy in ("rr", "cfs", "wrr:linux", "lottery:linux"):
            for seed in SEEDS:
                keep_run(
                    path, experiment, policy, seed,
                    tables={"summary": [benchmark_summary()], "values": value_rows(policy, seed)},
                )  # fmt: skip


def benchmark_summary() -> dict[str, Any]:
    return {
        "elapsed_ns": 1000,
        "running_ns": 990,
        "selections": 4,
        "scheduler_entries": 7,
        "context_switches": 5,
        "overhead_share": 0.001,
        "clock_step_ns": 5000,
    }


def rate_of(policy: str, seed: int) -> int:
    return {"rr": 1000, "wrr:linux": 1100, "lottery:linux": 1200, "cfs": 1300}[policy] + seed


def value_rows(policy: str, seed: int) -> list[dict[str, Any]]:
    """Half a second; two latencies, of 1 and of `seed` + 1 ms."""
    rows = [("events", rate_of(policy, seed)), ("elapsed", 10**9)]
    rows += [("latency", 10**6), ("latency", (seed + 1) * 10**6)]
    return [
        {"pid": 3, "group": "event", "time_ns": 1, "name": name, "value": value}
        for name, value in rows
    ]


def test_study_5_has_measured_figures_next_to_published_ones(tmp_path: Path) -> None:
    keep_study_5(tmp_path)
    tables = tables_of(made(page_maker(5)(read_collection([tmp_path]))))
    headings = {
        "throughput": "events a second",
        "mean latency": "mean latency, ms",
        "maximum latency": "longest latency, ms",
    }
    names = {
        "CFS": "CFS (cfs)",
        "WRR": "WRR (wrr:linux)",
        "Lottery": "Lottery (lottery:linux)",
    }
    every = cells_of(tables["study-5-table-5"], labels=2)
    means = cells_of(tables["study-5-table-6"])
    for figure in published(5, 5):
        name, run = figure.row.split()
        cell_key = (names[name], run, headings[figure.quantity])
        assert at(every, *cell_key, "published").text == figure.text
        if figure.quantity == "throughput":
            assert figure.policy
            assert (
                at(every, *cell_key, "measured").text == f"{rate_of(figure.policy, int(run)):,.2f}"
            )
    for figure in published(5, 6):
        mean_key = (names[figure.column], headings[figure.quantity])
        assert at(means, *mean_key, "published").text == figure.text
        if figure.quantity == "maximum latency":
            assert at(means, *mean_key, "measured").text.startswith("3.0000 [")


def test_decisions_count_the_same_processes_as_switches(tmp_path: Path) -> None:
    """Checks that the table of study 5 counts the parent's decisions, whose switches it counts."""
    keep_study_5(tmp_path)
    tables = tables_of(made(page_maker(5)(read_collection([tmp_path]))))
    cells = cells_of(tables["study-5-one-thread"])
    assert cells["cfs", "scheduler", "decisions"].text == "7"
    assert cells["cfs", "scheduler", "switches to another process"].text == "5"


def test_cells_that_gave_a_size_are_not_counted(tmp_path: Path) -> None:
    """Checks the cells of study 3 that determined the work and the sleep of its workloads."""
    keep_study_3(tmp_path)
    cells = cells_of(
        tables_of(made(page_maker(3)(read_collection([tmp_path]))))["study-3-agreement"]
    )
    assert [cells[f"table {table}", "", "calibrated"].text for table in (3, 4)] == ["4", "1"]


def test_bounds_of_the_boosts_are_settings(tmp_path: Path) -> None:
    keep_study_4(tmp_path)
    cells = cells_of(
        tables_of(made(page_maker(4)(read_collection([tmp_path]))))["study-4-agreement"]
    )
    assert cells["section 4.1", "", "published"].text == "1"


@pytest.mark.parametrize("study", [3, 4, 5])
def test_contradictions_appear_once(study: int, tmp_path: Path) -> None:
    keep_study_3(tmp_path)
    keep_study_4(tmp_path)
    keep_study_5(tmp_path)
    page_text = texts_of(made(page_maker(study)(read_collection([tmp_path]))))
    assert find_study(study).contradictions
    assert "\\`" not in page_text, "code stays code"
    for contradiction in find_study(study).contradictions:
        assert page_text.count(literal_with_code(str(contradiction))) == 1, contradiction.name
