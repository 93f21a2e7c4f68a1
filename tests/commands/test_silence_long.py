# SPDX-License-Identifier: MIT
"""How long commands are silent where there is no terminal: in a fresh clone, and on runs that were kept."""

from __future__ import annotations

import itertools
import os
import selectors
import subprocess
import time
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.display.working import SILENCE_SECONDS

pytestmark = pytest.mark.long

IN_A_FRESH_CLONE = (
    "check rr",
    "explore policy rr --tasks 2 --depth 3",
    "grade round-robin labs/round-robin/solution.c",
)
ON_RUNS = (
    "report {runs}",
    "compare {runs} {runs}",
    "explain {run}",
    "replay {run} --out {out}",
    "verify {run}",
    "analyse deadlines",
    "sweep --machine sim --workload cpu-bound --policy rr,mlfq --seeds 2 --out {out}",
)


def silences(root: Path, words: list[str]) -> list[float]:
    """Runs a command and returns the seconds until its first output, between outputs, and until its end."""
    with (
        subprocess.Popen(
            ["./schedlab", *words],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdout
        selector.register(process.stdout, selectors.EVENT_READ)
        times = [time.monotonic()]
        while selector.select() and os.read(process.stdout.fileno(), 1 << 16):
            times.append(time.monotonic())
        times.append(time.monotonic())
    assert process.returncode in (0, 1)
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def check_silence(root: Path, command: str) -> None:
    """A busy host may take as long again for each import as for all of a command that does nothing."""
    slack = 3 * sum(silences(root, ["runs", "ls"]))
    first, *others = silences(root, command.split())
    assert first < SILENCE_SECONDS + slack
    assert max(others) < SILENCE_SECONDS + slack / 3


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fresh") / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(place)], check=True)
    return place


@pytest.mark.parametrize("command", IN_A_FRESH_CLONE)
def test_commands_that_build_in_a_fresh_clone(clone: Path, command: str) -> None:
    check_silence(clone, command)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "kept"
    asked = ("--machine", "sim", "--workload", "mixed", "--policy", "rr,mlfq", "--cpus", "1")
    subprocess.run([ROOT / "schedlab", "run", *asked, "-q", "--out", place], check=True)
    return place


@pytest.mark.parametrize("command", ON_RUNS)
def test_commands_that_compute(runs: Path, tmp_path: Path, command: str) -> None:
    run = next(runs.glob("rr*"))
    check_silence(ROOT, command.format(runs=runs, run=run, out=tmp_path / "out"))
