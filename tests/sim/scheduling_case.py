# SPDX-License-Identifier: MIT
"""One run of the simulator that is acted on from outside, and held against the laws.

A case writes down what was done to it: a short program that does it again. A broken law, or a
machine that fails, says with which command.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from schedlab import trace
from schedlab.base.toolchain.policies import Catalogue, read_catalogue
from schedlab.paths import BUILD, ROOT
from schedlab_simulator import (
    ActRefused,
    Attribute,
    AuditFailed,
    Place,
    RunFailed,
    Simulator,
    Status,
    Workload,
    declarations,
)
from scheduling_history import History
from scheduling_laws import breaches

CASES = BUILD / "cases"
PROCESSES = 64
"""That may live at once."""
INIT = 2**32 - 1
"""The program of init."""
MOST_TOLD = 3


class LawBroken(AssertionError):
    """Which law, where, and how to see it again."""


@cache
def catalogue() -> Catalogue:
    """The policies that are built in."""
    return read_catalogue()


class Case:
    """A machine on which only computing takes time. check() is the end of it."""

    def __init__(
        self,
        workload: str,
        *,
        policy: str,
        cpus: int = 1,
        seed: int = 1,
        tunables: Mapping[str, int] | None = None,
    ) -> None:
        self.arguments = {"policy": policy, "cpus": cpus, "seed": seed, "tunables": tunables or {}}
        self.text = workload
        self.cpus = cpus
        self.calls: list[str] = []
        self.duration = 0
        """That it has gone on by since the last act: what is one run is told as one."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "trace.bin"
        self.workload = Workload.read(workload)
        self.killed: dict[int, int] = {}
        self.over = False
        self.failed = False
        self.simulator = Simulator(
            self.workload,
            policy=policy,
            cpus=cpus,
            seed=seed,
            tunables=tunables or {},
            costs="none",
            processes=PROCESSES,
            trace=self.path,
        )
        self.simulator.run(0)  # the first process is there

    # ---- acts: one that is refused has not happened

    def run(self, duration: int) -> None:
        """Goes on by this many nanoseconds."""
        self.duration += duration
        try:
            self.over = self.simulator.run(self.simulator.now + duration) is Status.DONE
        except RunFailed as error:
            self.fail([str(error)])
        self.audit()

    def fork(self, program: str) -> int:
        """Its PID; 0: there is no room."""
        if self.simulator.counts().processes >= PROCESSES - 8 or not self.act("fork", program):
            return 0
        return int(self.simulator.processes()["pid"].max())

    def kill(self, pid: int) -> None:
        if self.act("kill", pid):
            self.killed.setdefault(pid, self.simulator.now)

    def wake(self, pid: int) -> None:
        self.act("wake", pid)

    def migrate(self, pid: int, cpu: int) -> None:
        self.act("migrate", pid, cpu)

    def give(self, channel: int, count: int) -> None:
        self.act("give", channel, count)

    def set_attribute(self, pid: int, attribute: Attribute, value: int) -> None:
        self.act("set_attribute", pid, attribute, value)

    def set_policy(self, policy: str) -> None:
        self.act("set_policy", policy)

    def set_tunable(self, name: str, value: int) -> None:
        self.act("set_tunable", name, value)

    def act(self, name: str, *arguments: object) -> bool:
        """False: it was refused."""
        try:
            getattr(self.simulator, name)(*arguments)
        except ActRefused:
            return False
        self.note_time()
        self.calls.append(f"{name}({', '.join(map(as_code, arguments))})")
        self.audit()
        return True

    def pids(self, *places: Place) -> list[int]:
        """The processes in one of these places, without init and the first process."""
        rows = self.simulator.processes()
        others = ~np.isin(rows["program"], (0, INIT))
        found: list[int] = rows["pid"][others & np.isin(rows["place"], places)].tolist()
        return found

    # ---- laws

    def audit(self) -> None:
        try:
            self.simulator.audit()
        except AuditFailed as error:
            self.fail([f"audit: {error}"])

    def check(self) -> None:
        """The end: no process is lost, and no law is broken. LawBroken: one is."""
        rows = self.simulator.processes()
        alive = set(rows["pid"][rows["place"] != Place.ENDED].tolist())
        places = dict(zip(rows["pid"].tolist(), rows["cpu"].tolist(), strict=True))
        forks = self.simulator.counts().forks
        self.simulator.finish()
        try:
            self.simulator.drain()
        except AuditFailed as error:
            self.fail([f"drain: {error}"])
        events = trace.read(self.path)
        trace.validate(events)
        history = History(events, catalogue(), places)
        found = [
            *breaches(history, events),
            *self.lost(history, alive, forks),
            *self.overrun(history),
        ]
        if found:
            self.fail(found)
        self.close()

    def lost(self, history: History, alive: set[int], forks: int) -> list[str]:
        """Each process that was forked lives or has ended."""
        wrong = history.alive ^ alive
        told = [f"lost or doubled: pid {pid}" for pid in sorted(wrong)]
        if len(history.attributes) != forks:
            told.append(f"{forks} forks are counted, and the trace has {len(history.attributes)}")
        return told

    def overrun(self, history: History) -> list[str]:
        """A process that was killed runs to the next tick at most."""
        ran = dict.fromkeys(self.killed, 0)
        for _, pid, begin, end, _ in history.runs():
            if pid in ran:
                ran[pid] += max(end - max(begin, self.killed[pid]), 0)
        return [
            f"pid {pid} was killed at {self.killed[pid]} ns and ran for {time} ns more"
            for pid, time in ran.items()
            if time > history.tick
        ]

    def end(self) -> None:
        """check(), unless something was wrong before."""
        if not self.failed:
            self.check()

    def close(self) -> None:
        self.simulator.close()
        self.folder.cleanup()

    # ---- again

    def fail(self, found: list[str]) -> None:
        """Says what is wrong, and leaves the program that shows it."""
        self.failed = True
        script = self.script()
        CASES.mkdir(parents=True, exist_ok=True)
        path = CASES / f"{str(self.arguments['policy']).replace(':', '-')}.py"
        path.write_text(script)
        raise LawBroken("\n".join([*found[:MOST_TOLD], "", script, command(path)]))

    def note_time(self) -> None:
        if self.duration:
            self.calls.append(f"run({self.duration:_})")
        self.duration = 0

    def script(self) -> str:
        """A program that does the same."""
        self.note_time()
        folders = [
            str(ROOT / name)
            for name in ("tests/sim", "tests/shared", "tests", "sim/python", "python")
        ]
        arguments = "".join(
            f", {name}={value!r}" for name, value in self.arguments.items() if value
        )
        lines = [
            "# SPDX-License-Identifier: MIT",
            f"import sys; sys.path[:0] = {folders}",
            "from scheduling_case import Attribute, Case",
            f'case = Case("""{self.needed_text()}"""{arguments})',
            *(f"case.{call}" for call in self.calls),
            "case.check()",
        ]
        return "\n".join(lines) + "\n"

    def needed_text(self) -> str:
        """The workload without programs that no process plays."""
        programs = {part.split()[0]: part for part in self.text.split("program ")[1:]}
        needed, found = {"root"}, {"root", *re.findall(r"fork\('(\w+)'\)", str(self.calls))}
        while found != needed:
            needed = found
            forks = (re.findall(r"^fork (\w+)", programs[name], re.MULTILINE) for name in needed)
            found = needed.union(*forks)
        if any(call.startswith("give") for call in self.calls):
            needed = set(programs)  # channels go by numbers, in the order of the text
        return "".join(f"program {part}" for name, part in programs.items() if name in needed)


def as_code(value: object) -> str:
    return f"Attribute.{value.name}" if isinstance(value, Attribute) else repr(value)


def command(path: Path) -> str:
    """By which a case is seen again."""
    chosen = os.environ.get(declarations.CHOICE)
    setting = [f"{declarations.CHOICE}={shlex.quote(chosen)}"] if chosen else []
    return " ".join([*setting, shlex.quote(sys.executable), shlex.quote(str(path))])
