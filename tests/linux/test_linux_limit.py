# SPDX-License-Identifier: MIT
"""Tests that a trace's limit ends a run in a guest, and that the records so far are kept and
measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import schedlab
from conftest import Command
from linux_guests import need_guests
from schedlab import trace
from schedlab.base.host.disk import TRACE_LIMIT_VARIABLE
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux import machine

pytestmark = [pytest.mark.long, pytest.mark.linux, pytest.mark.xdist_group("linux_boot")]

DURATION_S = 60
BUSY = {
    "global": {"duration": DURATION_S},
    "tasks": {
        "a": {"run": 20, "sleep": 20, "loop": -1},
        "b": {"run": 20, "sleep": 20, "loop": -1},
    },
}
RECORD_BYTES = 32
MIB = 1 << 20


def test_a_guest_at_its_trace_limit(schedlab: Command, tmp_path: Path) -> None:
    need_guests()
    workload = tmp_path / "busy.json"
    workload.write_text(json.dumps(BUSY))
    options = (
        "--machine",
        "linux",
        "--policy",
        "rr",
        "--cpus",
        "1",
        "--trace-limit",
        "1",
        "--json",
    )
    result = schedlab(
        *("run", "--workload", str(workload), *options, "--out", str(tmp_path / "runs")),
        timeout=600,
    )
    assert result.returncode == 1
    assert "the trace has reached its limit and the run was ended" in result.stderr
    assert f"{TRACE_LIMIT_VARIABLE}=MIB" in result.stderr
    (run,) = json.loads(result.stdout)["runs"]
    records = _check_kept(run["manifest"], Path(run["folder"]), run["metrics"]["summary"])
    assert 7 / 8 * MIB <= records * RECORD_BYTES <= MIB


def test_a_guest_whose_memory_is_too_small_for_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the memory that is asked for at least, the same takes half an hour."""
    need_guests()
    monkeypatch.setattr(machine, "_MEMORY_MIN_MIB", 0)
    workload = tmp_path / "busy.json"
    workload.write_text(json.dumps(BUSY))
    runs = schedlab.run(str(workload), "rr", machine="linux", memory_mib=320, out=tmp_path / "runs")
    (message,) = runs.failed.values()
    assert "or a guest's --memory, half of which a trace may use" in message
    (run,) = runs.runs
    records = _check_kept(run.manifest, run.folder, run.metrics.summary.row(0, named=True))
    assert records * RECORD_BYTES > 20 * MIB


def _check_kept(manifest: Mapping[str, Any], folder: Path, summary: Mapping[str, Any]) -> int:
    """Checks what was recorded and measured until a trace was full. Returns the number of records."""
    assert manifest["status"] == "disk"
    recording = trace.read(folder / TRACE_FILE)
    trace.validate(recording)
    assert recording.lost == 0
    assert not summary["truncated"]  # the server completes it
    assert summary["context_switches"] > 1000
    assert 0 < summary["elapsed_ns"] < DURATION_S * 1e9
    return recording.events.height
