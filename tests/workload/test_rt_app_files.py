# SPDX-License-Identifier: MIT
"""Tests rt-app's dialect: the translation of its files, and the messages for untranslatable
ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedlab.errors import WrongUsage
from schedlab.workload import workload_files
from schedlab.workload.model import Loop, Task, WorkloadFile
from schedlab.workload.text import format_workload

CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("rt_app_files.yaml").read_text()
)


def read(folder: Path, text: str) -> WorkloadFile:
    (folder / "w.json").write_text(text)
    return workload_files.read_workload_file(folder / "w.json")


def once_us(file: WorkloadFile, task: Task) -> float:
    """Returns the duration of one iteration of an instance's endless loop."""
    body = (
        replace(item, rounds=1) if isinstance(item, Loop) and math.isinf(item.rounds) else item
        for item in task.body
    )
    return file.work_ns(replace(task, body=tuple(body)), 1_000_000) / 1000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_file_is_read_as_rt_app_reads_it(case: dict[str, Any], tmp_path: Path) -> None:
    if "refused" in case:
        with pytest.raises(WrongUsage) as refusal:
            read(tmp_path, case["file"])
        assert case["refused"] in str(refusal.value)
        return
    file = read(tmp_path, case["file"])
    assert sum(task.instances for task in file.tasks) == case["instances"]
    assert sum(task.instances * once_us(file, task) for task in file.tasks) == case["run_us"]
    notes = case.get("notes", [])
    assert len(file.notes) == len(notes), file.notes
    assert all(part in note for part, note in zip(notes, file.notes, strict=True)), file.notes
    lines = [line.strip() for line in format_workload(file, 1, 1_000_000).splitlines()]
    for line in case.get("text", []):
        assert any(line in (file_line, file_line.rpartition(" ")[0]) for file_line in lines), lines


@pytest.mark.parametrize("has_lock", [False, True])
def test_a_sync_takes_the_lock_once(has_lock: bool, tmp_path: Path) -> None:
    """rt-app's documentation says that `sync` takes the lock; in its examples and its program
    the task already holds it.
    """
    sync = '"sync": {"ref": "c", "mutex": "m"}'
    body = f'"lock": "m", {sync}, "unlock": "m"' if has_lock else sync
    file = read(tmp_path, f'{{"tasks": {{"a": {{"loop": 1, {body}}}}}}}')
    lines = [line.strip() for line in format_workload(file, 1, 1_000_000).splitlines()]
    assert [line for line in lines if line.startswith(("lock", "give", "take"))] == [
        "lock lock:m",
        "give cond:c waiting",
        "take cond:c releasing lock:m",
        "lock lock:m",
        "give lock:m",
    ]


def test_group_names_stay_distinct(tmp_path: Path) -> None:
    tasks = ", ".join(f'"WorkerPool{n}": {{"loop": 1, "run": 1}}' for n in range(12))
    groups = [task.group for task in read(tmp_path, f'{{"tasks": {{{tasks}}}}}').tasks]
    assert len(set(groups)) == 12
    assert all(len(group) <= 8 and group.startswith("Worker") for group in groups)


def test_warnings_about_many_keys_and_names_stay_short(tmp_path: Path) -> None:
    """There is one warning of bounded length; each of many names has a separate group."""
    keys = ", ".join(f'"unknown{n}{"x" * 500}": 1' for n in range(2000))
    tasks = ", ".join(f'"worker_of_the_pool_{n}": {{"loop": 1, "run": 1}}' for n in range(2000))
    file = read(tmp_path, f'{{{keys}, "tasks": {{{tasks}}}}}')
    assert len({task.group for task in file.tasks}) == 2000
    assert len({task.name[:15] for task in file.tasks}) == 2000
    assert len(file.notes) == 3
    assert all(len(note) < 1000 for note in file.notes)
