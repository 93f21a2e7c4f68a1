# SPDX-License-Identifier: MIT
"""Keeps a watched trace: the current state, the last records, and a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedlab.base.host.supervision import to_the_end
from schedlab.machines.outcome import Outcome
from schedlab.monitor import worker
from schedlab.monitor.recorder import Recorder, facts_of, free_name
from schedlab.monitor.system import Records, Refused, Setup
from schedlab.monitor.system_factory import RECORDED
from schedlab.monitor.trace_file import Recent
from schedlab.monitor.trace_state import TraceState
from schedlab.trace.model import Header


@dataclass(frozen=True)
class Request:
    """The parameters of a recording."""

    folder: Path
    """Folder of all recordings of this request."""
    prefix: str
    """Prefix of the run's name."""
    label: str
    from_start: bool
    """True if the recording begins at the system's start."""
    software: Mapping[str, Any]
    """Manifest entries: schedlab's commit, the machine's version and origin."""


class Tape:
    """Follows a system's trace from its beginning."""

    def __init__(self, header: Header, setup: Setup) -> None:
        self.header = header
        self.setup = setup
        self.state = TraceState(header.cpus)
        self.recorder: Recorder | None = None
        self.recent = Recent(header)
        self._steered: list[str] = []
        """Control actions since the recording began."""
        self._from_start = False

    def add(self, records: Records) -> None:
        """Adds the next records.

        If the records cannot be written to the recording, ends the recording and raises OSError.
        """
        self.state.apply(records)
        self.recent.add(records)
        if self.recorder:
            self._record(lambda recorder: recorder.add(records))

    def add_log(self, lines: list[str]) -> None:
        """Adds console lines. Raises OSError like `add`."""
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
        """Notes a control action for the manifest."""
        if self.recorder:
            self._steered.append(what)

    # --- a recording

    def record(
        self, request: Request, workload: str, excluded_pids: Iterable[int], log: Iterable[str]
    ) -> None:
        """Starts a recording.

        `workload` describes what runs. `excluded_pids` is described at `Standing.opening`. `log` is
        the earlier console output, which only a recording from the start includes.
        """
        setup = replace(self.setup, tick_ns=self.header.tick_ns, seed=self.header.seed)
        facts = facts_of(setup, workload, request.label, self.state, request.software)
        name = f"{request.prefix}{facts['policy']}-{facts['cpus']}cpu-seed{setup.seed}"
        place = free_name(request.folder / name.replace(":", "-"))
        # Marks of a recording delimit its original measurement.
        marks = setup.machine == RECORDED
        self.recorder = Recorder(place, self.header, facts, self.state, excluded_pids, marks)
        self._steered = []
        self._from_start = request.from_start
        if request.from_start:
            self.recorder.add_log(log)

    async def stop(
        self, outcome: Outcome, workload: str, repeatable: bool, files: Iterable[Path] = ()
    ) -> Path | None:
        """Ends the recording.

        Returns the recording's folder, or None if nothing was recorded. Cancelling the task does
        not interrupt this method. `repeatable` is true if the system has ended, and a run without
        control actions would be the same. `files` are added to the run.
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
        """Deletes the recording."""
        recorder, self.recorder = self.recorder, None
        if recorder:
            recorder.discard()

    async def export(self, place: Path, excluded_pids: frozenset[int]) -> Path:
        """Writes a file for ui.perfetto.dev.

        It contains the recording in progress or, without a recording, the last seconds.

        `place` is the path without a suffix.

        """
        if self.state.count == 0:
            raise Refused("no record has arrived yet; try again")
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
