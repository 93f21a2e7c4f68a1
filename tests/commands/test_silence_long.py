# SPDX-License-Identifier: MIT
"""Tests how long commands are silent, in a fresh clone and on saved runs."""

from __future__ import annotations

import itertools
import lzma
import os
import pty
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.display.activity import SILENCE_SECONDS

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("silence")]  # run one after the other


@dataclass(frozen=True)
class Case:
    """A command and how it is started."""

    words: str
    until: bytes = b""
    """Output after which a command that waits for its user is ended."""
    terminal: bool = False


SERVED = b"http://"
IN_A_FRESH_CLONE = (
    Case("monitor --no-browser", until=SERVED),
    Case("new-policy my-own"),
    Case("check rr"),
    Case("explore policy rr --tasks 2 --depth 3"),
    Case("grade round-robin labs/round-robin/solution.c"),
    Case("calibrate --policy rr --cpus 2"),
    Case("page"),
)
"""The first commands build what later ones also need."""
ON_RUNS = (
    Case("report {runs}"),
    Case("compare {runs} {runs}"),
    Case("explain {run}"),
    Case("replay {run} --out {out}"),
    Case("verify {run}"),
    Case("analyse deadlines"),
    Case("sweep --machine sim --workload cpu-bound --policy rr,mlfq --seeds 2 --out {out}"),
    Case("score mlfq"),
    Case("monitor {run} --no-browser", until=SERVED),
    Case("monitor --machine sim --no-browser", until=SERVED),
    Case("top {run}", until=b"mlfq", terminal=True),
    Case("branch {branched} --at 20ms --policy mlfq --out {out}"),
    Case("import {recording} --out {out}"),
    Case("reproduce study-4 --machine sim --out {out}"),
)


def silences(root: Path, case: Case) -> list[float]:
    """Runs a command and returns the seconds before, between and after its outputs."""
    parent, child = pty.openpty() if case.terminal else os.pipe()
    source = child if case.terminal else subprocess.DEVNULL
    words = ["./schedlab", *case.words.split()]
    heard = b""
    times = [time.monotonic()]
    with (
        subprocess.Popen(words, cwd=root, stdin=source, stdout=child, stderr=child) as process,
        selectors.DefaultSelector() as selector,
    ):
        os.close(child)
        selector.register(parent, selectors.EVENT_READ)
        while selector.select() and (output := read_some(parent)):
            times.append(time.monotonic())
            heard += output
            if case.until and case.until in heard:
                process.send_signal(signal.SIGINT)
                break
        os.close(parent)
    if not case.until:
        times.append(time.monotonic())
        assert process.returncode in (0, 1), heard.decode()
    else:
        assert case.until in heard, heard.decode()
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def read_some(descriptor: int) -> bytes:
    """Returns the output, or nothing if the program has closed its terminal."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def check_silence(root: Path, case: Case) -> None:
    """Allows slack for a busy host: for each phase, the time of a command that does nothing."""
    slack = 3 * sum(silences(root, Case("runs ls")))
    first, *others = silences(root, case)
    assert first < SILENCE_SECONDS + slack
    assert max(others, default=0) < SILENCE_SECONDS + slack / 3


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(path)], check=True)
    return path


@pytest.mark.parametrize("case", IN_A_FRESH_CLONE, ids=lambda case: case.words)
def test_commands_that_build_in_a_fresh_clone(clone: Path, case: Case) -> None:
    check_silence(clone, case)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders and files that the commands are called on."""
    folder = tmp_path_factory.mktemp("runs")
    for name, words in {
        "runs": ("--machine", "sim", "--workload", "mixed", "--policy", "rr,mlfq"),
        "branched": ("--workload", "mixed -n 6 -g 80", "--policy", "rr"),
    }.items():
        command = [str(ROOT / "schedlab"), "run", *words, "--cpus", "1", "-q"]
        subprocess.run([*command, "--out", str(folder / name)], check=True)
    recording = folder / "sched.data"
    packed = ROOT / "tests" / "recordings" / "sched.data.xz"
    recording.write_bytes(lzma.decompress(packed.read_bytes()))
    return {
        "runs": folder / "runs",
        "run": next((folder / "runs").glob("mlfq*")),
        "branched": next((folder / "branched").glob("rr*")),
        "recording": recording,
    }


@pytest.mark.parametrize("case", ON_RUNS, ids=lambda case: case.words.split()[0])
def test_commands_that_compute(places: dict[str, Path], tmp_path: Path, case: Case) -> None:
    words = case.words.format(**places, out=tmp_path / "out")
    check_silence(ROOT, Case(words, case.until, case.terminal))
