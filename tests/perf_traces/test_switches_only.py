# SPDX-License-Identifier: MIT
"""Tests recordings of switches alone: which figures are known, and which are empty."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from conftest import Command
from perf_recordings import TICK_NS, unpacked
from schedlab import metrics, trace
from schedlab.analysis.explanation import WaitQuery, explain
from schedlab.analysis.tables import TraceTables
from schedlab.commands.metric_tables import tables
from schedlab.metrics.unknown import NEED_WAKEUPS
from schedlab.recordings.convert import Imported, convert
from schedlab.runs.recording import read_recording


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Imported, Imported]:
    """Returns the same recording with and without its wake-ups."""
    folder = tmp_path_factory.mktemp("recordings")
    full_recording = unpacked("raw.txt", folder)
    lines = full_recording.read_text().splitlines(keepends=True)
    part = folder / "part.txt"
    part.write_text("".join(line for line in lines if "sched_wak" not in line))
    return tuple(
        convert(path, folder / path.stem, "fair", TICK_NS) for path in (full_recording, part)
    )  # type: ignore[return-value]


def test_stays_and_switches_equal_the_recording(
    both: tuple[Imported, Imported],
) -> None:
    stays, switches = [], []
    begin_ns = max(made.manifest["recording"]["begin_ns"] for made in both)
    for made in both:
        read = trace.read(made.folder / "trace.bin")
        trace.validate(read)
        times = pl.col("begin_ns", "end_ns") + made.manifest["recording"]["begin_ns"]
        intervals = metrics.cpu_intervals(read).select("pid", "cpu", times)
        # The full recording begins with a wake-up, and so earlier.
        stays.append(intervals.filter(pl.col("begin_ns") > begin_ns))
        assert made.metrics is not None
        switches.append(made.metrics.summary["context_switches"][0])
    assert len(stays[0]) > 150
    assert stays[0].equals(stays[1])
    assert switches[0] == switches[1]


def test_unknown_results_are_empty_with_a_reason(both: tuple[Imported, Imported]) -> None:
    complete, part = both
    assert complete.metrics is not None
    assert part.metrics is not None
    for name in ("summary", "processes", "groups"):
        table, known = getattr(part.metrics, name), getattr(complete.metrics, name)
        unknown_columns = {column for column in table.columns if NEED_WAKEUPS.fullmatch(column)}
        assert {column for column in unknown_columns if known[column].count()}
        assert not any(table[column].count() for column in unknown_columns)
        assert table["running_ns"].null_count() == 0
    assert part.manifest["recording"]["mended"] <= complete.manifest["recording"]["mended"]
    assert "not how long threads waited" in part.notes[0]
    (table, *_) = tables([("fair", part.metrics)])
    assert "the trace does not record wake-ups" in str(table.caption)
    stored_metrics = metrics.load(part.folder / "metrics")
    assert stored_metrics.summary.equals(part.metrics.summary)


def test_waits_of_those_that_lost_their_cpu_are_explained(
    both: tuple[Imported, Imported],
) -> None:
    explanations = [
        explain(trace.read(conversion.folder / "trace.bin"), WaitQuery(kinds=("turn",)), {})
        for conversion in both
    ]
    assert [explanation.wakeups_unknown for explanation in explanations] == [False, True]
    assert explanations[0].waited_ns == explanations[1].waited_ns > 0
    tables = TraceTables(trace.read(both[1].folder / "trace.bin"))
    assert not len(tables.waits.filter(pl.col("kind") == "wake-up"))
    assert not tables.processes["waiting_ns"].count()


def test_replay_lists_what_it_lacks(both: tuple[Imported, Imported]) -> None:
    assert any("counts as sleep" in note for note in read_recording(both[1].folder).notes)


def test_reports_and_explanations_are_made_of_it(
    both: tuple[Imported, Imported], schedlab: Command, tmp_path: Path
) -> None:
    report = schedlab(
        "report", str(both[1].folder), "--format", "markdown", "--out", str(tmp_path / "report")
    )
    assert report.returncode == 0, report.stderr
    explained = schedlab("explain", str(both[1].folder), "--worst", "1")
    assert explained.returncode == 0, explained.stderr
    assert "does not record wake-ups" in explained.stderr
