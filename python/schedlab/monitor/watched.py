# SPDX-License-Identifier: MIT
"""One system that is watched: what it says goes to its model, and into a recording; what it is
asked goes to it, one thing at a time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TypeVar, cast

from schedlab.display.names import visible
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.monitor.blank import blank, still
from schedlab.monitor.frames import Frame, Mark
from schedlab.monitor.making import RECORDED, Choices, Maker
from schedlab.monitor.model import Model, ModelFrame
from schedlab.monitor.past import Past, View
from schedlab.monitor.rates import HostClock, Rate
from schedlab.monitor.recorder import Recorder
from schedlab.monitor.system import (
    Ability,
    Life,
    Paced,
    Records,
    Refused,
    Setup,
    Status,
    StepKind,
    System,
)
from schedlab.monitor.tape import Request, Tape
from schedlab.monitor.trace_file import begin_of_work
from schedlab.trace.format import AttributeKind

T = TypeVar("T")

LOG_MAX = 2000
"""Lines of the console that are kept for pages that come later."""
_PIECE = 4096
"""Records that the model is given at once: it takes some 20 ms for them."""
_PATIENCE_S = 30.0
"""The time to wait for an answer; adapters have limits of their own, which are shorter."""
_EXPORTS_MAX = 4
"""Files that were made for Perfetto: older ones go."""
_NO_WORK = 20_000
"""Records, after which one need not wait any more for workloads to begin."""
_SILENT_NS = 250_000_000
"""What a system does is in its trace after so long at most, with `trace-delay` and the way here."""
_ITS_OWN_CLOCK = "spike"
"""Its time goes as its instructions do, not as ours."""


@dataclass(frozen=True)
class Terms:
    """What is the same for all systems of a session."""

    choices: Choices
    make: Maker
    scratch: Path
    window_ns: int
    changed: Callable[[], None]
    """Is told when there is something else to be introduced."""
    first: Callable[[Watched], None]
    """Is told of each start, before anything is taken of what its workloads do."""
    kept: list[Path]
    """All that was recorded, folder by folder."""


class Watched:
    """See above. All of it belongs to the session's loop."""

    def __init__(self, letter: str, setup: Setup, terms: Terms) -> None:
        self.letter = letter
        self.setup = setup
        self.terms = terms
        self.window_ns = terms.window_ns
        self.starts = 0
        self.number = 0
        self.skipped = 0
        self._exports = 0
        self.started = dict.fromkeys(setup.workloads)
        """What has been asked to run, in that order, for a recording's title."""
        self.lock = asyncio.Lock()
        """Held while the system does something: one thing at a time."""
        self._reset()

    def _reset(self) -> None:
        """Makes it as before its start."""
        self.system: System | None = None
        self.model: Model | None = None
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
        self.log: deque[str] = deque(maxlen=LOG_MAX)
        self._new_log: deque[str] = deque(maxlen=LOG_MAX)
        self._marks: list[Mark] = []
        self._backlog: deque[Records] = deque()
        self._shown: ModelFrame | None = None
        self.past: Past | None = None
        self.view: View | None = None
        """What is shown instead of the present."""
        self._whole = False
        """The next frame tells all anew."""
        self._is_new = True
        """Was nothing taken of its trace?"""
        self._seeking = False
        """What its trace tells from here on is of another time."""

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
        return (
            not self._seeking
            and self.life in (Life.RUNNING, Life.PAUSED)
            and self.model is not None
        )

    @property
    def is_paced(self) -> bool:
        return self.system is not None and Ability.PACE in self.system.abilities

    @property
    def goes_on(self) -> bool:
        """Does its clock wait for us to say how far?"""
        if not self.is_paced or not self.is_on or self.paused:
            return False
        end_ns = self.paced.end_ns
        return end_ns is None or self.now_ns < end_ns

    @property
    def paced(self) -> Paced:
        return cast(Paced, self.system)

    @property
    def now_ns(self) -> int:
        """How far it has come, of its own time."""
        if self.is_paced:
            return self.paced.now_ns
        taken = self.tape.standing.time_ns if self.tape else 0
        if not self.is_on:
            return taken
        return max(taken, self.clock.time_ns(time.monotonic()) - _SILENT_NS)

    @property
    def common_ns(self) -> int:
        """The same, of the time that it has in common with others."""
        return self.now_ns - self.origin_ns

    @property
    def is_behind(self) -> bool:
        """Is there something that the model has not taken in?"""
        return bool(self._backlog)

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
        return f"{self.setup.policy} on {self.setup.machine}, {cpus}"

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
        self.terms.changed()

    async def begin_at(self, time_ns: int) -> None:
        """Starts it, and has it stand at a moment. Refused: it cannot be started, or cannot go there."""
        self._is_new = False
        await self.begin()
        self.paused = True
        await self.seek(time_ns)

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

    def fail(self, error: BaseException) -> None:
        """It is given up, for this reason."""
        own = isinstance(error, (SchedlabError, OSError))
        self.is_refused = isinstance(error, WrongUsage)
        self.failure = str(error) if own else f"{type(error).__name__}: {error}"

    # --- what it says

    def take(self) -> int:
        """Takes what is new of its trace and its log, and returns how many records came."""
        if self.system is None or self.failure or self._seeking:
            return 0
        try:
            self._take_log([visible(line) for line in self.system.take_log()])
            records = self.system.take()
            if self.model is None and not self._set_up():
                return 0
            self._take_records(records)
        except Exception as error:  # its trace is broken: the others go on
            self.fail(error)
            return 0
        return len(records)

    def _set_up(self) -> bool:
        """Makes its model, as soon as its header is there."""
        assert self.system
        header = self.system.header
        if header is None:
            return False
        policy = self.setup.policy
        shares_by = self.terms.choices.shares_by(policy)
        self.model = Model(
            header, str(policy), shares_by, self.window_ns, self.terms.choices.catalogue
        )
        self.past = Past(self.model)
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
            found = begin_of_work(records, self.system.own_pids)
            if found is None and self.tape.standing.count + len(records) < _NO_WORK:
                return records
            at = found or 0
        self._take_part(records[:at])
        self._is_new = False
        self.terms.first(self)
        return records[at:]

    def _take_part(self, records: Records) -> None:
        assert self.tape
        if len(records) == 0:
            return
        try:
            self.tape.add(records)
        except OSError as error:
            self.note(f"the recording was given up: {error}")
        self._backlog.extend(records[at : at + _PIECE] for at in range(0, len(records), _PIECE))
        self.clock.heard(time.monotonic(), self.tape.standing.time_ns)

    def _take_log(self, lines: list[str]) -> None:
        self.log.extend(lines)
        self._new_log.extend(lines)
        if self.tape:
            self.tape.add_log(lines)

    def feed(self) -> bool:
        """Gives the model the next piece. Returns False if it has all."""
        if self.model is None or self.past is None or self.system is None:
            return False
        self._introduce(self.system, self.model)
        if self._backlog:
            piece = self._backlog.popleft()
            self.model.feed(piece)
            self.past.add(piece)
        if not self._backlog:
            self.past.mark(self.model)
        if not self._backlog and self.is_on and not self.held:
            self._reach()
        return bool(self._backlog)

    def _introduce(self, system: System, model: Model) -> None:
        """Tells a model what no trace does."""
        model.own_pids = set(system.own_pids)
        model.record_cost_ns = system.record_cost_ns

    def _reach(self) -> None:
        """Time goes on though nothing happens."""
        if self.model and (self.is_paced or self.setup.machine != _ITS_OWN_CLOCK):
            self.model.reach(self.now_ns)

    # --- what is shown

    def frame(self, pace: float) -> Frame:
        """Returns what is the case, and what has happened since the last one."""
        self.number += 1
        shown = self._shown = self._new_shown()
        log, self._new_log = list(self._new_log), deque(maxlen=LOG_MAX)
        marks, self._marks = self._marks, []
        whole, self._whole = self._whole, False
        model = self.shown_model
        if whole and shown and model:
            shown = cast(ModelFrame, {**shown, **model.history()})
            log = list(self.log)
        return self._framed(shown, log, marks, pace, whole)

    def _new_shown(self) -> ModelFrame | None:
        if self.view:
            return still(self.view.frame)
        if self.model and not self.failure:
            try:
                if self.past:
                    self.past.see(self.model)
                return self.model.frame()
            except Exception as error:  # of its model: the others go on
                self.fail(error)
        return still(self._shown) if self._shown else None

    def history(self, pace: float) -> Frame:
        """Returns the same, but with all of the past that is kept."""
        shown, model = self._shown, self.shown_model
        if model and shown is None:
            shown = self._shown = model.frame()
        if model and shown:
            shown = cast(ModelFrame, {**shown, **model.history()})
        return self._framed(shown, list(self.log), [], pace, True)

    def _framed(
        self,
        shown: ModelFrame | None,
        log: list[str],
        marks: list[Mark],
        pace: float,
        whole: bool,
    ) -> Frame:
        parts = shown or blank(self.setup, self.window_ns)
        behind = 0
        if self.tape and self._backlog:
            behind = self.tape.standing.time_ns - parts["now_ns"]
        return {
            **parts,
            "marks": [*parts["marks"], *marks],
            "system": self.letter,
            "number": self.number,
            "life": self.life.value,
            "message": visible(self.message),
            "paused": self.paused,
            "speed": self.speed.per_second / 1e9,
            "pace": pace if self.is_paced else -1.0,
            "log": log,
            "events_per_s": self.events.per_second,
            "behind_ns": max(behind, 0),
            "back_ns": self.present_ns - self.view.time_ns if self.view else 0,
            "whole": whole,
            "skipped_frames": self.skipped,
            "recording": self.recording,
        }

    def note(self, text: str) -> None:
        """Marks the time line."""
        now_ns = self._shown["now_ns"] if self._shown else self.now_ns
        self._marks.append({"time_ns": now_ns, "kind": "note", "text": text, "pid": 0})

    def pids_of(self, group: str) -> list[int]:
        """Returns the processes of a group that live, as last shown."""
        if self._shown is None:
            return []
        columns = self._shown["processes"]
        pairs = zip(columns["pid"], columns["group"], strict=True)
        return [int(pid) for pid, name in pairs if name == group]

    # --- what it is asked

    @asynccontextmanager
    async def asking(self, *abilities: Ability) -> AsyncIterator[System]:
        """Gives the system, which does nothing else meanwhile. Refused: it cannot do such things.

        What is done to it is done at the moment that is shown, if it can go there."""
        if abilities and self.system and Ability.SEEK in self.system.abilities:
            await self.leave_past()
        async with self.lock:
            system = self._able(*abilities)
            if self.held:
                await self.resume_held()
            yield system

    def _able(self, *abilities: Ability) -> System:
        if self.system is None or not self.is_on:
            if self.life in (Life.RUNNING, Life.PAUSED):
                raise Refused("it has only just begun, or gone to another time: ask once more")
            raise Refused(f"it does not run: {self.message or self.life.value}")
        for ability in abilities:
            if ability not in self.system.abilities:
                raise Refused(f"{self.setup.machine} cannot do this: {ability.value}")
        if self.paused and not self.is_paced and abilities:
            raise Refused("it stands still, and can hear nothing: resume it first")
        return self.system

    async def steer(self, what: str, doing: Awaitable[T]) -> T:
        """Has the system do something that changes what it does; a recording's manifest says it."""
        done = await limited(doing)
        if self.tape:
            self.tape.note_steering(what)
        return done

    async def read_status(self) -> Status:
        """Returns what sched_status says, which the model hears, too."""
        async with self.asking() as system:
            if self.paused and not self.is_paced:
                raise Refused("it stands still, and can hear nothing: resume it first")
            status = await limited(system.read_status())
        if self.model and self.past:
            self.model.apply_status(status)
            self.past.add_status(status)
        return status

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
            system = self._able(*(() if self.is_paced else (Ability.PAUSE,)))
            if not self.is_paced and not self.held:
                await limited(system.pause())
                self.clock.stands(time.monotonic())
            self.held = False
            self.paused = True

    async def resume(self) -> None:
        """It goes on: from the moment that is shown, if it can go there, else from the present."""
        await self.leave_past()
        if not self.paused:
            return
        async with self.lock:
            if not self.is_paced and self.system:
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

    # --- what was

    @property
    def shown_model(self) -> Model | None:
        """The model of what is shown."""
        return self.view.model if self.view else self.model

    @property
    def present_ns(self) -> int:
        """The latest moment of all that is known."""
        return self.model.now_ns if self.model else 0

    @property
    def shown_ns(self) -> int:
        """The moment that is shown."""
        return self.view.time_ns if self.view else self.present_ns

    async def stand(self) -> None:
        """Has its time stand still, if it can be done and has not been."""
        able = self.system and Ability.PAUSE in self.system.abilities
        if self.is_on and (self.is_paced or able):
            await self.pause()

    def moment(self, kind: StepKind, back: bool) -> int | None:
        """Returns the moment a step before or after the one that is shown; None: the present. Refused: nothing
        is kept of it."""
        if self.past is None:
            raise Refused("there is nothing to look back at yet")
        step = self.past.before if back else self.past.after
        return step(self.shown_ns, kind)

    def look(self, time_ns: int | None) -> None:
        """Shows it as it was at a moment; None, or a later one than the present: as it is."""
        if time_ns is not None and time_ns < self.present_ns and self.past and self.system:
            time_ns = max(time_ns, self.past.begin_ns)
            model = self.past.model_at(time_ns)
            self._introduce(self.system, model)
            model.set_window(self.window_ns)
            self.view = View(time_ns, model, model.frame())
        else:
            self.view = None
        self._whole = True

    async def leave_past(self) -> None:
        """Goes to the moment that is shown, if it can; else the present is shown again."""
        view = self.view
        if view is None:
            return
        self.look(None)
        if self.system and Ability.SEEK in self.system.abilities:
            await self.seek(view.time_ns)
            self.take()

    # --- another time

    async def seek(self, time_ns: int) -> int:
        """Goes there; the model begins anew, and takes in all that comes before."""
        if self.system and Ability.SEEK not in self.system.abilities:
            raise Refused(f"{self.setup.machine} cannot go to another time")
        await self.stop_recording()
        async with self.lock:
            if self.system is None or self.life is Life.FAILED:
                raise Refused(f"it does not run: {self.message or self.life.value}")
            self._seeking = True
            try:
                await limited(self.paced.seek(time_ns))
            finally:
                self._seeking = False
                self.model, self.tape, self.past = None, None, None
                self.view = None
                self._shown = None
                self._backlog.clear()
                self.speed, self.events = Rate(), Rate()
            return self.paced.now_ns

    def set_window(self, window_ns: int) -> None:
        """Sets the window of the metrics."""
        self.window_ns = window_ns
        if self.model:
            self.model.set_window(window_ns)
        if self.view:
            self.look(self.view.time_ns)

    # --- recording

    @property
    def workload(self) -> str:
        """What has been started, in words."""
        return " and ".join(self.started) or "as it was found"

    def record(self, wanted: Request) -> None:
        """Records from here on. Refused: there is nothing to record."""
        tape = self._whole_tape("record")
        assert self.system
        tape.record(wanted, self.workload, self.system.own_pids, self.log)
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
        own = self.system.own_pids
        file = await tape.export(folder / f"{self.letter}-{self._exports}", own)
        old = file.with_name(f"{self.letter}-{self._exports - _EXPORTS_MAX}{file.suffix}")
        old.unlink(missing_ok=True)
        return file

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
