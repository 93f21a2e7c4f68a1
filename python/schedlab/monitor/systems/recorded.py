# SPDX-License-Identifier: MIT
"""Plays a recorded run as a system of the monitor."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.runs import results
from schedlab.runs.branches import repeatable_run
from schedlab.trace import TraceError, read, read_records, validate
from schedlab.trace.bounds import has_impossible_field
from schedlab.trace.errors import RecordName
from schedlab.trace.format import RECORD, Kind
from schedlab.trace.model import Header

CHECKED_BYTES_MAX = 256 << 20
"""Size (bytes) of the largest trace that is validated before playing.

Validation of larger traces takes seconds and gigabytes of memory.
"""
WINDOW_RANGE_NS = (100_000_000, 600_000_000_000)
"""Shortest and longest window (ns) of the metrics."""
RECORDS_PER_READ = 262_144
"""Maximum number of records per read."""
_SCHEDLAB_MACHINES = ("spike", "qemu", "sim")


def recorded_setup(path: Path) -> Setup:
    """Returns the setup that plays a run's folder, or a folder with exactly one run.

    Raises WrongUsage for any other folder.
    """
    folder = results.find_run(path)
    manifest = results.read_manifest(folder)
    policy, tunables = results.initial_policy(manifest)
    return Setup(
        machine="recorded",
        policy=_parse_policy(policy),
        settings=tuple(tunables.items()),
        cpus=int(manifest["cpus"]),
        tick_ns=int(manifest["tick_ns"]),
        seed=int(manifest["seed"]),
        source=folder,
        title=manifest.get("branch", ""),
    )


def recorded_window_ns(setup: Setup, default_ns: int) -> int:
    """Returns a window (ns) as long as the recording, or the default if the trace is unreadable."""
    if setup.source is None:
        return default_ns
    try:
        records = read_records(setup.source / TRACE_FILE)
        first, last = records.piece(0, 1), records.piece(len(records) - 1, len(records))
        length_ns = int(last["time"].max()) - int(first["time"].min())
    except (TraceError, OSError, ValueError):
        return default_ns  # the error is reported when the recording begins
    return min(max(length_ns, WINDOW_RANGE_NS[0]), WINDOW_RANGE_NS[1])


def _why_no_branches(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Returns why the recorded run cannot be repeated for branches; "" if it can."""
    try:
        repeatable_run(folder, manifest)
    except (SchedlabError, OSError) as error:
        return str(error)
    return ""


def _parse_policy(name: str) -> PolicyChoice:
    try:
        return parse_choices(name)[0]
    except ValueError:
        return PolicyChoice(name)  # schedlab has no such policy; only the recorded machine had it


