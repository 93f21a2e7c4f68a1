# SPDX-License-Identifier: MIT
"""Tests overridden values of a workload file: their effects, their display, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.collection import StoredRun
from schedlab.workload import workload_files
from schedlab.workload.changes import Change, parse_change, workload_title
from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import format_workload

CONTENT = {
    "tasks": {
        "cpu": {"instance": 2, "loop": 1, "run": 10},
        "cpu.fast": {"phases": {"a": {"run": 1, "sleep": "5ticks"}}},
    }
}


def changed(folder: Path, *changes: str, content: object = CONTENT) -> WorkloadFile:
    path = folder / "w.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return workload_files.read_workload_file(path, [parse_change(change) for change in changes])


def test_change_equals_a_file_with_that_value(tmp_path: Path) -> None:
    itself = json.loads(json.dumps(CONTENT))
    itself["tasks"]["cpu"] = {"instance": 40, "loop": 1, "run": "3ticks", "priority": 2}
    itself["tasks"]["cpu.fast"]["phases"]["a"]["sleep"] = 7
    file = changed(
        tmp_path,
        "tasks.cpu.instance=40",
        "tasks.cpu.run=3ticks",
        "tasks.cpu.priority=2",
        "tasks.cpu.fast.phases.a.sleep=7",
    )
    assert format_workload(file, 1, 1_000_000) == format_workload(
        changed(tmp_path, content=itself), 1, 1_000_000
    )


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("tasks.cpu.instance=40", ("tasks.cpu.instance", "40")),
        (" a.b = x=y ", ("a.b", "x=y")),
        ('a={"b": 1}', ("a", '{"b": 1}')),
    ],
)
def test_a_change_is_read(text: str, parsed: Change) -> None:
    assert parse_change(text) == parsed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("tasks.cpx.instance=40", "tasks.cpx: there is no such key; tasks has cpu, cpu.fast"),
        ("task.cpu.instance=40", "task: there is no such key; the file has tasks"),
        ("tasks.cpu.instnce=40", "tasks.cpu.instnce: unknown: expected one of instance, delay"),
        ("tasks.cpu.instance.x=1", "tasks.cpu.instance: not an object, so it has no x"),
        ('tasks.new={"run": {"x": 1}}', "tasks.new.run.x: unknown: expected one of from, to"),
    ],
)
def test_wrong_change_is_refused_with_the_choices(tmp_path: Path, change: str, words: str) -> None:
    with pytest.raises(WrongUsage) as error:
        changed(tmp_path, change)
    assert f"w.json, `changes=`: {words}" in str(error.value)


def test_a_place_is_named_once_and_is_one_place(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"tasks.cpu.run: given more than once"):
        changed(tmp_path, "tasks.cpu.run=1", "tasks.cpu.run=2")
    twice = '{"tasks": {"a": {"run": 1, "sleep": 2, "run": 3}}}'
    with pytest.raises(WrongUsage, match=r"tasks.a.run: occurs 2 times; .* run1 and run2"):
        changed(tmp_path, "tasks.a.run=1", content=twice)


# --- runs report their changes


def run_with(*changes: Change, label: str = "") -> RunSpec:
    choice = PolicyChoice("rr")
    return RunSpec(
        "w.json", choice, (), 1, machine_named("sim"), 1, 10**6, 10**9, 0, label, changes=changes
    )


def test_run_name_shows_its_changes() -> None:
    assert run_with().name == "rr-1cpu-seed1"
    change = ("tasks.cpu.instance", "40")
    assert run_with(change).name == "tasks.cpu.instance=40-rr-1cpu-seed1"
    assert run_with(change, label="s4").name == "s4-rr-1cpu-seed1"
    strange = [run_with(("tasks.cpu", text)).name for text in ('{"run": "a/b"}', '{"run": "a/c"}')]
    assert strange[0] != strange[1]
    assert all(name.startswith("with-") and "/" not in name for name in strange)
    assert run_with(change) != run_with(("tasks.cpu.instance", "41"))


def test_setups_with_other_values_are_others() -> None:
    manifest = {
        "workload": "w.json",
        "policy": "rr",
        "tunables": {},
        "cpus": 1,
        "tick_ns": 1_000_000,
        "machine": "sim",
    }
    plain, few, many = (
        StoredRun(
            Path(), manifest if count is None else {**manifest, "with": {"tasks.a.run": count}}
        )
        for count in (None, "4", "40")
    )
    assert len({plain.setup, few.setup, many.setup}) == 3
    assert plain.setup.experiment == "w.json"
    assert many.setup.experiment == "w.json with tasks.a.run=40"
    assert workload_title(few.manifest) == few.setup.experiment
    labelled = [
        StoredRun(Path(), {**run.manifest, "label": "study"}).setup for run in (plain, few, many)
    ]
    assert len(set(labelled)) == 3
