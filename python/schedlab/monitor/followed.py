# SPDX-License-Identifier: MIT
"""One system that is followed: how it is, and what it says, which goes onto its tape, for those that show it and
into a recording."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from schedlab.base.display.names import visible
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.frames import Mark, State
from schedlab.monitor.making import PLAYED, RECORDED, Choices, Maker
from schedlab.monitor.rates import HostClock, Rate
from schedlab.monitor.recorder import Recorder
from schedlab.monitor.said import Said
from schedlab.monitor.system import Ability, Life, Played, Records, Setup, Status, System
from schedlab.monitor.tape import Tape
from schedlab.monitor.trace_file import begin_of_work

LOG_MAX = 2000
"""Lines of the console that are kept for pages that come later."""
_NOTES_MAX = 200
_NO_WORK = 20_000
"""Records, after which one need not wait any more for workloads to begin."""
_SILENT_NS = 250_000_000
"""What a system does is in its trace after so long at most, with `trace-delay` and the way here."""


@dataclass(frozen=True)
class Terms:
    """What is the same for all systems of a session."""

    choices: Choices
    make: Maker
    scratch: Path
    changed: Callable[[], None]
    """Is told when there is something else to be introduced."""
    first: Callable[[str], None]
    """Is told of each start, before anything is taken of what its workloads do."""
    kept: list[Path]
    """All that was recorded, folder by folder."""
    pace: Callable[[], float]
    """How fast systems go whose clock is ours."""
    page_plays: bool = False
    """Pages play simulations and recordings by themselves: here they stand until they are asked."""


class Followed:
    """See above. All of it belongs to the session's loop."""

    def __init__(self, letter: str, setup: Setup, terms: Terms) -> None:
        self.letter = letter
        self.setup = setup
        self.terms = terms
        self.starts = 0
        self._exports = 0
        self.started = dict.fromkeys(setup.workloads)
        """What has been asked to run, in that order, for a recording's title."""
        self.lock = asyncio.Lock()
        """Held while the system does something: one thing at a time."""
        self.begin_ns: int | None = None
        """The moment at which pages show it first, standing still; None: its beginning."""
        self.address = ""
        """Where pages find its trace, if it is recorded."""
        self.following = asyncio.Lock()
        """Held while it is brought to where a page is."""
        self.blaming = asyncio.Lock()
        """Held while waits of it are taken apart."""
        self._reset()

    def _reset(self) -> None:
        """Makes it as before its start."""
        self.system: System | None = None
        self.tape: Tape | None = None
        self.paused = False
        self.held = False
        """It stands still, since it was ahead of the others."""
        self.failure = ""
        """Why we have given it up."""
        self.is_refused = False
        """It was given up because of what was asked for, or of the machine as it is."""
        self.origin_ns = 0
        """The point of its own time at which the time begins that it has in common with the other
        systems."""
        self.clock = HostClock()
        self.speed, self.events = Rate(), Rate()
        self.log: Said[str] = Said(LOG_MAX)
        self.notes: Said[Mark] = Said(_NOTES_MAX)
        """Marks that no trace tells of."""
        self.status: Status | None = None
        """What sched_status said last."""
        self.known_ns = 0
        """How far it had come when its trace was taken: all is known up to there."""
        self._acts: Sequence[str] = ()
        """What a page that plays it has done to it."""
        self._is_new = True
        """Was nothing taken of its trace?"""

    # --- how it is

    @property
    def life(self) -> Life:
        """FAILED, too, if it no longer answers as it should."""
        if self.failure:
            return Life.FAILED
        if self.system is None:
            return Life.STARTING
        life = self.system.life
        if life not in (Life.RUNNING, Life.PAUSED):
            return life
        # To a user, a system that has to wait for others goes on.
        return Life.PAUSED if self.paused else Life.RUNNING

    @property
    def message(self) -> str:
        return self.failure or (self.system.message if self.system else "")

    @property
    def is_on(self) -> bool:
        """It runs, or could go on."""
        return self.life in (Life.RUNNING, Life.PAUSED) and self.tape is not None

    @property
    def is_played(self) -> bool:
        return self.system is not None and Ability.PACE in self.system.abilities

    @property
    def is_played_by_page(self) -> bool:
        return self.terms.page_plays and self.setup.machine in PLAYED

    @property
    def played(self) -> Played:
        return cast(Played, self.system)

    @property
    def now_ns(self) -> int:
        """How far it has come, of its own time."""
        if self.is_played:
            return self.played.now_ns
        taken = self.tape.standing.time_ns if self.tape else 0
        if not self.is_on:
            return taken
        return max(taken, self.clock.time_ns(time.monotonic()) - _SILENT_NS)

    @property
    def common_ns(self) -> int:
        """The same, of the time that it has in common with others."""
        return self.now_ns - self.origin_ns

    @property
    def recorder(self) -> Recorder | None:
        """The recording under way."""
        return self.tape.recorder if self.tape else None

    @property
    def recording(self) -> str:
        """Where to; "": nothing is recorded."""
        return str(self.recorder.place) if self.recorder else ""

    @property
    def title(self) -> str:
        """Its title, for people."""
        cpus = f"{self.setup.cpus} CPU{'s' if self.setup.cpus > 1 else ''}"
        if self.setup.machine == RECORDED and self.setup.source:
            return self.setup.title or f"{self.setup.source.name}, recorded"
        policy = (self.tape and self.tape.standing.policy) or str(self.setup.policy)
        return f"{policy} on {self.setup.machine}, {cpus}"

    def fail(self, error: BaseException) -> None:
        """It is given up, for this reason."""
        is_expected = isinstance(error, (SchedlabError, OSError))
        self.is_refused = isinstance(error, WrongUsage)
        self.failure = str(error) if is_expected else f"{type(error).__name__}: {error}"

    # --- what it says

    def take(self) -> int:
        """Takes what is new of its trace and its log, and returns how many records came."""
        if self.system is None or self.failure:
            return 0
        try:
            self._take_log([visible(line) for line in self.system.take_log()])
            records = self.system.take()
            self.known_ns = self.now_ns
            if self.tape is None and not self._set_up():
                return 0
            self._take_records(records)
        except Exception as error:  # its trace is broken: the others go on
            self.fail(error)
            return 0
        return len(records)

    def _set_up(self) -> bool:
        """Makes its tape, as soon as its header is there."""
        assert self.system
        header = self.system.header
        if header is None:
            return False
        self.tape = Tape(header, self.setup)
        return True

    def _take_records(self, records: Records) -> None:
        assert self.tape
        if self._is_new and len(records):
            records = self._before_work(records)
        self._take_part(records)
        now = time.monotonic()
        self.speed.note(now, self.now_ns)
        self.events.note(now, self.tape.standing.count)

    def _before_work(self, records: Records) -> Records:
        """Takes what comes before the workloads that it begins with, which is of no interest to a
        recording; gives the rest."""
        assert self.tape and self.system
        at = 0
        if self.setup.workloads:
            begin = begin_of_work(records, self.system.own_pids)
            if begin is None and self.tape.standing.count + len(records) < _NO_WORK:
                return records
            at = begin or 0
        self._take_part(records[:at])
        self._is_new = False
        self.terms.first(self.letter)
        return records[at:]

    def _take_part(self, records: Records) -> None:
        assert self.tape
        if len(records) == 0:
            return
        try:
            self.tape.add(records)
        except OSError as error:
            self.note(f"the recording was given up: {error}")
        self.clock.heard(time.monotonic(), self.tape.standing.time_ns)

    def _take_log(self, lines: list[str]) -> None:
        self.log.add(lines)
        if self.tape:
            self.tape.add_log(lines)

    def state(self, pace: float) -> State:
        """Returns how it is, apart from what its trace tells."""
        return {
            "system": self.letter,
            "life": self.life.value,
            "message": visible(self.message),
            "paused": self.paused,
            "speed": self.speed.per_second / 1e9,
            "pace": pace if self.is_played else -1.0,
            "events_per_s": self.events.per_second,
            "recording": self.recording,
        }

    def note(self, text: str) -> None:
        """Marks the time line."""
        time_ns = self.tape.standing.time_ns if self.tape else 0
        self.notes.add([{"time_ns": time_ns, "kind": "note", "text": text, "pid": 0}])
