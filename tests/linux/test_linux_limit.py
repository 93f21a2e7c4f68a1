# SPDX-License-Identifier: MIT
"""Tests that a trace's limit ends a run in a guest, and that the records so far are kept and
measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from linux_guests import need_guests
from schedlab import trace
from schedlab.base.host.disk import TRACE_LIMIT
from schedlab.machines.folder import TRACE_FILE

pytestmark = [pytest.mark.long, pytest.mark.linux, pytest.mark.xdist_group("linux_boot")]

DURATION_S = 60
BUSY = {
    "global": {"duration": DURATION_S},
    "tasks": {
        "a": {"run": 1000, "sleep": 1000, "loop": -1},
        "b": {"run": 500, "sleep": 1000, "loop": -1},
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
    done = schedlab(
        *("run", "--workload", str(workload), *options, "--out", str(tmp_path / "runs")),
        timeout=600,
    )
    assert done.returncode == 1
    assert "the trace has reached its limit and the run was ended" in done.stderr
    assert f"{TRACE_LIMIT}=MIB" in done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["manifest"]["status"] == "disk"
    recording = trace.read(Path(run["folder"]) / TRACE_FILE)
    trace.validate(recording)
    assert 7 / 8 * MIB <= recording.events.height * RECORD_BYTES <= MIB
    assert recording.lost == 0
    summary = run["metrics"]["summary"]
    assert not summary["truncated"]  # the server completes it
    assert summary["context_switches"] > 1000
    assert 0 < summary["elapsed_ns"] < DURATION_S * 1e9
