# SPDX-License-Identifier: MIT
"""Controls one watched system: start, end, commands one at a time, recordings."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

from schedlab.base.toolchain.policies import Catalogue
from schedlab.machines.outcome import Outcome
from schedlab.monitor.followed_system import Followed
from schedlab.monitor.system import Ability, Life, Refused, Setup, Status, System
from schedlab.monitor.tape import Request, Tape
from schedlab.monitor.wait_breakdown import Question, blamed
from schedlab.trace.bounds import TIME_MAX
from schedlab.trace.format import AttributeKind

T = TypeVar("T")

_PATIENCE_S = 30.0
"""Seconds to wait for an adapter, whose own limits are shorter."""
_EXPORTS_MAX = 4
"""Number of Perfetto files kept; older ones are deleted."""
_LOOK_S = 0.05
"""Seconds between checks whether the system has begun."""
_DRAWN = re.compile(r"^start \d+ ")
_PIECE_S = 0.1
"""Seconds that a system advances before its new records are read."""


class Watched(Followed):
    """A system with its control operations. All its state belongs to the session's event loop."""

    # --- start and end

    async def begin(self) -> None:
        """Starts the system. After a failure, `life` and `message` describe it."""
        self.starts += 1
        folder = self.terms.scratch / f"{self.letter}-{self.starts}"
        folder.mkdir()
        system = None
        try:
            system = self.terms.make(self.setup, folder)
            await system.begin()
        except asyncio.CancelledError:
            if system:
                await system.end()
            raise
        except Exception as error:  # an adapter's error must not end the other systems
            self.fail(error)
            if system:
                with suppress(Exception):
                    await system.end()
            return
        self.system = system
        self.clock.start(time.monotonic())
        self.paused = self.is_played_by_page
        if self.is_played and not self.paused:
            self.played.speed = self.terms.pace()
            await self.played.play_by_itself()
        self.terms.changed()

    async def end(self) -> None:
        """Ends the system and saves its recording."""
        try:
            await self.stop_recording()
        finally:
            async with self.lock:
                system, self.system = self.system, None
                if system:
                    await limited(system.end())
                    rmtree(system.folder, ignore_errors=True)

    async def restart(self, setup: Setup) -> None:
        """Restarts the system with another setup."""
        await self.end()
        self._reset()
        self.setup = setup
        self.started = dict.fromkeys(setup.workloads)
        await self.begin()

    def join(self, common_ns: int) -> None:
        """Aligns the system's current time with a time (ns) of the clock shared by all systems."""
        if self.is_on or self.system:
            self.origin_ns = self.now_ns - common_ns

    # --- commands

    @asynccontextmanager
    async def asking(self, *abilities: Ability) -> AsyncIterator[System]:
        """Yields the system while its lock is held.

        Raises Refused if the system lacks a required ability or does not run.
        """
        async with self.lock:
            system = self._able(*abilities)
            if self.waits_for_others:
                await self.resume_stopped()
            yield system

    def _able(self, *abilities: Ability) -> System:
        if self.system is None or not self.is_on:
            if self.life in (Life.RUNNING, Life.PAUSED):
                raise Refused("it has just started; try again")
            raise Refused(f"it is not running: {self.message or self.life.value}")
        for ability in abilities:
            if ability not in self.system.abilities:
                raise Refused(f"{self.setup.machine} cannot do this: {ability.value}")
        if self.paused and not self.is_played and abilities:
            raise Refused("it is paused; resume it first")
        return self.system

    async def steer(self, what: str, doing: Awaitable[T]) -> T:
        """Performs a control action, and adds it to the manifest of a recording in progress."""
        done = await limited(doing)
        if self.tape:
            self.tape.note_steering(what)
        return done

    async def read_status(self) -> Status:
        """Returns the parsed sched_status."""
        async with self.asking() as system:
            if self.paused and not self.is_played:
                raise Refused("it is paused; resume it first")
            self.status = await limited(system.read_status())
        return self.status

    async def set_attribute(self, pids: list[int], kind: AttributeKind, value: int) -> int:
        """Returns the number of changed processes.

        Raises Refused if there is only one process and it cannot be changed.
        """
        done = 0
        async with self.asking(Ability.ATTRIBUTES) as system:
            for pid in pids:
                done += await self._count_done(
                    len(pids) == 1,
                    f"{kind.name.lower()} {pid} {value}",
                    system.set_attribute(pid, kind, value),
                )
        return done

    async def kill(self, pids: list[int]) -> int:
        """Returns the number of killed processes."""
        done = 0
        async with self.asking(Ability.START) as system:
            for pid in pids:
                done += await self._count_done(len(pids) == 1, f"kill {pid}", system.kill(pid))
        return done

    async def _count_done(self, alone: bool, what: str, doing: Awaitable[None]) -> int:
        """Performs an action on one process; in a group, ignores processes that have just ended."""
        try:
            await self.steer(what, doing)
        except Refused:
            if alone:
                raise
            return 0
        return 1

    # --- pausing

    async def pause(self) -> None:
        """Stops the system's time."""
        if self.paused:
            return
        async with self.lock:
            system = self._able(Ability.PAUSE)
            if not self.waits_for_others:
                await limited(system.pause())
                self.clock.stop(time.monotonic())
            self.waits_for_others = False
            self.paused = True

    async def resume(self) -> None:
        """Continues the system's time."""
        if not self.paused:
            return
        async with self.lock:
            if self.system:
                await limited(self.system.resume())
                self.clock.start(time.monotonic())
            self.paused = False

    async def hold(self) -> None:
        """Holds the system until the others catch up; does nothing during another operation."""
        if self.lock.locked() or self.waits_for_others:
            return
        async with self.lock:
            if self.system and self.is_on and not self.paused:
                await limited(self.system.pause())
                self.clock.stop(time.monotonic())
                self.waits_for_others = True

    async def resume_stopped(self) -> None:
        """Releases a held system. No other task may hold the system's lock."""
        if self.waits_for_others and self.system:
            await limited(self.system.resume())
            self.clock.start(time.monotonic())
        self.waits_for_others = False

    async def stand(self) -> None:
        """Pauses the system if it supports pausing."""
        able = self.system and Ability.PAUSE in self.system.abilities
        if self.is_on and able:
            await self.pause()

    # --- systems that a page runs

    async def follow(self, setup: Setup, acts: Sequence[str], time_ns: int) -> None:
        """Brings the system to the page's state by repeating the page's actions.

        If the system has performed other actions before, it is restarted, which ends its recording.
        Raises Refused if the system fails.
        """
        async with self.following:
            await limited(self._wait_until_started())
            self.take()
            if setup != self.setup or not self.is_on or not self.played.is_past(acts):
                await self.restart(setup)
            known, self._acts = len(self._acts), acts
            self.played.expect(acts)
            end_ns = self.played.end_ns if self.life is Life.PAUSED else None
            until_ns = time_ns if end_ns is None else min(time_ns, end_ns)
            while self.take() or (self.life is Life.PAUSED and self.now_ns < until_ns):
                async with self.lock:
                    await limited(self.played.advance(until_ns, _PIECE_S))
            if self.life is Life.FAILED:
                raise Refused(self.message)
            # The manifest omits the number of a start, which only selects random values.
            words = [_DRAWN.sub("start ", act.partition(" ")[2]) for act in acts]
            starts = [word.partition(" ")[2] for word in words if word.startswith("start ")]
            self.started = dict.fromkeys(starts)
            for word in words[max(known, len(setup.workloads)) :]:
                assert self.tape
                self.tape.note_steering(word)

    async def _wait_until_started(self) -> None:
        while self.system is None and not self.failure:
            await asyncio.sleep(_LOOK_S)

    # --- recording

    @property
    def workload(self) -> str:
        """Names of the started workloads."""
        return " and ".join(self.started) or "as found"

    def record(self, request: Request) -> None:
        """Starts a recording. Raises Refused if there is no trace yet."""
        tape = self._full_tape("record")
        assert self.system
        tape.record(request, self.workload, self.system.monitor_pids, self.log.since(0))
        self.note("recording begins")

    async def stop_recording(self) -> Path | None:
        """Ends the recording; returns its folder, or None if nothing was recorded."""
        if self.tape is None or self.recorder is None:
            return None
        self.note("recording ends")
        failed = self.life is Life.FAILED
        outcome = Outcome("failed", self.message) if failed else Outcome("success")
        ended = self.life is Life.ENDED
        repeatable = ended and self.system is not None and self.system.repeatable
        files: list[Path] = getattr(self.system, "recorded_files", [])
        folder = await self.tape.stop(outcome, self.workload, repeatable, files)
        if folder:
            self.terms.recorded_folders.append(folder)
        return folder

    async def export(self, folder: Path) -> Path:
        """Writes a file for ui.perfetto.dev (Tape.export)."""
        tape = self._full_tape("show")
        assert self.system
        self._exports += 1
        excluded_pids = self.system.monitor_pids
        file = await tape.export(folder / f"{self.letter}-{self._exports}", excluded_pids)
        old = file.with_name(f"{self.letter}-{self._exports - _EXPORTS_MAX}{file.suffix}")
        old.unlink(missing_ok=True)
        return file

    async def blame(self, folder: Path, question: Question, known: Catalogue) -> dict[str, Any]:
        """Breaks down waits (blamed).

        Requests run one at a time, because each copies the kept trace.
        """
        async with self.blaming:
            tape = self._full_tape("explain")
            assert self.system
            place = folder / f"{self.letter}-waits.bin"
            try:
                tape.recent.write(place, self.system.monitor_pids, TIME_MAX, question.time_ns)
                return await asyncio.to_thread(blamed, place, question, known)
            except ValueError as error:
                raise Refused(str(error)) from None
            finally:
                place.unlink(missing_ok=True)

    def _full_tape(self, purpose: str) -> Tape:
        if self.system is None or self.tape is None:
            raise Refused(f"nothing to {purpose}: {self.message or self.life.value}")
        return self.tape


async def limited(doing: Awaitable[T]) -> T:
    """Awaits an adapter's operation for at most `_PATIENCE_S` seconds."""
    try:
        return await asyncio.wait_for(doing, _PATIENCE_S)
    except (TimeoutError, asyncio.TimeoutError):
        raise Refused(f"no answer within {_PATIENCE_S:.0f} s") from None
