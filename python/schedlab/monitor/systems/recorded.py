# SPDX-License-Identifier: MIT
"""A recorded run as a system of the monitor: its trace is played by a clock of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from schedlab import results
from schedlab.errors import SchedlabError
from schedlab.machines.base import TRACE_FILE
from schedlab.monitor.system import (
    Ability,
    Life,
    Records,
    Refused,
    Setup,
    Status,
    StepKind,
    TunableNow,
)
from schedlab.policies import PolicyChoice, parse_choices
from schedlab.trace import TraceError, read, validate
from schedlab.trace.follow import POLL_RECORDS, Follower
from schedlab.trace.format import RECORD, AttributeKind, Kind
from schedlab.trace.model import Header

CHECKED_BYTES_MAX = 256 << 20
"""Of a trace that is checked before it is played: a larger one would take seconds, and gigabytes."""
STANDARD_TICK_NS = 1_000_000
"""Of a step by a tick, where a machine has none."""
_OUR_MACHINES = ("spike", "qemu", "sim")

Wanted = Callable[[Records], npt.NDArray[np.bool_]]


def recorded_setup(place: Path) -> Setup:
    """Of a run's folder, or a folder that holds one run. WrongUsage: it is none."""
    folder = results.find_run(place)
    manifest = results.read_manifest(folder)
    return Setup(
        machine="recorded",
        policy=_policy(str(manifest["policy"])),
        settings=tuple(manifest["tunables"].items()),
        cpus=int(manifest["cpus"]),
        tick_ns=int(manifest["tick_ns"]),
        seed=int(manifest["seed"]),
        source=folder,
    )


def _policy(name: str) -> PolicyChoice:
    try:
        return parse_choices(name)[0]
    except ValueError:
        return PolicyChoice(name)  # of a machine that has policies of its own


@dataclass(frozen=True)
class _Summary:
    """What must be known of a trace before it is played."""

    begin_ns: int
    end_ns: int
    tells_exits: bool
    """From the scheduler; else switches stand for its decisions."""
    remark: str
    """What is wrong with the trace; "": nothing."""
    stop: int | None
    """The sequence number of the first record that cannot be."""


