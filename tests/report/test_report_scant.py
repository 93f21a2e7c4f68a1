# SPDX-License-Identifier: MIT
"""Tests reports with minimal data: a single run of any experiment, and recordings that end as
they begin.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import trace_simulator
from schedlab import metrics, trace
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.report.build import write_report
from schedlab.runs import collection, results
from schedlab.studies.experiments import EXPERIMENTS

SCRIPT = trace_simulator.Script(cpus=2, steps=100, drain=True)
MANIFEST = {
    "format": 1, "schedlab": "0", "commit": "0", "changed": False, "label": "", "workload": "w",
    "policy": "rr", "tunables": {}, "cpus": 2, "seed": 1, "tick_ns": 1_000_000,
    "limit_ns": 60_000_000_000, "memory_mib": 64, "boot_arguments": "", "machine": "spike",
    "machine_version": "0", "machine_origin": "here", "repeatable": True, "host": "a host",
    "started": "2026-01-01T00:00:00+00:00", "host_seconds": 1.0, "status": "success",
    "message": "",
}  # fmt: skip


def stored_run(path: Path, moments: int | None = None, **changes: object) -> Path:
    """Returns a run's directory with only the first few records, or with `moments` all
    records of one moment.
    """
    recording = path.parent / f"recording-{moments}"
    if not recording.exists():
        record(recording, moments)
    shutil.copytree(recording, path, copy_function=os.link)
    results.write_json(path / results.MANIFEST_FILE, {**MANIFEST, **changes})
    return path


def record(path: Path, moments: int | None) -> None:
    """Returns the whole directory of a run except its manifest."""
    path.mkdir()
    records = trace_simulator.simulate(random.Random(1), SCRIPT)
    if moments is not None:
        records = [record._replace(time=records[0].time) for record in records[:moments]]
    trace_simulator.write(path / "trace.bin", records, SCRIPT)
    metrics.compute(trace.read(path / "trace.bin")).write(path / results.METRICS_FOLDER)
    (path / CONSOLE_FILE).touch()


@pytest.mark.parametrize("moments", [0, 2, 1000])
def test_a_recording_of_no_length_has_a_report(tmp_path: Path, moments: int) -> None:
    runs = collection.read_collection([stored_run(tmp_path / "run", moments)])
    report = tmp_path / "report"
    assert write_report(runs, report, ("html", "markdown")) == report / "index.html"
    assert "# schedlab report" in (report / "report.md").read_text()


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 8))]
)
@pytest.mark.parametrize("study", range(1, 6))
def test_a_single_run_of_any_experiment_has_a_report(tmp_path: Path, study: int, part: int) -> None:
    """Uses the first policy and number of CPUs in the study's tables; an eighth of the
    experiments each time.
    """
    from schedlab.report.build import make_report

    for number, (name, experiment) in enumerate(EXPERIMENTS.items()):
        if experiment.study == study and number % 8 == part:
            first = (*experiment.quick, *experiment.full)[0]
            cpus = (first.grid.cpus or (2,))[0]
            policy = (*first.policies, *experiment.study_policies, "rr")[0]
            given: dict[str, Any] = {"label": name, "policy": str(policy), "cpus": cpus}
            machine = experiment.machine or "spike"
            path = stored_run(tmp_path / str(number), **given, machine=machine)
            report = make_report(collection.read_collection([path]))
            assert any(page.name == f"study-{study}" for page in report.pages), name
