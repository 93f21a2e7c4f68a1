# SPDX-License-Identifier: MIT
"""Systems that are watched together: driven in step, shown some times a second, steered."""

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
from schedlab.display.names import all_visible
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.frames import Frame
from schedlab.monitor.making import RECORDED, Choices, Maker, cpus_max, make_system
from schedlab.monitor.model.model import WINDOW_NS
from schedlab.monitor.rates import Allowance
from schedlab.monitor.system import Life, Refused, Setup, StepKind
from schedlab.monitor.tape import Request
from schedlab.monitor.watched import Terms, Watched, limited
from schedlab.paths import new_runs_folder

SYSTEMS_MAX = 4
FRAME_S = 0.2
"""The time from one frame to the next."""
_TURN_S = 0.02
"""The time from one look at the systems to the next."""
_AIM_S = 0.06
"""What a turn may take when paced systems go as fast as they can."""
_FEED_S = 0.1
"""What models may take of a turn; what is left over then waits for the next one."""
_SKIPPED_MAX = 4
"""Frames in a row that are not drawn of a system that has a model that is behind."""
_AHEAD_NS = 20_000_000
"""How far a system may be ahead of the others before it has to wait."""
_STATUS_S = 1.0


class Listener(Protocol):
    """What is shown what happens: a server, or a terminal. It must not take long."""

    def show(self, frames: Sequence[Frame]) -> None:
        """One of each system that is drawn this time."""

    def changed(self) -> None:
        """Hears that what Session.hello says is no longer so."""


