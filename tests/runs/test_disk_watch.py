# SPDX-License-Identifier: MIT
"""Tests that a run is ended if it writes too much or its disk fills up; its recorded part is
measured.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from schedlab.base.host.disk import TRACE_LIMIT_VARIABLE, DiskWatch, trace_limit_mib
from schedlab.base.host.supervision import run_interactively, supervise
from schedlab.errors import SchedlabError, WrongUsage

ENDLESS = {
    "global": {"duration": 500_000_000},
    "tasks": {name: {"run": 1_000_000, "loop": -1} for name in ("a", "b")},
}
Usage = namedtuple("Usage", "total used free")
MIB = 1 << 20


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.json"
    path.write_text(json.dumps(ENDLESS))
    return path


def only(folder: Path) -> Any:
    (manifest,) = folder.glob("*/manifest.json")
    return json.loads(manifest.read_text())


def test_a_trace_that_grows_too_long_ends_the_run_and_is_measured(
    schedlab: Command, endless: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    options = ("--machine", "sim", "--policy", "stride", "--cpus", "1", "--tick", "1s")
    result = schedlab(
        *("run", "--workload", str(endless), *options, "--trace-limit", "1", "--json"),
        *("--out", str(out)),
    )
    assert result.returncode == 1
    assert only(out)["status"] == "disk"
    assert TRACE_LIMIT_VARIABLE in result.stderr
    (run,) = json.loads(result.stdout)["runs"]
    summary = run["metrics"]["summary"]
    assert summary["truncated"]
    assert summary["context_switches"] > 1000


def test_a_sweep_has_the_same_limit(schedlab: Command, endless: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    options = ("--workload", str(endless), "--policy", "stride", "--tick", "1ms")
    long = ("--limit", "86400s")
    result = schedlab(
        *("sweep", *options, *long, "--jobs", "1", "--out", str(out)),
        environment={TRACE_LIMIT_VARIABLE: "1"},
    )
    assert result.returncode == 1
    assert TRACE_LIMIT_VARIABLE in result.stdout + result.stderr


def supervised(folder: Path, code: str, watch: DiskWatch) -> int | None:
    command = [sys.executable, "-c", code]
    return supervise(command, folder, folder / "console", 60, watch.has_problem)


def test_a_disk_that_another_user_fills_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free = iter([1000 * MIB, 900 * MIB])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, next(free, 200 * MIB)))
    watch = DiskWatch(tmp_path)
    assert supervised(tmp_path, "import time; time.sleep(50)", watch) is None
    assert "200 MiB" in watch.problem
    assert "name a folder of another disk" in watch.problem


def test_a_program_that_ends_by_itself_has_no_problem(tmp_path: Path) -> None:
    watch = DiskWatch(tmp_path)
    assert supervised(tmp_path, "raise SystemExit(3)", watch) == 3
    assert not watch.problem


def test_earlier_results_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(TRACE_LIMIT_VARIABLE, "1")
    (tmp_path / "before").write_bytes(b"x" * 2 * MIB)
    watch = DiskWatch(tmp_path)
    assert not watch.has_problem()
    (tmp_path / "after").write_bytes(b"x" * 2 * MIB)
    assert watch.has_problem()


@pytest.mark.parametrize("text", ["0", "1.5", "-1", "many"])
def test_a_wrong_limit_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(TRACE_LIMIT_VARIABLE, text)
    with pytest.raises(WrongUsage, match=f"{TRACE_LIMIT_VARIABLE}={text}: .* above 0; set one"):
        trace_limit_mib()


def test_a_machine_in_a_terminal_is_ended_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(TRACE_LIMIT_VARIABLE, "1")
    writes = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(open('end', 'w').close()))\n"
        "open('trace', 'wb').write(bytes(1 << 21)); time.sleep(50)"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SchedlabError, match=TRACE_LIMIT_VARIABLE):
        run_interactively([sys.executable, "-c", writes], DiskWatch(tmp_path))
    assert (tmp_path / "end").exists()
    assert (
        run_interactively([sys.executable, "-c", "raise SystemExit(3)"], DiskWatch(tmp_path)) == 3
    )
