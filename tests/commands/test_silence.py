# SPDX-License-Identifier: MIT
"""No command is silent for more than two seconds while it builds or checks."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from schedlab.base.display import working as display
from schedlab.base.display.working import SILENCE_SECONDS, repeat, working
from schedlab.base.toolchain import build as building
from schedlab.machines import checked
from schedlab.monitor import making
from schedlab.paths import ROOT
from schedlab.runs import progress as runs


def test_a_line_follows_the_last_within_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(display, "say_progress", lines.append)
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 3

    repeat(wait, lambda: f"step {len(waits)}")
    assert max(waits) <= 2
    assert [line.split("  ")[0] for line in lines] == ["step 1", "step 2", "step 3"]


def test_a_slow_step_speaks_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[str, threading.Event] = {"first": threading.Event(), "inner": threading.Event()}
    monkeypatch.setattr(display, "SILENCE_SECONDS", 0.001)
    monkeypatch.setattr(display, "messages", lambda: SimpleNamespace(is_terminal=False))
    monkeypatch.setattr(display, "say_progress", lambda text: heard[text.split("  ")[0]].set())
    with working("first"):
        assert heard["first"].wait(60)
        with working("inner"):  # one voice, which says what is done now
            assert heard["inner"].wait(60)
        heard["first"].clear()
        assert heard["first"].wait(60)  # it goes on
    assert not display._outer


def test_work_within_work_is_shown_until_it_ends() -> None:
    """A part of another thread's may end in any order."""
    shown: list[str] = []
    work = display._Work(shown.append)
    parts = [contextlib.ExitStack() for _ in range(3)]
    outer, one, _ = (
        part.enter_context(work.part(name)) for part, name in zip(parts, "abc", strict=True)
    )
    outer("A")
    one("B")
    parts[2].close()
    parts[1].close()
    parts[0].close()
    assert shown == ["a", "b", "c", "B", "A"]


class Silent(Exception):
    """A slow step was begun, and nothing would be said."""


COUNTS = "".join(
    f"{field.name} 1\n" for field in dataclasses.fields(checked.Passed) if field.type == "int"
)
"""What the checked simulator prints."""


def slow_step(*_: Any, **__: Any) -> Any:
    if not display._outer:
        raise Silent
    return SimpleNamespace(returncode=0, stdout=COUNTS, stderr="")


def test_whatever_is_built_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def begin(command: list[str], **_: Any) -> Any:
        begun.append(command)
        return slow_step()

    monkeypatch.setattr(subprocess, "run", begin)
    building.build("build/kernel.elf")
    assert begun


def test_a_check_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", slow_step)
    assert checked._run(Path("mine.c"), []).setups == 1


@pytest.mark.parametrize("board", [lambda: runs.Board((), 1), lambda: runs.Board((), 1, total=5)])
def test_runs_that_take_long_speak(
    board: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (runs, display):
        monkeypatch.setattr(module, "messages", lambda: Console(file=io.StringIO()))
    with board():
        assert display._outer
    assert not display._outer


def test_nothing_else_starts_make() -> None:
    """All builds go through `build`, which speaks."""
    starts = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "python" / "schedlab").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.List)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and node.elts[0].value == "make"
    ]
    assert starts == ["python/schedlab/base/toolchain/build.py"]


@pytest.mark.parametrize("machine", [*making._ADAPTERS])
def test_the_monitor_builds_all_before_its_page_opens(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its adapters would build in silence."""
    built: list[str] = []
    monkeypatch.setattr(making, "build", lambda *targets: built.extend(targets))
    monkeypatch.setattr(making, "supply", lambda *_: {})
    making.make_ready(SimpleNamespace(machine=machine))  # type: ignore[arg-type]
    assert "build/model/libschedlab-model.so" in built


def test_the_promise_is_two_seconds() -> None:
    assert SILENCE_SECONDS <= 2
