# SPDX-License-Identifier: MIT
"""Runs up to four systems in step.

Passes their records to listeners and recordings, and performs control commands.
"""

from __future__ import annotations

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
from schedlab.base.display.names import all_visible
from schedlab.base.host.disk import LOOK_SECONDS, DiskWatch
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.followed_system import Terms
from schedlab.monitor.system import Life, Refused, Setup
from schedlab.monitor.system_factory import RECORDED, Choices, Maker, cpus_max, make_system
from schedlab.monitor.systems.recorded import RecordedSystem
from schedlab.monitor.tape import Request
from schedlab.monitor.watched_system import Watched
from schedlab.paths import new_runs_folder

SYSTEMS_MAX = 4
WINDOW_NS = 10_000_000_000
"""Default window of the metrics."""
_TURN_S = 0.02
"""Seconds between turns."""
_BEHIND_MAX = 500_000
"""Maximum backlog in records: if every listener is this far behind, the trace is not read further."""
_AHEAD_NS = 20_000_000
"""Maximum time (ns, at pace 1) that a system may be ahead of the others before it is held."""
_FASTEST = 1000
"""The pace used for "as fast as possible"."""
_STATUS_S = 1.0


class Listener(Protocol):
    """A server or a terminal's screen."""

    def changed(self) -> None:
        """Called when the result of Session.hello has changed."""

    def behind(self, system: Watched) -> int:
        """Returns the number of a system's records not yet shown."""

    async def turn(self) -> None:
        """Processes new records for a short time."""


