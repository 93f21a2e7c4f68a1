# SPDX-License-Identifier: MIT
"""Runs up to four watched systems side by side.

Reads their traces, keeps their times close together, and performs the users' commands.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Protocol

from schedlab import __version__
from schedlab.base.display.names import map_texts
from schedlab.base.host.disk import CHECK_INTERVAL_S, DiskWatch
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.followed_system import SharedValues
from schedlab.monitor.system import Life, Refused, Setup
from schedlab.monitor.system_factory import (
    RECORDED_MACHINE,
    SetupChoices,
    SystemMaker,
    cpus_max,
    make_system,
)
from schedlab.monitor.systems.recorded import RecordedSystem
from schedlab.monitor.tape import RecordingRequest
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.paths import new_runs_folder

SYSTEMS_MAX = 4
WINDOW_NS = 10_000_000_000
"""Default window of the metrics."""
_TURN_PERIOD_S = 0.02
"""Seconds between two calls of Session.turn."""
_UNREAD_RECORDS_MAX = 500_000
"""Maximum backlog in records. If even the fastest listener is this far behind, reading pauses."""
_AHEAD_MAX_NS = 20_000_000
"""How far (ns, at pace 1) a system may be ahead of the slowest one before it is held."""
_UNLIMITED_PACE_FACTOR = 1000
"""Factor for _AHEAD_NS if the pace is "as fast as possible"."""
_STATUS_PERIOD_S = 1.0


class Listener(Protocol):
    """The server of pages, or the terminal's screen: shows the session's systems."""

    def on_hello_change(self) -> None:
        """Called when the content of the hello message has changed."""

    def unsent_records(self, system: WatchedSystem) -> int:
        """Returns how many of a system's records this listener has not shown yet."""

    async def send_updates(self) -> None:
        """Called several times a second to process new records, for a short time."""


