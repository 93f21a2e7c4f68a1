# SPDX-License-Identifier: MIT
"""Shows the progress of runs, and estimates the remaining time."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from glob import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from schedlab.base.display.activity import Update, picture, working
from schedlab.base.display.numbers import host_time
from schedlab.base.display.terminal import is_live, messages, say_progress
from schedlab.base.files.atomic import written
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec
from schedlab.paths import cache_folder
from schedlab.runs import results
from schedlab.trace.format import HEADER, RECORD

if TYPE_CHECKING:
    from rich.console import RenderableType

_REMEMBERED_MAX = 10_000
_REPORT = "report of a run - -"
"""The key of a report's duration per run."""
_REPORT_S = 0.025
"""Default duration (s) of a report per run, until a report has been timed on this host."""
_TITLES_SHOWN = 2
_LINES_MAX = 40
"""Maximum number of runs of a plan that shows a line for each finished run.

Larger plans show _STEPS lines.
"""
_STEPS = 20
_FAILURES_SHOWN = 10
_BAR, _TEXT_WIDTH = 16, 48
"""Widths in characters: of a bar, and of a run's line without the run's name."""
_SURE_S = 5.0
"""Weight, in seconds, given to earlier duration estimates."""
_REPORT_RUNS = 100
"""Reports of fewer runs do not update the estimated duration per run."""


