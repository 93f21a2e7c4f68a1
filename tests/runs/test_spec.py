# SPDX-License-Identifier: MIT
"""Tests that a run's specification survives a round trip through a manifest, for every kind
of run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from schedlab.base.toolchain.policies import PolicyChoice, read_catalogue
from schedlab.errors import FileRefused, WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs import branch_runs, results
from schedlab.runs.branches import AttributeChange, BranchChanges, open_branch_source
from schedlab.runs.recording import read_recording
from schedlab.runs.replay import ReplayChanges
from schedlab.studies import planning
from schedlab.sweep import description_reader
from schedlab.sweep.expansion import expand
from schedlab.workload import costs, workload_files
from schedlab.workload.shapes import reading as shapes

FORMATS = ROOT / "tests" / "formats" / "0.1.0"
RUN = FORMATS / "run" / "rr-1cpu-seed1"
KERNEL_RUN = FORMATS / "kernel-run" / "lottery-1cpu-seed1"


def spec(**more: Any) -> RunSpec:
    given = {
        "workload": "cpu-bound -n 3",
        "policy": PolicyChoice("lottery", "thesis"),
        "settings": (("slice", 2),),
        "cpus": 2,
        "machine": "spike",
        "seed": 7,
        "tick_ns": 1_000_000,
        "limit_ns": 5 * 10**9,
        "memory_mib": 512,
    }
    chosen = {**given, **more}
    return RunSpec(**{**chosen, "machine": machine_named(str(chosen["machine"]))})


def of_a_file(**more: Any) -> RunSpec:
    changes = (("tasks.batch.instance", "3"),)
    file = workload_files.read_workload_file(FORMATS / "workload.json", changes)
    given = {"workload": "workload.json", "file": file, "changes": changes, "machine": "sim"}
    return spec(**{**given, "memory_mib": 0, **more})


def programs() -> list[RunSpec]:
    delayed = spec(delays=(("fork", 380_000),), label="slow forks")
    return [spec(), delayed, spec(machine="host", ignore_limits=True)]


def files() -> list[RunSpec]:
    profile = costs.parse_costs(f"{FORMATS / 'costs.json'},fork=20000")
    shape = next(iter(shapes.builtin_shapes().values()))
    shaped = shapes.read_shape(shape)
    return [
        of_a_file(),
        of_a_file(costs=profile, delays=(("fork", 380_000),)),
        of_a_file(costs=costs.parse_costs("textbook")),
        of_a_file(shape=shaped, cpus=shaped.cpus),
        of_a_file(machine="spike", memory_mib=512),
    ]


def replays() -> list[RunSpec]:
    recorded = read_recording(RUN)
    other = recorded.with_changes(
        ReplayChanges(frozenset({1}), {2: {"priority": 1}}), "without typist"
    )
    recordings = (recorded, recorded.with_switches(), other)  # the last one as `explain` runs it
    return [
        of_a_file(workload=recording.title, file=None, changes=(), replay=recording.replay)
        for recording in recordings
    ]


def branches() -> list[RunSpec]:
    before = open_branch_source(KERNEL_RUN)
    futures = (
        BranchChanges(),
        BranchChanges(PolicyChoice("mlfq"), seed=3),
        BranchChanges(
            settings=(("slice", 2),), attributes=(AttributeChange("cpu-bound", "tickets", 9),)
        ),
    )
    return [before.branch_spec(future, 20_000_000) for future in futures]


def of_studies() -> list[RunSpec]:
    plans = (
        planning.plan(Path("out"), depth="quick", machine=machine) for machine in ("sim", "spike")
    )
    return [run for plan in plans for run in plan.runs[::40]]


def of_a_sweep() -> list[RunSpec]:
    described = description_reader.read_description(FORMATS / "sweep.yaml", {}, read_catalogue())
    return [point.run for point in expand(described)]


KINDS = (programs, files, replays, branches, of_studies, of_a_sweep)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_in_transit(kind: Callable[[], list[RunSpec]]) -> None:
    specs = kind()
    assert len(specs) > 2
    for spec in specs:
        text = json.dumps(spec.manifest())
        back = RunSpec.from_manifest(json.loads(text))
        assert back == spec
        assert (back.files(), back.past) == (spec.files(), spec.past)
        assert json.dumps(back.manifest()) == text


@pytest.mark.parametrize("kind", KINDS)
def test_changed_members_are_detected(kind: Callable[[], list[RunSpec]]) -> None:
    """Otherwise the first test would accept conversions that omit members."""
    for spec in kind()[:2]:
        manifest = spec.manifest()
        for name in ("cpus", "seed", "tick_ns", "limit_ns", "memory_mib"):
            assert RunSpec.from_manifest({**manifest, name: manifest[name] + 1}) != spec
        for name, value in {"policy": "ule", "tunables": {"slice": 77}, "label": "else"}.items():
            assert RunSpec.from_manifest({**manifest, name: value}) != spec


@pytest.mark.parametrize(
    "folder",
    sorted(path.parent for path in FORMATS.glob("*/*/manifest.json")),
    ids=lambda p: p.name,
)
def test_manifests_of_0_1_0_are_read(folder: Path) -> None:
    stored_spec = results.read_spec(folder)
    assert RunSpec.from_manifest(stored_spec.manifest()) == stored_spec
    manifest = results.read_manifest(folder)
    same = {name: value for name, value in stored_spec.manifest().items() if name in manifest}
    assert same == {name: manifest[name] for name in same}


def test_a_manifest_chooses_no_file_to_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text((FORMATS / "workload.json").read_text())
    manifest = {**of_a_file().manifest(), "workload": str(tmp_path / "secret.json")}
    del manifest["files"]
    with pytest.raises(WrongUsage, match="the copy of"):
        RunSpec.from_manifest(manifest)


@pytest.mark.parametrize(
    "members",
    [
        {"policy": "no/policy"},
        {"costs": "mine.json (0123)", "costs_text": "mine.json"},
        {"costs": "mine.json (0123)", "costs_text": "none,fork=1;reboot"},
        {"delays": "fork"},
        {"with": {"tasks.nobody.loop": "3"}},
        {"shape": "mine"},
        {"replay_of": {}},
    ],
)
def test_a_manifest_that_means_nothing_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises((WrongUsage, FileRefused)):
        RunSpec.from_manifest({**of_a_file().manifest(), **members})


def test_a_replay_without_its_hash_is_refused() -> None:
    manifest = replays()[0].manifest()
    del manifest["workload_sha256"]
    with pytest.raises(WrongUsage, match="workload_sha256"):
        RunSpec.from_manifest(manifest)


@pytest.mark.parametrize("name", ["run", "trace_sha256", "seed"])
def test_a_branch_that_does_not_say_what_it_continues_is_refused(name: str) -> None:
    """The monitor writes such manifests for branches of live machines."""
    manifest = branches()[0].manifest()
    del manifest["branch_of"][name]
    with pytest.raises(WrongUsage, match=f"branch_of: {name} is missing"):
        RunSpec.from_manifest(manifest)


def test_a_branch_on_a_machine_without_branches_is_refused(tmp_path: Path) -> None:
    (branch, *_) = branches()
    with pytest.raises(WrongUsage, match="has no branches"):
        branch_runs.perform_branch_specs(
            {"mine": replace(branch, machine=machine_named("sim"))}, tmp_path
        )
