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
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.runs import results
from schedlab.runs.branches import repeatable_run
from schedlab.trace import TraceError, read, read_records, validate
from schedlab.trace.bounds import impossible
from schedlab.trace.errors import RecordName
from schedlab.trace.format import RECORD, AttributeKind, Kind
from schedlab.trace.model import Header

CHECKED_BYTES_MAX = 256 << 20
"""Size (bytes) of the largest trace that is checked before it is played.

Checking larger traces takes seconds and gigabytes.
"""
WINDOW_NS = (100_000_000, 600_000_000_000)
"""Shortest and longest window (ns) of the metrics."""
PIECE = 262_144
"""Records read at once."""
_OUR_MACHINES = ("spike", "qemu", "sim")


def recorded_setup(place: Path) -> Setup:
    """Returns the setup of a run's folder, or of a folder with one run.

    Raises WrongUsage otherwise.
    """
    folder = results.find_run(place)
    manifest = results.read_manifest(folder)
    policy, tunables = results.began_under(manifest)
    return Setup(
        machine="recorded",
        policy=_policy(policy),
        settings=tuple(tunables.items()),
        cpus=int(manifest["cpus"]),
        tick_ns=int(manifest["tick_ns"]),
        seed=int(manifest["seed"]),
        source=folder,
        title=manifest.get("branch", ""),
    )


def recorded_window_ns(setup: Setup, default_ns: int) -> int:
    """Returns a window (ns) that covers all of a recording, or the default if it cannot be read."""
    if setup.source is None:
        return default_ns
    try:
        records = read_records(setup.source / TRACE_FILE)
        first, last = records.piece(0, 1), records.piece(len(records) - 1, len(records))
        length_ns = int(last["time"].max()) - int(first["time"].min())
    except (TraceError, OSError, ValueError):
        return default_ns  # it is refused, or played up to its flaw, when it begins
    return min(max(length_ns, WINDOW_NS[0]), WINDOW_NS[1])


def _no_branches(folder: Path, manifest: Mapping[str, Any]) -> str:
    try:
        repeatable_run(folder, manifest)
    except (SchedlabError, OSError) as error:
        return str(error)
    return ""


def _policy(name: str) -> PolicyChoice:
    try:
        return parse_choices(name)[0]
    except ValueError:
        return PolicyChoice(name)  # only the recorded machine has this policy