class Session:
    """One to four systems, named "a", "b" and so on. `run` drives them until it is cancelled."""

    def __init__(
        self,
        setups: Sequence[Setup],
        choices: Choices,
        *,
        make: Maker = make_system,
        speed: float = 1.0,
        window_ns: int = WINDOW_NS,
        record: bool = False,
        page_plays: bool = False,
        begins_paused: bool = False,
        at_ns: int | None = None,
        lesson: Mapping[str, Any] | None = None,
        software: Mapping[str, Any] | None = None,
    ) -> None:
        """Checks the setups. Raises WrongUsage if no such systems are possible.

        `speed` applies to systems whose clock the monitor drives; 0 means as fast as possible.
        `record` records everything from the start. `page_plays`: pages run such systems themselves.
        `begins_paused`: they begin paused. `at_ns`: the time that pages show first. `lesson` is run
        by the page. `software` has the manifests' entries about schedlab and the machines.
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
        self.page_plays = page_plays
        self.begins_paused = begins_paused
        self.record_from_start = record
        self.lesson = lesson
        self.software = dict(software or {})
        self._scratch = tempfile.TemporaryDirectory(prefix="schedlab-monitor-")
        self.scratch = Path(self._scratch.name)
        self._disk = DiskWatch(self.scratch)
        self._looked_s = 0.0
        """Time of the last disk check."""
        self.recorded_folders: list[Path] = []
        """Folders of all recordings."""
        self._terms = Terms(
            choices,
            make,
            self.scratch,
            self.announce_change,
            self._first,
            self.recorded_folders,
            lambda: self.pace,
            page_plays,
        )
        self.systems = {
            letter: Watched(letter, setup, self._terms)
            for letter, setup in zip(ascii_lowercase, setups, strict=False)
        }
        for system in self.systems.values():
            system.begin_ns = at_ns
        self._futures: list[str] = []
        """Letters of the systems that show branches."""
        self.recorded: list[Path] = []
        """Folders of the last group of runs recorded together."""
        self.recordings: Path | None = None
        """Folder of the recordings in progress."""
        self.reporting = asyncio.Lock()
        """Held while a report is written; a new report replaces the previous one."""
        self._listeners: list[Listener] = []
        self._asking: dict[str, asyncio.Task[None]] = {}
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
                began = time.monotonic()
                await self.turn()
                if starting.done() and starting.exception():
                    await starting
                await asyncio.sleep(max(_TURN_S - (time.monotonic() - began), 0.001))
        finally:
            starting.cancel()
            await asyncio.wait([starting])

    async def _start(self) -> None:
        await asyncio.gather(*(system.begin() for system in self.systems.values()))
        if all(system.life is Life.FAILED for system in self.systems.values()):
            first = next(iter(self.systems.values()))
            raise (WrongUsage if first.is_refused else SchedlabError)(first.message)

    def _first(self, letter: str) -> None:
        if self.record_from_start:
            self.start_recording([self.systems[letter]], "", from_start=True)

    def start_recording(
        self, systems: Sequence[Watched], label: str, from_start: bool = False
    ) -> None:
        """Starts to record systems into one folder.

        Raises Refused if one of the systems is already being recorded.
        """
        for system in systems:
            if system.recording:
                raise Refused(
                    f"{system.letter} is already being recorded into {system.recording}; end "
                    "that recording first"
                )
        if self.recordings is None or not any(system.recording for system in self.systems.values()):
            self.recordings = new_runs_folder("monitor")
            self._disk = DiskWatch(self.scratch, self.recordings)
            self.recorded = []
        started: list[Watched] = []
        try:
            for system in systems:
                prefix = f"{system.letter}-" if len(self.systems) > 1 else ""
                system.record(Request(self.recordings, prefix, label, from_start, self.software))
                started.append(system)
        except BaseException:
            for system in started:
                if system.tape:
                    system.tape.discard()
            raise

    async def show_futures(self, of: Watched, setups: Sequence[Setup], at_ns: int) -> Sequence[str]:
        """Adds systems that show branches, paused at a moment, and removes earlier branches.

        Returns their letters. Raises Refused if the limit of systems is reached.
        """
        for letter in self._futures:
            if letter != of.letter:
                await self._drop(letter)
        self._futures = [letter for letter in self._futures if letter in self.systems]
        free = [letter for letter in ascii_lowercase[:SYSTEMS_MAX] if letter not in self.systems]
        if len(free) < len(setups):
            raise Refused(
                f"{len(setups)} more systems: the monitor shows at most {SYSTEMS_MAX}; "
                "close some first"
            )
        letters = free[: len(setups)]
        for letter, setup in zip(letters, setups, strict=True):
            future = Watched(letter, setup, self._terms)
            future.origin_ns = of.origin_ns
            future.begin_ns = at_ns
            await future.begin()
            self.systems[letter] = future
            self._futures.append(letter)
        self.announce_change()
        return letters

    async def _drop(self, letter: str) -> None:
        system = self.systems.pop(letter)
        if letter in self._asking:
            self._asking[letter].cancel()
        await system.end()

    async def close(self) -> None:
        """Ends all systems and saves recordings in progress."""
        for task in self._asking.values():
            task.cancel()
        ended = await asyncio.gather(
            *(system.end() for system in self.systems.values()), return_exceptions=True
        )
        self._scratch.cleanup()
        for problem in ended:
            if isinstance(problem, Exception):
                raise problem

    # --- listeners

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Registers a listener and returns a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def behind(self, system: Watched) -> int:
        """Returns the number of records that the fastest listener has not shown."""
        return min((listener.behind(system) for listener in self._listeners), default=0)

    def announce_change(self) -> None:
        """Notifies listeners that the result of hello() has changed."""
        for listener in list(self._listeners):
            listener.changed()

    def hello(self) -> dict[str, Any]:
        """Returns the hello message: systems, policies, workloads and settings (docs/monitor.md)."""
        hello = {
            "type": "hello",
            "version": __version__,
            "systems": [self._introduced(system) for system in self.systems.values()],
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
                if system.setup.machine != RECORDED
            },
        }
        return all_visible(hello)

    def _introduced(self, watched: Watched) -> dict[str, Any]:
        system = watched.system
        header = system.header if system else None
        return {
            "system": watched.letter,
            "title": watched.title,
            "machine": watched.setup.machine,
            "cpus": header.cpus if header else watched.setup.cpus,
            "tick_ns": header.tick_ns if header else watched.setup.tick_ns,
            "repeatable": bool(system and system.repeatable),
            "no_branches": system.no_branches if system else "it has not begun yet",
            "no_blame": "",
            "end_ns": watched.played.end_ns if watched.is_played else None,
            "plays": self._played(watched) if watched.is_played_by_page else None,
            "abilities": sorted(ability.value for ability in system.abilities) if system else [],
            "setup": _setup_dict(watched.setup),
        }

    def _played(self, watched: Watched) -> dict[str, Any] | None:
        """Returns what a page needs to run the system itself, or None if it is not ready."""
        content: dict[str, Any] = {"begin_ns": watched.begin_ns, "origin_ns": watched.origin_ns}
        if watched.setup.machine != RECORDED:
            return content
        system = watched.system
        if not isinstance(system, RecordedSystem):
            return None
        watched.address = watched.address or self.publish(system.path)
        return {
            **content,
            "trace": watched.address,
            "records": system.length,
            "own": sorted(system.monitor_pids),
            "message": system.message,
        }

    # --- turns

    async def turn(self) -> None:
        """Reads new records of all systems and runs the listeners."""
        began = time.monotonic()
        for system in self.systems.values():
            if self.behind(system) < _BEHIND_MAX:
                system.take()
        titles = [(system.title, system.tape is None) for system in self.systems.values()]
        if titles != self._titles:
            self._titles = titles
            self.announce_change()
        await self._keep_step()
        for listener in list(self._listeners):
            await listener.turn()
        await self._keep_room(began)
        self._ask_all()

    async def _keep_room(self, now_s: float) -> None:
        """Ends all systems if they write too much or the disk fills up; recordings are saved."""
        if now_s < self._looked_s + LOOK_SECONDS:
            return
        self._looked_s = now_s
        if self._disk.has_problem():
            for system in self.systems.values():
                if system.system:
                    system.fail(SchedlabError(self._disk.problem))
                    await system.end()

    async def _keep_step(self) -> None:
        """Holds systems that are ahead of the others, if the monitor does not drive their clocks."""
        limit_ns = _AHEAD_NS * max(self.pace or _FASTEST, 1)
        free = [system for system in self.systems.values() if system.is_on and not system.paused]
        slowest = min((system.common_ns for system in free), default=0)
        for system in free:
            ahead_ns = system.common_ns - slowest
            try:
                if (
                    system.waits_for_others
                    and ahead_ns <= limit_ns / 4
                    and not system.lock.locked()
                ):
                    await system.resume_stopped()
                elif not system.waits_for_others and ahead_ns > limit_ns:
                    await system.hold()
            except Exception as error:  # a broken adapter fails this system only
                system.fail(error)

    def _ask_all(self) -> None:
        """Requests the status of all systems in parallel, so that a slow system delays no other."""
        now = time.monotonic()
        for letter, system in self.systems.items():
            if letter in self._asking or not system.is_on or not self._listeners:
                continue
            if system.waits_for_others or (
                system.paused and (self.page_plays or not system.is_played)
            ):
                continue
            period_s = float(getattr(system.system, "status_period_s", _STATUS_S))
            if now >= self._status_requested_s.get(letter, 0.0) + period_s:
                self._status_requested_s[letter] = now
                self._asking[letter] = asyncio.create_task(self._ask(system))

    async def _ask(self, system: Watched) -> None:
        try:
            with suppress(Refused):
                await system.read_status()
        except Exception as error:  # a broken adapter fails this system only
            system.fail(error)
        finally:
            self._asking.pop(system.letter, None)


def _setup_dict(setup: Setup) -> dict[str, Any]:
    content = asdict(setup)
    content["policy"] = str(setup.policy)
    content["settings"] = dict(setup.settings)
    content["source"] = setup.source.name if setup.source else None
    content["files"] = [file.name for file in setup.files]
    return content
