# SPDX-License-Identifier: MIT
"""Tests study 5's page with runs on Linux: synthetic ones with known figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kept_runs import MS, keep_run, keep_simulated
from page_contents import cells_of, numbers, opening_of, tables_of, texts_of
from printed_by_benchmarks import RATES, sysbench
from schedlab.machines import machine_named
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.report.build import make_report, page_maker
from schedlab.report.model import Page
from schedlab.report.studies import study_5
from schedlab.report.studies.linux_waits import find_thread_waits, running_threads_text
from schedlab.runs.collection import read_collection
from schedlab.studies import published
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.linux_experiments import (
    FAIR_CLASS,
    FREE_RUNNING_MACHINE,
    LINUX_MACHINE,
    STUDY_SCHEDULERS,
    SYSBENCH,
    SYSBENCH_8,
    SYSBENCH_FREE,
)
from schedlab.studies.study import find_study
from schedlab.trace import Kind, ProcessState
from trace_simulator import Record, Script, load

SEEDS = (1, 2, 3)
STARTED = {"started": "2026-04-19T12:00:00+00:00"}


def keep(
    path: Path, experiment: str, policy: str, seed: int, console: str = "", **run_facts: Any
) -> Path:
    """Writes a run on the experiment's machine."""
    content = {**on_linux(experiment), "workload": EXPERIMENTS[experiment].command, "cpus": 2}
    folder = keep_run(path, experiment, policy, seed, **content, **run_facts)
    (folder / CONSOLE_FILE).write_text(f"[    0.5] Run /init\n{console}")
    return folder


def on_linux(experiment: str) -> dict[str, Any]:
    """Returns a manifest's experiment machine and its mode."""
    machine = machine_named(EXPERIMENTS[experiment].machine or "spike")
    return {"machine": machine.name, "mode": machine.note, "repeatable": machine.repeatable}


def keep_sysbench(path: Path) -> None:
    for policy in STUDY_SCHEDULERS:
        for seed in SEEDS:
            summary = [{"context_switches": 40 + seed, "migrations": 3}]
            tables = {"summary": summary}
            for name in (SYSBENCH, SYSBENCH_FREE):
                keep(path, name, policy, seed, sysbench(policy, seed), tables=tables)
            text = sysbench(policy, seed, "sysbench-4-threads")
            keep(path, SYSBENCH_8, policy, seed, text, tables=tables)


def page_of(path: Path) -> Page:
    page = page_maker(5)(read_collection([path]))
    assert page
    return page


def queries_of(path: Path) -> study_5.Queries:
    """Returns a page's content for these runs."""
    return study_5.Queries(find_study(5), read_collection([path]))


@pytest.mark.parametrize("name", ["study-5-linux", "study-5-linux-free"])
def test_published_figures_are_next_to_measured_ones(tmp_path: Path, name: str) -> None:
    keep_sysbench(tmp_path)
    tables = tables_of(page_of(tmp_path))
    every = cells_of(tables[f"{name}-table-5"], labels=2)
    rows = {
        "CFS": (FAIR_CLASS, "CFS (the kernel’s fair class)"),
        "WRR": ("wrr:linux", "WRR (wrr:linux)"),
        "Lottery": ("lottery:linux", "Lottery (lottery:linux)"),
    }
    for figure in published(5, 5):
        scheduler, run = figure.row.split()
        policy, row = rows[scheduler]
        if figure.quantity == "throughput":
            cell_key = (row, run, "events a second")
            assert every[cell_key[0], cell_key[1], cell_key[2], "published"].text == figure.text
            assert (
                every[cell_key[0], cell_key[1], cell_key[2], "measured"].text
                == f"{RATES[policy] + 2 * int(run):,.2f}"
            )
    means = cells_of(tables[f"{name}-table-6"])
    assert means[rows["WRR"][1], "events a second", "measured"].text.startswith("1,005.00 [")
    assert means[rows["CFS"][1], "longest latency, ms", "measured"].text.startswith("3.00 [")
    mode = machine_named(FREE_RUNNING_MACHINE if name.endswith("free") else LINUX_MACHINE).note
    assert mode in tables[f"{name}-table-6"].caption
    assert ("not repeatable" in tables[f"{name}-table-6"].caption) == name.endswith("free")


