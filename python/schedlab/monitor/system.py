# SPDX-License-Identifier: MIT
"""The interface between the monitor and a system: a trace, a state and control commands."""

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
"""Records of dtype schedlab.trace.format.RECORD in sequence order."""


class Refused(SchedlabError):
    """A system rejected a command and continues unchanged. The message gives the reason."""


class Ability(str, Enum):
    """Kinds of commands that a system supports; the page offers only these."""

    POLICY = "policy"
    """set_policy, set_tunable."""
    ATTRIBUTES = "attributes"
    START = "start"
    """start_workload, kill."""
    PAUSE = "pause"
    PACE = "pace"
    """The monitor drives the system's clock, at any speed (Played)."""
    SETUP = "setup"
    """The system can be restarted with another setup, such as more CPUs."""


class Life(str, Enum):
    """The life cycle of a system."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    """The system ended normally or on request."""
    FAILED = "failed"
    """The system panicked, was killed, or cannot be reached any more."""


@dataclass(frozen=True)
class Setup:
    """The setup of a system. For recordings and hosts, only `label`, `machine` and `source` apply."""

    machine: str
    """qemu, spike, sim, linux, host, or recorded."""
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...] = ()
    cpus: int = 2
    tick_ns: int = 10_000_000
    seed: int = 1
    memory_mib: int = 512
    costs: str = "kernel"
    """Cost file of the simulator."""
    workloads: tuple[str, ...] = ()
    """Palette workloads that start at the beginning."""
    source: Path | None = None
    """Folder of the recorded run, or the trace that a host's server writes."""
    files: tuple[Path, ...] = ()
    """The user's workload files, which the palette lists with the built-in workloads."""
    title: str = ""
    """Title of a recording; empty means its folder's name."""
    ignore_limits: bool = False
    """On a host, loads policies even if processes use limits that the policies ignore."""


@dataclass(frozen=True)
class StatusRow:
    """A line of sched_status."""

    name: str
    pid: int
    state: str
    priority: int
    """The weight, under a policy that shares by weight."""
    slice_ns: int | None
    """None if unlimited or not known yet."""
    tickets: int


@dataclass(frozen=True)
class Status:
    """The output of sched_status."""

    policy: str
    """name or name:preset."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Tunables that differ from the defaults of the policy or preset."""
    rows: tuple[StatusRow, ...] = ()
    remark: str = ""
    """A note, such as why Linux unloaded a policy."""


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
    """A system that the monitor watches. All its state belongs to one asyncio loop.

    An adapter must not block that loop for more than a few milliseconds. Commands raise Refused.
    """

    setup: Setup
    abilities: frozenset[Ability]
    repeatable: bool
    folder: Path
    """The system's scratch folder; `end` does not delete it."""

    @property
    def life(self) -> Life: ...

    @property
    def message(self) -> str:
        """Why the system ended or failed, with its last output; empty while it runs."""
        ...

    @property
    def no_branches(self) -> str:
        """Why branches of this system cannot be computed; empty if they can."""
        ...

    @property
    def header(self) -> Header | None:
        """The header of the trace, or None before it arrives."""
        ...

    @property
    def monitor_pids(self) -> frozenset[int]:
        """PIDs that belong to the monitor and not to a workload."""
        ...

    @property
    def record_cost_ns(self) -> float:
        """CPU time (ns) that one trace record costs; 0 if none or unknown."""
        ...

    async def begin(self) -> None:
        """Starts the system and returns when its trace flows.

        Raises SchedlabError if the system cannot be started; no process remains then.
        """
        ...

    async def end(self) -> None:
        """Ends the system and all its processes, by force if necessary. May be called again."""
        ...

    def take(self) -> Records:
        """Returns new records since the last call: in order, complete, no text split.

        Must be cheap.
        """
        ...

    def take_log(self) -> list[str]:
        """Returns new console lines, without commands and their answers."""
        ...

    async def read_status(self) -> Status: ...

    async def read_tunables(self) -> tuple[TunableNow, ...]: ...

    async def set_policy(self, policy: str) -> None: ...

    async def set_tunable(self, name: str, value: int) -> None: ...

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None: ...

    async def start_workload(self, name: str) -> int:
        """Starts a workload of the palette (palette.py) and returns the PID of its first process."""
        ...

    async def kill(self, pid: int) -> None: ...

    async def pause(self) -> None:
        """Stops the system's time without losing records."""
        ...

    async def resume(self) -> None: ...


class Played(System, Protocol):
    """A system whose clock the monitor drives: a simulated machine or a recording."""

    speed: float
    """System time per host time; 0 means as fast as possible."""

    @property
    def now_ns(self) -> int:
        """The time (ns) up to which the system has run and its trace was read."""
        ...

    @property
    def end_ns(self) -> int | None:
        """The end (ns) of a recording; None if unknown."""
        ...

    async def play_by_itself(self) -> None:
        """Runs the system by the host's clock, from its beginning."""
        ...

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Advances to a time (ns), for at most `timeout_s` seconds."""
        ...

    def is_past(self, acts: Sequence[str]) -> bool:
        """Returns whether exactly these actions were performed, up to the current time."""
        ...

    def expect(self, acts: Sequence[str]) -> None:
        """Queues actions for their times."""
        ...
