# SPDX-License-Identifier: MIT
"""Tests the player of a report's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schedlab.report import player_pages
from schedlab.report.model import Recording, Report


def test_a_damaged_trace_is_no_trace_for_perfetto(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report: Any = Report("a report", ())
    trace = tmp_path / "trace.bin"
    trace.write_bytes(b"no trace at all")
    monkeypatch.setattr(
        player_pages,
        "_linked_recordings",
        lambda report: [Recording("run-1", "a run", "rr", trace)],
    )
    player_pages.write_player_pages(report, tmp_path)
    assert [path.name for path in (tmp_path / player_pages.PLAYER_FOLDER).iterdir()] == [
        "run-1.html"
    ]
