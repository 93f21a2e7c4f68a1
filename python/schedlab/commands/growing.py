# SPDX-License-Identifier: MIT
"""A report that is made as soon as there is something to show, and again as runs end."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from schedlab.display.terminal import say
from schedlab.host.interpreter import module_command
from schedlab.machines import machine_named
from schedlab.machines.run import Run
from schedlab.runs.continuing import still_to_run
from schedlab.runs.plan import Plan

_WORTH = 0.75
"""From this part of all runs on, the report of all is so near that no other is made before it."""
_GROWS = 3
"""It is made again when there are this many times as many runs: so all reports before the last one cost
less than that one."""


class GrowingReport:
    """Is told of each run that ends, and has the report made by another process beside them. After the block
    no such process is left."""

    def __init__(self, wanted: Plan, out: Path, first: int, part_of: Callable[[Run], str]) -> None:
        """`first`: how many runs are worth a report. `part_of`: in words, what a run belongs to."""
        self.wanted = wanted
        left = set(still_to_run(wanted))
        self._there = [run for run in wanted.runs if run not in left]
        self._out = out
        self._next = first
        self._part_of = part_of
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False

    def __enter__(self) -> GrowingReport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process:
            self._process.terminate()
            self._process.communicate()

    def ended(self, run: Run) -> None:
        """Notes a run; has the report made, if it is time. A machine that lives in the host's time is left alone."""
        self._there.append(run)
        self._look()
        due = self._next <= len(self._there) <= _WORTH * len(self.wanted.runs)
        if due and not self._process and machine_named(run.machine).repeatable:
            self._next = _GROWS * len(self._there)
            self._process = self._begin()

    def all_there(self) -> None:
        """Has it made of all runs, while seeds are added to them."""
        self._look()
        if not self._process:
            self._process = self._begin()

    def _look(self) -> None:
        """Notes whether the one that is being made is there."""
        if self._process and self._process.poll() is not None:
            self._made(self._process)
            self._process = None

    def _begin(self) -> subprocess.Popen[bytes]:
        there = set(self._there)
        told = {
            "folder": str(self.wanted.folder),
            "runs": [run.name for run in self.wanted.runs if run in there],
            "out": str(self._out),
            "missing": self._missing(),
        }
        with tempfile.TemporaryFile() as request:  # a pipe would hold up the runs until it is read
            request.write(json.dumps(told).encode())
            request.seek(0)
            return subprocess.Popen(
                module_command("schedlab.report.early"),
                stdin=request,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # an interrupt from the keyboard is for this process, which ends it
                env={**os.environ, "POLARS_MAX_THREADS": "1"},
            )

    def _missing(self) -> str:
        """Returns what the pages say of what is not there yet."""
        if len(self._there) == len(self.wanted.runs):
            return (
                f"**Not complete yet:** all {len(self._there):,} runs that were asked for are there; seeds are being"
                " added until it is decided which policy is best. This page shows itself again after that."
            )
        there = Counter(self._part_of(run) for run in self._there)
        all_runs = Counter(self._part_of(run) for run in self.wanted.runs)
        parts = ", ".join(
            f"{part} {there[part]:,} of {count:,}" for part, count in all_runs.items()
        )
        return (
            f"**Not complete yet:** made after {len(self._there):,} of {len(self.wanted.runs):,} runs. Those"
            f" that are there: {parts}. What has no run yet is missing; a mean may change with"
            " the seeds that are to come. This page shows itself again when there is a newer report. Pictures to"
            " download and runs to play come with the last one."
        )

    def _made(self, process: subprocess.Popen[bytes]) -> None:
        """Says where the first one is; or why there is none."""
        _, errors = process.communicate()
        if process.returncode:
            words = errors.decode(errors="replace").strip().splitlines()
            why = words[-1] if words else f"status {process.returncode}"
            say(f"schedlab: no report could be made yet: {why}")
            return
        if not self._told:
            say(f"schedlab: a first report is there, and grows: {self._out / 'index.html'}")
        self._told = True