def test_what_may_be_chance_is_called_so(tmp_path: Path) -> None:
    """WRR is one event a second faster, and its two runs differ by two; the lottery is ten
    slower.
    """
    keep_sysbench(tmp_path)
    page = page_of(tmp_path)
    rows = {
        (row[0].text, row[1].text): [cell.text for cell in row[2:]]
        for row in tables_of(page)["study-5-linux-differences"].rows
    }
    published_change, measured_change, verdict = rows["events a second", "WRR − CFS"]
    assert published_change == "+0.97"
    assert measured_change.startswith("+1.00 [-")
    assert verdict.startswith("no (p = ")
    published_change, measured_change, verdict = rows["events a second", "Lottery − CFS"]
    assert published_change == "-12.54"
    assert measured_change.startswith("-10.00 [-")
    assert verdict.startswith("yes (p")
    assert rows["longest latency, ms", "WRR − CFS"][1].startswith("+0.00 [")
    order = queries_of(tmp_path).linux_order(SYSBENCH, "throughput", True)
    assert order == "WRR ≈ CFS > Lottery"
    assert order in texts_of(page)
    assert order in opening_of(page)
    assert "1.1" in numbers(opening_of(page))


def test_full_report_from_linux_alone(tmp_path: Path) -> None:
    """Its other pages include the experiments, too; and a policy that is not built in."""
    for policy in STUDY_SCHEDULERS:
        for seed in (1, 2):
            folder = tmp_path / f"{policy.replace(':', '-')}-{seed}"
            how = {**on_linux(SYSBENCH_8), "workload": EXPERIMENTS[SYSBENCH_8].command, **STARTED}
            keep_simulated(folder, seed, label=SYSBENCH_8, policy=policy, **how)
            (folder / CONSOLE_FILE).write_text(sysbench(policy, seed))
    report = make_report(read_collection([tmp_path]))
    assert [page.name for page in report.menu] == ["index", "study-5", "comparison", "runs"]
    assert [page.above for page in report.pages if page not in report.menu] == ["runs"]


# --- causes of the thread's waits


def scheduled(*turns: tuple[int, int]) -> list[Record]:
    """Returns a trace of the process that runs after each ms; each is forked at 0, and always
    runnable.
    """
    number = iter(range(1000))

    def record(ms: int, process: int, kind: Kind, first: int = 0, second: int = 0) -> Record:
        return Record(ms * MS, next(number), process, kind, 0, first, second)

    records = [record(0, 0, Kind.START)]
    records += [record(0, 0, Kind.FORK, pid) for pid in dict(turn[::-1] for turn in turns)]
    before = 0
    for begin, pid in turns:
        records.append(record(begin, before, Kind.SCHEDULER_ENTER, 0, begin))
        records.append(record(begin, pid, Kind.SWITCH, before, ProcessState.RUNNABLE))
        records.append(record(begin, pid, Kind.SCHEDULER_EXIT, 0, begin))
        before = pid
    return [*records, record(turns[-1][0] + 10, 0, Kind.END, 0, len(records) + 1)]


def test_who_ran_while_the_thread_waited(tmp_path: Path) -> None:
    """Thread 3 computes; a kernel thread runs for 4 ms and later for 1; the workload's other
    thread runs for 3.
    """
    trace = load(
        scheduled((0, 3), (10, 9), (14, 8), (15, 3), (30, 4), (33, 3), (90, 8)), Script(cpus=1)
    )
    processes = [
        {"pid": pid, "name": name, "role": role, "running_ns": running}
        for pid, name, role, running in (
            (3, "sysbench", "workload", 90),
            (4, "sysbench", "workload", 3),
            (8, "[kcompactd0]", "other", 900),
            (9, "[kworker/0:1]", "other", 4),
        )
    ]
    others = dict.fromkeys(("groups", "cpus", "values"), processes)
    tables = {
        "processes": processes,
        "summary": [{"begin_ns": 5 * MS, "end_ns": 89 * MS}],
        **others,
    }
    keep(tmp_path, SYSBENCH, FAIR_CLASS, 1, tables=tables)
    (run,) = read_collection([tmp_path])
    waits = find_thread_waits(run, trace)
    assert (waits.count, waits.total_ms, waits.longest_ms) == (2, 8, 5)
    assert waits.running_ms == {"[kworker/0:1]": 4, "[kcompactd0]": 1}
    assert waits.main_kind == "threads of the kernel"
    other_waits = replace(waits, running_ms={"sysbench": 1.0, "schedlab-trace": 2.0})
    rows = [
        (FAIR_CLASS, 1, waits),
        (FAIR_CLASS, 2, other_waits),
        (FAIR_CLASS, 3, other_waits),
        (FAIR_CLASS, 4, replace(other_waits, running_ms={})),
    ]
    assert running_threads_text(rows) == (
        "schedlab's process that reads the trace (2 runs) and threads of the kernel (1 run)"
    )
