# SPDX-License-Identifier: MIT
"""Tests the monitor in a terminal: Textual's pilot presses keys, and a simulated system reacts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, Static, TabbedContent

from conftest import without_progress
from hostile_names import NAMES, UNSAFE, hostile_run
from schedlab.base.host.isolated import module_command
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.monitor.session import Session
from schedlab.monitor.system import Setup
from schedlab.monitor.system_factory import read_choices
from schedlab.monitor.systems.recorded import recorded_setup
from schedlab.monitor.terminal import pictures
from schedlab.monitor.terminal.app import MonitorApp, TextEntryDialog
from schedlab.monitor.terminal.process_table import COLUMNS, ProcessTable
from schedlab.monitor.terminal.views import SystemView
from schedlab.runs.parts import build_parts

Story = Callable[[MonitorApp, Pilot[None]], Awaitable[None]]
PATIENCE_S = 30


def setup(policy: str) -> Setup:
    return Setup("sim", PolicyChoice(policy), workloads=("tickets-3-2-1", "interactive"))


def play(story: Story, *policies: str) -> None:
    """Runs a session of simulated systems behind an invisible terminal."""
    build_parts(("simulator",))

    async def run() -> None:
        session = Session([setup(policy) for policy in policies], read_choices(), speed=2.0)
        app = MonitorApp(session)
        async with app.run_test(size=(160, 50)) as pilot:
            driving = asyncio.ensure_future(session.run())
            try:
                await until(
                    pilot, lambda: all(ready(system_view) for system_view in app.views.values())
                )
                await story(app, pilot)
            finally:
                driving.cancel()
                await asyncio.wait([driving])
                await session.close()

    asyncio.run(run())


def ready(system_view: SystemView) -> bool:
    return system_view.frame is not None and system_view.frame["now_ns"] > 500_000_000


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(PATIENCE_S * 20):
        if condition():
            return
        await pilot.pause(0.05)
    raise AssertionError("it did not come to that")


async def choose(pilot: Pilot[None], text: str) -> None:
    """In a dialog, types a text and accepts it or the first match."""
    await until(pilot, lambda: pilot.app.screen.query(Input))
    pilot.app.screen.query_one(Input).value = text
    await pilot.pause(0.05)
    await pilot.press("enter")


def picture(app: MonitorApp, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).render())


def rows(app: MonitorApp) -> list[str]:
    """Returns the lines of the table, including its header."""
    table = app.query_one(ProcessTable)
    return [table.render_line(y).text for y in range(len(table.order) + 1)]


def test_every_tab_shows_the_system() -> None:
    async def story(app: MonitorApp, pilot: Pilot[None]) -> None:
        assert "mlfq" in picture(app, "heads")
        assert "█" in picture(app, "meters")
        assert all(column.title in rows(app)[0] for column in COLUMNS)
        assert any("typist" in row for row in rows(app)[1:])
        for key, name, word in (
            ("f3", "timeline", "CPU"),
            ("f4", "queues", "waiting"),
            ("f5", "metrics", "wake-up latency"),
            ("f7", "decisions", "level"),
        ):
            await pilot.press(key)
            await pilot.pause(0.5)
            assert app.query_one(TabbedContent).active == name
            if name == "timeline":
                text = str(pictures.draw_timeline(app.current_view, 150, 1_000_000_000))
                assert re.search(r"L[0-3] ", text)
                assert "typist" in text
            elif name == "metrics":
                assert [
                    column.header for column in pictures.metrics_table([app.current_view]).columns
                ]
            elif name == "decisions":
                assert pictures.decisions_table(app.current_view, 10).row_count > 0
            else:
                assert word in picture(app, f"{name}-picture")

    play(story, "mlfq")


def test_questions_are_answered() -> None:
    async def story(app: MonitorApp, pilot: Pilot[None]) -> None:
        system = app.session.systems["a"].system
        assert system is not None
        await pilot.press("p")
        await choose(pilot, "lottery:thesis")
        await until(
            pilot,
            lambda: app.current_view.frame and app.current_view.frame["policy"] == "lottery:thesis",
        )
        assert (await system.read_status()).policy == "lottery:thesis"

        await pilot.press("p")
        await choose(pilot, "rr")
        await until(
            pilot,
            lambda: app.current_view.frame and app.current_view.frame["policy"].startswith("rr"),
        )
        await pilot.press("t")
        await pilot.pause(0.5)
        await choose(pilot, "slice")
        await until(pilot, lambda: isinstance(app.screen, TextEntryDialog))
        await choose(pilot, "7")
        await pilot.pause(0.5)
        tunable_values = {tunable.name: tunable.value for tunable in await system.read_tunables()}
        assert tunable_values["slice"] == 7

        table = app.query_one(ProcessTable)
        await pilot.press("end")
        pid = table.chosen_pid
        assert pid in table.pids()
        await pilot.press("a")
        await choose(pilot, "tickets")
        await until(pilot, lambda: isinstance(app.screen, TextEntryDialog))
        await choose(pilot, "42")
        await until(pilot, lambda: table.value_of(pid, "tickets") == 42)
        assert {row.pid: row.tickets for row in (await system.read_status()).rows}[pid] == 42
        await pilot.press("k")
        await until(pilot, lambda: pid not in table.pids())

        before = set(table.pids())
        await pilot.press("w")
        await choose(pilot, "two-hogs")
        await until(pilot, lambda: len(set(table.pids()) - before) >= 2)

    play(story, "rr")


def test_every_key_has_its_action() -> None:
    for binding in MonitorApp.BINDINGS:
        assert isinstance(binding, Binding)
        name = binding.action.partition("(")[0]
        assert hasattr(MonitorApp, f"action_{name}"), binding


def test_the_table_is_sorted_filtered_and_draws_what_can_be_seen() -> None:
    async def story(app: MonitorApp, pilot: Pilot[None]) -> None:
        table = app.query_one(ProcessTable)
        everyone = set(table.pids())
        await pilot.press("H")
        assert set(table.pids()) > everyone
        await pilot.press("H", "o")
        assert table.pids() == sorted(everyone, reverse=True)
        await pilot.press("slash")
        await pilot.pause(0.1)
        await until(pilot, lambda: isinstance(app.screen, TextEntryDialog))
        await choose(pilot, "typist")
        await pilot.pause(0.2)
        assert 0 < len(table.pids()) < len(everyone)
        assert all("typist" in row for row in rows(app)[1:])

    play(story, "stride")


def test_without_a_terminal_the_need_is_named() -> None:
    ours, theirs = os.openpty()
    for stdin, stderr in ((theirs, None), (None, theirs), (None, None)):
        completed = subprocess.run(
            module_command("schedlab", "top", "--machine", "sim"),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=theirs,
            stderr=subprocess.PIPE if stderr is None else stderr,
            timeout=60,
            check=False,
        )
        assert completed.returncode == 2
        message = without_progress((completed.stderr or os.read(ours, 4096)).decode())
        assert "top: standard input and standard error are not a terminal" in message
        assert len(message.splitlines()) == 1
    os.close(ours)
    os.close(theirs)


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    """Names of processes, groups, the run and its machine; of the user's workloads; in refusals."""
    hostile_run(tmp_path / "run", "".join(NAMES).replace("\0", "").replace("/", ""))
    files = []
    for number, name in enumerate(NAMES):
        if name.strip() and not set(name) & set("\0/"):
            file = tmp_path / f"own{number} {name[:90]}.json"
            file.write_text(json.dumps({"description": name, "tasks": {"a": {"run": "1ticks"}}}))
            files.append(file)
    choices = read_choices(tuple(files))

    async def run() -> None:
        session = Session([recorded_setup(tmp_path / "run")], choices, speed=0.001)
        app = MonitorApp(session)
        async with app.run_test(size=(200, 60), notifications=True) as pilot:
            driving = asyncio.ensure_future(session.run())
            try:
                await until(pilot, lambda: app.current_view.frame and len(rows(app)) > 5)
                await story(app, pilot)
            finally:
                driving.cancel()
                await asyncio.wait([driving])
                await session.close()

    async def story(app: MonitorApp, pilot: Pilot[None]) -> None:
        await pilot.press("H", "down")
        for key in (f"f{number}" for number in (3, 4, 5, 6, 7, 8, 2)):
            await pilot.press(key)
            await pilot.pause(0.1)
            seen(app)
        await pilot.press("w")
        for number in range(0, len(files), 11):
            pilot.app.screen.query_one(Input).value = f"own{number}"
            await pilot.pause(0.05)
            assert f"own{number}" in seen(app)
        await pilot.press("escape")
        with mock.patch.object(app, "notify", wraps=app.notify) as notify:  # they disappear
            await app.perform("start", workload="\x1b[31mno\u2028")
            app.show_message("kept in \x07here")
            await until(pilot, lambda: notify.call_count == 2)
        notifications = [call.args[0] for call in notify.call_args_list]
        assert "kept in \\x07here" in notifications
        assert not UNSAFE.search("".join(notifications)), ascii(notifications)

    def seen(app: MonitorApp) -> str:
        """Returns all text on the terminal now."""
        strips = app.screen._compositor.render_strips(app.screen.size)
        text = "".join(segment.text for strip in strips for segment in strip)
        assert not re.search(r"[\n\t]", text)
        assert not UNSAFE.search(text), ascii(UNSAFE.findall(text))
        return text

    asyncio.run(run())
