# SPDX-License-Identifier: MIT
"""One run of the simulator with external acts, checked against the invariants."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from schedlab import trace
from schedlab.base.toolchain.policies import Catalogue, read_catalogue
from schedlab_simulator import (
    ActRefused,
    AuditFailed,
    Place,
    RunFailed,
    Simulator,
    Workload,
)
from scheduling_history import History
from scheduling_laws import breaches

PROCESSES = 64
"""Maximum number of processes alive at once."""
INIT = 2**32 - 1
"""The program of init."""
FAILURES_SHOWN_MAX = 3


class LawBroken(AssertionError):
    """The broken invariant, the place, and the machine."""


@cache
def catalogue() -> Catalogue:
    """The built-in policies."""
    return read_catalogue()


class Case:
    """A machine where only computing takes time. check() ends it."""

    def __init__(
        self,
        workload: str,
        *,
        policy: str,
        cpus: int = 1,
        seed: int = 1,
        tunables: Mapping[str, int] | None = None,
    ) -> None:
        self.setup = {"policy": policy, "cpus": cpus, "seed": seed, "tunables": tunables or {}}
        self.text = workload
        self.cpus = cpus
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "trace.bin"
        self.workload = Workload.read(workload)
        self.killed: dict[int, int] = {}
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
        self.simulator.run(0)  # the first process exists

    # ---- acts: a refused act has no effect

    def run(self, duration: int) -> None:
        """Continues for this many nanoseconds."""
        try:
            self.simulator.run(self.simulator.now + duration)
        except RunFailed as error:
            self.fail([str(error)])
        self.audit()

    def fork(self, program: str) -> int:
        """Returns the PID; 0: no process slot is free."""
        if self.simulator.counts().processes >= PROCESSES - 8 or not self.act("fork", program):
            return 0
        return int(self.simulator.processes()["pid"].max())

    def kill(self, pid: int) -> None:
        if self.act("kill", pid):
            self.killed.setdefault(pid, self.simulator.now)

    def act(self, name: str, *arguments: object) -> bool:
        """Returns False if the act was refused."""
        try:
            getattr(self.simulator, name)(*arguments)
        except ActRefused:
            return False
        self.audit()
        return True

    def pids(self, *places: Place) -> list[int]:
        """Returns the processes in one of these places, without init and the first process."""
        rows = self.simulator.processes()
        others = ~np.isin(rows["program"], (0, INIT))
        matching_pids: list[int] = rows["pid"][others & np.isin(rows["place"], places)].tolist()
        return matching_pids

    # ---- invariants

    def audit(self) -> None:
        try:
            self.simulator.audit()
        except AuditFailed as error:
            self.fail([f"audit: {error}"])

    def check(self) -> None:
        """Ends the machine; no process is lost, and every invariant holds. Raises LawBroken."""
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
        violations = [
            *breaches(history, events),
            *self.lost(history, alive, forks),
            *self.overrun(history),
        ]
        if violations:
            self.fail(violations)
        self.close()

    def lost(self, history: History, alive: set[int], forks: int) -> list[str]:
        """Each process that was forked lives or has ended."""
        wrong = history.alive ^ alive
        problems = [f"lost or doubled: pid {pid}" for pid in sorted(wrong)]
        if len(history.attributes) != forks:
            problems.append(
                f"{forks} forks are counted, and the trace has {len(history.attributes)}"
            )
        return problems

    def overrun(self, history: History) -> list[str]:
        """A killed process runs until the next tick at most."""
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
        """Calls check(), unless the case has failed already."""
        if not self.failed:
            self.check()

    def close(self) -> None:
        self.simulator.close()
        self.folder.cleanup()

    def fail(self, violations: list[str]) -> None:
        """Reports the failure."""
        self.failed = True
        raise LawBroken(
            "\n".join([*violations[:FAILURES_SHOWN_MAX], "", self.text, str(self.setup)])
        )
