# SPDX-License-Identifier: MIT
"""What is to be run: every policy on every number of CPUs, repeated with other seeds."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from schedlab.costs import KERNEL, Costs
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.base import WORKLOAD_FILE, WORKLOAD_TEXT
from schedlab.policies import PolicyChoice
from schedlab.recording import Recording
from schedlab.workload_changes import Change, changes_text
from schedlab.workload_model import WorkloadFile

MEMORY_MIB = (32, 65536)
TICK_NS = (100_000, 1_000_000_000)
_SETTINGS_NAME_MAX = 80
_SAFE_NAME = re.compile(rf"[A-Za-z0-9_.,=+-]{{0,{_SETTINGS_NAME_MAX}}}")


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
    changes: tuple[Change, ...] = ()
    """Of the workload file: values that it is given beside its own; those of `file`."""
    replay: Recording | None = field(default=None, compare=False, repr=False)
    """What the simulator replays, instead of a workload file."""

    @property
    def name(self) -> str:
        """Of its folder: what tells it from the others of its plan."""
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
        """As they are, or a number for many of them: a name has at most 255 bytes."""
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
        """For tables and progress."""
        policy = " ".join(part for part in (str(self.policy), self.settings_text) if part)
        title = f"{policy}, {self.cpus} CPU{'s' if self.cpus > 1 else ''}"
        return f"{self.label}, {title}" if self.label else title

    @property
    def workload_title(self) -> str:
        """With what is changed in its file."""
        changed = changes_text(self.changes)
        return f"{self.workload} with {changed}" if changed else self.workload

    @property
    def is_loaded(self) -> bool:
        """Is it a workload file that the program `play` acts out, on a kernel?"""
        return self.file is not None and self.machine != SIMULATOR

    @property
    def given(self) -> WorkloadFile | Recording | None:
        """What is acted out; None: the workload is a command."""
        return self.replay or self.file

    def boot_arguments(self) -> str:
        """What the machine is told of the run. Nothing of the host is in it: no path, no date."""
        return machine_named(self.machine).arguments(self)

    def files(self) -> dict[str, str]:
        """Texts that must be in the run's folder before it begins, by name."""
        own = {WORKLOAD_FILE: self.file.source} if self.file else {}
        return own | (
            {WORKLOAD_TEXT: self.given.text(self.seed, self.tick_ns)} if self.given else {}
        )


def _number(word: str, text: str) -> str:
    """For a text that is too much for a name."""
    return f"{word}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Plan:
    """The runs of one command, and the folder that theirs go into."""

    folder: Path
    runs: tuple[Run, ...] = field(default=())

    def check(self) -> None:
        """Says what cannot be, before anything is written."""
        for run in self.runs:
            check_cpus(run)
            check_workload(run)

    def check_new(self) -> None:
        """None of its runs may be there."""
        for run in self.runs:
            if (self.folder / run.name).exists():
                raise WrongUsage(
                    f"--out {self.folder}: it holds a run called {run.name} already; name another"
                    " folder, or move that one away"
                )


def check_cpus(run: Run) -> None:
    """Each machine has a number of them that it can have."""
    most = machine_named(run.machine).cpus_max
    if run.cpus > most:
        cure = f"; --machine {SIMULATOR} has more" if run.machine != SIMULATOR else ""
        raise WrongUsage(f"--cpus {run.cpus}: only 1 to {most} are possible on {run.machine}{cure}")


def check_workload(run: Run) -> None:
    """It must be what its machine runs."""
    machine_named(run.machine).check(run)


def product(
    folder: Path,
    base: Run,
    policies: tuple[PolicyChoice, ...],
    cpus: tuple[int, ...],
    repeats: int,
) -> Plan:
    """All of `policies` × `cpus` × `repeats`; repeat k has seed `base.seed` + k."""
    runs = tuple(
        replace(base, policy=policy, cpus=number, seed=base.seed + repeat)
        for policy in policies
        for number in cpus
        for repeat in range(repeats)
    )
    return Plan(folder, runs)
