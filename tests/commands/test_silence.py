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
from schedlab.runs import progress as runs


def test_slow_step_reports_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[str, threading.Event] = {"first": threading.Event(), "inner": threading.Event()}
    monkeypatch.setattr(display, "SILENCE_SECONDS", 0.001)
    monkeypatch.setattr(display, "message_console", lambda: SimpleNamespace(is_terminal=False))
    monkeypatch.setattr(display, "say_progress", lambda text: heard[text.split("  ")[0]].set())
    with working("first"):
        assert heard["first"].wait(60)
        with working("inner"):  # one line of output, which shows the current step
            assert heard["inner"].wait(60)
        heard["first"].clear()
        assert heard["first"].wait(60)  # the outer step reports again
    assert not display._shown_work


def test_a_message_follows_two_seconds_after_the_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other work shows itself between 1.9 and 3 s, and prints nothing."""
    clock = [0.0]
    last_words = [0.0]
    printed: list[float] = []
    monkeypatch.setattr(display, "silence_s", lambda: clock[0] - last_words[0])
    monkeypatch.setattr(display, "note_message", lambda: last_words.__setitem__(0, clock[0]))
    monkeypatch.setattr(display, "say_progress", lambda _: printed.append(clock[0]))

    def wait(seconds: float) -> bool:
        clock[0] += max(seconds, 0.001)
        return clock[0] > 10

    display.repeat_message(wait, lambda: "working", lambda: not 1.9 < clock[0] < 3)
    assert printed == pytest.approx([3, 5, 7, 9], abs=0.3)


@pytest.mark.parametrize(
    "board", [lambda: runs.ProgressBoard((), 1), lambda: runs.ProgressBoard((), 1, total=5)]
)
def test_runs_that_take_long_speak(
    board: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (runs, display):
        monkeypatch.setattr(module, "message_console", lambda: Console(file=io.StringIO()))
    with board():
        assert display._shown_work
    assert not display._shown_work
