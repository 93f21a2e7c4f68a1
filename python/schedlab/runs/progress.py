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

from schedlab.base.display.activity import Update, hide_activity, working
from schedlab.base.display.numbers import host_time
from schedlab.base.display.terminal import is_live, message_console, say_progress
from schedlab.base.files.atomic import atomic_write
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec
from schedlab.paths import cache_folder
from schedlab.runs import results
from schedlab.trace.format import HEADER, RECORD

if TYPE_CHECKING:
    from rich.console import RenderableType

_DURATIONS_MAX = 10_000
_REPORT_KEY = "report of a run - -"
"""Key of the stored duration of a report, per run."""
_REPORT_S = 0.025
"""Assumed report duration (s) per run, until a report has been timed on this host."""
_TITLES_SHOWN = 2
_LINES_MAX = 40
"""Maximum number of runs of a plan that shows a line for each finished run.

Larger plans get _STEPS lines altogether.
"""
_PROGRESS_STEPS = 20
_FAILURES_SHOWN = 10
_BAR_WIDTH, _TEXT_WIDTH = 16, 48
"""Widths in characters: of the progress bar, and of a run's line without its name."""
_ESTIMATE_WEIGHT_S = 5.0
"""Weight (s) of earlier duration estimates, against those of the present runs."""
_TIMED_REPORT_RUNS_MIN = 100
"""Reports of fewer runs are too short to be timed."""


