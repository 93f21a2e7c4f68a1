# SPDX-License-Identifier: MIT
"""Shows how far the runs of a plan are, and how long they will still take."""

from __future__ import annotations

import json
import os
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from schedlab.outcome import Outcome
from schedlab.paths import cache_folder
from schedlab.plan import Plan, Run
from schedlab.terminal import messages, say
from schedlab.units import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

_HEADER_BYTES, _RECORD_BYTES = 64, 32  # abi/trace_format.h
_REMEMBERED_MAX = 1000


class Durations:
    """Seconds that runs like these took on this host, kept between starts. Only estimates."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_folder() / "durations.json"
        try:
            self.seconds: dict[str, float] = {
                str(key): float(value) for key, value in json.loads(self.path.read_text()).items()
            }
        except (OSError, ValueError, AttributeError, TypeError):
            self.seconds = {}

    @staticmethod
    def key(run: Run) -> str:
        return f"{run.machine} {run.cpus} {run.policy} {run.tick_ns} {run.workload}"

    def of(self, run: Run) -> float | None:
        """The same but for the seed; else the mean of others of the same workload."""
        known = self.seconds.get(self.key(run))
        if known is not None:
            return known
        others = [
            seconds
            for key, seconds in self.seconds.items()
            if key.startswith(f"{run.machine} ") and key.endswith(f" {run.workload}")
        ]
        return sum(others) / len(others) if others else None

    def learn(self, run: Run, seconds: float) -> None:
        self.seconds.pop(self.key(run), None)
        self.seconds[self.key(run)] = seconds

    def save(self) -> None:
        kept = dict(list(self.seconds.items())[-_REMEMBERED_MAX:])
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(kept))
            os.replace(new, self.path)
        except OSError:
            pass  # it will be learned again


class Board:
    """The runs of a plan on standard error: a live picture on a terminal, else a line for each."""

    def __init__(self, plan: Plan, slots: int, durations: Durations | None = None) -> None:
        self.plan = plan
        self.slots = slots
        self.durations = durations or Durations()
        self.running: dict[Run, tuple[float, Path]] = {}
        self.done = 0
        self.live = Live(
            get_renderable=self.picture,
            console=messages(),
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> Board:
        if messages().is_terminal:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.live.stop()
        self.durations.save()

    def started(self, run: Run, trace: Path) -> None:
        self.running[run] = (time.monotonic(), trace)

    def ended(self, run: Run, outcome: Outcome) -> None:
        began, _ = self.running.pop(run)
        seconds = time.monotonic() - began
        self.done += 1
        if outcome.succeeded:
            self.durations.learn(run, seconds)
        ending = "" if outcome.succeeded else f": {outcome.status}"
        say(
            f"[{self.done}/{len(self.plan.runs)}] {run.title}, seed {run.seed}"
            f"  {format_duration(seconds)}{ending}"
        )

    def left(self) -> float | None:
        """Seconds to go, as far as can be told; None: it cannot."""
        now = time.monotonic()
        waiting = self.plan.runs[self.done + len(self.running) :]
        estimates = [self.durations.of(run) for run in waiting]
        for run, (began, _) in self.running.items():
            whole = self.durations.of(run)
            estimates.append(None if whole is None else max(0.0, whole - (now - began)))
        known = [seconds for seconds in estimates if seconds is not None]
        if len(known) < len(estimates):
            return None
        return max(sum(known) / self.slots, max(known, default=0.0))

    def picture(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        for run, (began, trace) in list(self.running.items()):
            elapsed = time.monotonic() - began
            whole = self.durations.of(run)
            bar = ProgressBar(
                total=whole or 1.0,
                completed=min(elapsed, 0.99 * whole) if whole else 0.0,
                width=24,
                pulse=whole is None,
            )
            guest = f"guest {guest_seconds(trace):.2f} s"
            grid.add_row(f"{run.title}, seed {run.seed}", bar, format_duration(elapsed), guest)
        left = self.left()
        ahead = "" if left is None else f"about {format_duration(left)} left"
        bar = ProgressBar(total=len(self.plan.runs), completed=self.done, width=24)
        grid.add_row(f"{self.done} of {len(self.plan.runs)} runs", bar, ahead, "")
        return grid


def guest_seconds(trace: Path) -> float:
    """How far the guest's clock is, by the last record that has left it."""
    try:
        with trace.open("rb") as file:
            records = (file.seek(0, 2) - _HEADER_BYTES) // _RECORD_BYTES
            if records <= 0:
                return 0.0
            file.seek(_HEADER_BYTES + (records - 1) * _RECORD_BYTES)
            (nanoseconds,) = struct.unpack("<Q", file.read(8))
    except (OSError, struct.error):
        return 0.0
    return float(nanoseconds) / 1e9