class RecordedSystem(PlayedSystem):
    """A recording that is played back.

    A truncated or invalid trace is played up to its first flaw.
    """

    abilities = frozenset({Ability.PAUSE, Ability.PACE})
    monitor_pids: frozenset[int] = frozenset()

    def __init__(self, setup: Setup, folder: Path) -> None:
        if setup.source is None:
            raise ValueError("a recording needs the folder of its run")
        super().__init__(setup, folder)
        manifest = results.read_manifest(setup.source)
        ours = manifest.get("machine") in _SCHEDLAB_MACHINES
        excluded_pids = manifest.get("branch_of", {}).get("own", [])
        self.monitor_pids = frozenset({1, *excluded_pids}) if ours else frozenset()
        self.why_no_branches = _why_no_branches(setup.source, manifest)
        self.path = setup.source / TRACE_FILE
        self._tape: _PlayableTrace | None = None
        self._taken = 0
        """Records taken so far."""

    @property
    def header(self) -> Header | None:
        """The trace's header, or None before the trace was opened."""
        return self._tape.header if self._tape else None

    async def begin(self) -> None:
        """Opens the trace and finds its flaws."""
        try:
            self._tape = await asyncio.to_thread(_PlayableTrace, self.path)
        except (TraceError, OSError) as error:
            raise SchedlabError(f"cannot be played: {error}", what=str(self.path)) from None
        self.end_ns = self._tape.end_ns
        self.message = self._tape.remark
        self._position_ns = self._tape.begin_ns
        self.life = Life.RUNNING

    @property
    def length(self) -> int:
        """Number of records that can be played: those before the first flaw."""
        return self._tape.length if self._tape else 0

    async def end(self) -> None:
        """Ends the recording at the time reached so far."""
        self.life = Life.ENDED
        await self.pause()

    # ---- output

    def take_records(self) -> Records:
        """Returns the records up to the clock's time, at most RECORDS_PER_READ; updates `now_ns`."""
        if not self._tape or self.life is not Life.RUNNING:
            return np.empty(0, RECORD)
        records = self._tape.records_until(self._taken, self._position_ns)
        self._taken += len(records)
        is_complete = len(records) < RECORDS_PER_READ
        self._read_ns = None if is_complete else int(records["time"].max())
        return records

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Advances the clock to a time (ns); `take` reads the records."""
        if self.end_ns is not None and self.life is Life.RUNNING:
            self._position_ns = max(self._position_ns, min(until_ns, self.end_ns))

    def _refuse(self) -> NoReturn:
        raise Refused(
            "this is a recording and cannot be changed; to see another policy, use ./schedlab replay"
        )


# ---- the trace


class _PlayableTrace:
    """Reads a trace's records in order, up to its first flaw."""

    def __init__(self, path: Path) -> None:
        self.records = read_records(path)
        self.header = self.records.header
        self.length = len(self.records)
        self.begin_ns = 0
        self.end_ns = 0
        flaw = _first_flaw(path)
        remarks = self._find_range(flaw.record if flaw else None)
        if flaw:
            remarks = [f"played up to an invalid record: {flaw}"]
        if not self.length:
            raise TraceError("; ".join(["the trace has no records", *remarks, "repeat the run"]))
        self.remark = "; ".join(remarks)

    def _find_range(self, stop: RecordName | None) -> list[str]:
        """Finds the trace's times and its first flaw; returns notes about the flaw for the log."""
        times: list[int] = []
        ended_cpus: set[int] = set()
        invalid_record = ""
        for index in range(0, self.length, RECORDS_PER_READ):
            piece = self.records.piece(index, index + RECORDS_PER_READ)
            matches = piece["sequence"] == np.uint32(stop.sequence & 0xFFFF_FFFF if stop else 0)
            if stop and matches.any():
                self.length = index + int(matches.argmax())
                piece = piece[: int(matches.argmax())]
            is_invalid = has_impossible_field(piece, self.header.cpus)
            if is_invalid.any():  # the trace was too large for a complete check
                self.length = index + int(is_invalid.argmax())
                piece = piece[: int(is_invalid.argmax())]
                invalid_record = f"record {self.length} has invalid numbers"
            if len(piece):
                times += [int(piece["time"].min()), int(piece["time"].max())]
            ended_cpus |= set(piece["cpu"][piece["kind"] == Kind.END].tolist())
            if index + RECORDS_PER_READ > self.length:
                break
        self.begin_ns, self.end_ns = min(times, default=0), max(times, default=0)
        is_truncated = not self.records.last_record_complete or len(ended_cpus) < self.header.cpus
        remarks = (
            ["the trace is truncated: the machine did not write all records"]
            if is_truncated
            else []
        )
        if invalid_record:
            remarks.append(f"played up to an invalid record: {invalid_record}")
        if self.records.missing:
            remarks.append(f"{self.records.missing} records are missing")
        return remarks

    def records_until(self, index: int, time_ns: int) -> Records:
        """Returns at most RECORDS_PER_READ records starting at index `index`, up to a time (ns)."""
        piece = self.records.piece(index, min(index + RECORDS_PER_READ, self.length))
        is_later = piece["time"] > time_ns
        return piece[: int(is_later.argmax())] if is_later.any() else piece


def _first_flaw(path: Path) -> TraceError | None:
    """Returns the first violation of the trace format, or None.

    Traces larger than CHECKED_BYTES_MAX are not checked. Raises TraceError if the file is not a
    trace.
    """
    if path.stat().st_size > CHECKED_BYTES_MAX:
        return None
    try:
        validate(read(path))
    except TraceError as error:
        if error.record is None:
            raise
        return error
    return None
