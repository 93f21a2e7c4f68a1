# SPDX-License-Identifier: MIT
"""What a machine is asked to carry out. It knows no machine: what depends on one is its adapter's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from schedlab.machines.folder import SHAPE_FILE, WORKLOAD_FILE, WORKLOAD_TEXT
from schedlab.shapes.model import Shape
from schedlab.toolchain.policies import PolicyChoice
from schedlab.workload.changes import Change, changes_text
from schedlab.workload.costs import KERNEL, Costs
from schedlab.workload.delays import Delay
from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import text_of

_SETTINGS_NAME_MAX = 80
_SAFE_NAME = re.compile(rf"[A-Za-z0-9_.,=+-]{{0,{_SETTINGS_NAME_MAX}}}")


class Replay(Protocol):
    """A recording, as far as a machine that acts it out must know it."""

    @property
    def sha256(self) -> str:
        """The hash of what was recorded."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts for the run's manifest."""
        ...

    def processes(self) -> int:
        """The number of processes for which there must be room."""
        ...

    def text(self, seed: int, tick_ns: int) -> str:
        """What is acted out, in the simulator's form."""
        ...


@dataclass(frozen=True)
class Run:
    """One start of one machine."""

    workload: str
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...]
    cpus: int
    machine: str
    seed: int
    tick_ns: int
    limit_ns: int
    memory_mib: int
    label: str = ""
    """A name for the workload, where those of a plan differ in it."""
    file: WorkloadFile | None = field(default=None, compare=False, repr=False)
    """What the workload says, if it is a file. None: it is a command of the kernel."""
    costs: Costs = KERNEL
    """What things take, in the simulator."""
    delays: tuple[Delay, ...] = ()
    """Operations that take longer than they do, on our kernel and in the simulator."""
    changes: tuple[Change, ...] = ()
    """Values that the workload file is given instead of its own; those of `file`."""
    shape: Shape | None = None
    """The shape of the machine. None: all CPUs are alike."""
    ignore_limits: bool = False
    """A policy takes over although nice values or control groups share out CPU time on this machine."""
    replay: Replay | None = field(default=None, compare=False, repr=False)
    """What the simulator replays, instead of a workload file."""

    @property
    def name(self) -> str:
        """The name of its folder: what distinguishes it from the other runs of its plan."""
        policy = str(self.policy).replace(":", "-")
        parts = [
            self.label or self._changes_name(),
            policy,
            self._settings_name(),
            f"{self.cpus}cpu",
            f"seed{self.seed}",
        ]
        return "-".join(part for part in parts if part)

    def _settings_name(self) -> str:
        """The settings themselves, or a number for many of them: a name has at most 255 bytes."""
        text = self.settings_text
        return text if len(text) <= _SETTINGS_NAME_MAX else _number("set", text)

    def _changes_name(self) -> str:
        """The same of the workload file's, where a name can hold them."""
        text = changes_text(self.changes).replace(" ", ",")
        return text if _SAFE_NAME.fullmatch(text) else _number("with", text)

    @property
    def settings_text(self) -> str:
        """`slice=5,table_scan=1`."""
        return ",".join(f"{name}={value}" for name, value in self.settings)

    @property
    def title(self) -> str:
        """The title in tables and progress."""
        policy = " ".join(part for part in (str(self.policy), self.settings_text) if part)
        title = f"{policy}, {self.cpus} CPU{'s' if self.cpus > 1 else ''}"
        return f"{self.label}, {title}" if self.label else title

    @property
    def workload_title(self) -> str:
        """The workload's name, with what is changed in its file."""
        changed = changes_text(self.changes)
        return f"{self.workload} with {changed}" if changed else self.workload

    @property
    def given(self) -> WorkloadFile | Replay | None:
        """Returns what is acted out, or None if the workload is a command."""
        return self.replay or self.file

    def files(self) -> dict[str, str]:
        """Texts that must be in the run's folder before it begins, by name."""
        own = {WORKLOAD_FILE: self.file.source} if self.file else {}
        if self.shape:
            own[SHAPE_FILE] = self.shape.source
        if self.replay:
            own[WORKLOAD_TEXT] = self.replay.text(self.seed, self.tick_ns)
        elif self.file:
            own[WORKLOAD_TEXT] = text_of(self.file, self.seed, self.tick_ns, self.cpus)
        return own


def _number(word: str, text: str) -> str:
    """A number for a text that is too long for a name."""
    return f"{word}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
