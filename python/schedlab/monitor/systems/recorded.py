# SPDX-License-Identifier: MIT
"""A recorded run as a system of the monitor: its trace is played by a clock of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
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
from schedlab.monitor.systems.paced import PacedSystem
from schedlab.runs import results
from schedlab.runs.branches import repeatable_run
from schedlab.trace import TraceError, read, read_records, validate
from schedlab.trace.bounds import impossible
from schedlab.trace.errors import RecordName
from schedlab.trace.format import RECORD, AttributeKind, Kind
from schedlab.trace.model import Header

CHECKED_BYTES_MAX = 256 << 20
"""The largest trace that is checked before it is played: a larger one would take seconds, and
gigabytes."""
STANDARD_TICK_NS = 1_000_000
"""The length of a step by a tick, where a machine has no ticks."""
PIECE = 262_144
"""Records that are taken, or looked at, at once."""
_OUR_MACHINES = ("spike", "qemu", "sim")

Wanted = Callable[[Records], npt.NDArray[np.bool_]]


def recorded_setup(place: Path) -> Setup:
    """Returns the setup of a run's folder, or of a folder that holds one run. WrongUsage: it is none."""
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
        return PolicyChoice(name)  # of a machine that has policies of its own


class RecordedSystem(PacedSystem):
    """A recording (Paced, in system.py): it can be played at any speed, and from any time on.

    A trace that was cut off, or that cannot have happened, is played as far as it goes.
    """

    abilities = frozenset({Ability.PAUSE, Ability.PACE, Ability.SEEK})

    def __init__(self, setup: Setup, folder: Path) -> None:
        if setup.source is None:
            raise ValueError("a recording needs the folder of its run")
        super().__init__(setup, folder)
        manifest = results.read_manifest(setup.source)
        ours = manifest.get("machine") in _OUR_MACHINES
        own = manifest.get("branch_of", {}).get("own", [])
        self.own_pids = frozenset({1, *own}) if ours else frozenset()
        self.no_branches = _no_branches(setup.source, manifest)
        self._path = setup.source / TRACE_FILE
        self._tape: _Tape | None = None
        self._taken = 0
        """Records, in their order."""

    @property
    def header(self) -> Header | None:
        """Returns the header of its trace, or None if it has not begun."""
        return self._tape.header if self._tape else None

    async def begin(self) -> None:
        """Goes through the trace once."""
        try:
            self._tape = await asyncio.to_thread(_Tape, self._path)
        except (TraceError, OSError) as error:
            raise SchedlabError(f"{self._path} cannot be played: {error}") from None
        self.end_ns = self._tape.end_ns
        self.message = self._tape.remark
        self._stands_ns = self._tape.begin_ns
        self.life = Life.RUNNING

    async def end(self) -> None:
        """Ends it: what was not played yet is not taken any more."""
        self.life = Life.ENDED

    # ---- what it says

    def take(self) -> Records:
        """Returns a piece of what has happened; `now_ns` says how far it goes."""
        if not self._tape or self.life is not Life.RUNNING:
            return np.empty(0, RECORD)
        records = self._tape.until(self._taken, self._stands_ns)
        self._taken += len(records)
        whole = len(records) < PIECE
        self._taken_ns = None if whole else int(records["time"].max())
        return records

    def take_log(self) -> list[str]:
        """The console's lines have no times: when they were written is not known."""
        return []

    # ---- time

    async def advance(self, until_ns: int, patience_s: float) -> int:
        """Only the clock is moved; take() does the work."""
        self._move(until_ns)
        return self.now_ns

    async def step(self, kind: StepKind) -> int:
        """Goes on by a step; to the end, if nothing of the kind comes any more."""
        tape = self._playing()
        if kind is StepKind.MILLISECOND:
            self._move(self._stands_ns + 1_000_000)
        elif kind is StepKind.TICK:
            tick_ns = self.setup.tick_ns or STANDARD_TICK_NS
            self._move((self._stands_ns // tick_ns + 1) * tick_ns)
        else:
            wanted = _decisions(tape) if kind is StepKind.DECISION else _any_record
            find = partial(tape.next_time, self._taken, self._stands_ns, wanted)
            found = await asyncio.to_thread(find)
            self._move(tape.end_ns if found is None else found)
        return self.now_ns

    async def seek(self, time_ns: int) -> None:
        """Begins the trace anew, and goes up to there."""
        tape = self._playing()
        self._taken, self._taken_ns = 0, None
        self._stands_ns = min(max(time_ns, tape.begin_ns), tape.end_ns)

    def _playing(self) -> _Tape:
        if not self._tape or self.life is not Life.RUNNING:
            raise Refused("the recording is not played any more")
        return self._tape

    def _move(self, time_ns: int) -> None:
        if self.end_ns is not None and self.life is Life.RUNNING:
            self._stands_ns = max(self._stands_ns, min(time_ns, self.end_ns))

    # ---- what is over cannot be steered

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
        "this is a recording: it can be played, not asked or changed; what would have been under"
        " another policy, ./schedlab replay tells"
    )


# ---- the trace


class _Tape:
    """A trace's records in their order, up to the first that cannot be."""

    def __init__(self, path: Path) -> None:
        self.records = read_records(path)
        self.header = self.records.header
        self.length = len(self.records)
        self.begin_ns = 0
        self.end_ns = 0
        self.tells_exits = False
        """True if decisions come from the scheduler's exits; otherwise switches stand for them."""
        flaw = _flaw(path)
        remarks = self._look_through(flaw.record if flaw else None)
        if flaw:
            remarks = [f"played up to what cannot be: {flaw}"]
        if not self.length:
            raise TraceError("; ".join(["it has no records", *remarks]))
        self.remark = "; ".join(remarks)

    def _look_through(self, stop: RecordName | None) -> list[str]:
        """Looks through the whole trace for what must be known before. Returns what is to be said
        of it."""
        times: list[int] = []
        ended: set[int] = set()
        numbers = ""
        for place in range(0, self.length, PIECE):
            piece = self.records.piece(place, place + PIECE)
            found = piece["sequence"] == np.uint32(stop.sequence & 0xFFFF_FFFF if stop else 0)
            if stop and found.any():
                self.length = place + int(found.argmax())
                piece = piece[: int(found.argmax())]
            wrong = impossible(piece, self.header.cpus)
            if wrong.any():  # in a trace that is too large to be checked
                self.length = place + int(wrong.argmax())
                piece = piece[: int(wrong.argmax())]
                numbers = f"record {self.length} has numbers that no record can have"
            if len(piece):
                times += [int(piece["time"].min()), int(piece["time"].max())]
            self.tells_exits |= bool((piece["kind"] == Kind.SCHEDULER_EXIT).any())
            ended |= set(piece["cpu"][piece["kind"] == Kind.END].tolist())
            if place + PIECE > self.length:
                break
        self.begin_ns, self.end_ns = min(times, default=0), max(times, default=0)
        cut = not self.records.whole or len(ended) < self.header.cpus
        remarks = ["the trace was cut off: the machine did not write all"] if cut else []
        if numbers:
            remarks.append(f"played up to what cannot be: {numbers}")
        if self.records.missing:
            remarks.append(f"{self.records.missing} records are missing")
        return remarks

    def until(self, place: int, time_ns: int) -> Records:
        """Returns what comes from a place on, at most a piece, up to the first record that is later."""
        piece = self.records.piece(place, min(place + PIECE, self.length))
        later = piece["time"] > time_ns
        return piece[: int(later.argmax())] if later.any() else piece

    def next_time(self, place: int, time_ns: int, wanted: Wanted) -> int | None:
        """Returns the time of the first wanted record after `time_ns`, from a place on, or None if there is none."""
        for begin in range(place, self.length, PIECE):
            piece = self.records.piece(begin, min(begin + PIECE, self.length))
            found = (piece["time"] > time_ns) & wanted(piece)
            if found.any():
                return int(piece["time"][found.argmax()])
        return None


def _flaw(path: Path) -> TraceError | None:
    """Returns the first record that cannot be. TraceError: this is no trace at all."""
    if path.stat().st_size > CHECKED_BYTES_MAX:
        return None
    try:
        validate(read(path))
    except TraceError as error:
        if error.record is None:
            raise
        return error
    return None


def _any_record(records: Records) -> npt.NDArray[np.bool_]:
    return np.ones(len(records), bool)


def _decisions(tape: _Tape) -> Wanted:
    """Returns those by which a CPU has a process to run."""
    kind = Kind.SCHEDULER_EXIT if tape.tells_exits else Kind.SWITCH

    def wanted(records: Records) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (records["kind"] == kind) & (records["process"] != 0)
        return found

    return wanted
