# SPDX-License-Identifier: MIT
"""Tests the studies' experiments as workload files: each has one, which runs everywhere and does
what the kernel's program does.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import ROOT
from guest_machine import TICK_NS, traced
from played import play, simulated
from schedlab import metrics, trace
from schedlab.studies.experiments import DEFAULT_POLICIES, EXPERIMENTS
from schedlab.studies.files import (
    EXPERIMENT_FILES,
    EXPERIMENTS_WITHOUT_FILE,
    WORKLOAD_FOLDER,
    ExperimentFile,
)
from schedlab.workload import workload_files
from schedlab.workload.changes import parse_change
from schedlab.workload.text import format_workload
from simulator_command import simulate

NEARNESS = 0.02
"""Relative tolerance of a time; at least a tick."""
_LIMIT_NS = 60 * 10**9


def test_experiments_have_a_file_or_a_reason() -> None:
    experiment_names = [
        name for name, experiment in EXPERIMENTS.items() if not experiment.repeated_experiment
    ]
    assert sorted([*EXPERIMENT_FILES, *EXPERIMENTS_WITHOUT_FILE]) == sorted(experiment_names)
    assert all(reason.strip() for reason in EXPERIMENTS_WITHOUT_FILE.values())


def test_files_of_the_studies_are_all_used() -> None:
    others = {"cpu-bound", "io-bound", "ladder", "sleepers", "nice-mix", "deadlines", "mixed"}
    file_stems = {path.stem for path in (ROOT / WORKLOAD_FOLDER).glob("*.json")}
    assert {
        study_file.name for study_file in EXPERIMENT_FILES.values() if "/" not in study_file.name
    } | others == file_stems


@pytest.mark.parametrize("name", sorted(EXPERIMENT_FILES))
def test_files_read_and_are_shorter_when_quick(name: str) -> None:
    described = EXPERIMENT_FILES[name]
    assert not described.read().notes
    assert bool(described.quick_changes) == bool(EXPERIMENTS[name].quick_options)
    if described.quick_changes:
        assert format_workload(described.read("quick"), 1, TICK_NS) != format_workload(
            described.read(), 1, TICK_NS
        )


def _distinct() -> dict[str, ExperimentFile]:
    """Returns each file once, with its largest changes. Files that only the simulator plays are
    tested in their reports.
    """
    return {
        study_file.name: study_file
        for name, study_file in EXPERIMENT_FILES.items()
        if not EXPERIMENTS[name].machine
    }


@pytest.mark.parametrize("name", sorted(_distinct()))
def test_files_run_under_all_policies(tmp_path: Path, name: str) -> None:
    described = _distinct()[name]
    extra_policies = {
        policy.split()[0]
        for experiment, study_file in EXPERIMENT_FILES.items()
        if study_file.name == name
        for policy in EXPERIMENTS[experiment].study_policies
    }
    tick = 10 * TICK_NS if name.startswith("lottery-original") else TICK_NS
    text = format_workload(described.read("quick"), 1, tick)
    for policy in sorted({*DEFAULT_POLICIES, *extra_policies}):
        for cpus in (1, 5):
            options = ("--policy", policy, "--cpus", str(cpus), "--limit", str(_LIMIT_NS))
            result = simulate(tmp_path, text, *options, "--tick", str(tick), "--no-trace")
            assert result.returncode == 0, f"{policy}, {cpus} CPUs: {result.stderr}"


# --- comparison with the kernel's programs

SHORT = [
    ("timingtests short", "timing-short", (), "rr"),
    ("timingtests starvation", "timing-starvation", (), "priority"),
    ("prioritytest io-bound", "priority-io-bound", (), "rr"),
    ("prioritytest mixed", "priority-mixed", (), "priority"),
    ("study3 inversion -t 500", "study3-inversion", ("tasks.hog.run=5ticks",), "priority"),
    (
        "study4 mixed -c 3 -i 20",
        "study4-mixed",
        ("tasks.cpu.instance=3", "tasks.cpu.run=20ticks"),
        "rr",
    ),
    ("study4 sleeper -i 10", "sleeper", ("tasks.cpu.run=10ticks",), "rr"),
    ("sleepers -n 6", "sleepers", ("tasks.sleeper.instance=6",), "priority"),
]
"""The kernel's program, its file, the changes to the file, and the policy."""


LATER = 60
"""Delay before files are played, in ticks: the kernel's player takes long to start."""


def lives(events: trace.Trace) -> pl.DataFrame:
    """Returns the first process's descendants, by PID."""
    return metrics.compute(events).processes.filter(parent=2).sort("pid")


def begin_of(events: trace.Trace) -> int:
    """Returns when the window opened, in nanoseconds."""
    begins = events.events.filter(kind=trace.Kind.MARK, first=trace.MarkKind.BEGIN)
    return int(begins["time_ns"][0])


@pytest.mark.spike
@pytest.mark.parametrize(("command", "file", "changes", "policy"), SHORT)
def test_processes_do_what_those_of_the_kernels_program_do(
    tmp_path: Path, command: str, file: str, changes: tuple[str, ...], policy: str
) -> None:
    """Runs in the simulator, and on the kernel, where calls and switches cost the same. All begin
    at the same place in a tick.
    """
    program = traced(tmp_path, command, 1, f"policy={policy}")
    begin, program_lives = begin_of(program), lives(program)
    for machine, delay in ((simulated, begin), (play, begin + LATER * TICK_NS)):
        print(machine.__name__)
        parsed_changes = [parse_change(change) for change in (*changes, f"starter.delay={delay}ns")]
        text = format_workload(
            workload_files.read_workload_file(
                ROOT / WORKLOAD_FOLDER / f"{file}.json", parsed_changes
            ),
            1,
            TICK_NS,
        )
        played_lives = lives(machine(tmp_path, text, policy))
        assert played_lives["pid"].to_list() == program_lives["pid"].to_list()
        assert played_lives["group"].to_list() == program_lives["group"].to_list()
        for group in dict.fromkeys(program_lives["group"]):
            mine, others = (side.filter(group=group) for side in (played_lives, program_lives))
            assert near(mine, others, "turnaround_ns"), group
            assert near(mine, others, "running_ns"), group
            if "study4 mixed" not in command:  # two lines may be one transaction there
                assert Counter(mine["blocks"]) == Counter(others["blocks"]), group


def near(actual: pl.DataFrame, expected: pl.DataFrame, column: str) -> bool:
    """Compares means."""
    one, other = (float(_mean(side, column)) for side in (actual, expected))
    print(f"{column}: simulator {one / 1e6:.3f} ms, kernel {other / 1e6:.3f} ms")
    return abs(one - other) <= max(NEARNESS * other, TICK_NS)


def _mean(side: pl.DataFrame, column: str) -> Any:
    return side[column].mean()
