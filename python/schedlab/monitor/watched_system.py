# SPDX-License-Identifier: MIT
"""Controls one watched system: start, end, commands one at a time, recordings."""

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
from schedlab.monitor.followed_system import FollowedSystem
from schedlab.monitor.system import Ability, Life, Refused, Setup, Status, System
from schedlab.monitor.tape import RecordingRequest, Tape
from schedlab.monitor.wait_breakdown import WaitQuestion, break_down_waits
from schedlab.trace.bounds import TIME_MAX
from schedlab.trace.format import AttributeKind

Result = TypeVar("Result")

_ADAPTER_TIMEOUT_S = 30.0
"""Host seconds to wait for an adapter; adapters have separate, shorter limits."""
_EXPORTS_MAX = 4
"""Number of Perfetto files kept; older ones are deleted."""
_POLL_S = 0.05
"""Host seconds between two checks whether the system has begun."""
_START_SEED = re.compile(r"^start \d+ ")
_ADVANCE_STEP_S = 0.1
"""System time (s) to advance before new records are read."""


class WatchedSystem(FollowedSystem):
    """A system with its control operations. All its state belongs to the session's event loop."""

    # --- start and end

    async def begin(self) -> None:
        """Starts the system. After a failure, `life` and `message` describe it."""
        self.starts += 1
        folder = self.shared.scratch / f"{self.letter}-{self.starts}"
        folder.mkdir()
        system = None
        try:
            system = self.shared.make_system(self.setup, folder)
            await system.begin()
        except asyncio.CancelledError:
            if system:
                await system.end()
            raise
        except Exception as error:  # an error in an adapter must not end the other systems
            self.abandon(error)
            if system:
                with suppress(Exception):
                    await system.end()
            return
        self.system = system
        self.clock.start(time.monotonic())
        self.paused = self.is_played_by_page
        if self.is_played and not self.paused:
            self.played.speed = self.shared.pace()
            await self.played.play_by_itself()
        self.shared.announce_change()

    async def end(self) -> None:
        """Ends the system and saves its recording."""
        try:
            await self.stop_recording()
        finally:
            async with self.lock:
                system, self.system = self.system, None
                if system:
                    await with_timeout(system.end())
                    rmtree(system.folder, ignore_errors=True)

    async def restart(self, setup: Setup) -> None:
        """Restarts the system with another setup."""
        await self.end()
        self._reset()
        self.setup = setup
        self.started = dict.fromkeys(setup.workloads)
        await self.begin()

    def set_common_time(self, common_ns: int) -> None:
        """Sets `origin_ns`, so that the system's current time equals `common_ns` of the shared clock."""
        if self.is_ready or self.system:
            self.origin_ns = self.now_ns - common_ns

    # --- commands

    @asynccontextmanager
    async def locked(self, *abilities: Ability) -> AsyncIterator[System]:
        """Yields the system while its lock is held.

        Raises Refused if the system lacks a required ability or does not run.
        """
        async with self.lock:
            system = self._able_system(*abilities)
            if self.waits_for_others:
                await self.release()
            yield system

    def _able_system(self, *abilities: Ability) -> System:
        """Returns the system if it accepts commands. Raises Refused with the reason otherwise."""
        if self.system is None or not self.is_ready:
            if self.life in (Life.STARTING, Life.RUNNING, Life.PAUSED):
                raise Refused("it is still starting; try again in a moment")
            raise Refused(f"it is not running: {self.message or self.life.value}", fix="restart it")
        for ability in abilities:
            if ability not in self.system.abilities:
                raise Refused(
                    f"{self.setup.machine} cannot do this: {ability.value}",
                    fix="use another machine",
                )
        if self.paused and not self.is_played and abilities:
            raise Refused("it is paused; resume it first")
        return self.system

    async def steer(self, description: str, operation: Awaitable[Result]) -> Result:
        """Performs a control action; if it succeeds, notes it in the manifest of the recording."""
        result = await with_timeout(operation)
        if self.tape:
            self.tape.note_control(description)
        return result

    async def read_status(self) -> Status:
        """Returns the parsed sched_status."""
        async with self.locked() as system:
            if self.paused and not self.is_played:
                raise Refused("it is paused; resume it first")
            self.status = await with_timeout(system.read_status())
        return self.status

    async def set_attribute(self, pids: list[int], kind: AttributeKind, value: int) -> int:
        """Returns the number of changed processes.

        Raises Refused if there is only one process and it cannot be changed.
        """
        changed_count = 0
        async with self.locked(Ability.ATTRIBUTES) as system:
            for pid in pids:
                changed_count += await self._count_done(
                    len(pids) == 1,
                    f"{kind.name.lower()} {pid} {value}",
                    system.set_attribute(pid, kind, value),
                )
        return changed_count

    async def kill(self, pids: list[int]) -> int:
        """Returns the number of killed processes."""
        killed_count = 0
        async with self.locked(Ability.START) as system:
            for pid in pids:
                killed_count += await self._count_done(
                    len(pids) == 1, f"kill {pid}", system.kill(pid)
                )
        return killed_count

    async def _count_done(
        self, is_only_process: bool, description: str, operation: Awaitable[None]
    ) -> int:
        """Counts an action on one process: 1, or 0 if it fails. Unless `is_only_process`, ignores ended processes."""
        try:
            await self.steer(description, operation)
        except Refused:
            if is_only_process:
                raise
            return 0
        return 1

    # --- pausing

    async def pause(self) -> None:
        """Stops the system's time."""
        if self.paused:
            return
        async with self.lock:
            system = self._able_system(Ability.PAUSE)
            if not self.waits_for_others:
                await with_timeout(system.pause())
                self.clock.stop(time.monotonic())
            self.waits_for_others = False
            self.paused = True

    async def resume(self) -> None:
        """Continues the system's time."""
        if not self.paused:
            return
        async with self.lock:
            if self.system:
                await with_timeout(self.system.resume())
                self.clock.start(time.monotonic())
            self.paused = False

    async def hold(self) -> None:
        """Holds the system until the others catch up; does nothing during a control action."""
        if self.lock.locked() or self.waits_for_others:
            return
        async with self.lock:
            if self.system and self.is_ready and not self.paused:
                await with_timeout(self.system.pause())
                self.clock.stop(time.monotonic())
                self.waits_for_others = True

    async def release(self) -> None:
        """Releases a held system. The caller must know that the system's lock is free."""
        if self.waits_for_others and self.system:
            await with_timeout(self.system.resume())
            self.clock.start(time.monotonic())
        self.waits_for_others = False

    async def pause_if_possible(self) -> None:
        """Pauses the system if it supports pausing."""
        can_pause = self.system and Ability.PAUSE in self.system.abilities
        if self.is_ready and can_pause:
            await self.pause()

    # --- systems that a page runs

    async def follow(self, setup: Setup, actions: Sequence[str], time_ns: int) -> None:
        """Brings the system to the state on a page, by repeating the page's actions up to
        `time_ns`.

        If the system has performed other actions before, it is restarted, which ends its recording.
        Raises Refused if the system fails.
        """
        async with self.follow_lock:
            await with_timeout(self._wait_until_started())
            self.take_output()
            if setup != self.setup or not self.is_ready or not self.played.has_performed(actions):
                await self.restart(setup)
            known_count, self._acts = len(self._acts), actions
            self.played.schedule(actions)
            end_ns = self.played.end_ns if self.life is Life.PAUSED else None
            until_ns = time_ns if end_ns is None else min(time_ns, end_ns)
            while self.take_output() or (self.life is Life.PAUSED and self.now_ns < until_ns):
                async with self.lock:
                    await with_timeout(self.played.advance(until_ns, _ADVANCE_STEP_S))
            if self.life is Life.FAILED:
                raise Refused(self.message)
            # The manifest omits the number in a `start`, which only selects random values.
            commands = [_START_SEED.sub("start ", act.partition(" ")[2]) for act in actions]
            starts = [word.partition(" ")[2] for word in commands if word.startswith("start ")]
            self.started = dict.fromkeys(starts)
            for word in commands[max(known_count, len(setup.workloads)) :]:
                assert self.tape
                self.tape.note_control(word)

    async def _wait_until_started(self) -> None:
        while self.system is None and not self.failure:
            await asyncio.sleep(_POLL_S)

    # --- recording

    @property
    def workload_names(self) -> str:
        """Names of the workloads started so far."""
        return " and ".join(self.started) or "as found"

    def start_recording(self, request: RecordingRequest) -> None:
        """Starts a recording. Raises Refused if there is no trace yet."""
        tape = self._full_tape("record")
        assert self.system
        tape.start_recording(
            request, self.workload_names, self.system.monitor_pids, self.log.since(0)
        )
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
        folder = await self.tape.stop_recording(outcome, self.workload_names, repeatable, files)
        if folder:
            self.shared.recorded_folders.append(folder)
        return folder

    async def export_perfetto(self, folder: Path) -> Path:
        """Writes a file for ui.perfetto.dev (Tape.export)."""
        tape = self._full_tape("show")
        assert self.system
        self._exports += 1
        excluded_pids = self.system.monitor_pids
        file = await tape.export(folder / f"{self.letter}-{self._exports}", excluded_pids)
        oldest_file = file.with_name(f"{self.letter}-{self._exports - _EXPORTS_MAX}{file.suffix}")
        oldest_file.unlink(missing_ok=True)
        return file

    async def break_down_waits(
        self, folder: Path, question: WaitQuestion, known: Catalogue
    ) -> dict[str, Any]:
        """Breaks down waits (wait_breakdown.blamed).

        Requests run one at a time, because each copies the kept trace.
        """
        async with self.breakdown_lock:
            tape = self._full_tape("explain")
            assert self.system
            path = folder / f"{self.letter}-waits.bin"
            try:
                tape.recent.write(path, self.system.monitor_pids, TIME_MAX, question.time_ns)
                return await asyncio.to_thread(break_down_waits, path, question, known)
            except ValueError as error:
                raise Refused(str(error)) from None
            finally:
                path.unlink(missing_ok=True)

    def _full_tape(self, purpose: str) -> Tape:
        """Returns the tape. Raises Refused if there is none; `purpose` is for the message."""
        if self.system is None or self.tape is None:
            raise Refused(
                f"nothing to {purpose}: {self.message or self.life.value}",
                fix="restart this system",
            )
        return self.tape


async def with_timeout(operation: Awaitable[Result]) -> Result:
    """Awaits an adapter's operation. Raises Refused after `_ADAPTER_TIMEOUT_S` seconds."""
    try:
        return await asyncio.wait_for(operation, _ADAPTER_TIMEOUT_S)
    except (TimeoutError, asyncio.TimeoutError):
        raise Refused(
            f"no answer within {_ADAPTER_TIMEOUT_S:.0f} s", fix="try again, or restart this system"
        ) from None
