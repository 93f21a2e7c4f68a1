# SPDX-License-Identifier: MIT
"""One system that is watched: it is begun and ended, asked one thing at a time, and recorded."""

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
from schedlab.monitor.blamed import Question, blamed
from schedlab.monitor.followed import Followed
from schedlab.monitor.system import Ability, Life, Refused, Setup, Status, System
from schedlab.monitor.tape import Request, Tape
from schedlab.trace.bounds import TIME_MAX
from schedlab.trace.format import AttributeKind

T = TypeVar("T")

_PATIENCE_S = 30.0
"""The time to wait for an answer; adapters have limits of their own, which are shorter."""
_EXPORTS_MAX = 4
"""Files that were made for Perfetto: older ones go."""
_LOOK_S = 0.05
"""The time from one look at whether it has begun to the next."""
_DRAWN = re.compile(r"^start \d+ ")
_PIECE_S = 0.1
"""The time that a system is brought on at once, before what it says is taken."""


class Watched(Followed):
    """See above. All of it belongs to the session's loop."""

    # --- its life

    async def begin(self) -> None:
        """Starts it. If it does not, its life and message say so."""
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
        except Exception as error:  # an adapter's mistake must not end the others
            self.fail(error)
            if system:
                with suppress(Exception):
                    await system.end()
            return
        self.system = system
        self.clock.runs(time.monotonic())
        self.paused = self.is_played_by_page
        if self.is_played and not self.paused:
            self.played.speed = self.terms.pace()
            await self.played.play_by_itself()
        self.terms.changed()

    async def end(self) -> None:
        """Ends it; a recording of it is kept."""
        try:
            await self.stop_recording()
        finally:
            async with self.lock:
                system, self.system = self.system, None
                if system:
                    await limited(system.end())
                    rmtree(system.folder, ignore_errors=True)

    async def restart(self, setup: Setup) -> None:
        """Begins anew as another one."""
        await self.end()
        self._reset()
        self.setup = setup
        self.started = dict.fromkeys(setup.workloads)
        await self.begin()

    def join(self, common_ns: int) -> None:
        """Has its time be, from here on, that which others have in common."""
        if self.is_on or self.system:
            self.origin_ns = self.now_ns - common_ns

    # --- what it is asked

    @asynccontextmanager
    async def asking(self, *abilities: Ability) -> AsyncIterator[System]:
        """Gives the system, which does nothing else meanwhile. Refused: it cannot do such things."""
        async with self.lock:
            system = self._able(*abilities)
            if self.held:
                await self.resume_held()
            yield system

    def _able(self, *abilities: Ability) -> System:
        if self.system is None or not self.is_on:
            if self.life in (Life.RUNNING, Life.PAUSED):
                raise Refused("it has only just begun: ask once more")
            raise Refused(f"it does not run: {self.message or self.life.value}")
        for ability in abilities:
            if ability not in self.system.abilities:
                raise Refused(f"{self.setup.machine} cannot do this: {ability.value}")
        if self.paused and not self.is_played and abilities:
            raise Refused("it stands still, and can hear nothing: resume it first")
        return self.system

    async def steer(self, what: str, doing: Awaitable[T]) -> T:
        """Has the system do something that changes what it does; a recording's manifest says it."""
        done = await limited(doing)
        if self.tape:
            self.tape.note_steering(what)
        return done

    async def read_status(self) -> Status:
        """Returns what sched_status says."""
        async with self.asking() as system:
            if self.paused and not self.is_played:
                raise Refused("it stands still, and can hear nothing: resume it first")
            self.status = await limited(system.read_status())
        return self.status

    async def set_attribute(self, pids: list[int], kind: AttributeKind, value: int) -> int:
        """Returns how many were set. Raises Refused if none could be."""
        done = 0
        async with self.asking(Ability.ATTRIBUTES) as system:
            for pid in pids:
                done += await self._each(
                    len(pids) == 1,
                    f"{kind.name.lower()} {pid} {value}",
                    system.set_attribute(pid, kind, value),
                )
        return done

    async def kill(self, pids: list[int]) -> int:
        """Returns how many were killed."""
        done = 0
        async with self.asking(Ability.START) as system:
            for pid in pids:
                done += await self._each(len(pids) == 1, f"kill {pid}", system.kill(pid))
        return done

    async def _each(self, alone: bool, what: str, doing: Awaitable[None]) -> int:
        """Steers one; of a group, one that has just ended is no mistake."""
        try:
            await self.steer(what, doing)
        except Refused:
            if alone:
                raise
            return 0
        return 1

    # --- standing still

    async def pause(self) -> None:
        """Has its time stand still."""
        if self.paused:
            return
        async with self.lock:
            system = self._able(Ability.PAUSE)
            if not self.held:
                await limited(system.pause())
                self.clock.stands(time.monotonic())
            self.held = False
            self.paused = True

    async def resume(self) -> None:
        """Lets its time go on."""
        if not self.paused:
            return
        async with self.lock:
            if self.system:
                await limited(self.system.resume())
                self.clock.runs(time.monotonic())
            self.paused = False

    async def hold(self) -> None:
        """Lets it wait for the others. Nothing, if it is doing something just now."""
        if self.lock.locked() or self.held:
            return
        async with self.lock:
            if self.system and self.is_on and not self.paused:
                await limited(self.system.pause())
                self.clock.stands(time.monotonic())
                self.held = True

    async def resume_held(self) -> None:
        """It need not wait any more. The lock is held, or no other has it."""
        if self.held and self.system:
            await limited(self.system.resume())
            self.clock.runs(time.monotonic())
        self.held = False

    async def stand(self) -> None:
        """Has its time stand still, if it can be done and has not been."""
        able = self.system and Ability.PAUSE in self.system.abilities
        if self.is_on and able:
            await self.pause()

    # --- what a page plays

    async def follow(self, setup: Setup, acts: Sequence[str], time_ns: int) -> None:
        """Brings it to where a page is that plays it, by the same acts. From another past, it begins anew:
        a recording ends then.

        Refused: it cannot be brought there.
        """
        async with self.following:
            await limited(self._begun())
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
            # Of a start, the number by which its random values are drawn is no matter of a manifest.
            words = [_DRAWN.sub("start ", act.partition(" ")[2]) for act in acts]
            starts = [word.partition(" ")[2] for word in words if word.startswith("start ")]
            self.started = dict.fromkeys(starts)
            for word in words[max(known, len(setup.workloads)) :]:
                assert self.tape
                self.tape.note_steering(word)

    async def _begun(self) -> None:
        while self.system is None and not self.failure:
            await asyncio.sleep(_LOOK_S)

    # --- recording

    @property
    def workload(self) -> str:
        """What has been started, in words."""
        return " and ".join(self.started) or "as it was found"

    def record(self, request: Request) -> None:
        """Records from here on. Refused: there is nothing to record."""
        tape = self._whole_tape("record")
        assert self.system
        tape.record(request, self.workload, self.system.own_pids, self.log.since(0))
        self.note("recording begins")

    async def stop_recording(self) -> Path | None:
        """Returns the run's folder, or None if nothing was recorded."""
        if self.tape is None or self.recorder is None:
            return None
        self.note("recording ends")
        failed = self.life is Life.FAILED
        outcome = Outcome("failed", self.message) if failed else Outcome("success")
        ended = self.life is Life.ENDED
        repeatable = ended and self.system is not None and self.system.repeatable
        files: list[Path] = getattr(self.system, "kept_files", [])
        folder = await self.tape.stop(outcome, self.workload, repeatable, files)
        if folder:
            self.terms.kept.append(folder)
        return folder

    async def export(self, folder: Path) -> Path:
        """Writes a file for ui.perfetto.dev (Tape.export)."""
        tape = self._whole_tape("show")
        assert self.system
        self._exports += 1
        excluded_pids = self.system.own_pids
        file = await tape.export(folder / f"{self.letter}-{self._exports}", excluded_pids)
        old = file.with_name(f"{self.letter}-{self._exports - _EXPORTS_MAX}{file.suffix}")
        old.unlink(missing_ok=True)
        return file

    async def blame(self, folder: Path, question: Question, known: Catalogue) -> dict[str, Any]:
        """Takes waits apart (blamed), one question after the other: each holds what is kept of the trace once more."""
        async with self.blaming:
            tape = self._whole_tape("explain")
            assert self.system
            place = folder / f"{self.letter}-waits.bin"
            try:
                tape.recent.write(place, self.system.own_pids, TIME_MAX, question.time_ns)
                return await asyncio.to_thread(blamed, place, question, known)
            except ValueError as error:
                raise Refused(str(error)) from None
            finally:
                place.unlink(missing_ok=True)

    def _whole_tape(self, purpose: str) -> Tape:
        if self.system is None or self.tape is None:
            raise Refused(f"there is nothing to {purpose}: {self.message or self.life.value}")
        return self.tape


async def limited(doing: Awaitable[T]) -> T:
    """Awaits an adapter, but not for ever."""
    try:
        return await asyncio.wait_for(doing, _PATIENCE_S)
    except (TimeoutError, asyncio.TimeoutError):
        raise Refused(f"no answer within {_PATIENCE_S:.0f} s") from None