class Session:
    """One to four systems, "a", "b" and so on. `run` drives them until it is cancelled."""

    def __init__(
        self,
        setups: Sequence[Setup],
        choices: Choices,
        *,
        make: Maker = make_system,
        speed: float = 1.0,
        window_ns: int = WINDOW_NS,
        record: bool = False,
        software: Mapping[str, Any] | None = None,
    ) -> None:
        """`speed`: of paced systems; 0: as fast as they go. `record`: all of it, from the start.
        `software`: what manifests say of schedlab and machines. WrongUsage: no such systems."""
        if not 1 <= len(setups) <= SYSTEMS_MAX:
            raise WrongUsage(f"{len(setups)} systems: one to {SYSTEMS_MAX} can be watched together")
        for setup in setups:
            choices.check(setup)
        self.choices = choices
        self.pace = speed
        self.window_ns = window_ns
        self.record_from_start = record
        self.software = dict(software or {})
        self._scratch = tempfile.TemporaryDirectory(prefix="schedlab-monitor-")
        self.scratch = Path(self._scratch.name)
        self.kept: list[Path] = []
        """All that was recorded."""
        self._terms = Terms(
            choices,
            make,
            self.scratch,
            window_ns,
            self.tell_change,
            self._first,
            self.kept,
        )
        self.systems = {
            letter: Watched(letter, setup, self._terms)
            for letter, setup in zip(ascii_lowercase, setups, strict=False)
        }
        self._futures: list[str] = []
        """Systems that came later: the futures of a moment."""
        self.recorded: list[Path] = []
        """Folders of the runs that were recorded together last."""
        self.recordings: Path | None = None
        """The folder of those that are being recorded."""
        self.reporting = asyncio.Lock()
        """Held while a report is made: each takes the place of the one before."""
        self._listeners: list[Listener] = []
        self._allowance = Allowance(_AIM_S)
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Each system's question that is being asked just now: how it is."""
        self._asked_s: dict[str, float] = {}
        self._skipped = dict.fromkeys(self.systems, 0)
        """Frames in a row."""
        self._turned_s = 0.0
        self._shown_s = 0.0
        self.publish: Callable[[Path], str] = str
        """Says where people find a file."""

    # --- its life

    async def run(self) -> None:
        """Starts all systems, and drives them. SchedlabError: none of them could be started."""
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
        await asyncio.gather(*(each.begin() for each in self.systems.values()))
        if all(each.life is Life.FAILED for each in self.systems.values()):
            first = next(iter(self.systems.values()))
            raise (WrongUsage if first.is_refused else SchedlabError)(first.message)

    def _first(self, each: Watched) -> None:
        if self.record_from_start:
            self.start_recording([each], "", from_start=True)

    def start_recording(
        self, systems: Sequence[Watched], label: str, from_start: bool = False
    ) -> None:
        """Runs that are recorded together are in one folder. Refused: one of them cannot be."""
        for each in systems:
            if each.recording:
                raise Refused(f"{each.letter} is being recorded already, into {each.recording}")
        if self.recordings is None or not any(each.recording for each in self.systems.values()):
            self.recordings = new_runs_folder("monitor")
            self.recorded = []
        begun: list[Watched] = []
        try:
            for each in systems:
                prefix = f"{each.letter}-" if len(self.systems) > 1 else ""
                each.record(Request(self.recordings, prefix, label, from_start, self.software))
                begun.append(each)
        except BaseException:
            for each in begun:
                if each.tape:
                    each.tape.discard()
            raise

    async def show_futures(self, of: Watched, setups: Sequence[Setup], at_ns: int) -> Sequence[str]:
        """Shows more systems from a moment on, where they stand; those that came so before go.
        Returns their letters. Refused: there is no room for them.
        """
        for letter in self._futures:
            if letter != of.letter:
                await self._drop(letter)
        self._futures = [letter for letter in self._futures if letter in self.systems]
        free = [each for each in ascii_lowercase[:SYSTEMS_MAX] if each not in self.systems]
        if len(free) < len(setups):
            raise Refused(f"{len(setups)} more systems: {SYSTEMS_MAX} at most are shown together")
        letters = free[: len(setups)]
        for letter, setup in zip(letters, setups, strict=True):
            future = Watched(letter, setup, self._terms)
            future.origin_ns = of.origin_ns
            await future.begin_at(at_ns)
            self._skipped[letter] = 0
            self.systems[letter] = future
            self._futures.append(letter)
        self.tell_change()
        return letters

    async def _drop(self, letter: str) -> None:
        gone = self.systems.pop(letter)
        if letter in self._asking:
            self._asking[letter].cancel()
        await gone.end()

    async def close(self) -> None:
        """Ends all, and keeps what is being recorded."""
        for task in self._asking.values():
            task.cancel()
        ended = await asyncio.gather(
            *(each.end() for each in self.systems.values()), return_exceptions=True
        )
        self._scratch.cleanup()
        for problem in ended:
            if isinstance(problem, Exception):
                raise problem

    # --- those that are shown it

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Shows it what happens from now on; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell_change(self) -> None:
        """hello() is another."""
        for listener in list(self._listeners):
            listener.changed()

    def hello(self) -> dict[str, Any]:
        """Returns what there is to see and to choose (docs/monitor.md)."""
        hello = {
            "type": "hello",
            "version": __version__,
            "systems": [self._introduced(each) for each in self.systems.values()],
            "policies": self.choices.policies,
            "palette": [
                {"name": entry.name, "title": entry.title, "kind": entry.kind}
                for entry in self.choices.palette.values()
            ],
            "window_ns": self.window_ns,
            "cpus_max": {
                each.setup.machine: cpus_max(each.setup.machine)
                for each in self.systems.values()
                if each.setup.machine != RECORDED
            },
        }
        return all_visible(hello)

    def _introduced(self, each: Watched) -> dict[str, Any]:
        system = each.system
        header = system.header if system else None
        return {
            "system": each.letter,
            "title": each.title,
            "machine": each.setup.machine,
            "cpus": header.cpus if header else each.setup.cpus,
            "tick_ns": header.tick_ns if header else each.setup.tick_ns,
            "repeatable": bool(system and system.repeatable),
            "no_branches": system.no_branches if system else "it has not begun yet",
            "end_ns": each.paced.end_ns if each.is_paced else None,
            "abilities": sorted(ability.value for ability in system.abilities) if system else [],
            "setup": _told(each.setup),
        }

    # --- a turn

    async def turn(self) -> None:
        """Looks at all systems once, and shows them if it is time."""
        began = time.monotonic()
        since_s, self._turned_s = began - (self._turned_s or began), began
        went_ns = await self._advance(since_s)
        for each in self.systems.values():
            had_header = each.model is not None
            each.take()
            if each.model is not None and not had_header:
                self.tell_change()
        await self._keep_step()
        await self._feed(began + _FEED_S)
        self._allowance.learn(went_ns, time.monotonic() - began)
        self._ask_all()
        self._show()

    async def _advance(self, since_s: float) -> int:
        """Lets paced systems go on, all to one time: that which the slowest has reached, and a bit
        more. Gives how far they went."""
        going = [each for each in self.systems.values() if each.goes_on]
        if not going or any(each.is_behind for each in going):
            return 0
        before = min(each.common_ns for each in going)
        far_ns = self._allowance.nanoseconds
        if self.pace:
            far_ns = min(far_ns, since_s * self.pace * 1e9)
        await self.advance_to(going, before + max(int(far_ns), 1))
        return min(each.common_ns for each in going) - before

    async def advance_to(self, going: Sequence[Watched], common_ns: int) -> None:
        """Goes on to a time of those that they have in common, or as far as they come now."""
        behind = [each for each in going if each.common_ns < common_ns]
        patience_s = _AIM_S / max(len(behind), 1)

        async def advance(each: Watched) -> None:
            try:
                async with each.lock:
                    if each.is_on:
                        await limited(each.paced.advance(common_ns + each.origin_ns, patience_s))
            except Exception as error:  # of its adapter: the others go on
                each.fail(error)

        await asyncio.gather(*(advance(each) for each in behind))

    async def _keep_step(self) -> None:
        """Lets those wait that are ahead of others, where the clock is not ours."""
        free = [each for each in self.systems.values() if each.is_on and not each.is_paced]
        free = [each for each in free if not each.paused]
        slowest = min((each.common_ns for each in free), default=0)
        for each in free:
            ahead_ns = each.common_ns - slowest
            try:
                if each.held and ahead_ns <= _AHEAD_NS // 4 and not each.lock.locked():
                    await each.resume_held()
                elif not each.held and ahead_ns > _AHEAD_NS:
                    await each.hold()
            except Exception as error:  # of its adapter: the others go on
                each.fail(error)

    async def _feed(self, until_s: float) -> None:
        """Gives models what is new, in turns, while other tasks get their turns."""
        left = list(self.systems.values())
        while left and time.monotonic() < until_s:
            left = [each for each in left if self._fed(each)]
            await asyncio.sleep(0)

    def _fed(self, each: Watched) -> bool:
        try:
            return each.feed()
        except Exception as error:  # of its model: the others go on
            each.fail(error)
            return False

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._shown_s + FRAME_S or not self._listeners:
            return
        self._shown_s = max(self._shown_s + FRAME_S, now - FRAME_S)
        frames = [each.frame(self.pace) for each in self.systems.values() if self._is_due(each)]
        for listener in list(self._listeners):
            listener.show(frames)

    def _is_due(self, each: Watched) -> bool:
        """Is there time to draw it?"""
        letter = each.letter
        if each.is_behind and not each.is_paced and self._skipped[letter] < _SKIPPED_MAX:
            self._skipped[letter] += 1
            each.skipped += 1
            return False
        self._skipped[letter] = 0
        return True

    def _ask_all(self) -> None:
        """How they are, each by itself: one that is slow to answer keeps no other waiting."""
        now = time.monotonic()
        for letter, each in self.systems.items():
            if letter in self._asking or not each.is_on or not self._listeners:
                continue
            if each.held or (each.paused and not each.is_paced):
                continue
            period_s = float(getattr(each.system, "status_period_s", _STATUS_S))
            if now >= self._asked_s.get(letter, 0.0) + period_s:
                self._asked_s[letter] = now
                self._asking[letter] = asyncio.create_task(self._ask(each))

    async def _ask(self, each: Watched) -> None:
        try:
            with suppress(Refused):
                await each.read_status()
        except Exception as error:  # of its adapter: the others go on
            each.fail(error)
        finally:
            self._asking.pop(each.letter, None)

    # --- steps

    async def step(self, leader: Watched, kind: StepKind, back: bool = False) -> int:
        """One system goes on or back by a step, and those in step with it to the same time. Returns its time.

        Back: it stands, and is shown as it was. Refused: its clock is its own, or nothing earlier is
        kept.
        """
        if back or leader.view:
            return await self._look(leader, kind, back)
        paced = [each for each in self.systems.values() if each.is_paced and each.is_on]
        if leader not in paced:
            raise Refused(f"{leader.setup.machine} goes by its own clock, and not in steps")
        for each in paced:
            await each.pause()
        async with leader.asking():
            await limited(leader.paced.step(kind))
        others = [each for each in paced if each is not leader]
        for _ in range(100):
            if all(each.common_ns >= leader.common_ns for each in others):
                break
            await self.advance_to(others, leader.common_ns)
        return leader.now_ns

    async def _look(self, leader: Watched, kind: StepKind, back: bool) -> int:
        together = [
            each for each in self.systems.values() if each.past and each.is_paced == leader.is_paced
        ]
        for each in together:
            await each.stand()
        time_ns = leader.moment(kind, back)
        for each in together:
            shift_ns = each.origin_ns - leader.origin_ns
            each.look(None if time_ns is None else time_ns + shift_ns)
        return leader.view.time_ns if leader.view else leader.present_ns


def _told(setup: Setup) -> dict[str, Any]:
    told = asdict(setup)
    told["policy"] = str(setup.policy)
    told["settings"] = dict(setup.settings)
    told["source"] = setup.source.name if setup.source else None
    told["files"] = [file.name for file in setup.files]
    return told
