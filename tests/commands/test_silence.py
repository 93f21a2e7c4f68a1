# SPDX-License-Identifier: MIT
"""Tests that no command is silent for more than two seconds while it builds or checks."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from schedlab.base.display import activity as display
from schedlab.base.display import terminal
from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.base.files.untrusted import read_tables
from schedlab.monitor import system_factory
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


def test_work_that_printed_nothing_does_not_end_the_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted: set[int] = set()  # threads: others, of earlier tests, may still print
    monkeypatch.setattr(display, "note_message", lambda *_: noted.add(threading.get_ident()))
    monkeypatch.setattr(display, "is_live", lambda: False)
    monkeypatch.setattr(display, "shows_progress", lambda: True)
    with working("a step of no time"):
        pass
    assert threading.get_ident() not in noted
    monkeypatch.setattr(display, "is_live", lambda: True)
    monkeypatch.setattr(display, "message_console", lambda: Console(file=io.StringIO()))
    with working("a step of no time, which a terminal shows"):
        pass
    assert threading.get_ident() in noted


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


def test_messages_are_not_lost_while_tables_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard error is suppressed while polars reads a file, which may be in another thread."""
    speaker = threading.Thread(target=say, args=["said while a table was read"])

    def slow_read(*_: Any, **__: Any) -> pl.DataFrame:
        speaker.start()
        speaker.join(0.2)
        return pl.DataFrame({"a": [1]})

    monkeypatch.setattr(pl, "read_parquet", slow_read)
    with open(2, "w", closefd=False) as standard_error:
        console = Console(file=standard_error)
        monkeypatch.setattr(terminal, "message_console", lambda: console)
        read_tables([tmp_path / "table.parquet"], {"a": pl.Int64()})
        speaker.join(60)
    assert "said while a table was read" in capfd.readouterr().err


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


@pytest.mark.parametrize("machine", [*system_factory._ADAPTERS])
def test_the_monitor_builds_all_before_its_page_opens(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapters would otherwise build without progress."""
    built: list[str] = []
    monkeypatch.setattr(system_factory, "build", lambda *targets: built.extend(targets))
    monkeypatch.setattr(system_factory, "build_parts", lambda *_: {})
    system_factory.build_requirements(SimpleNamespace(machine=machine))  # type: ignore[arg-type]
    assert "build/model/libschedlab-model.so" in built