class RecordedSystem(PlayedSystem):
    """A recording (Played, in system.py).

    A truncated or invalid trace is played up to its first flaw.
    """

    abilities = frozenset({Ability.PAUSE, Ability.PACE})

    def __init__(self, setup: Setup, folder: Path) -> None:
        if setup.source is None:
            raise ValueError("a recording needs the folder of its run")
        super().__init__(setup, folder)
        manifest = results.read_manifest(setup.source)
        ours = manifest.get("machine") in _OUR_MACHINES
        excluded_pids = manifest.get("branch_of", {}).get("own", [])
        self.monitor_pids = frozenset({1, *excluded_pids}) if ours else frozenset()
        self.no_branches = _no_branches(setup.source, manifest)
        self.path = setup.source / TRACE_FILE
        self._tape: _Tape | None = None
        self._taken = 0
        """Records taken so far."""

    @property
    def header(self) -> Header | None:
        """The trace's header, or None before the trace was opened."""
        return self._tape.header if self._tape else None

    async def begin(self) -> None:
        """Opens the trace and scans it once."""
        try:
            self._tape = await asyncio.to_thread(_Tape, self.path)
        except (TraceError, OSError) as error:
            raise SchedlabError(f"{self.path} cannot be played: {error}") from None
        self.end_ns = self._tape.end_ns
        self.message = self._tape.remark
        self._position_ns = self._tape.begin_ns
        self.life = Life.RUNNING

    @property
    def length(self) -> int:
        """Number of records that can be played: those before the first flaw."""
        return self._tape.length if self._tape else 0

    async def end(self) -> None:
        """Ends the recording; records not played yet are dropped."""
        self.life = Life.ENDED
        await self.pause()

    # ---- output

    def take(self) -> Records:
        """Returns the next records up to the clock; `now_ns` is their latest time."""
        if not self._tape or self.life is not Life.RUNNING:
            return np.empty(0, RECORD)
        records = self._tape.until(self._taken, self._position_ns)
        self._taken += len(records)
        is_complete = len(records) < PIECE
        self._taken_ns = None if is_complete else int(records["time"].max())
        return records

    def take_log(self) -> list[str]:
        """Returns no lines, because console lines have no times."""
        return []

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Moves the clock; take() reads the records."""
        if self.end_ns is not None and self.life is Life.RUNNING:
            self._position_ns = max(self._position_ns, min(until_ns, self.end_ns))

    # ---- commands, which recordings reject

    async def read_status(self) -> Status:
        _refuse()

    async def read_tunables(self) -> tuple[TunableNow, ...]:
        _refuse()

    async def set_policy(self, policy: str) -> None:
        _refuse()

    async def set_tunable(self, name: str, value: int) -> None:
        _refuse()

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        _refuse()

    async def start_workload(self, name: str) -> int:
        _refuse()

    async def kill(self, pid: int) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise Refused(
        "this is a recording and cannot be changed; to see another policy, use ./schedlab replay"
    )


# ---- the trace


class _Tape:
    """A trace's records in order, up to the first flaw."""

    def __init__(self, path: Path) -> None:
        self.records = read_records(path)
        self.header = self.records.header
        self.length = len(self.records)
        self.begin_ns = 0
        self.end_ns = 0
        flaw = _flaw(path)
        remarks = self._look_through(flaw.record if flaw else None)
        if flaw:
            remarks = [f"played up to an invalid record: {flaw}"]
        if not self.length:
            raise TraceError("; ".join(["the trace has no records", *remarks]))
        self.remark = "; ".join(remarks)

    def _look_through(self, stop: RecordName | None) -> list[str]:
        """Scans the trace for its times and its flaws. Returns notes about the flaws."""
        times: list[int] = []
        ended: set[int] = set()
        numbers = ""
        for place in range(0, self.length, PIECE):
            piece = self.records.piece(place, place + PIECE)
            matches = piece["sequence"] == np.uint32(stop.sequence & 0xFFFF_FFFF if stop else 0)
            if stop and matches.any():
                self.length = place + int(matches.argmax())
                piece = piece[: int(matches.argmax())]
            wrong = impossible(piece, self.header.cpus)
            if wrong.any():  # the trace was too large for a complete check
                self.length = place + int(wrong.argmax())
                piece = piece[: int(wrong.argmax())]
                numbers = f"record {self.length} has invalid numbers"
            if len(piece):
                times += [int(piece["time"].min()), int(piece["time"].max())]
            ended |= set(piece["cpu"][piece["kind"] == Kind.END].tolist())
            if place + PIECE > self.length:
                break
        self.begin_ns, self.end_ns = min(times, default=0), max(times, default=0)
        cut = not self.records.last_record_complete or len(ended) < self.header.cpus
        remarks = ["the trace is truncated: the machine did not write all records"] if cut else []
        if numbers:
            remarks.append(f"played up to an invalid record: {numbers}")
        if self.records.missing:
            remarks.append(f"{self.records.missing} records are missing")
        return remarks

    def until(self, place: int, time_ns: int) -> Records:
        """Returns at most one piece of records, starting at `place`, up to the first later record."""
        piece = self.records.piece(place, min(place + PIECE, self.length))
        later = piece["time"] > time_ns
        return piece[: int(later.argmax())] if later.any() else piece


def _flaw(path: Path) -> TraceError | None:
    """Returns the first flaw, or None. Raises TraceError if the file is not a trace."""
    if path.stat().st_size > CHECKED_BYTES_MAX:
        return None
    try:
        validate(read(path))
    except TraceError as error:
        if error.record is None:
            raise
        return error
    return None
