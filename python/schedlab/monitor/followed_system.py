# SPDX-License-Identifier: MIT
"""Follows one system: its state, its trace and its log, for pages, terminals and recordings."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from schedlab.base.display.names import visible
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.frames import Mark, State
from schedlab.monitor.recorder import Recorder
from schedlab.monitor.system import Ability, Life, Records, Setup, Status, System
from schedlab.monitor.system_factory import (
    PLAYED_MACHINES,
    RECORDED_MACHINE,
    SetupChoices,
    SystemMaker,
)
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.monitor.tape import History, Tape
from schedlab.monitor.trace_file import find_first_workload_record

LOG_LINES_MAX = 2000
"""Console lines kept for pages that connect later."""
_NOTES_MAX = 200
_WORKLOAD_SEARCH_RECORDS = 20_000
"""Maximum number of records that are searched for the start of the first workload."""
_RECORD_DELAY_MAX_NS = 250_000_000
"""Upper bound on the delay of trace records: `trace-delay` plus transport."""


@dataclass(frozen=True)
class SharedValues:
    """Values shared by all systems of a session."""

    choices: SetupChoices
    make_system: SystemMaker
    scratch: Path
    announce_change: Callable[[], None]
    """Called when the hello message must be sent again, because its content has changed."""
    on_start: Callable[[str], None]
    """Called with a system's letter at each start, after the records of the machine's own start."""
    recorded_folders: list[Path]
    """Folders of all finished recordings."""
    pace: Callable[[], float]
    """Returns the requested speed of systems whose clock the monitor drives."""
    page_runs_systems: bool = False
    """True if pages run simulations and recordings themselves; the server's copies then wait for commands."""


class FollowedSystem:
    """One watched system with its trace, log and status; subclass WatchedSystem adds the commands.

    All its state belongs to the session's event loop.
    """

    def __init__(self, letter: str, setup: Setup, terms: SharedValues) -> None:
        self.letter = letter
        self.setup = setup
        self.shared = terms
        self.starts = 0
        self._exports = 0
        self.started = dict.fromkeys(setup.workloads)
        """Workloads in the order of their starts, for a recording's title."""
        self.lock = asyncio.Lock()
        """Held during a control operation; only one runs at a time."""
        self.begin_ns: int | None = None
        """The moment (ns) that pages show first, paused; None means the system's beginning."""
        self.trace_address = ""
        """URL of the trace, if the system is a recording."""
        self.follow_lock = asyncio.Lock()
        """Held while the system is brought to a page's state."""
        self.breakdown_lock = asyncio.Lock()
        """Held while waits are broken down."""
        self._reset()

    def _reset(self) -> None:
        """Resets the state to before the system's start."""
        self.system: System | None = None
        self.tape: Tape | None = None
        self.paused = False
        self.waits_for_others = False
        """True while the system waits because it was ahead of the others."""
        self.failure = ""
        """Why the system was abandoned; empty if it was not."""
        self.is_refused = False
        """True if the failure comes from the request or from this machine, not from the system."""
        self.origin_ns = 0
        """The system's time (ns) at the zero of the time shared by all systems."""
        self.clock = HostClock()
        self.speed, self.events = Rate(), Rate()
        self.log: History[str] = History(LOG_LINES_MAX)
        self.notes: History[Mark] = History(_NOTES_MAX)
        """Marks that are not in the trace."""
        self.status: Status | None = None
        """The latest output of sched_status."""
        self.known_ns = 0
        """The system's time (ns) when its trace was last read: the trace is complete up to this time."""
        self._acts: Sequence[str] = ()
        """Actions that the page performed on a system that it runs itself."""
        self._is_new = True
        """True until the first records arrive."""

    # --- how it is

    @property
    def life(self) -> Life:
        """The state of the system's life cycle; FAILED if the system was abandoned."""
        if self.failure:
            return Life.FAILED
        if self.system is None:
            return Life.STARTING
        life = self.system.life
        if life not in (Life.RUNNING, Life.PAUSED):
            return life
        # A system held back for others counts as running for its user.
        return Life.PAUSED if self.paused else Life.RUNNING

    @property
    def message(self) -> str:
        return self.failure or (self.system.message if self.system else "")

    @property
    def is_ready(self) -> bool:
        """True if the system has begun and is running or paused."""
        return self.life in (Life.RUNNING, Life.PAUSED) and self.tape is not None

    @property
    def is_played(self) -> bool:
        return self.system is not None and Ability.PACE in self.system.abilities

    @property
    def is_played_by_page(self) -> bool:
        return self.shared.page_runs_systems and self.setup.machine in PLAYED_MACHINES

    @property
    def played(self) -> PlayedSystem:
        return cast(PlayedSystem, self.system)

    @property
    def now_ns(self) -> int:
        """The time (ns) that the system has reached, on its own clock."""
        if self.is_played:
            return self.played.now_ns
        trace_ns = self.tape.state.time_ns if self.tape else 0
        if not self.is_ready:
            return trace_ns
        return max(trace_ns, self.clock.time_ns(time.monotonic()) - _RECORD_DELAY_MAX_NS)

    @property
    def common_ns(self) -> int:
        """The time (ns) that the system has reached, on the clock shared by all systems."""
        return self.now_ns - self.origin_ns

    @property
    def recorder(self) -> Recorder | None:
        """The recording in progress, or None."""
        return self.tape.recorder if self.tape else None

    @property
    def recording(self) -> str:
        """Folder of the recording; empty if nothing is being recorded."""
        return str(self.recorder.path) if self.recorder else ""

    @property
    def title(self) -> str:
        """The system's title in pages and messages."""
        cpus = f"{self.setup.cpus} CPU{'s' if self.setup.cpus > 1 else ''}"
        if self.setup.machine == RECORDED_MACHINE and self.setup.source:
            return self.setup.title or f"{self.setup.source.name}, recorded"
        policy = (self.tape and self.tape.state.policy) or str(self.setup.policy)
        return f"{policy} on {self.setup.machine}, {cpus}"

    def abandon(self, error: BaseException) -> None:
        """Abandons the system and keeps the reason."""
        is_expected = isinstance(error, (SchedlabError, OSError))
        self.is_refused = isinstance(error, WrongUsage)
        self.failure = str(error) if is_expected else f"{type(error).__name__}: {error}"

    # --- what it says

    def take_output(self) -> int:
        """Reads new records and log lines from the system; returns the number of new records."""
        if self.system is None or self.failure:
            return 0
        try:
            self._take_log([visible(line) for line in self.system.take_log()])
            records = self.system.take_records()
            self.known_ns = self.now_ns
            if self.tape is None and not self._set_up():
                return 0
            self._take_records(records)
        except Exception as error:  # a broken trace fails this system only
            self.abandon(error)
            return 0
        return len(records)

    def _set_up(self) -> bool:
        """Creates the tape as soon as the trace's header has arrived. Returns whether it has arrived."""
        assert self.system
        header = self.system.header
        if header is None:
            return False
        self.tape = Tape(header, self.setup)
        return True

    def _take_records(self, records: Records) -> None:
        """Adds records to the tape, and notes the system's speed."""
        assert self.tape
        if self._is_new and len(records):
            records = self._take_until_workload(records)
        self._add_to_tape(records)
        now = time.monotonic()
        self.speed.note_value(now, self.now_ns)
        self.events.note_value(now, self.tape.state.count)

    def _take_until_workload(self, records: Records) -> Records:
        """Stores the records up to the start of the first workload, and returns the others.

        The stored records belong to the boot: files that the monitor saves leave them out.

        """
        assert self.tape and self.system
        index = 0
        if self.setup.workloads:
            begin = find_first_workload_record(records, self.system.monitor_pids)
            if begin is None and self.tape.state.count + len(records) < _WORKLOAD_SEARCH_RECORDS:
                return records
            index = begin or 0
        self._add_to_tape(records[:index])
        self._is_new = False
        self.shared.on_start(self.letter)
        return records[index:]

    def _add_to_tape(self, records: Records) -> None:
        assert self.tape
        if len(records) == 0:
            return
        try:
            self.tape.add(records)
        except OSError as error:
            self.note(f"the recording was abandoned: {error}")
        self.clock.note_record(time.monotonic(), self.tape.state.time_ns)

    def _take_log(self, lines: list[str]) -> None:
        self.log.add(lines)
        if self.tape:
            self.tape.add_log(lines)

    def state(self, pace: float) -> State:
        """Returns the parts of the system's state that are not in the trace."""
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
        """Adds a note, which pages and terminals show on the timeline."""
        time_ns = self.tape.state.time_ns if self.tape else 0
        self.notes.add([{"time_ns": time_ns, "kind": "note", "text": text, "pid": 0}])