class RecordedSystem:
    """A recording (Paced, in system.py): it can be played at any speed, and from any time on.

    A trace that was cut off, or that cannot have happened, is played as far as it goes.
    """

    abilities = frozenset({Ability.PACE, Ability.SEEK})
    repeatable = True
    record_cost_ns = 0.0

    def __init__(self, setup: Setup, folder: Path) -> None:
        if setup.source is None:
            raise ValueError("a recording needs the folder of its run")
        self.setup = setup
        self.folder = folder
        self.life = Life.STARTING
        self.message = ""
        self.now_ns = 0
        self.end_ns: int | None = None
        manifest = results.read_manifest(setup.source)
        ours = manifest.get("machine") in _OUR_MACHINES
        self.own_pids = frozenset({1}) if ours else frozenset()
        self._path = setup.source / TRACE_FILE
        self._summary: _Summary | None = None
        self._playing: _Reel | None = None
        self._ahead: _Reel | None = None
        """Finds what comes next, for steps."""

    @property
    def header(self) -> Header | None:
        """Of its trace; None: it has not begun."""
        return self._playing.follower.header if self._playing else None

    async def begin(self) -> None:
        """Goes through the trace once."""
        try:
            self._summary = await asyncio.to_thread(_summary, self._path)
        except (TraceError, OSError) as error:
            raise SchedlabError(f"{self._path} cannot be played: {error}") from None
        self.end_ns = self._summary.end_ns
        self.message = self._summary.remark
        self._rewind(self._summary)
        self.now_ns = self._summary.begin_ns
        self.life = Life.RUNNING

    async def end(self) -> None:
        """What was not played yet is not taken any more."""
        self.life = Life.ENDED
        for reel in (self._playing, self._ahead):
            if reel:
                reel.follower.close()

    def _rewind(self, summary: _Summary) -> None:
        for reel in (self._playing, self._ahead):
            if reel:
                reel.follower.close()
        self._playing = _Reel(self._path, summary.stop)
        self._ahead = _Reel(self._path, summary.stop)

    # ---- what it says

    def take(self) -> Records:
        """A piece of what has happened up to now: more may be there already."""
        if not self._playing or self.life is not Life.RUNNING:
            return _NO_RECORDS
        return self._playing.take(self.now_ns)

    def take_log(self) -> list[str]:
        """The console's lines have no times: nobody knows when they were said."""
        return []

    # ---- time

    async def advance(self, until_ns: int, patience_s: float) -> int:
        """Only the clock is moved; take() does the work."""
        self._move(until_ns)
        return self.now_ns

    async def step(self, kind: StepKind) -> int:
        """To the end, if nothing of the kind comes any more."""
        summary, ahead = self._begun()
        if kind is StepKind.MILLISECOND:
            self._move(self.now_ns + 1_000_000)
        elif kind is StepKind.TICK:
            tick_ns = self.setup.tick_ns or STANDARD_TICK_NS
            self._move((self.now_ns // tick_ns + 1) * tick_ns)
        else:
            wanted = _decisions(summary) if kind is StepKind.DECISION else _any_record
            found = await asyncio.to_thread(ahead.next_time, self.now_ns, wanted)
            self._move(summary.end_ns if found is None else found)
        return self.now_ns

    async def seek(self, time_ns: int) -> None:
        """The trace begins anew, and goes up to there."""
        summary, _ = self._begun()
        self._rewind(summary)
        self.now_ns = min(max(time_ns, summary.begin_ns), summary.end_ns)

    def _begun(self) -> tuple[_Summary, _Reel]:
        if not self._summary or not self._ahead or self.life is not Life.RUNNING:
            raise Refused("the recording is not played any more")
        return self._summary, self._ahead

    def _move(self, time_ns: int) -> None:
        if self.end_ns is not None and self.life is Life.RUNNING:
            self.now_ns = max(self.now_ns, min(time_ns, self.end_ns))

    # ---- nobody steers what is over

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

    async def pause(self) -> None:
        """Its time stands still unless advance() is called."""

    async def resume(self) -> None:
        """See pause()."""


def _refuse() -> NoReturn:
    raise Refused(
        "this is a recording: it can be played, not asked or changed; what would have been under"
        " another policy, ./schedlab run --replay tells"
    )


# ---- the trace


_NO_RECORDS = np.empty(0, RECORD)


class _Reel:
    """A trace's records in their order, a piece at a time, up to the first that cannot be."""

    def __init__(self, path: Path, stop: int | None) -> None:
        self.follower = Follower(path)
        self._stop = stop
        self._piece = _NO_RECORDS
        self._over = False

    def take(self, until_ns: int) -> Records:
        """What comes next, at most a piece, up to the first record that is later."""
        self._fill()
        later = self._piece["time"] > until_ns
        count = int(later.argmax()) if later.any() else len(self._piece)
        return self._cut(count)

    def next_time(self, after_ns: int, wanted: Wanted) -> int | None:
        """When the first record comes that is wanted, and later. None: there is none."""
        while self._fill():
            found = (self._piece["time"] > after_ns) & wanted(self._piece)
            if found.any():
                self._cut(int(found.argmax()))
                return int(self._piece["time"][0])
            self._cut(len(self._piece))
        return None

    def pieces_end(self) -> bool:
        """Nothing comes any more."""
        return not self._fill()

    def _fill(self) -> bool:
        """False: nothing comes any more."""
        while len(self._piece) == 0 and not self._over:
            rest = self.follower.unread_bytes
            if rest >= RECORD.itemsize:
                piece = self.follower.poll()
            else:
                piece = self.follower.finish()
                self._over = True
            self._piece = self._up_to_stop(piece)
        return len(self._piece) > 0

    def _up_to_stop(self, piece: Records) -> Records:
        if self._stop is None:
            return piece
        found = piece["sequence"] == self._stop
        if not found.any():
            return piece
        self._over = True
        return piece[: int(found.argmax())]

    def _cut(self, count: int) -> Records:
        count = min(count, POLL_RECORDS)
        piece, self._piece = self._piece[:count], self._piece[count:]
        return piece


def _summary(path: Path) -> _Summary:
    """TraceError: there is nothing to play."""
    stop, remarks = _soundness(path)
    reel = _Reel(path, stop)
    begin, end, exits = None, 0, False
    while not reel.pieces_end():
        piece = reel.take(2**63 - 1)
        begin = min(int(piece["time"].min()), end if begin is None else begin)
        end = max(int(piece["time"].max()), end)
        exits = exits or bool((piece["kind"] == Kind.SCHEDULER_EXIT).any())
    reel.follower.close()
    if begin is None:
        raise TraceError("it has no records")
    if stop is None and not reel.follower.ended:
        remarks.append("the trace was cut off: the machine was stopped before it had written all")
    if reel.follower.missing:
        remarks.append(f"{reel.follower.missing} records are missing")
    return _Summary(begin, end, exits, "; ".join(remarks), stop)


def _soundness(path: Path) -> tuple[int | None, list[str]]:
    """The first record that cannot be, and what is to be said of it."""
    if path.stat().st_size > CHECKED_BYTES_MAX:
        return None, []
    try:
        validate(read(path))
    except TraceError as error:
        if error.record is None:
            raise
        return error.record.sequence & 0xFFFF_FFFF, [f"played up to what cannot be: {error}"]
    return None, []


def _any_record(records: Records) -> npt.NDArray[np.bool_]:
    return np.ones(len(records), bool)


def _decisions(summary: _Summary) -> Wanted:
    kind = Kind.SCHEDULER_EXIT if summary.tells_exits else Kind.SWITCH

    def wanted(records: Records) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (records["kind"] == kind) & (records["process"] != 0)
        return found

    return wanted