class Session:
    """One to four systems, named "a", "b" and so on. `run` drives them until it is cancelled."""

    def __init__(
        self,
        setups: Sequence[Setup],
        choices: SetupChoices,
        *,
        make: SystemMaker = make_system,
        speed: float = 1.0,
        window_ns: int = WINDOW_NS,
        record: bool = False,
        page_plays: bool = False,
        begins_paused: bool = False,
        at_ns: int | None = None,
        lesson: Mapping[str, Any] | None = None,
        software: Mapping[str, Any] | None = None,
    ) -> None:
        """Checks the setups. Raises WrongUsage if a setup is impossible.

        `speed` applies to systems whose clock the monitor drives; 0 means as fast as possible.
        `record`: records everything from the start. `page_runs_systems`: pages themselves run the systems
        that they can run. `begins_paused`: such systems begin paused. `at_ns`: the time that pages
        show first. `lesson`: a lesson for the page. `software`: manifest entries about schedlab's
        and the machines' versions.
        """
        if not 1 <= len(setups) <= SYSTEMS_MAX:
            raise WrongUsage(
                f"{len(setups)} systems: the monitor shows 1 to {SYSTEMS_MAX}; leave some out"
            )
        for setup in setups:
            choices.check(setup)
        self.choices = choices
        self.pace = speed
        self.window_ns = window_ns
        self.page_runs_systems = page_plays
        self.begins_paused = begins_paused
        self.record_from_start = record
        self.lesson = lesson
        self.software = dict(software or {})
        self._scratch_folder = tempfile.TemporaryDirectory(prefix="schedlab-monitor-")
        self.scratch = Path(self._scratch_folder.name)
        self._disk = DiskWatch(self.scratch)
        self._disk_checked_s = 0.0
        """Time of the last disk check."""
        self.recorded_folders: list[Path] = []
        """Folders of all recordings."""
        self._shared_values = SharedValues(
            choices,
            make,
            self.scratch,
            self.announce_change,
            self._on_start,
            self.recorded_folders,
            lambda: self.pace,
            page_plays,
        )
        self.systems = {
            letter: WatchedSystem(letter, setup, self._shared_values)
            for letter, setup in zip(ascii_lowercase, setups, strict=False)
        }
        for system in self.systems.values():
            system.begin_ns = at_ns
        self._branch_letters: list[str] = []
        """Letters of the systems that show branches."""
        self.last_recorded_folders: list[Path] = []
        """Folders of the last group of runs recorded together."""
        self.recordings_folder: Path | None = None
        """Folder of the recordings in progress."""
        self.report_lock = asyncio.Lock()
        """Held while a report is written; a new report replaces the previous one."""
        self._listeners: list[Listener] = []
        self._status_requests: dict[str, asyncio.Task[None]] = {}
        """Status requests in progress, by system."""
        self._status_requested_s: dict[str, float] = {}
        self._titles: list[tuple[str, bool]] = []
        """Titles in the last hello message, and whether each trace is still missing."""
        self.publish: Callable[[Path], str] = str
        """Returns the address of a file for users."""

    # --- start and end

    async def run(self) -> None:
        """Starts and drives all systems. Raises SchedlabError if none could be started."""
        starting = asyncio.ensure_future(self._start())
        try:
            while True:
                began_s = time.monotonic()
                await self.process_turn()
                if starting.done() and starting.exception():
                    await starting
                await asyncio.sleep(max(_TURN_PERIOD_S - (time.monotonic() - began_s), 0.001))
        finally:
            starting.cancel()
            await asyncio.wait([starting])

    async def _start(self) -> None:
        await asyncio.gather(*(system.begin() for system in self.systems.values()))
        if all(system.life is Life.FAILED for system in self.systems.values()):
            first = next(iter(self.systems.values()))
            raise (WrongUsage if first.is_refused else SchedlabError)(first.message)

    def _on_start(self, letter: str) -> None:
        if self.record_from_start:
            self.start_recording([self.systems[letter]], "", from_start=True)

    def start_recording(
        self, systems: Sequence[WatchedSystem], label: str, from_start: bool = False
    ) -> None:
        """Starts to record systems into subfolders of a new folder; returns that folder.

        Raises Refused if one of the systems is already being recorded.
        """
        for system in systems:
            if system.recording:
                raise Refused(
                    f"{system.letter} is already being recorded into {system.recording}; end "
                    "that recording first"
                )
        if self.recordings_folder is None or not any(
            system.recording for system in self.systems.values()
        ):
            self.recordings_folder = new_runs_folder("monitor")
            self._disk = DiskWatch(self.scratch, self.recordings_folder)
            self.last_recorded_folders = []
        started: list[WatchedSystem] = []
        try:
            for system in systems:
                prefix = f"{system.letter}-" if len(self.systems) > 1 else ""
                system.start_recording(
                    RecordingRequest(
                        self.recordings_folder, prefix, label, from_start, self.software
                    )
                )
                started.append(system)
        except BaseException:
            for system in started:
                if system.tape:
                    system.tape.discard_recording()
            raise

    async def show_branches(
        self, source: WatchedSystem, setups: Sequence[Setup], at_ns: int
    ) -> Sequence[str]:
        """Adds systems that show branches of `source`, paused at `at_ns`, and removes earlier branches.

        Returns the letters of the new systems. Raises Refused if there would be too many systems.
        """
        for letter in self._branch_letters:
            if letter != source.letter:
                await self._remove_system(letter)
        self._branch_letters = [letter for letter in self._branch_letters if letter in self.systems]
        free_letters = [
            letter for letter in ascii_lowercase[:SYSTEMS_MAX] if letter not in self.systems
        ]
        if len(free_letters) < len(setups):
            raise Refused(
                f"{len(setups)} more systems: the monitor shows at most {SYSTEMS_MAX}; "
                "close some first"
            )
        letters = free_letters[: len(setups)]
        for letter, setup in zip(letters, setups, strict=True):
            branch = WatchedSystem(letter, setup, self._shared_values)
            branch.origin_ns = source.origin_ns
            branch.begin_ns = at_ns
            await branch.begin()
            self.systems[letter] = branch
            self._branch_letters.append(letter)
        self.announce_change()
        return letters

    async def _remove_system(self, letter: str) -> None:
        system = self.systems.pop(letter)
        if letter in self._status_requests:
            self._status_requests[letter].cancel()
        await system.end()

    async def close(self) -> None:
        """Ends all systems and saves recordings in progress."""
        for task in self._status_requests.values():
            task.cancel()
        outcomes = await asyncio.gather(
            *(system.end() for system in self.systems.values()), return_exceptions=True
        )
        self._scratch_folder.cleanup()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    # --- listeners

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Registers a listener and returns a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def unsent_records(self, system: WatchedSystem) -> int:
        """Returns how many of a system's records the most up-to-date listener has not shown."""
        return min((listener.unsent_records(system) for listener in self._listeners), default=0)

    def announce_change(self) -> None:
        """Tells the listeners that the content of hello() has changed."""
        for listener in list(self._listeners):
            listener.on_hello_change()

    def hello(self) -> dict[str, Any]:
        """Returns the hello message, which describes the session to pages.

        Contains systems, policies, workloads and settings (docs/monitor-protocol.md).
        """
        hello = {
            "type": "hello",
            "version": __version__,
            "systems": [self._describe_system(system) for system in self.systems.values()],
            "policies": self.choices.policies,
            "palette": [
                {"name": entry.name, "title": entry.title, "kind": entry.kind}
                for entry in self.choices.palette.values()
            ],
            "window_ns": self.window_ns,
            "pace": self.pace,
            "begins_paused": self.begins_paused,
            "keeps_all": self.record_from_start,
            "lesson": self.lesson,
            "cpus_max": {
                system.setup.machine: cpus_max(system.setup.machine)
                for system in self.systems.values()
                if system.setup.machine != RECORDED_MACHINE
            },
        }
        return map_texts(hello)

    def _describe_system(self, watched: WatchedSystem) -> dict[str, Any]:
        system = watched.system
        header = system.header if system else None
        return {
            "system": watched.letter,
            "title": watched.title,
            "machine": watched.setup.machine,
            "cpus": header.cpus if header else watched.setup.cpus,
            "tick_ns": header.tick_ns if header else watched.setup.tick_ns,
            "repeatable": bool(system and system.repeatable),
            "no_branches": system.why_no_branches if system else "it has not begun yet",
            "no_blame": "",
            "end_ns": watched.played.end_ns if watched.is_played else None,
            "plays": self._browser_run_data(watched) if watched.is_played_by_page else None,
            "abilities": sorted(ability.value for ability in system.abilities) if system else [],
            "setup": _setup_dict(watched.setup),
        }

    def _browser_run_data(self, watched: WatchedSystem) -> dict[str, Any] | None:
        """Returns what a page needs to run the system in the browser, or None if it is not ready."""
        content: dict[str, Any] = {"begin_ns": watched.begin_ns, "origin_ns": watched.origin_ns}
        if watched.setup.machine != RECORDED_MACHINE:
            return content
        system = watched.system
        if not isinstance(system, RecordedSystem):
            return None
        watched.trace_address = watched.trace_address or self.publish(system.path)
        return {
            **content,
            "trace": watched.trace_address,
            "records": system.length,
            "own": sorted(system.monitor_pids),
            "message": system.message,
        }

    # --- turns

    async def process_turn(self) -> None:
        """Reads new records of all systems and runs the listeners."""
        began_s = time.monotonic()
        for system in self.systems.values():
            if self.unsent_records(system) < _UNREAD_RECORDS_MAX:
                system.take_output()
        titles = [(system.title, system.tape is None) for system in self.systems.values()]
        if titles != self._titles:
            self._titles = titles
            self.announce_change()
        await self._hold_fast_systems()
        for listener in list(self._listeners):
            await listener.send_updates()
        await self._check_disk(began_s)
        self._request_status()

    async def _check_disk(self, now_s: float) -> None:
        """Ends all systems if they write too much, or if the disk is nearly full. Recordings are saved."""
        if now_s < self._disk_checked_s + CHECK_INTERVAL_S:
            return
        self._disk_checked_s = now_s
        if self._disk.has_problem():
            for system in self.systems.values():
                if system.system:
                    system.abandon(SchedlabError(self._disk.problem))
                    await system.end()

    async def _hold_fast_systems(self) -> None:
        """Holds systems that are ahead of the slowest, and releases them once it has caught up."""
        limit_ns = _AHEAD_MAX_NS * max(self.pace or _UNLIMITED_PACE_FACTOR, 1)
        running = [
            system for system in self.systems.values() if system.is_ready and not system.paused
        ]
        slowest_ns = min((system.common_ns for system in running), default=0)
        for system in running:
            ahead_ns = system.common_ns - slowest_ns
            try:
                if (
                    system.waits_for_others
                    and ahead_ns <= limit_ns / 4
                    and not system.lock.locked()
                ):
                    await system.release()
                elif not system.waits_for_others and ahead_ns > limit_ns:
                    await system.hold()
            except Exception as error:  # a broken adapter fails this system only
                system.abandon(error)

    def _request_status(self) -> None:
        """Requests sched_status of all systems in parallel, so that no system waits for a slow one."""
        now = time.monotonic()
        for letter, system in self.systems.items():
            if letter in self._status_requests or not system.is_ready or not self._listeners:
                continue
            if system.waits_for_others or (
                system.paused and (self.page_runs_systems or not system.is_played)
            ):
                continue
            period_s = float(getattr(system.system, "status_period_s", _STATUS_PERIOD_S))
            if now >= self._status_requested_s.get(letter, 0.0) + period_s:
                self._status_requested_s[letter] = now
                self._status_requests[letter] = asyncio.create_task(self._read_status(system))

    async def _read_status(self, system: WatchedSystem) -> None:
        try:
            with suppress(Refused):
                await system.read_status()
        except Exception as error:  # a broken adapter fails this system only
            system.abandon(error)
        finally:
            self._status_requests.pop(system.letter, None)


def _setup_dict(setup: Setup) -> dict[str, Any]:
    content = asdict(setup)
    content["policy"] = str(setup.policy)
    content["settings"] = dict(setup.settings)
    content["source"] = setup.source.name if setup.source else None
    content["files"] = [file.name for file in setup.files]
    return content
