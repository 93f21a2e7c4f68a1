# SPDX-License-Identifier: MIT
"""What a system is to the rest of the monitor: something that runs, tells by its trace what it does,
and obeys the few commands that sched_status and sched_tunables know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import SchedlabError
from schedlab.trace.format import AttributeKind
from schedlab.trace.model import Header

Records = npt.NDArray[np.void]
"""Records of dtype schedlab.trace.format.RECORD, in the order of their sequence."""


class Refused(SchedlabError):
    """A system did not do what it was asked; it goes on as before. The message says why."""


class Ability(str, Enum):
    """What can be asked of a system; the page offers nothing else."""

    POLICY = "policy"
    """set_policy, set_tunable."""
    ATTRIBUTES = "attributes"
    START = "start"
    """start_workload, kill."""
    PAUSE = "pause"
    PACE = "pace"
    """Its clock is ours: any speed (Played)."""
    SETUP = "setup"
    """It can be started again with another setup, such as other CPUs."""


class Life(str, Enum):
    """How a system is."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    """It ended as it should, or because it was asked to."""
    FAILED = "failed"
    """It panicked, was killed, or cannot be reached any more."""


@dataclass(frozen=True)
class Setup:
    """What a system is started as. Of what is already there (a recording, a host), only `label`,
    `machine` and `source` mean anything."""

    machine: str
    """qemu, spike, sim, linux, host, or recorded."""
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...] = ()
    cpus: int = 2
    tick_ns: int = 10_000_000
    seed: int = 1
    memory_mib: int = 512
    costs: str = "kernel"
    """The simulator's costs."""
    workloads: tuple[str, ...] = ()
    """Names of the palette, started at the beginning."""
    source: Path | None = None
    """The folder of the recorded run; or the trace that a host's server writes."""
    files: tuple[Path, ...] = ()
    """Workload files of the user's own, which the palette has besides ours."""
    title: str = ""
    """What a recording is called; "": as its folder."""
    ignore_limits: bool = False
    """On a host, policies take over although limits are in use that they do not honour."""


@dataclass(frozen=True)
class StatusRow:
    """A line of sched_status."""

    name: str
    pid: int
    state: str
    priority: int
    """The weight, under a policy that shares by weight."""
    slice_ns: int | None
    """None: no limit, or not known yet."""
    tickets: int


@dataclass(frozen=True)
class Status:
    """What sched_status says."""

    policy: str
    """name or name:preset."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Tunables that were set to something else than the policy or preset says."""
    rows: tuple[StatusRow, ...] = ()
    remark: str = ""
    """A remark, such as why Linux has thrown a policy out."""


@dataclass(frozen=True)
class TunableNow:
    """A line of sched_tunables."""

    name: str
    value: int
    minimum: int
    maximum: int
    default: int
    meaning: str


class System(Protocol):
    """Something that is watched. All of it belongs to one asyncio loop.

    An adapter never blocks that loop for more than some milliseconds. Commands raise Refused.
    """

    setup: Setup
    abilities: frozenset[Ability]
    repeatable: bool
    folder: Path
    """Scratch space of its own; `end` leaves it there."""

    @property
    def life(self) -> Life: ...

    @property
    def message(self) -> str:
        """Why it has ended or failed, with the last that it said; "" while it runs."""
        ...

    @property
    def no_branches(self) -> str:
        """Why another future of a moment of it cannot be computed on the real kernel; "": it can."""
        ...

    @property
    def header(self) -> Header | None:
        """Returns the header of its trace, or None if it has not come yet."""
        ...

    @property
    def own_pids(self) -> frozenset[int]:
        """Processes that are there for the monitor's sake: no part of any workload."""
        ...

    @property
    def record_cost_ns(self) -> float:
        """What one record of the trace takes of a CPU's time; 0: nothing, or it is unknown."""
        ...

    async def begin(self) -> None:
        """Starts it, and gives back when its trace flows. SchedlabError: it cannot be started, and
        nothing is left running."""
        ...

    async def end(self) -> None:
        """Ends it and all that belongs to it, in order if it can, by force if not. Twice is once."""
        ...

    def take(self) -> Records:
        """Returns what its trace says beyond the last call: in order, none missing, texts whole. Cheap."""
        ...

    def take_log(self) -> list[str]:
        """Lines of its console beyond the last call, without what passes between it and us."""
        ...

    async def read_status(self) -> Status: ...

    async def read_tunables(self) -> tuple[TunableNow, ...]: ...

    async def set_policy(self, policy: str) -> None: ...

    async def set_tunable(self, name: str, value: int) -> None: ...

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None: ...

    async def start_workload(self, name: str) -> int:
        """Starts one of the palette (palette.py), and returns its first process's PID."""
        ...

    async def kill(self, pid: int) -> None: ...

    async def pause(self) -> None:
        """Has its time stand still; nothing is lost."""
        ...

    async def resume(self) -> None: ...


class Played(System, Protocol):
    """A system that has its clock from us: a simulated machine, or a recording."""

    speed: float
    """Compared with our time; 0: as fast as it goes."""

    @property
    def now_ns(self) -> int:
        """How far it has come, and its trace was taken."""
        ...

    @property
    def end_ns(self) -> int | None:
        """Where it ends, if that is known: a recording's."""
        ...

    async def play_by_itself(self) -> None:
        """Lets it go on by this host's clock, from its beginning."""
        ...

    async def advance(self, until_ns: int, patience_s: float) -> None:
        """Goes on to a time, or as far as it comes in that much of ours."""
        ...

    def is_past(self, acts: Sequence[str]) -> bool:
        """Has nothing been done to it but these acts, as far as their times have come?"""
        ...

    def expect(self, acts: Sequence[str]) -> None:
        """Takes acts that are to be done when their times come."""
        ...