class Durations:
    """Estimated durations of runs on this host in seconds, stored between program starts."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_folder() / "durations.json"
        self.alike: dict[str, dict[str, float]] = {}
        """The same durations, by machine and workload."""
        try:
            self.seconds: dict[str, float] = {
                str(key): float(value) for key, value in json.loads(self.path.read_text()).items()
            }
            for key, seconds in self.seconds.items():
                self._note_alike(key, seconds)
        except (OSError, ValueError, AttributeError, TypeError):
            self.seconds = {}

    def _note_alike(self, key: str, seconds: float) -> None:
        machine, _, _, _, workload = key.split(" ", 4)
        self.alike.setdefault(f"{machine} {workload}", {})[key] = seconds

    @staticmethod
    def key(run: RunSpec) -> str:
        return f"{run.machine} {run.cpus} {run.policy} {run.tick_ns} {run.workload}"

    def of(self, run: RunSpec) -> float | None:
        """Returns the duration (s) of the same run with another seed.

        If there is none, returns the mean of runs with the same workload, or None.
        """
        known = self.seconds.get(self.key(run))
        if known is not None:
            return known
        others = self.alike.get(f"{run.machine} {run.workload}", {}).values()
        return sum(others) / len(others) if others else None

    def learn(self, run: RunSpec, seconds: float) -> None:
        self.seconds.pop(self.key(run), None)
        self.seconds[self.key(run)] = seconds
        self._note_alike(self.key(run), seconds)

    @property
    def report_s(self) -> float | None:
        """Duration (s) of a report per run, or None if no report was timed yet."""
        return self.seconds.get(_REPORT)

    def learn_report(self, runs: int, seconds: float) -> None:
        if runs >= _REPORT_RUNS:
            self.seconds.pop(_REPORT, None)
            self.seconds[_REPORT] = seconds / runs

    def save(self) -> None:
        remembered = dict(list(self.seconds.items())[-_REMEMBERED_MAX:])
        with suppress(OSError):  # the durations will be learned again
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with written(self.path) as new:
                new.write_text(json.dumps(remembered))


@dataclass(frozen=True)
class OverallProgress:
    """Work that a plan is a part of.

    Other machines may perform further parts, and a report may follow.
    """

    done: int = 0
    """Number of runs before this plan."""
    later: tuple[RunSpec, ...] = ()
    """Runs after this plan."""
    reported: int = 0
    """Number of runs in the final report; 0: no report."""
    began: float = field(default_factory=time.monotonic)


class Board:
    """Shows progress on standard error: lines, and below them a live display on a terminal."""

    def __init__(
        self,
        runs: Sequence[RunSpec],
        slots: int,
        durations: Durations | None = None,
        overall: OverallProgress | None = None,
        total: int | None = None,
    ) -> None:
        """`total`: the number of runs if there are too many for individual estimates; `runs` is then empty."""
        self.runs = runs
        self.slots = slots
        self.overall = overall or OverallProgress()
        self.foresees = total is None
        self.all = self.overall.done + (total or len(runs)) + len(self.overall.later)
        self.durations = durations or Durations()
        self.running: dict[RunSpec, tuple[float, Path | None]] = {}
        self.done = self.failed = 0
        self.estimated_s = self.taken_s = 0.0
        """Estimated and actual durations of finished runs; their ratio shows how busy the host is."""
        self.learned: set[str] = set()
        """Keys of durations learned since the program start, which already reflect how busy the host is."""
        self.began = time.monotonic()
        self.live = Live(
            get_renderable=self.picture,
            console=messages(),
            refresh_per_second=4,
            transient=True,
        )
        self.voice = ExitStack()
        self.update: Update = lambda _: None

    def __enter__(self) -> Board:
        if is_live():
            self.voice.enter_context(picture())
            self.live.start()
        else:
            self.update = self.voice.enter_context(working("starting"))
        return self

    def __exit__(self, *_: object) -> None:
        self.voice.close()
        self.live.stop()
        self.durations.save()

    def started(self, run: RunSpec, place: Path | None = None) -> None:
        """Records the start of a run. `place`: the run's future folder."""
        self.running[run] = (time.monotonic(), place)
        self.update(self.progress_text())

    def ended(self, run: RunSpec, outcome: Outcome, seconds: float) -> None:
        self.running.pop(run, None)
        self.done += 1
        self.update(self.progress_text())
        if outcome.succeeded:
            self.learn(run, seconds)
        else:
            self.failed += 1
        if self.all <= _LINES_MAX or (not outcome.succeeded and self.failed <= _FAILURES_SHOWN):
            ending = "" if outcome.succeeded else f": {outcome.status}"
            if not (self.foresees or outcome.succeeded):
                reason, _, _ = outcome.message.partition("\n")
                ending += f": {reason}"
            title = f"{run.title}, seed {run.seed}"
            ahead = "" if is_live() else self.ahead()  # the live display shows the run
            say_progress(f"{self.count()} {title}  {host_time(seconds)}{ending}{ahead}")
            if self.failed == _FAILURES_SHOWN < self.all and not outcome.succeeded:
                say_progress("more runs that fail are not shown here")
        elif self.steps(self.done) > self.steps(self.done - 1):
            so_far = host_time(time.monotonic() - self.overall.began)
            say_progress(f"{self.count()} {run.title}  {so_far}{self.ahead()}")

    def exist_already(self, count: int) -> None:
        """Subtracts existing runs from the total."""
        self.all -= count

    def learn(self, run: RunSpec, seconds: float) -> None:
        """Records a run's duration for this and later program starts."""
        if not self.foresees:
            return
        estimate = self.durations.of(run)
        if estimate is not None and self.durations.key(run) not in self.learned:
            self.estimated_s += estimate
            self.taken_s += seconds
        self.learned.add(self.durations.key(run))
        self.durations.learn(run, seconds)

    def estimate(self, run: RunSpec) -> float | None:
        """Returns the estimated duration of a run in seconds, or None if no similar run is known."""
        seconds = self.durations.of(run)
        if seconds is None or self.durations.key(run) in self.learned:
            return seconds
        return seconds * self.busy

    def progress_text(self) -> str:
        """Returns which runs are in progress, as text."""
        titles = [run.title for run in islice(self.running, _TITLES_SHOWN)]
        return f"running {self.count()}: {'; '.join(titles)}"

    def count(self) -> str:
        return f"[{self.overall.done + self.done}/{self.all}]"

    def steps(self, done: int) -> int:
        """Returns the progress in twentieths."""
        return (self.overall.done + done) * _STEPS // max(1, self.all)

    def ahead(self) -> str:
        left = self.left() if self.overall.done + self.done < self.all else None
        if left is None:
            return ""
        rate = self.done / max(time.monotonic() - self.began, 1e-3)
        speed = "" if self.foresees else f", {rate:.3g} runs/s"
        return f"{speed}, about {host_time(left)} left"

    def closing(self) -> float:
        """Returns the estimated duration (s) of the report after the runs."""
        return self.overall.reported * (self.durations.report_s or _REPORT_S) * self.busy

    @property
    def busy(self) -> float:
        """The ratio of actual to estimated durations."""
        return (self.taken_s + _SURE_S) / (self.estimated_s + _SURE_S)

    def left(self) -> float | None:
        """Returns the estimated remaining time in seconds, including the report; None if unknown."""
        now = time.monotonic()
        known: list[float] = []
        if self.foresees:
            waiting = (*self.runs[self.done + len(self.running) :], *self.overall.later)
            known = [seconds for run in waiting if (seconds := self.estimate(run)) is not None]
            for run, (began, _) in self.running.items():
                if (seconds := self.estimate(run)) is not None:
                    known.append(max(0.0, seconds - (now - began)))
        unknown = self.all - self.overall.done - self.done - len(known)
        if unknown > 0:
            if not self.done:
                return None
            known += [self.slots * (now - self.began) / self.done] * unknown
        return max(sum(known) / self.slots, max(known, default=0.0)) + self.closing()

    def picture(self) -> RenderableType:
        """Returns the live display: a line for each run in progress, and a line for all runs.

        Long names are truncated.
        """
        grid = Table.grid(padding=(0, 2))
        room = max(messages().width - _TEXT_WIDTH, _BAR)
        for run, (began, place) in list(self.running.items())[: self.slots]:
            elapsed = time.monotonic() - began
            estimate = self.durations.of(run)
            bar = ProgressBar(
                total=estimate or 1.0,
                completed=min(elapsed, 0.99 * estimate) if estimate else 0.0,
                width=_BAR,
                pulse=estimate is None,
            )
            guest = f"guest {guest_seconds(place):.2f} s" if place else ""
            name = Text(f"{run.title}, seed {run.seed}")
            name.truncate(room, overflow="ellipsis")
            grid.add_row(name, bar, host_time(elapsed), guest)
        ahead = self.ahead().removeprefix(", ")
        done = self.overall.done + self.done
        bar = ProgressBar(total=self.all, completed=done, width=_BAR)
        outer = Table.grid(padding=(0, 2))
        outer.add_row(f"{done:,} of {self.all:,} runs", bar, ahead)
        return Group(grid, outer)


def guest_seconds(place: Path) -> float:
    """Returns the guest's time of the last record written so far, in seconds. `place`: the run's future folder."""
    name = f"{results.UNFINISHED}{escape(place.name)}-????????/{TRACE_FILE}"
    for trace in place.parent.glob(name):
        with suppress(OSError, struct.error), trace.open("rb") as file:
            records = (file.seek(0, 2) - HEADER.itemsize) // RECORD.itemsize
            if records > 0:
                file.seek(HEADER.itemsize + (records - 1) * RECORD.itemsize)
                (nanoseconds,) = struct.unpack("<Q", file.read(8))
                return float(nanoseconds) / 1e9
    return 0.0