class Rate:
    """The growth rate of a counter over the last second of the host's time."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()

    def note_value(self, now_s: float, value: float) -> None:
        """Records the number's current value."""
        self._values.append((now_s, value))
        while len(self._values) > 2 and self._values[1][0] <= now_s - 1.0:
            self._values.popleft()

    @property
    def per_second(self) -> float:
        """Returns the growth per second; 0 if fewer than two values are known."""
        if len(self._values) < 2:
            return 0.0
        (first_s, first), (last_s, last) = self._values[0], self._values[-1]
        return max(last - first, 0.0) / (last_s - first_s) if last_s > first_s else 0.0


class HostClock:
    """Estimates a system's current time between its records, if its clock runs at the host's speed.

    The record with the least delay gives the offset between the two clocks. Offsets older than
    `_SPAN_S` are dropped: a system stopped from outside has lost time.
    """

    _SPAN_S = 3.0

    def __init__(self) -> None:
        self._earlier_run_s = 0.0
        self._started_s: float | None = None
        self._offsets: deque[tuple[float, float]] = deque()
        """Pairs of running time (s) and clock offset (ns)."""

    def start(self, now_s: float) -> None:
        """Notes that the system's clock begins to run, at the host's time `now_s`."""
        if self._started_s is None:
            self._started_s = now_s

    def stop(self, now_s: float) -> None:
        """Notes that the system's clock is stopped from `now_s` on."""
        self._earlier_run_s = self._run_time_s(now_s)
        self._started_s = None

    def note_record(self, now_s: float, time_ns: int) -> None:
        """Notes that a record with the system's time `time_ns` arrived at the host's time `now_s`."""
        run_s = self._run_time_s(now_s)
        offset_ns = time_ns - run_s * 1e9
        while self._offsets and self._offsets[-1][1] <= offset_ns:
            self._offsets.pop()
        self._offsets.append((run_s, offset_ns))
        while self._offsets[0][0] < run_s - self._SPAN_S:
            self._offsets.popleft()

    def time_ns(self, now_s: float) -> int:
        """Returns the estimated time (ns) of the system's clock, or 0 if unknown."""
        return int(self._run_time_s(now_s) * 1e9 + self._offsets[0][1]) if self._offsets else 0

    def _run_time_s(self, now_s: float) -> float:
        """Returns for how long the system has run, without pauses."""
        return self._earlier_run_s + (
            now_s - self._started_s if self._started_s is not None else 0.0
        )
