# SPDX-License-Identifier: MIT
"""Tests that runs can be measured again from their traces."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from kept_runs import keep_simulated
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
from schedlab.report.command import remeasure_runs
from schedlab.runs import collection, results
from schedlab.runs.collection import Collection


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the content of each file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def measured_again(tmp_path: Path, workers: int = 1) -> Collection:
    """Measures all runs below tmp_path/runs again, into tmp_path/metrics."""
    before = contents(tmp_path / "runs")
    runs = remeasure_runs(
        collection.read_collection([tmp_path / "runs"]), tmp_path / "metrics", workers=workers
    )
    assert contents(tmp_path / "runs") == before, "the runs themselves stay as they are"
    return runs


def test_the_same_definitions_give_the_same_metrics(tmp_path: Path) -> None:
    """The metrics match for every run, keep the order of the runs, and ignore the old tables."""
    original_metrics = {
        seed: keep_simulated(tmp_path / "runs" / f"run-{seed}", seed) for seed in range(1, 8)
    }
    for path in (tmp_path / "runs").glob(f"*/{results.METRICS_FOLDER}/*"):
        path.write_bytes(b"")
    again = measured_again(tmp_path, workers=2)
    assert [run.seed for run in again] == sorted(original_metrics)
    for run in again:
        for name in ("summary", "processes", "groups", "cpus", "values"):
            actual, expected = (
                getattr(run.metrics(), name),
                getattr(original_metrics[run.seed], name),
            )
            assert_frame_equal(actual, expected, check_exact=True)
    elapsed = [run_metrics.summary["elapsed_ns"][0] for run_metrics in original_metrics.values()]
    assert again.summary["elapsed_ns"].to_list() == elapsed


def test_a_damaged_trace_is_named(tmp_path: Path) -> None:
    """The run with the damaged trace has an error instead of metrics; the other runs have
    metrics."""
    for seed in (1, 2, 3):
        keep_simulated(tmp_path / "runs" / f"run-{seed}", seed)
    trace = tmp_path / "runs" / "run-1" / TRACE_FILE
    data = bytearray(trace.read_bytes())
    data[64 + 32 * 10 + 16] = 99  # the kind of a record
    trace.write_bytes(bytes(data))
    (tmp_path / "runs" / "run-2" / TRACE_FILE).unlink()
    again = measured_again(tmp_path)
    assert [run.status for run in again] == ["unmeasured", "unmeasured", "success"]
    damaged, missing, _ = (run.manifest["message"] for run in again)
    assert "there is no kind 99" in damaged
    assert "No such file" in missing
    assert again.summary["elapsed_ns"].is_null().to_list() == [True, True, False]


@pytest.mark.parametrize("status", ["panic", "hung", "limit", "killed"])
def test_a_failed_run_stays_failed(tmp_path: Path, status: str) -> None:
    """A failed run stays failed even if its trace can be measured."""
    keep_simulated(tmp_path / "runs" / "run", 1, status=status, message="that is why")
    again = measured_again(tmp_path)
    (run,) = again
    assert (run.status, run.manifest["message"]) == (status, "that is why")
    assert len(again.processes) == 0


def test_an_interrupt_ends_all_work(tmp_path: Path) -> None:
    """No process survives an interrupt."""
    for seed in range(1, 10):
        keep_simulated(tmp_path / "runs" / f"run-{seed}", seed)

    def interrupt(what: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remeasure_runs(
            collection.read_collection([tmp_path / "runs"]),
            tmp_path / "metrics",
            interrupt,
            workers=2,
        )
    assert not multiprocessing.active_children()


def test_a_process_that_is_ended_from_outside_is_noticed(tmp_path: Path) -> None:
    """A worker that the host kills, as the OOM killer does, is reported as an error.

    The worker waits for a trace that no process writes, until the test kills it.
    """
    folder = tmp_path / "runs" / "run"
    keep_simulated(folder, 1)
    (folder / TRACE_FILE).unlink()
    os.mkfifo(folder / TRACE_FILE)

    def end_first() -> None:
        while not multiprocessing.active_children():
            ended.wait(0.01)
        for child in multiprocessing.active_children():
            assert child.pid
            os.kill(child.pid, signal.SIGKILL)

    ended = threading.Event()
    thread = threading.Thread(target=end_first)
    thread.start()
    with pytest.raises(SchedlabError, match="a worker process was killed"):
        remeasure_runs(collection.read_collection([folder]), tmp_path / "metrics", workers=1)
    thread.join()
