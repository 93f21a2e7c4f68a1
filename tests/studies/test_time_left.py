# SPDX-License-Identifier: MIT
"""How long a study still takes, as it is told while it runs: by a clock that stands still between runs."""

from __future__ import annotations

import heapq
import math
import random
from pathlib import Path

import pytest

from schedlab.commands.study import Request, in_parts, plan_on, proposed
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec
from schedlab.runs import progress
from schedlab.runs.plan import Plan
from schedlab.runs.progress import Board, Durations, Whole

SLOTS = 2
REPORT_S = 38.0


class Host:
    """Takes for a run what its test takes, which differs by two orders of magnitude, and its number of CPUs."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def seconds(self, run: RunSpec) -> float:
        of_test = random.Random(run.label).lognormvariate(0, 1)
        of_seed = random.Random(run.name).uniform(0.8, 1.2)
        return 0.15 * of_test * math.sqrt(run.cpus) * of_seed

    def carry_out(self, own: Plan, whole: Whole, durations: Durations) -> list[tuple[float, float]]:
        """Returns, for each step, the time and what was told to be left."""
        board = Board(own.runs, SLOTS, durations, whole)
        waiting, told = list(reversed(own.runs)), []
        running: list[tuple[float, int, RunSpec]] = []
        for done in range(1, len(own.runs) + 1):
            while waiting and len(running) < SLOTS:
                run = waiting.pop()
                board.started(run)
                heapq.heappush(
                    running, (self.now + self.seconds(run), done * SLOTS + len(running), run)
                )
            self.now, _, run = heapq.heappop(running)
            board.ended(run, Outcome("success"), self.seconds(run))
            if board.steps(done) > board.steps(done - 1):
                left = board.left()
                assert left is not None
                told.append((self.now, left))
        return told


@pytest.mark.parametrize("before", [0, 1])
def test_what_is_told_is_true_from_a_tenth_of_the_time_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """With the report, within a factor of 1.5: at the first start on a host, and after others."""
    monkeypatch.setattr(progress, "say_progress", lambda words: None)
    request = Request((), "quick")
    spike = plan_on("spike", request, tmp_path)
    plans = {"spike": spike, "sim": proposed("sim", request, tmp_path)}
    parts = [each for _, each in in_parts(plans)]
    count = sum(len(each.runs) for each in parts)
    durations = Durations(tmp_path / "durations.json")
    for _ in range(before + 1):
        host = Host()
        monkeypatch.setattr(progress, "time", host)
        told = []
        for number, own in enumerate(parts):
            done = sum(len(each.runs) for each in parts[:number])
            later = tuple(run for each in parts[number + 1 :] for run in each.runs)
            told += host.carry_out(own, Whole(done, later, count), durations)
        durations.learn_report(count, REPORT_S)
    end = host.now + REPORT_S
    ratios = [left / (end - now) for now, left in told if now > end / 10]
    assert len(ratios) > 12
    assert all(1 / 1.5 < each < 1.5 for each in ratios), ratios


def test_the_parts_of_a_whole_are_counted_and_timed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host()
    monkeypatch.setattr(progress, "time", host)
    runs = plan_on("spike", Request((3,), "quick"), tmp_path).runs[:80]
    durations = Durations(tmp_path / "durations.json")
    host.carry_out(Plan(tmp_path, runs[:40]), Whole(0, runs[40:], began=0.0), durations)
    host.now = 3600.0
    host.carry_out(Plan(tmp_path, runs[40:]), Whole(40, (), began=0.0), durations)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("[80/80]")
    assert "  60 min " in last or "  61 min " in last
