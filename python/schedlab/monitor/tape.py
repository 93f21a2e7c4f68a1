# SPDX-License-Identifier: MIT
"""Keeps what was received of one trace: the current state, the last records, and a recording."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from schedlab.base.host.supervision import await_completely
from schedlab.machines.outcome import Outcome
from schedlab.monitor import worker
from schedlab.monitor.recorder import Recorder, free_path, manifest_facts
from schedlab.monitor.system import Records, Refused, Setup
from schedlab.monitor.system_factory import RECORDED_MACHINE
from schedlab.monitor.trace_file import RecentRecords
from schedlab.monitor.trace_state import TraceState
from schedlab.trace.model import Header


@dataclass(frozen=True)
class RecordingRequest:
    """Where a recording is stored, and what its manifest says."""

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
        self.recent = RecentRecords(header)
        self._control_actions: list[str] = []
        """Control actions since the recording began."""
        self._from_start = False

    def add(self, records: Records) -> None:
        """Adds the next records.

        If the records cannot be written to the recording, ends the recording and raises OSError.
        """
        self.state.apply(records)
        self.recent.add(records)
        if self.recorder:
            self._write_to_recorder(lambda recorder: recorder.add(records))

    def add_log(self, lines: list[str]) -> None:
        """Adds console lines. Raises OSError like `add`."""
        if self.recorder and lines:
            self._write_to_recorder(lambda recorder: recorder.add_log(lines))

    def _write_to_recorder(self, write: Callable[[Recorder], None]) -> None:
        assert self.recorder
        try:
            write(self.recorder)
        except OSError:
            self.discard_recording()
            raise

    def note_control(self, action: str) -> None:
        """Notes a control action, which the recording's manifest lists."""
        if self.recorder:
            self._control_actions.append(action)

    # --- a recording

    def start_recording(
        self,
        request: RecordingRequest,
        workload: str,
        excluded_pids: Iterable[int],
        log: Iterable[str],
    ) -> None:
        """Starts a recording.

        `workload` describes what runs. `excluded_pids`: as in `TraceState.opening`. `log`: the
        console output so far, which only a recording from the start includes.
        """
        setup = replace(self.setup, tick_ns=self.header.tick_ns, seed=self.header.seed)
        facts = manifest_facts(setup, workload, request.label, self.state, request.software)
        name = f"{request.prefix}{facts['policy']}-{facts['cpus']}cpu-seed{setup.seed}"
        place = free_path(request.folder / name.replace(":", "-"))
        # A played run has marks that delimit its measured window; those of a live system may be many.
        marks = setup.machine == RECORDED_MACHINE
        self.recorder = Recorder(place, self.header, facts, self.state, excluded_pids, marks)
        self._control_actions = []
        self._from_start = request.from_start
        if request.from_start:
            self.recorder.add_log(log)

    async def stop_recording(
        self, outcome: Outcome, workload: str, repeatable: bool, files: Iterable[Path] = ()
    ) -> Path | None:
        """Ends the recording. Returns its run folder, or None if nothing was recorded.

        Cancelling the task does not interrupt this method. `repeatable`: true if the system has
        ended, and a run without control actions would be the same. `files`: extra files for the run
        folder.
        """
        recorder, self.recorder = self.recorder, None
        if recorder is None:
            return None
        facts = {
            "workload": workload,
            "repeatable": repeatable and self._from_start and not self._control_actions,
            "monitor": {"from_start": self._from_start, "steered": self._control_actions},
        }
        return await await_completely(recorder.stop(outcome, facts, files))

    def discard_recording(self) -> None:
        """Deletes the recording."""
        recorder, self.recorder = self.recorder, None
        if recorder:
            recorder.discard()

    async def export(self, path_without_suffix: Path, excluded_pids: frozenset[int]) -> Path:
        """Writes a file for ui.perfetto.dev, and returns its path.

        The file contains the recording in progress or, without a recording, the last seconds.
        `path_without_suffix`: the path without a suffix.
        """
        if self.state.count == 0:
            raise Refused("no record has arrived yet; try again")
        trace = path_without_suffix.with_suffix(".bin")
        if self.recorder:
            self.recorder.copy_trace(trace)
        else:
            self.recent.write(trace, excluded_pids)
        file = path_without_suffix.with_suffix(".perfetto-trace")
        try:
            await worker.write_perfetto(trace, file)
        finally:
            trace.unlink()
        return file


Item = TypeVar("Item")


class History(Generic[Item]):
    """Keeps the last `most` items, each with its position since the beginning."""

    def __init__(self, length_max: int) -> None:
        self.end = 0
        """Number of items ever added."""
        self._items: deque[Item] = deque(maxlen=length_max)

    def add(self, items: Iterable[Item]) -> None:
        """Appends items."""
        for item in items:
            self._items.append(item)
            self.end += 1

    def since(self, number: int) -> list[Item]:
        """Returns the kept items whose position is at least `number`; the first item has position 0."""
        return list(islice(self._items, max(number - (self.end - len(self._items)), 0), None))
