# SPDX-License-Identifier: MIT
"""Tests the key `cpus` of workload files: the CPUs that a process may use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import check_cpus
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import format_workload


def read(folder: Path, tasks: dict[str, Any], **top: Any) -> WorkloadFile:
    path = folder / "file.json"
    path.write_text(json.dumps({**top, "tasks": tasks}))
    return workload_files.read_workload_file(path)


def text(file: WorkloadFile) -> list[str]:
    return [line.strip() for line in format_workload(file, 1, 1_000_000).splitlines()]


@pytest.mark.parametrize(
    ("given", "cpu_text"),
    [([0], "0"), ([3, 0, 1], "0-1,3"), ("0-3,8", "0-3,8"), ("1023", "1023"), ("2-2,2", "2")],
)
def test_a_set_as_array_or_text(tmp_path: Path, given: object, cpu_text: str) -> None:
    file = read(tmp_path, {"a": {"cpus": given, "run": 5}, "b": {"run": 5}})
    lines = text(file)
    assert lines[lines.index("fork a") + 1] == f"cpus {cpu_text} a"
    assert lines[lines.index("fork b") + 1] == "cpus 0-1023 b"


@pytest.mark.parametrize("given", [[], "", [1024], [-1], "3-1", "a", 1, ["0"], [0.5], "0,", {}])
def test_what_is_no_set(tmp_path: Path, given: object) -> None:
    with pytest.raises(WrongUsage, match=r"cpus[.:].*: expected CPUs from 0 to 1023"):
        read(tmp_path, {"a": {"cpus": given, "run": 5}})


def test_a_phase_without_a_set_has_that_of_its_task(tmp_path: Path) -> None:
    phases = {"one": {"run": 1}, "two": {"cpus": [1], "run": 2}, "three": {"run": 3}}
    program_lines = text(read(tmp_path, {"a": {"cpus": "0,2", "phases": phases}}))
    assert [
        line
        for line in program_lines[program_lines.index("program a") :]
        if line.startswith("cpus")
    ] == [
        "cpus 0,2",
        "cpus 1",
        "cpus 0,2",
    ]
    free = text(read(tmp_path, {"a": {"phases": phases}}))
    assert "cpus 0-1023" in free[free.index("program a") :]


def test_a_machine_without_these_cpus_is_refused(tmp_path: Path) -> None:
    """It is refused before anything is started."""
    phases = {"one": {"cpus": "2-3", "run": 1}}
    for tasks in ({"a": {"cpus": "2-3", "run": 5}}, {"a": {"phases": phases}}):
        file = read(tmp_path, tasks)
        assert file.cpus_missing(2) == "2-3"
        assert file.cpus_missing(3) == ""
        run = RunSpec(
            machine=machine_named("sim"),
            policy=PolicyChoice("rr"),
            settings=(),
            workload="file.json",
            file=file,
            cpus=2,
            seed=1,
            tick_ns=1_000_000,
            limit_ns=10**9,
            memory_mib=0,
        )
        with pytest.raises(WrongUsage, match=r"cpus=2.* binds processes .* CPU 2-3"):
            check_cpus(run)
