# SPDX-License-Identifier: MIT
"""Tests `./schedlab run --machine linux`: one run, made twice, in real guests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import schedlab as lab
from conftest import ROOT, Command
from linux_guests import need_guests
from schedlab import trace
from schedlab.base.files.replacement import LIST_NAME
from schedlab.machines.folder import TRACE_FILE

pytestmark = [pytest.mark.linux, pytest.mark.xdist_group("linux_boot")]

RUN = ("run", "--machine", "linux", "--policy", "lottery", "--cpus", "1", "--json")
COMMAND = "lotterytest low -u 20 -t 150"


@pytest.mark.filterwarnings("default")
def test_linux_run_repeats_exactly(schedlab: Command, tmp_path: Path) -> None:
    need_guests()

    def run(out: Path) -> dict[str, Any]:
        result = schedlab(*RUN, "--workload", COMMAND, "--out", str(out), timeout=600)
        assert result.returncode == 0, result.stdout + result.stderr
        (only,) = json.loads(result.stdout)["runs"]
        assert isinstance(only, dict)
        return only

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, (tmp_path / "first", tmp_path / "second"))

    folder = Path(first["folder"])
    assert {path.name for path in folder.iterdir()} == {
        *("console.log", LIST_NAME, "manifest.json", "metrics"),
        TRACE_FILE,
    }
    assert (folder / TRACE_FILE).read_bytes() == (Path(second["folder"]) / TRACE_FILE).read_bytes()
    manifest = first["manifest"]
    assert manifest["repeatable"] is True
    assert manifest["mode"].startswith("repeatable (instruction-counted time)")
    assert manifest["linux_programs_sha256"] == second["manifest"]["linux_programs_sha256"]

    events = trace.read(folder / TRACE_FILE)
    trace.validate(events)
    assert events.header.tick_ns == 4_000_000
    assert events.lost == 0
    groups = pl.DataFrame(first["metrics"]["groups"])
    assert groups["group"].to_list() == ["A", "B", "C"]
    assert groups["ideal_share"].to_list() == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    for share, ideal in groups.select("share", "ideal_share").iter_rows():
        # The winners of 150 draws depend on the programs' exact bytes; allows four standard errors.
        assert abs(share - ideal) < 4 * (ideal * (1 - ideal) / 150) ** 0.5
    summary = first["metrics"]["summary"]
    assert summary["policy"] == "lottery"
    assert 0 < summary["overhead_share"] < 0.1  # one CPU: its scheduler visits are separate
    # 150 ticks, filled by as many iterations as on Spike, because no other option was given.
    assert summary["elapsed_ns"] == pytest.approx(150 * 4e6, rel=0.05)
    assert summary["other_running_ns"] < 0.05 * summary["elapsed_ns"]


@pytest.mark.long
def test_a_workload_that_sets_many_attributes_is_measured(
    schedlab: Command, tmp_path: Path
) -> None:
    """300 arriving processes get attributes and leave marks.

    The server once made its text about all threads for each of them, and a thread that was
    preempted within the tracer made it miss the marks of others.
    """
    need_guests()
    arguments = ("--cpus", "1", "--tick", "4ms", "--out", str(tmp_path / "out"))
    workload = ROOT / "workloads" / "files" / "agreement" / "requests.json"
    result = schedlab(
        *("run", "--machine", "linux", "--policy", "fair", "--workload", str(workload), *arguments),
        timeout=900,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = (tmp_path / "out").rglob(TRACE_FILE)
    assert trace.read(file).lost == 0
    run = lab.open(file.parent)
    server = run.processes.filter(pl.col("name") == "schedlab-linux")["running_ns"].sum()
    assert server < 0.1 * (run.window.end_ns - run.window.begin_ns)
