# SPDX-License-Identifier: MIT
"""Fixtures and options shared by all tests."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from cpu_of_rooms import CpuOfRooms
from known_environment import settle
from schedlab.base.display import terminal
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.base.toolchain.tools import find_browser
from started_machines import check_command, watch_starts, watched
from warm_starts import warm_starts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

watch_starts()

# The cases are the same each time, on every machine: the same command reproduces a failure.
settings.load_profile("ci")
# For manual use: many cases, different each time. docs/contributing.md says when.
settings.register_profile(
    "long", derandomize=False, max_examples=2000, stateful_step_count=50, deadline=None
)

ROOT = Path(__file__).resolve().parent.parent

# Programs that tests start as `python -c` find schedlab's packages through it.
settle({"PYTHONPATH": f"{ROOT}/python:{ROOT}/sim/python:{ROOT}/tools"})


FAST_LEAVES_OUT = ("browser", "linux", "qemu", "spike", "slow")
SLOW = tuple(
    line
    for line in (ROOT / "tests" / "slow.txt").read_text().splitlines()
    if line.startswith("tests/")
)
"""Prefixes of the test names that --fast excludes."""
OF_LINUX = tuple(
    f"tests/{room}"
    for room in (
        "explore",
        "guest",
        "host",
        "kernel",
        "linux",
        "mistakes",
        "model",
        "policies",
        "scenario",
        "spike",
    )
)
"""Tests that are compiled with sanitizers, or run on the schedlab kernel or on Linux."""
WITHOUT_A_CARD = ("--disable-gpu", "--disable-software-rasterizer")
"""A browser draws without software rendering, which would be slower."""
LOAD_SIMULATOR = ("tests/monitor/", "tests/sim/")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")
    parser.addoption("--fast", action="store_true", help="leave out what is booted, or takes long")
    parser.addoption("--cpu-seconds", action="store_true", help="tell what each room's tests take")
    parser.addoption("--interleavings", type=int, default=1, help="seeds of each of these tests")
    parser.addoption("--fuzz-cases", type=int, default=15, help="changed files, of each kind")
    parser.addoption("--fuzz-seed", type=int, default=1, help="which they are")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuOfRooms())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips excluded files: collecting them takes longer than running the others."""
    name = str(collection_path.relative_to(ROOT)) if ROOT in collection_path.parents else ""
    if sys.platform != "linux" and name in OF_LINUX:
        return True
    return True if config.getoption("--fast") and name in SLOW else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests that need a browser or are slow, and deselects those not requested."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    left_out: tuple[str, ...] = () if config.getoption("--long") else ("long",)
    if config.getoption("--fast"):
        left_out += FAST_LEAVES_OUT
    deselected = {item for item in items if any(item.get_closest_marker(name) for name in left_out)}
    if deselected:
        config.hook.pytest_deselected(items=[*deselected])
        items[:] = [item for item in items if item not in deselected]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds the simulator's library for tests that load it as the product does, which builds
    nothing.
    """
    if any(item.nodeid.startswith(LOAD_SIMULATOR) for item in session.items):
        build(SIMULATOR_LIBRARY)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with watched(item):
        return (yield)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Returns one browser for all tests of a file. Skips the tests if there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", *WITHOUT_A_CARD]
        )
        yield browser
        browser.close()


Command = Callable[..., "subprocess.CompletedProcess[str]"]
Programs = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def shows_progress_again() -> Iterator[None]:
    """Undoes `--quiet` of a command that a test called in this process."""
    yield
    terminal._quiet.clear()


def without_progress(text: str) -> str:
    """Leaves out the messages that a command prints when it has been silent for two seconds."""
    return re.sub(r"^[\w-]+: (?:starting|working)  [\d.]+ \w+\r?\n", "", text, flags=re.MULTILINE)


@pytest.fixture(scope="session")
def schedlab() -> Command:
    """Runs `./schedlab …` in a separate process; returns its result."""

    def call(
        *arguments: str,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        done = warm_starts.run(arguments, cwd, {**os.environ, **(environment or {})}, timeout)
        check_command(arguments, done.returncode)
        done.stderr = without_progress(done.stderr)
        return done

    return call


@pytest.fixture
def program(tmp_path: Path) -> Programs:
    """Makes an executable shell script in tmp_path/bin: a stand-in for a program."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, body: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return path

    return make
