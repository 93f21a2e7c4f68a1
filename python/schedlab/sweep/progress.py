# SPDX-License-Identifier: MIT
"""How far a sweep is, and how long it will still take: a bar on a terminal, else some lines."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from schedlab.display.terminal import messages, say
from schedlab.sweep.one_run import Result, Task
from schedlab.units import format_duration

_STEPS = 20
_FAILURES_SHOWN = 10
_SOME = 20
"""Runs from which on their rate tells something."""


class Board:
    """The board on standard error."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = self.failed = 0
        self.began = time.monotonic()
        self.first: float | None = None
        """The time when the first run had ended: what came before says nothing of the rate."""
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self.bar = Progress(
            *columns, console=messages(), transient=True, disable=not messages().is_terminal
        )
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Board:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def ended(self, task: Task, result: Result) -> None:
        self.done += 1
        if self.first is None:
            self.first = time.monotonic()
        if not result.outcome.succeeded:
            self.failure(task, result)
        self.bar.update(self.task, completed=self.done, description=self.ahead())
        steps = self.done * _STEPS // self.total
        if self.bar.disable and steps > (self.done - 1) * _STEPS // self.total:
            say(
                f"[{self.done}/{self.total}] {self.so_far()}{', ' if self.ahead() else ''}{self.ahead()}"
            )

    def there_already(self, count: int) -> None:
        """So many are not run."""
        self.total -= count
        self.bar.update(self.task, total=self.total)

    def failure(self, task: Task, result: Result) -> None:
        self.failed += 1
        if self.failed > _FAILURES_SHOWN:
            return
        run, outcome = task.run, result.outcome
        first = outcome.message.partition("\n")[0]
        say(f"{run.workload}, {run.title}, seed {run.seed}: {outcome.status}: {first}")
        if self.failed == _FAILURES_SHOWN:
            say("more that fail are in the data set, and not shown here")

    def so_far(self) -> str:
        return format_duration(time.monotonic() - self.began)

    def ahead(self) -> str:
        """Returns how long it will take if it goes on so."""
        left = self.total - self.done
        if not left or self.first is None or self.done < min(_SOME, self.total // 2 + 2):
            return ""
        rate = (self.done - 1) / max(time.monotonic() - self.first, 1e-3)
        return f"{rate:.3g} runs/s, about {format_duration(left / rate)} left"

    def waiting_for_workers(self) -> None:
        say("no worker is there: waiting for one to come (./schedlab dask worker ADDRESS)")
