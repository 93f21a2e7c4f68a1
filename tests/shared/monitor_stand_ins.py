# SPDX-License-Identifier: MIT
"""Stand-ins for watched systems that need no machine. Each plays a simulated trace by a given
clock, or by the host's, and records the requests that it receives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from conftest import ROOT
from page_waits import PATIENCE_S
from schedlab.base.toolchain.policies import Catalogue, Policy, PolicyChoice, Preset, Tunable
from schedlab.monitor.session import Session
from schedlab.monitor.system import (
    Ability,
    Life,
    Records,
    Refused,
    Setup,
    Status,
    StatusRow,
    TunableState,
)
from schedlab.monitor.system_factory import SetupChoices
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.monitor.terminal_feed import TerminalScreen
from schedlab.trace.format import HEADER, RECORD, AttributeKind, Kind
from schedlab.trace.model import Header
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload
from schedlab_simulator import Simulator

CATALOGUE: Catalogue = {
    "rr": Policy(
        "rr", "in turn", "ours", 0, tunables={"slice": Tunable("slice", "ticks", 1, 1, 1000)}
    ),
    "lottery": Policy(
        "lottery",
        "by chance",
        "ours",
        1,
        "tickets",
        presets={"thesis": Preset("thesis", "as there", {}, "tickets")},
    ),
}
SECOND = 1_000_000_000


def choices() -> SetupChoices:
    return SetupChoices(CATALOGUE)


@cache
def recorded(
    workload: str = "study4-mixed", cpus: int = 2, policy: str = "rr", queues: bool = False
) -> tuple[Header, Records]:
    """Returns a whole trace in the order of its records."""
    file = workload_files.read_workload_file(ROOT / "workloads" / "files" / f"{workload}.json")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.bin"
        with Simulator(
            format_workload(file, 1, 1_000_000),
            policy=policy,
            cpus=cpus,
            tick_ns=1_000_000,
            trace=path,
        ) as machine:
            machine.run()
        data = path.read_bytes()
    fields = np.frombuffer(data, HEADER, 1)[0]
    records = np.frombuffer(data, RECORD, offset=int(fields["header_bytes"]))
    header = Header(cpus, int(fields["tick_ns"]), int(fields["cycles_per_second"]), 1)
    return header, records[np.argsort(records["sequence"])].copy()


class StandIn(PlayedSystem):
    """Plays a trace: at the given speed, or, if not `played`, as fast as the host's time."""

    header: Header | None = None
    monitor_pids: frozenset[int] = frozenset()
    why_no_branches = "it is a stand-in"
    status_period_s = 0.1

    def __init__(
        self,
        setup: Setup,
        folder: Path,
        trace: tuple[Header, Records] | None = None,
        played: bool = True,
    ) -> None:
        super().__init__(setup, folder)
        self.abilities = frozenset(Ability) - (set() if played else {Ability.PACE})
        self.repeatable = played
        self.header, self.records = trace or recorded(cpus=setup.cpus)
        self.monitor_pids = frozenset({1})
        self.record_cost_ns = 100.0
        self.commands: list[str] = []
        self.ended = 0
        self.slowness = 1.0
        """The fraction of the requested time that it advances."""
        self.broken: Exception | None = None
        """The error found in its trace."""
        self._taken = 0
        self._since: float | None = None
        self.end_ns = int(self.records["time"].max())
        self._log: list[str] = ["it begins"]

    async def begin(self) -> None:
        self.life = Life.RUNNING
        if Ability.PACE not in self.abilities:
            self._since = time.monotonic()

    async def end(self) -> None:
        self.ended += 1
        if self.life is not Life.FAILED:
            self.life = Life.ENDED
        await super().pause()

    # --- its output

    def take_records(self) -> Records:
        if self.broken:
            raise self.broken
        upto = int(np.searchsorted(self._latest, self.now_ns, side="right"))
        upto = max(upto, self._taken)
        # A text is complete.
        while upto < len(self.records) and self.records["kind"][upto] == Kind.TEXT:
            upto += 1
        records = self.records[self._taken : upto]
        self._taken = upto
        if upto == len(self.records) and self.life is Life.RUNNING:
            self.life = Life.ENDED
        return records

    @property
    def _latest(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return np.maximum.accumulate(self.records["time"])

    def take_log(self) -> list[str]:
        log, self._log = self._log, []
        return log

    def say(self, line: str) -> None:
        self._log.append(line)

    async def read_status(self) -> Status:
        self.commands.append("status")
        return Status("rr", {"slice": 2}, (StatusRow("init", 1, "blocked", 5, None, 1),), "")

    async def read_tunables(self) -> tuple[TunableState, ...]:
        return (TunableState("slice", 2, 1, 1000, 1, "ticks"),)

    # --- its input

    async def set_policy(self, policy: str) -> None:
        self.commands.append(f"policy {policy}")

    async def set_tunable(self, name: str, value: int) -> None:
        if name != "slice":
            raise Refused(f"there is no tunable {name}")
        self.commands.append(f"tunable {name}={value}")

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        self.commands.append(f"{kind.name.lower()} {pid} {value}")

    async def start_workload(self, name: str) -> int:
        self.commands.append(f"start {name}")
        return 77

    async def kill(self, pid: int) -> None:
        if pid == 404:
            raise Refused("no process 404")
        self.commands.append(f"kill {pid}")

    async def pause(self) -> None:
        self.commands.append("pause")
        await super().pause()
        self._position_ns, self._since = self.now_ns, None

    async def resume(self) -> None:
        self.commands.append("resume")
        if Ability.PACE in self.abilities:
            await super().resume()
        else:
            self._since = time.monotonic()

    # --- its clock

    @property
    def now_ns(self) -> int:
        if self._since is None:
            return self._position_ns
        return self._position_ns + int((time.monotonic() - self._since) * SECOND * self.slowness)

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        ahead = max(until_ns - self._position_ns, 0)
        self._position_ns += int(ahead * self.slowness)
        await asyncio.sleep(0)


Make = Callable[[Setup, Path], StandIn]


class Watching:
    """Watches a session and keeps all frames."""

    def __init__(self, session: Session) -> None:
        self.frames: list[dict[str, object]] = []
        self.changes = 0
        self.screen = TerminalScreen(session, self.show, self.changed)

    def show(self, frames: Sequence[object]) -> None:
        self.frames += frames  # type: ignore[arg-type]

    def changed(self) -> None:
        self.changes += 1

    def last(self, system: str = "a") -> dict[str, object]:
        return next(frame for frame in reversed(self.frames) if frame["system"] == system)


def setup(policy: str = "rr", cpus: int = 2, **others: object) -> Setup:
    name, _, preset = policy.partition(":")
    return Setup("sim", PolicyChoice(name, preset), cpus=cpus, tick_ns=1_000_000, **others)  # type: ignore[arg-type]


async def until(what: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Waits for a condition, with a limit for a busy host."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not come to be"
        await asyncio.sleep(0.005)
