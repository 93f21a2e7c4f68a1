# SPDX-License-Identifier: MIT
"""The interface between the monitor and a system: a trace, a state and control commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NoReturn

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
    """Kinds of commands that a system supports. The page offers no others."""

    POLICY = "policy"
    """set_policy, set_tunable."""
    ATTRIBUTES = "attributes"
    START = "start"
    """start_workload, kill."""
    PAUSE = "pause"
    PACE = "pace"
    """The monitor drives the system's clock, at any speed (see PlayedSystem)."""
    SETUP = "setup"
    """The system can be restarted with another setup, such as more CPUs."""


class Life(str, Enum):
    """The life cycle of a system."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    """The system ended by itself, or at a user's request."""
    FAILED = "failed"
    """The system panicked, was killed, or does not respond any more."""


@dataclass(frozen=True)
class Setup:
    """What a system is started from.

    For recordings and hosts, only `label`, `machine` and `source` apply.
    """

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
    """Run folder of a recording; for a host, the trace file that a running policy server writes."""
    files: tuple[Path, ...] = ()
    """The user's workload files, which are offered together with the built-in workloads."""
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
    """A note about the whole machine, such as why Linux unloaded a policy."""


@dataclass(frozen=True)
class TunableState:
    """A line of sched_tunables."""

    name: str
    value: int
    minimum: int
    maximum: int
    default: int
    meaning: str


class System:
    """A system that the monitor watches; one adapter per machine derives from this class.

    All its state belongs to one asyncio loop, which an adapter must not block for more than a few
    milliseconds. Rejected commands raise Refused. A system without an ability rejects its commands.
    """

    abilities: frozenset[Ability] = frozenset()
    repeatable = False
    """True if the same commands at the same times give the same trace."""
    record_cost_ns = 0.0
    """CPU time (ns) that one trace record costs; 0 if none or unknown."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.folder = folder
        """Folder for the system's temporary files; `end` does not delete it."""
        self.life = Life.STARTING
        self.message = ""
        """Why the system ended or failed, with its last output; empty while it runs."""

    @property
    def why_no_branches(self) -> str:
        """Why branches of this system cannot be computed; empty if they can."""
        raise NotImplementedError

    @property
    def header(self) -> Header | None:
        """The trace's header, or None until it has arrived."""
        raise NotImplementedError

    @property
    def monitor_pids(self) -> frozenset[int]:
        """PIDs that belong to the monitor and not to a workload."""
        raise NotImplementedError

    async def begin(self) -> None:
        """Starts the system, and returns when its trace has begun.

        Raises SchedlabError if the system cannot be started; no process remains then.
        """
        raise NotImplementedError

    async def end(self) -> None:
        """Ends the system and all its processes, by force if necessary. May be called again."""
        raise NotImplementedError

    def take_records(self) -> Records:
        """Returns the trace records since the last call, in sequence order.

        Each text is complete. Must be cheap, because it is called several times a second.
        """
        raise NotImplementedError

    def take_log(self) -> list[str]:
        """Returns the console lines since the last call, without commands and their answers."""
        return []

    async def read_status(self) -> Status:
        self._refuse()

    async def read_tunables(self) -> tuple[TunableState, ...]:
        self._refuse()

    async def set_policy(self, policy: str) -> None:
        self._refuse()

    async def set_tunable(self, name: str, value: int) -> None:
        self._refuse()

    async def set_attribute(self, pid: int, kind: AttributeKind, value: int) -> None:
        self._refuse()

    async def start_workload(self, name: str) -> int:
        """Starts a workload by its palette name, and returns the PID of its first process."""
        self._refuse()

    async def kill(self, pid: int) -> None:
        self._refuse()

    async def pause(self) -> None:
        """Stops the system's time without losing records."""
        self._refuse()

    async def resume(self) -> None:
        """Continues the system's time."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Rejects a command that this kind of system does not have."""
        raise Refused(
            f"{self.setup.machine} does not have this command; start a system on the simulator"
        )
