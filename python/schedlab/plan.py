# SPDX-License-Identifier: MIT
"""What is to be run: every policy on every number of CPUs, repeated with other seeds."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from schedlab.costs import KERNEL, Costs
from schedlab.errors import WrongUsage
from schedlab.loading import COMMAND, check_room
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.base import TRACE_FILE
from schedlab.policies import PolicyChoice
from schedlab.recording import Recording
from schedlab.units import format_time
from schedlab.workload_changes import Change, changes_text
from schedlab.workload_model import WorkloadFile

MEMORY_MIB = (32, 65536)
TICK_NS = (100_000, 1_000_000_000)
BOOT_ARGUMENTS_MAX = 1023
"""Bytes; kernel/device/device_tree.h."""
_SETTINGS_NAME_MAX = 80
_SAFE_NAME = re.compile(rf"[A-Za-z0-9_.,=+-]{{0,{_SETTINGS_NAME_MAX}}}")
WORKLOAD_TEXT = "workload.txt"
"""What a run of a workload file acts out, in its folder."""


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
        """Is it a workload file that our kernel's program `play` acts out?"""
        return self.file is not None and self.machine != SIMULATOR

    def boot_arguments(self) -> str:
        """What the kernel, or the simulator, is told. Nothing of the host is in it: no path, no date.

        With them a simulated run can be repeated by hand, in its folder.
        """
        given = self.simulated
        return self._simulator_options(given) if given else self._kernel_arguments()

    def files(self) -> dict[str, str]:
        """Texts that must be in the run's folder before it begins, by name."""
        given = self.replay or self.file
        return {WORKLOAD_TEXT: given.text(self.seed, self.tick_ns)} if given else {}

    @property
    def simulated(self) -> WorkloadFile | Recording | None:
        """What the simulator runs. None: the machine is another one."""
        return None if self.is_loaded else self.replay or self.file

    def _simulator_options(self, file: WorkloadFile | Recording) -> str:
        options = {
            "policy": self.policy,
            "cpus": self.cpus,
            "processes": file.processes(),
            "seed": self.seed,
            "tick": self.tick_ns,
            "limit": self.limit_ns,
            "costs": self.costs.text,
            "trace": TRACE_FILE,
        }
        if self.settings:
            options["set"] = self.settings_text
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return shlex.join([*words, WORKLOAD_TEXT])

    def _kernel_arguments(self) -> str:
        words = [
            f"policy={self.policy}",
            f"tick={format_time(self.tick_ns)}",
            f"seed={self.seed}",
            f"limit={format_time(self.limit_ns)}",
            f"trace={TRACE_FILE}",
        ]
        if self.settings:
            words.append(f"set={self.settings_text}")
        words.append(f'run="{COMMAND if self.is_loaded else self.workload}"')
        return " ".join(words)


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
    """It must be what its machine runs, and pass through the boot arguments as it is."""
    workload = run.workload
    if run.is_loaded and run.file:
        check_room(workload, run.file, run.memory_mib)
        return
    if run.simulated:
        return
    if run.machine == SIMULATOR:
        raise WrongUsage(
            f"--workload {workload!r}: --machine {SIMULATOR} runs workload files, such as"
            " workloads/files/timing-cpu-heavy.json; programs run on spike and qemu"
        )
    if not workload.strip():
        raise WrongUsage(
            "--workload: name a program of the guest, such as mixed or 'cpu-bound -n 10'"
        )
    if not workload.isascii() or not workload.isprintable() or '"' in workload:
        raise WrongUsage(
            f'--workload {workload!r}: only printable ASCII characters without " can be passed on'
        )
    length = len(run.boot_arguments())
    if length > BOOT_ARGUMENTS_MAX:
        raise WrongUsage(
            f"--workload: the command is {length - BOOT_ARGUMENTS_MAX} characters too long to be"
            " passed to the kernel"
        )


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
