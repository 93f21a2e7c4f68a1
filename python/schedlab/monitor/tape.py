# SPDX-License-Identifier: MIT
"""What is kept of a trace while it is watched: what stands, the last records, a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedlab.base.host.supervision import to_the_end
from schedlab.machines.outcome import Outcome
from schedlab.monitor import worker
from schedlab.monitor.making import RECORDED
from schedlab.monitor.recorder import Recorder, facts_of, free_name
from schedlab.monitor.standing import Standing
from schedlab.monitor.system import Records, Refused, Setup
from schedlab.monitor.trace_file import Recent
from schedlab.trace.model import Header


@dataclass(frozen=True)
class Request:
    """What is to be recorded."""

    folder: Path
    """The folder of all that is recorded together."""
    prefix: str
    """The beginning of the run's name."""
    label: str
    from_start: bool
    """Is it all that was started?"""
    software: Mapping[str, Any]
    """Facts for the manifest: schedlab's commit, the machine's version and origin."""


class Tape:
    """Goes along a system's trace, from its beginning on."""

    def __init__(self, header: Header, setup: Setup) -> None:
        self.header = header
        self.setup = setup
        self.standing = Standing(header.cpus)
        self.recorder: Recorder | None = None
        self.recent = Recent(header)
        self._steered: list[str] = []
        """What was done to the system since the recording began."""
        self._from_start = False

    def add(self, records: Records) -> None:
        """Adds what comes next of the trace. OSError: it cannot be recorded, and is not any more."""
        self.standing.apply(records)
        self.recent.add(records)
        if self.recorder:
            self._record(lambda recorder: recorder.add(records))

    def add_log(self, lines: list[str]) -> None:
        """Adds what comes next of the console. OSError: as above."""
        if self.recorder and lines:
            self._record(lambda recorder: recorder.add_log(lines))

    def _record(self, write: Callable[[Recorder], None]) -> None:
        assert self.recorder
        try:
            write(self.recorder)
        except OSError:
            self.discard()
            raise

    def note_steering(self, what: str) -> None:
        """Something was done to the system."""
        if self.recorder:
            self._steered.append(what)

    # --- a recording

    def record(
        self, request: Request, workload: str, excluded_pids: Iterable[int], log: Iterable[str]
    ) -> None:
        """From here on. `workload`: what runs, in words; `excluded_pids`: as of Standing.opening; `log`: what
        the console has said before, of which a recording from the start has all."""
        setup = replace(self.setup, tick_ns=self.header.tick_ns, seed=self.header.seed)
        facts = facts_of(setup, workload, request.label, self.standing, request.software)
        name = f"{request.prefix}{facts['policy']}-{facts['cpus']}cpu-seed{setup.seed}"
        place = free_name(request.folder / name.replace(":", "-"))
        # A playback's marks say what was measured when it was recorded.
        marks = setup.machine == RECORDED
        self.recorder = Recorder(place, self.header, facts, self.standing, excluded_pids, marks)
        self._steered = []
        self._from_start = request.from_start
        if request.from_start:
            self.recorder.add_log(log)

    async def stop(
        self, outcome: Outcome, workload: str, repeatable: bool, files: Iterable[Path] = ()
    ) -> Path | None:
        """Returns the run's folder, or None if nothing was recorded. It is kept even if this is broken off.

        `repeatable`: would the system do the same again, if it were not steered, and has it ended?
        `files`: what it left that belongs to the run.
        """
        recorder, self.recorder = self.recorder, None
        if recorder is None:
            return None
        facts = {
            "workload": workload,
            "repeatable": repeatable and self._from_start and not self._steered,
            "monitor": {"from_start": self._from_start, "steered": self._steered},
        }
        return await to_the_end(recorder.stop(outcome, facts, files))

    def discard(self) -> None:
        """Nothing of the recording is kept."""
        recorder, self.recorder = self.recorder, None
        if recorder:
            recorder.discard()

    async def export(self, place: Path, excluded_pids: frozenset[int]) -> Path:
        """A file for ui.perfetto.dev: of what is being recorded, else of the last seconds.

        `place`: its name, without an ending.
        """
        if self.standing.count == 0:
            raise Refused("there is nothing to show yet")
        trace = place.with_suffix(".bin")
        if self.recorder:
            self.recorder.copy_trace(trace)
        else:
            self.recent.write(trace, excluded_pids)
        file = place.with_suffix(".perfetto-trace")
        try:
            await worker.perfetto(trace, file)
        finally:
            trace.unlink()
        return file
