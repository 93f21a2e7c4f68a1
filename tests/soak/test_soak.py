# SPDX-License-Identifier: MIT
"""Tests `./schedlab dev soak`: growth is detected, failures are reported, and no process
remains.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guest_machine import run_guest
from processes import is_running, wait_until
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.paths import BUILD_FOLDER
from schedlab_tools.soak import conduct as conducting
from schedlab_tools.soak.conduct import PartLog, Soak, conduct
from schedlab_tools.soak.findings import Row, rows, write_results
from schedlab_tools.soak.loads import Load, Part


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens soaks but keeps many samples."""
    monkeypatch.setattr(conducting, "SHORTEST_PERIOD_S", 0.03)
    monkeypatch.setattr(conducting, "SAMPLES_TARGET", 100_000)
    monkeypatch.setattr(conducting, "GRACE_S", 0.5)


def load_of(script: str, ends_by: signal.Signals | None = signal.SIGTERM, **more: object) -> Load:
    """Returns a load with one part, which runs a Python script."""
    part = Part("part", (sys.executable, "-c", script), ends_by, (0, -signal.SIGTERM))
    return Load("load", "a stand-in", lambda _seconds, _folder: [part], **more)  # type: ignore[arg-type]


def sampled(folder: Path, load: Load, rounds: int = 100) -> Soak:
    """Takes this number of samples, regardless of their duration; then sends Ctrl-C."""
    left = iter(range(rounds))

    def count(_now: float, _parts: object) -> None:
        if next(left, None) is None:
            signal.raise_signal(signal.SIGINT)

    return conduct([load], 600, folder, count)


def row_of(soak: Soak, load: Load, figure: str) -> Row:
    (matching_row,) = [row for row in rows(soak, [load]) if row.figure == figure]
    return matching_row


# --- conduct --------------------------------------------------------------------------------------

LEAKS = """
import time
kept = []
while True:
    kept.append(bytearray(b"x" * 2_000_000))
    print(f"soak kept={len(kept)}", flush=True)
    time.sleep(0.03)
"""
HOLDS = "import time; kept = bytearray(b'x' * 50_000_000); time.sleep(1000)"


def test_leak_is_detected_and_a_constant_is_none(tmp_path: Path) -> None:
    leaks, holds = load_of(LEAKS, steady=("kept",)), load_of(HOLDS)
    soak = sampled(tmp_path / "leaks", leaks)
    assert soak.problems == {"load": []}
    memory = row_of(soak, leaks, "memory_bytes")
    assert memory.trend
    assert memory.trend.low > 0
    retained_row = row_of(soak, leaks, "kept")
    assert retained_row.trend
    assert retained_row.trend.low > 0
    assert memory.last - memory.first > 1_000_000 * (retained_row.last - retained_row.first)

    soak = sampled(tmp_path / "holds", holds)
    trend = row_of(soak, holds, "memory_bytes").trend
    assert trend
    assert abs(trend.per_hour) < 3600 * 1_000_000
    write_results(tmp_path, soak, {})
    header, *lines = (tmp_path / "samples.csv").read_text().splitlines()
    assert header == "load,part,seconds,figure,value"
    assert len(lines) == len(soak.samples)


# --- the command ----------------------------------------------------------------------------------


SOAK = """
import sys
from schedlab.commands.cli import main
from schedlab_tools.soak import conduct, loads

script, out = sys.argv[1:]
conduct.SHORTEST_PERIOD_S = 0.05
part = loads.Part("part", (sys.executable, "-c", script))
loads.LOADS = {"load": loads.Load("load", "a stand-in", lambda _seconds, _folder: [part])}
sys.argv = ["schedlab", "dev", "soak", "--for", "72s", "--out", out]
main()
"""
TELLS = """
import os, time
while True:
    print(f"soak own={os.getpid()}", flush=True)
    time.sleep(0.05)
"""


@contextmanager
def soaking(out: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Returns a soak in progress after some samples of its only load."""
    process = subprocess.Popen(
        [sys.executable, "-c", SOAK, script, str(out)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log = out / "load" / "part.log"
    try:
        wait_until(lambda: log.exists() and log.read_text().count("soak own=") > 3)
        time.sleep(0.5)
        yield process
    finally:
        process.kill()
        process.communicate()


def stored_in(out: Path) -> dict[str, Any]:
    """Returns the findings; none of the processes mentioned still runs."""
    content: dict[str, Any] = json.loads((out / "soak.json").read_text())
    figures = {row["figure"]: row for row in content["figures"]}
    assert figures["own"]["samples"] > 0
    assert not is_running(int(figures["own"]["last"]))
    lines = (out / "samples.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(row["samples"] for row in content["figures"])
    return content


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)],
)
def test_a_signal_ends_it_with_what_was_seen(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    out = tmp_path / "out"
    with soaking(out, TELLS) as process:
        process.send_signal(number)
        text, _ = process.communicate(timeout=60)
    content = stored_in(out)
    assert content["ended_early_by"] == number.name
    assert content["problems"] == {"load": []}
    assert "Kept in" in text
    assert process.returncode == status


@pytest.mark.qemu
def test_the_storm_leaves_the_kernel_as_it_was(tmp_path: Path) -> None:
    """Runs on two CPUs, with every policy; a failing check of the storm ends it with status 1."""
    build("soak-image")
    guest = run_guest(
        tmp_path,
        f"storm 1 3 4 20 {' '.join(read_catalogue())}",
        machine="qemu",
        cpus=2,
        memory_mib=128,
        image=BUILD_FOLDER / "soak.img",
    )
    assert guest.status == 0, guest.console
    (tmp_path / "log").write_text(guest.console)
    *_, last = PartLog(tmp_path / "log").read()
    assert last["system_calls"] > max(1000, 100 * last["forks"])
    assert last["kills"] > 0
