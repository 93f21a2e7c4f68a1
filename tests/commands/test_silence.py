# SPDX-License-Identifier: MIT
"""Tests that no command is silent for more than two seconds while it builds or checks."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from schedlab.base.display import activity as display
from schedlab.base.display.activity import working
from schedlab.monitor import system_factory
from schedlab.runs import progress as runs


def test_slow_step_reports_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[str, threading.Event] = {"first": threading.Event(), "inner": threading.Event()}
    monkeypatch.setattr(display, "SILENCE_SECONDS", 0.001)
    monkeypatch.setattr(display, "messages", lambda: SimpleNamespace(is_terminal=False))
    monkeypatch.setattr(display, "say_progress", lambda text: heard[text.split("  ")[0]].set())
    with working("first"):
        assert heard["first"].wait(60)
        with working("inner"):  # one line of output, which shows the current step
            assert heard["inner"].wait(60)
        heard["first"].clear()
        assert heard["first"].wait(60)  # the outer step reports again
    assert not display._outer


@pytest.mark.parametrize("board", [lambda: runs.Board((), 1), lambda: runs.Board((), 1, total=5)])
def test_runs_that_take_long_speak(
    board: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (runs, display):
        monkeypatch.setattr(module, "messages", lambda: Console(file=io.StringIO()))
    with board():
        assert display._outer
    assert not display._outer


@pytest.mark.parametrize("machine", [*system_factory._ADAPTERS])
def test_the_monitor_builds_all_before_its_page_opens(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapters would otherwise build without progress."""
    built: list[str] = []
    monkeypatch.setattr(system_factory, "build", lambda *targets: built.extend(targets))
    monkeypatch.setattr(system_factory, "supply", lambda *_: {})
    system_factory.make_ready(SimpleNamespace(machine=machine))  # type: ignore[arg-type]
    assert "build/model/libschedlab-model.so" in built
