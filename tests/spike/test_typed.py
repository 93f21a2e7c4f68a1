# SPDX-License-Identifier: MIT
"""Tests that a user's input to a live machine is recorded with its times, and that replaying
it reproduces the run.
"""

from __future__ import annotations

import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from built_once import build_once
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import Boot
from schedlab.machines.folder import TRACE_FILE, TYPED_FILE
from schedlab.machines.spike import SPIKE_VARIABLE, STOCK, build_driver, driver_command

WORDS = f"policy=mlfq tick=1ms trace={TRACE_FILE}"
PROMPT = b"$ "
PATIENCE_S = 60


def command(folder: Path, typed: Path | None = None, interleaving: str = "") -> list[str]:
    """Returns the command for a machine with a shell that records its input in a directory,
    which is created.
    """
    build_once("kernel", "image")
    folder.mkdir()
    boot = Boot(KERNEL_PROGRAM, DISK_IMAGE, 2, 512, WORDS, live=True, keeps_typed=True, typed=typed)
    return driver_command(str(build_driver()), boot, interleaving=interleaving)


class Terminal:
    """A user at a machine: input is echoed, as on any terminal."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.end, theirs = pty.openpty()
        tty.setraw(theirs)  # each character reaches the machine at once
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        os.close(theirs)
        self.output = b""

    def hear(self) -> bytes:
        assert self.process.stdout
        assert select.select([self.process.stdout], [], [], PATIENCE_S)[0], self.output
        more = os.read(self.process.stdout.fileno(), 65536)
        self.output += more
        return more

    def until(self, words: bytes, times: int = 1) -> None:
        while self.output.count(words) < times:
            assert self.hear(), self.output

    def type(self, text: str) -> None:
        os.write(self.end, text.encode())

    def leave(self) -> tuple[int, bytes]:
        """Returns the exit status and all output."""
        while self.hear():
            pass
        status = self.process.wait(60)
        os.close(self.end)
        return status, self.output


def type_oddly(terminal: Terminal) -> None:
    """Types characters singly, in bursts, during output, and with pauses."""
    chance = random.Random(7)
    terminal.until(PROMPT)
    for character in "echo slowly\n":
        terminal.type(character)
        time.sleep(chance.choice([0, 0.001, 0.004, 0.03]))
    terminal.until(PROMPT, 2)
    terminal.type("cpu-bound -n 3 -i 4\necho while it ran " + "x" * 60 + "\n")
    terminal.until(b"xxx\n")
    time.sleep(0.2)
    terminal.type("nonsense\x7f\b\x15echo \\ \xe9\t\n")
    time.sleep(0.05)


def again(folder: Path, typed: Path, interleaving: str = "") -> tuple[int, bytes]:
    result = subprocess.run(
        command(folder, typed, interleaving),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return result.returncode, result.stdout


def power_off(terminal: Terminal) -> None:
    terminal.type("poweroff\n")


def interrupt(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)


@pytest.mark.spike
@pytest.mark.parametrize(
    ("leave", "expected", "interleaving"),
    [(interrupt, 130, ""), (power_off, 0, "5")],
)
def test_typed_again_it_is_the_same_run(
    tmp_path: Path, leave: Callable[[Terminal], None], expected: int, interleaving: str
) -> None:
    terminal = Terminal(command(tmp_path / "live", None, interleaving), tmp_path / "live")
    type_oddly(terminal)
    leave(terminal)
    live = terminal.leave()
    assert live[0] == expected
    typed_file = tmp_path / "live" / TYPED_FILE
    begin = time.monotonic()
    assert again(tmp_path / "again", typed_file, interleaving) == live
    assert time.monotonic() - begin < 60
    assert b"while it ran" in live[1]
    for name in (TRACE_FILE, TYPED_FILE):
        first = (tmp_path / "live" / name).read_bytes()
        assert first
        assert (tmp_path / "again" / name).read_bytes() == first


@pytest.mark.spike
@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "typed: No such file"), ("7 a\n6 b\n", "typed, line 2: invalid line")],
)
def test_what_cannot_be_typed_again(tmp_path: Path, text: str | None, message: str) -> None:
    if text:
        (tmp_path / TYPED_FILE).write_text(text)
    status, output = again(tmp_path / "again", tmp_path / TYPED_FILE)
    assert status == 1
    assert message in output.decode()
    assert len(output.splitlines()) == 1


def boot(*options: str) -> list[str]:
    """Returns the command that a user enters for such a machine."""
    return [sys.executable, "-m", "schedlab", "boot", "--machine", "spike", "--cpus", "2", *options]


@pytest.mark.spike
def test_a_user_records_what_is_typed_and_types_it_again(tmp_path: Path) -> None:
    build_once("kernel", "image")
    terminal = Terminal(boot("--record", "first"), tmp_path)
    terminal.until(PROMPT)
    terminal.type("cpu-bound -n 2 -i 2; poweroff\n")
    status, _ = terminal.leave()
    assert status == 0
    words = boot("--typed", f"first/{TYPED_FILE}", "--record", "second")
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0
    assert b"poweroff" in result.stdout
    for name in (TRACE_FILE, TYPED_FILE):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert result.returncode == 2
    assert b"--record second: the folder exists" in result.stderr


def test_what_does_not_repeat_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SPIKE_VARIABLE, STOCK)
    result = subprocess.run(
        boot("--record", "here"), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "only schedlab's own Spike can repeat" in result.stderr
    assert not list(tmp_path.iterdir())