class Durations:
    """Expected durations (s) of runs on this host, learned from earlier runs and stored in a file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_folder() / "durations.json"
        self.alike: dict[str, dict[str, float]] = {}
        """The same durations, by machine and workload."""
        try:
            self.seconds: dict[str, float] = {
                str(key): float(value) for key, value in json.loads(self.path.read_text()).items()
            }
            for key, seconds in self.seconds.items():
                self._learn_similar(key, seconds)
        except (OSError, ValueError, AttributeError, TypeError):
            self.seconds = {}

    def _learn_similar(self, key: str, seconds: float) -> None:
        machine, _, _, _, workload = key.split(" ", 4)
        self.alike.setdefault(f"{machine} {workload}", {})[key] = seconds

    @staticmethod
    def key(run: RunSpec) -> str:
        """Returns the key of runs that are expected to take equally long."""
        return f"{run.machine} {run.cpus} {run.policy} {run.tick_ns} {run.workload}"

    def of(self, run: RunSpec) -> float | None:
        """Returns the last duration (s) of the same run with any seed.

        If there is none, returns the mean of runs with the same workload, or None.
        """
        last_seconds = self.seconds.get(self.key(run))
        if last_seconds is not None:
            return last_seconds
        similar_seconds = self.alike.get(f"{run.machine} {run.workload}", {}).values()
        return sum(similar_seconds) / len(similar_seconds) if similar_seconds else None

    def learn(self, run: RunSpec, seconds: float) -> None:
        """Stores how long a run took."""
        self.seconds.pop(self.key(run), None)
        self.seconds[self.key(run)] = seconds
        self._learn_similar(self.key(run), seconds)

    @property
    def report_s(self) -> float | None:
        """Seconds per run that the last timed report took; None if no report was timed yet."""
        return self.seconds.get(_REPORT_KEY)

    def learn_report(self, runs: int, seconds: float) -> None:
        if runs >= _TIMED_REPORT_RUNS_MIN:
            self.seconds.pop(_REPORT_KEY, None)
            self.seconds[_REPORT_KEY] = seconds / runs

    def save(self) -> None:
        latest_seconds = dict(list(self.seconds.items())[-_DURATIONS_MAX:])
        with suppress(OSError):  # the durations will be learned again
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.path) as new:
                new.write_text(json.dumps(latest_seconds))


@dataclass(frozen=True)
class OverallProgress:
    """The larger work that a plan is a part of: plans of other machines, and a report."""

    done: int = 0
    """Number of runs finished before this plan."""
    later: tuple[RunSpec, ...] = ()
    """Runs that follow after this plan."""
    reported: int = 0
    """Number of runs in the final report; 0 without a report."""
    began: float = field(default_factory=time.monotonic)


class ProgressBoard:
    """Shows progress on standard error: a line per finished run, and below them a live display."""

    def __init__(
        self,
        runs: Sequence[RunSpec],
        slots: int,
        durations: Durations | None = None,
        overall: OverallProgress | None = None,
        total: int | None = None,
    ) -> None:
        """`total`: the number of runs if they are too many to be listed in `runs`, which is then empty."""
        self.runs = runs
        self.slots = slots
        self.overall = overall or OverallProgress()
        self.has_estimates = total is None
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
            console=message_console(),
            refresh_per_second=4,
            transient=True,
        )
        self.voice = ExitStack()
        self.update: Update = lambda _: None

    def __enter__(self) -> ProgressBoard:
        if is_live():
            self.voice.enter_context(hide_activity())
            self.live.start()
        else:
            self.update = self.voice.enter_context(working("starting"))
        return self

    def __exit__(self, *_: object) -> None:
        self.voice.close()
        self.live.stop()
        self.durations.save()

    def started(self, run: RunSpec, place: Path | None = None) -> None:
        """Notes that a run has started. `place`: the run's folder, which appears when the run ends."""
        self.running[run] = (time.monotonic(), place)
        self.update(self.progress_text())

    def ended(self, run: RunSpec, outcome: Outcome, seconds: float) -> None:
        self.running.pop(run, None)
        self.done += 1
        self.update(self.progress_text())
        succeeded = outcome.succeeded or (run.ends_at_limit and outcome.status == "limit")
        if succeeded:
            self.learn(run, seconds)
        else:
            self.failed += 1
        if self.all <= _LINES_MAX or (not succeeded and self.failed <= _FAILURES_SHOWN):
            ending = "" if succeeded else f": {outcome.status}"
            if not (self.has_estimates or succeeded):
                reason, _, _ = outcome.message.partition("\n")
                ending += f": {reason}"
            title = f"{run.title}, seed {run.seed}"
            # A live display shows the remaining time itself.
            remaining_text = "" if is_live() else self.remaining_text()
            say_progress(f"{self.count()} {title}  {host_time(seconds)}{ending}{remaining_text}")
            if self.failed == _FAILURES_SHOWN < self.all and not succeeded:
                say_progress("more runs that fail are not shown here")
        elif self.steps(self.done) > self.steps(self.done - 1):
            so_far = host_time(time.monotonic() - self.overall.began)
            say_progress(f"{self.count()} {run.title}  {so_far}{self.remaining_text()}")

    def exist_already(self, count: int) -> None:
        """Notes that `count` runs exist already and will not be performed."""
        self.all -= count

    def learn(self, run: RunSpec, seconds: float) -> None:
        """Stores a run's duration, for estimates in this and later commands."""
        if not self.has_estimates:
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
        return seconds * self.slowdown

    def progress_text(self) -> str:
        """Returns the text that names the runs in progress."""
        titles = [run.title for run in islice(self.running, _TITLES_SHOWN)]
        return f"running {self.count()}: {'; '.join(titles)}"

    def count(self) -> str:
        return f"[{self.overall.done + self.done}/{self.all}]"

    def steps(self, done: int) -> int:
        """Returns the progress in twentieths (_STEPS) of all runs."""
        return (self.overall.done + done) * _PROGRESS_STEPS // max(1, self.all)

    def remaining_text(self) -> str:
        remaining_s = self.remaining_s() if self.overall.done + self.done < self.all else None
        if remaining_s is None:
            return ""
        rate = self.done / max(time.monotonic() - self.began, 1e-3)
        speed = "" if self.has_estimates else f", {rate:.3g} runs/s"
        return f"{speed}, about {host_time(remaining_s)} left"

    def report_s_left(self) -> float:
        """Returns the estimated duration (s) of the report after the runs."""
        return self.overall.reported * (self.durations.report_s or _REPORT_S) * self.slowdown

    @property
    def slowdown(self) -> float:
        """Ratio of actual to expected durations so far; more than 1 if the host is busier than usual."""
        return (self.taken_s + _ESTIMATE_WEIGHT_S) / (self.estimated_s + _ESTIMATE_WEIGHT_S)

    def remaining_s(self) -> float | None:
        """Returns the estimated remaining time in seconds, including the report; None if unknown."""
        now = time.monotonic()
        known: list[float] = []
        if self.has_estimates:
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
        return max(sum(known) / self.slots, max(known, default=0.0)) + self.report_s_left()

    def picture(self) -> RenderableType:
        """Returns the live display: a line per run in progress, and a line for all runs.

        Long names are truncated.
        """
        grid = Table.grid(padding=(0, 2))
        room = max(message_console().width - _TEXT_WIDTH, _BAR_WIDTH)
        for run, (began, place) in list(self.running.items())[: self.slots]:
            elapsed = time.monotonic() - began
            estimate = self.durations.of(run)
            bar = ProgressBar(
                total=estimate or 1.0,
                completed=min(elapsed, 0.99 * estimate) if estimate else 0.0,
                width=_BAR_WIDTH,
                pulse=estimate is None,
            )
            guest = f"guest {guest_seconds(place):.2f} s" if place else ""
            name = Text(f"{run.title}, seed {run.seed}")
            name.truncate(room, overflow="ellipsis")
            grid.add_row(name, bar, host_time(elapsed), guest)
        remaining_text = self.remaining_text().removeprefix(", ")
        done = self.overall.done + self.done
        bar = ProgressBar(total=self.all, completed=done, width=_BAR_WIDTH)
        outer = Table.grid(padding=(0, 2))
        outer.add_row(f"{done:,} of {self.all:,} runs", bar, remaining_text)
        return Group(grid, outer)


def guest_seconds(path: Path) -> float:
    """Returns the guest's time (s) of the last record in the trace of an unfinished run.

    `path`: the folder that the run will have.
    """
    name = f"{results.UNFINISHED_PREFIX}{escape(path.name)}-????????/{TRACE_FILE}"
    for trace in path.parent.glob(name):
        with suppress(OSError, struct.error), trace.open("rb") as file:
            records = (file.seek(0, 2) - HEADER.itemsize) // RECORD.itemsize
            if records > 0:
                file.seek(HEADER.itemsize + (records - 1) * RECORD.itemsize)
                (nanoseconds,) = struct.unpack("<Q", file.read(8))
                return float(nanoseconds) / 1e9
    return 0.0
