# SPDX-License-Identifier: MIT
"""Defines machines (Machine), and the specification of a run (RunSpec), stored in its manifest."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import (
    BINARY_WORKLOAD_FILE,
    SHAPE_FILE,
    WORKLOAD_FILE,
    WORKLOAD_TEXT_FILE,
)
from schedlab.machines.outcome import Outcome
from schedlab.workload import costs as profiles
from schedlab.workload import workload_files
from schedlab.workload.binary_steps import encode_workload_text
from schedlab.workload.changes import Change, changes_text
from schedlab.workload.costs import KERNEL_COSTS, Costs
from schedlab.workload.delays import Delay, delays_text, parse_delays
from schedlab.workload.model import DEFAULT_LIMIT_NS, WorkloadFile
from schedlab.workload.shapes import reading as shapes
from schedlab.workload.shapes.model import Shape
from schedlab.workload.text import count_lines, encode_workload

BuiltParts = Mapping[str, Path]
"""Files that runs start from, by the names of schedlab.runs.parts."""


@dataclass(frozen=True)
class Release:
    """The machine's program and its version."""

    path: str
    version: str
    origin: str  # where the program comes from, in words


class Machine(Protocol):
    """An emulated or simulated computer; each run is one process of the host."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    name: str
    repeatable: bool
    """True if the same run gives the same trace, byte for byte."""
    parts: tuple[str, ...]
    """Files that runs start from, by their names in schedlab.runs.parts; the first is the program to run."""
    tools: tuple[str, ...]
    """Further parts, which workload files need."""
    needs: tuple[str, ...]
    """System programs that it needs, by their names in schedlab.base.toolchain.needs."""
    cpus_max: int
    tick_ns: int
    memory_mib: int
    """Default memory size; the previous two fields are the most CPUs and the default tick length."""

    @property
    def note(self) -> str:
        """A note for tables about all its runs; may be empty."""
        ...

    @property
    def shape_note(self) -> str:
        """A warning for users who choose a shape; empty if the machine implements shapes completely."""
        ...

    @property
    def programs(self) -> frozenset[str] | None:
        """The available programs; None if there may be unknown ones."""
        ...

    def check(self, run: RunSpec) -> None:
        """Raises WrongUsage if the machine cannot perform the run."""
        ...

    def arguments(self, run: RunSpec) -> str:
        """Returns the machine's arguments, which contain nothing of the host, such as a path or a date."""
        ...

    def release(self) -> Release:
        """Returns the machine's program; installs it if necessary.

        Raises MachineUnfit with the reason if that is impossible.
        """
        ...

    def prepare_command(
        self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path
    ) -> list[str]:
        """Returns the command of a run, which will be executed in the run's folder.

        Further files may be made in `scratch`, which exists until the run has ended.
        """
        ...

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        """Returns the outcome of a run from its exit status (negative for a signal) and its files.

        Afterwards, `folder` has the trace, if there is one, and `console` all output. `scratch`:
        the folder passed to `prepare_command`.
        """
        ...

    def host_cpus(self, cpus: int) -> int:
        """Returns the number of host CPUs that a run keeps busy."""
        ...

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        """Returns after how many host seconds a run is considered hung.

        The machine should end by itself after `limit_ns` of machine time.
        """
        ...


@runtime_checkable
class Batching(Protocol):
    """A machine that can perform many runs in one process of the host."""

    def batch_command(self, parts: BuiltParts) -> list[str]:
        """Returns the command of the process, which reads the arguments of runs (sim/main.c)."""
        ...

    def batch_words(self, run: RunSpec) -> list[str] | None:
        """Returns the arguments of a run, or None if the run needs a separate process."""
        ...

    def batch_outcome(self, status: int) -> Outcome | None:
        """Returns the outcome of a run from its exit status; None if it must be repeated alone."""
        ...


@runtime_checkable
class Branching(Protocol):
    """A machine that can fork a run at some time, and continue it as several branches."""

    def branched(
        self, command: list[str], at_ns: int, folders: Mapping[Path, str], jobs: int
    ) -> list[str]:
        """Extends the command of `start`, so that the machine branches at the time `at_ns`.

        `folders`: for each branch, its folder and the commands that its kernel receives. `jobs`:
        how many branches run in parallel. Afterwards, each folder has a console and a trace.
        """
        ...

    def branch_status(self, folder: Path) -> int | None:
        """Returns a branch's exit status, or None if it did not end by itself.

        Deletes the files that controlled the branch.
        """
        ...


_machines: dict[str, Machine] = {}


def register(*machines: Machine) -> None:
    """Registers machines by name; the package registers all adapters when it is imported."""
    _machines.update((machine.name, machine) for machine in machines)


def machine_named(name: str) -> Machine:
    """Returns a machine by name. Raises WrongUsage if there is none."""
    if name not in _machines:
        names = ", ".join(_machines)
        raise WrongUsage(
            "unknown machine", what=format_parameter("machine", name), fix=f"choose from {names}"
        )
    return _machines[name]


_SAFE_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.,=+-]{0,79})?")
"""A valid part of a run folder's name; the complete name has at most 255 bytes."""


@dataclass(frozen=True)
class Replay:
    """What recorded processes demanded; the simulator replays it instead of a workload file."""

    sha256: str
    """Hash of the recorded trace or traces."""
    facts: Mapping[str, Any] = field(hash=False)
    """Facts about the recording, for the manifest."""
    source: str = field(repr=False, hash=False)
    """The demand in the simulator's text format (docs/simulator.md)."""
    processes_max: int
    """Maximum number of processes at one time."""

    def processes(self) -> int:
        """Number of process slots that the simulator needs."""
        return self.processes_max


@dataclass(frozen=True)
class Branch:
    """Where a branch begins: the run that it continues, the time, and the changes at that time."""

    run: str
    """Folder name of the run that the branch continues."""
    trace_sha256: str
    at_ns: int
    policy: PolicyChoice
    """The run's policy before the branch. `settings` and `seed` also have the values before it."""
    settings: tuple[tuple[str, int], ...]
    seed: int
    command_lines: tuple[str, ...]
    """Commands to the kernel, in the format of abi/machine_commands.h; empty if nothing changes."""
    title: str = ""
    """Description of the changes for users; empty if nothing changes."""

    @property
    def commands(self) -> str:
        """The commands as one text."""
        return "".join(f"{line}\n" for line in self.command_lines)

    def manifest(self) -> dict[str, Any]:
        """Returns the manifest's entries about a branch."""
        return {
            **({"branch": self.title} if self.title else {}),
            "branch_of": {
                "run": self.run,
                "trace_sha256": self.trace_sha256,
                "at_ns": self.at_ns,
                "policy": str(self.policy),
                "tunables": dict(self.settings),
                "seed": self.seed,
                "told": list(self.command_lines),
            },
        }


_SHORT_LINES = 10_000
"""Length of the longest workload that is kept for further runs."""


@dataclass(frozen=True, eq=False)
class _SameFile:
    """A workload file that equals only itself, which is faster to find out."""

    file: WorkloadFile

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameFile) and self.file is other.file

    def __hash__(self) -> int:
        return id(self.file)


@lru_cache(maxsize=32)
def _is_short(same: _SameFile) -> bool:
    return count_lines(same.file) <= _SHORT_LINES


@lru_cache(maxsize=32)
def _encode_short_workload(same: _SameFile, seed: int, tick_ns: int, cpus: int) -> bytes:
    """Returns a short workload. Runs of one seed under several policies have the same."""
    return encode_workload(same.file, seed, tick_ns, cpus)


@dataclass(frozen=True)
class RunSpec:
    """The complete specification of a run: workload, policy, machine and parameters."""

    workload: str
    """A command of the kernel, or the name of the workload file."""
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...]
    cpus: int
    machine: Machine
    seed: int
    tick_ns: int
    limit_ns: int
    memory_mib: int
    label: str = ""
    """Name of the workload for users, in plans with several workloads."""
    file: WorkloadFile | None = field(default=None, hash=False, repr=False)
    """The workload file; None if the workload is a command of the kernel."""
    costs: Costs = KERNEL_COSTS
    """Costs of operations in the simulator."""
    delays: tuple[Delay, ...] = ()
    """Additional durations of operations, in the kernel and in the simulator."""
    arguments: str = ""
    """Additional boot arguments of the kernel given by the user, such as `recheck=1`."""
    changes: tuple[Change, ...] = ()
    """Changed values of the workload file. They are already applied to `file`."""
    shape: Shape | None = None
    """The machine's shape; None if all CPUs are equal."""
    ignore_limits: bool = False
    """True to load a policy even if processes use nice values or control groups, which it ignores."""
    replay: Replay | None = field(default=None, repr=False)
    """The replay that replaces a workload file."""
    ends_at_limit: bool = field(default=False, repr=False, compare=False)
    """True if the run is complete at its limit: a replay of a whole machine, some of whose tasks never exit."""
    branch: Branch | None = None
    """The run that this run continues; None if it starts at time 0."""

    @property
    def name(self) -> str:
        """Name of the run's folder, which is unique in its plan."""
        policy = str(self.policy).replace(":", "-")
        changes = changes_text(self.changes).replace(" ", ",")
        name_parts = [
            _safe_text("label", self.label) or _safe_text("with", changes),
            _safe_text(_scheduler_stem(policy), policy),
            _safe_text("set", self.settings_text),
            f"{self.cpus}cpu",
            f"seed{self.seed}",
        ]
        return "-".join(part for part in name_parts if part)

    @property
    def settings_text(self) -> str:
        """Parameters as `slice=5,table_scan=1`."""
        return ",".join(f"{name}={value}" for name, value in self.settings)

    @property
    def title(self) -> str:
        """Title in tables and progress messages."""
        policy = " ".join(part for part in (str(self.policy), self.settings_text) if part)
        title = f"{policy}, {self.cpus} CPU{'s' if self.cpus > 1 else ''}"
        return f"{self.label}, {title}" if self.label else title

    @property
    def workload_title(self) -> str:
        """The workload's name with the changes to its file."""
        changed = changes_text(self.changes)
        return f"{self.workload} with {changed}" if changed else self.workload

    @property
    def workload_or_replay(self) -> WorkloadFile | Replay | None:
        """The replay or workload file, or None if the workload is a command."""
        return self.replay or self.file

    def files(self) -> dict[str, str]:
        """Returns the texts of files in the run's folder, by file name."""
        run_files = {WORKLOAD_FILE: self.file.source} if self.file else {}
        if self.shape:
            run_files[SHAPE_FILE] = self.shape.source
        if self.replay:
            run_files[WORKLOAD_TEXT_FILE] = self.replay.source
        return run_files

    def played(self) -> bytes | None:
        """Returns the workload in the binary format of abi/workload_file.h, or None for a command."""
        if self.replay:
            return encode_workload_text(self.replay.source, self.tick_ns, WORKLOAD_TEXT_FILE)
        if not self.file:
            return None
        if not _is_short(_SameFile(self.file)):
            return encode_workload(self.file, self.seed, self.tick_ns, self.cpus)
        # Without a load, the gaps are the same on any number of CPUs.
        cpus = self.cpus if self.file.load else 1
        return _encode_short_workload(_SameFile(self.file), self.seed, self.tick_ns, cpus)

    def write_files(self, folder: Path) -> None:
        """Writes the files that a run's folder needs at the start."""
        for name, text in self.files().items():
            (folder / name).write_text(text)
        if (played := self.played()) is not None:
            (folder / BINARY_WORKLOAD_FILE).write_bytes(played)

    @property
    def past(self) -> RunSpec:
        """For a branch: the specification of the run that it continues."""
        if not self.branch:
            return self
        branch = self.branch
        return replace(
            self, policy=branch.policy, settings=branch.settings, seed=branch.seed, branch=None
        )

    def manifest(self) -> dict[str, Any]:
        """Returns the specification as JSON values.

        `files` maps file names to texts. In a run's folder, these are separate files next to
        manifest.json.
        """
        workload_or_replay = self.workload_or_replay
        files = self.files()
        return {
            "label": self.label,
            "workload": self.workload,
            **({"workload_sha256": workload_or_replay.sha256} if workload_or_replay else {}),
            **({"costs": self.costs.name} if workload_or_replay else {}),
            **(
                {"costs_text": self.costs.text}
                if workload_or_replay and self.costs.name != self.costs.text
                else {}
            ),
            **({"replay_of": dict(self.replay.facts)} if self.replay else {}),
            **({"processes": self.replay.processes_max} if self.replay else {}),
            **({"with": dict(self.changes)} if self.changes else {}),
            **({"delays": delays_text(self.delays)} if self.delays else {}),
            **({"arguments": self.arguments} if self.arguments else {}),
            **({"shape": self.shape.name} if self.shape else {}),
            **({"ignore_limits": True} if self.ignore_limits else {}),
            "policy": str(self.policy),
            "tunables": dict(self.settings),
            "cpus": self.cpus,
            "seed": self.seed,
            "tick_ns": self.tick_ns,
            "limit_ns": self.limit_ns,
            "memory_mib": self.memory_mib,
            "machine": self.machine.name,
            **(self.branch.manifest() if self.branch else {}),
            **({"files": files} if files else {}),
        }

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any], folder: Path | None = None) -> RunSpec:
        """Returns the specification in a manifest; also reads manifests of version 0.1.0.

        Values must have the types of schedlab.runs.results.MANIFEST_FIELDS. `folder`: has the files that are
        not in the manifest, which cannot refer to other files. Raises WrongUsage if a file is
        missing or a value is invalid.
        """
        try:
            return _parse_spec(manifest, manifest.get("files") or _read_stored_files(folder))
        except ValueError as error:
            raise WrongUsage(
                f"{folder or 'manifest'}: invalid manifest: {error}; {_COPY_FIX}"
            ) from None


_COPY_FIX = "copy the run's complete folder again"


def _read_stored_files(folder: Path | None) -> dict[str, str]:
    names = (WORKLOAD_FILE, SHAPE_FILE, WORKLOAD_TEXT_FILE)
    return {
        name: read_text(folder / name) for name in names if folder and (folder / name).is_file()
    }


def _parse_spec(manifest: Mapping[str, Any], files: Mapping[str, str]) -> RunSpec:
    """Raises ValueError for invalid values, and WrongUsage for invalid files."""
    changes = tuple((manifest.get("with") or {}).items())
    replay = _parse_replay(manifest, files)
    file = None
    if WORKLOAD_FILE in files and not replay:
        file = workload_files.parse_workload_text(
            files[WORKLOAD_FILE], Path(WORKLOAD_FILE), changes
        )
    elif workload_files.is_workload_file(manifest["workload"]) and not replay:
        raise WrongUsage(f"workload: the copy of {manifest['workload']!r} is missing; {_COPY_FIX}")
    return RunSpec(
        manifest["workload"],
        parse_choices(manifest["policy"])[0],
        tuple(manifest["tunables"].items()),
        manifest["cpus"],
        machine_named(manifest["machine"]),
        manifest["seed"],
        manifest["tick_ns"],
        manifest.get("limit_ns", DEFAULT_LIMIT_NS),
        manifest.get("memory_mib") or 0,
        label=manifest.get("label") or "",
        file=file,
        costs=_parse_costs(manifest) if file or replay else KERNEL_COSTS,
        delays=parse_delays(manifest.get("delays") or ""),
        arguments=manifest.get("arguments") or "",
        changes=changes,
        shape=_parse_shape(manifest, files),
        ignore_limits=bool(manifest.get("ignore_limits")),
        replay=replay,
        branch=_parse_branch(manifest),
    )


def _parse_shape(manifest: Mapping[str, Any], files: Mapping[str, str]) -> Shape | None:
    if "shape" not in manifest:
        return None
    if SHAPE_FILE not in files:
        raise WrongUsage(f"shape: the copy of {manifest['shape']!r} is missing; {_COPY_FIX}")
    return replace(
        shapes.parse_shape_text(files[SHAPE_FILE], Path(SHAPE_FILE)), name=manifest["shape"]
    )


def _parse_replay(manifest: Mapping[str, Any], files: Mapping[str, str]) -> Replay | None:
    if "replay_of" not in manifest:
        return None
    if WORKLOAD_TEXT_FILE not in files:
        raise WrongUsage(
            f"replay_of: {WORKLOAD_TEXT_FILE}, the replayed workload, is missing; {_COPY_FIX}"
        )
    if "workload_sha256" not in manifest:
        raise WrongUsage(
            f"workload_sha256: the hash of the replayed workload is missing; {_COPY_FIX}, or repeat the replay"
        )
    processes = manifest.get("processes") or _simulator_option(manifest, "processes")
    # manifests may come from strangers
    encode_workload_text(files[WORKLOAD_TEXT_FILE], manifest["tick_ns"], WORKLOAD_TEXT_FILE)
    return Replay(
        manifest["workload_sha256"],
        manifest["replay_of"],
        files[WORKLOAD_TEXT_FILE],
        int(processes),
    )


def _parse_branch(manifest: Mapping[str, Any]) -> Branch | None:
    if "branch_of" not in manifest:
        return None
    branch_members = manifest["branch_of"]
    for name in ("run", "trace_sha256", "seed"):
        if name not in branch_members:
            raise WrongUsage(f"branch_of: {name} is missing in the manifest; make the branch again")
    return Branch(
        branch_members["run"],
        branch_members["trace_sha256"],
        branch_members["at_ns"],
        parse_choices(branch_members["policy"])[0],
        tuple(branch_members["tunables"].items()),
        branch_members["seed"],
        tuple(branch_members["told"]),
        manifest.get("branch") or "",
    )


def _parse_costs(manifest: Mapping[str, Any]) -> Costs:
    """Returns the costs of a manifest; KERNEL_COSTS if it names none."""
    name = manifest.get("costs") or KERNEL_COSTS.name
    if name in profiles.BUILT_IN_PROFILES:
        return Costs(name, name)
    return Costs(
        name, profiles.check_costs_text(manifest.get("costs_text") or _parse_costs_0_1_0(manifest))
    )


def _parse_costs_0_1_0(manifest: Mapping[str, Any]) -> str:
    """Returns the costs in a manifest of version 0.1.0: an argument of the simulator, followed by delays."""
    text = _simulator_option(manifest, "costs")
    added = [
        f",{name}+={delay_ns}" for name, delay_ns in parse_delays(manifest.get("delays") or "")
    ]
    return text.removesuffix("".join(added))


def _simulator_option(manifest: Mapping[str, Any], option: str) -> str:
    """Returns the value of a simulator option. Raises ValueError if it is missing."""
    words = shlex.split(manifest.get("boot_arguments") or "")
    if f"--{option}" not in words[:-1]:
        raise ValueError(f"boot_arguments: unknown option --{option}")
    return words[words.index(f"--{option}") + 1]


def _scheduler_stem(policy: str) -> str:
    """Returns the beginning of the name of a policy that is an object's path, such as scx-fifo."""
    stem = f"scx-{Path(policy).name.partition('.')[0]}"
    return stem if _SAFE_NAME.fullmatch(stem) else "scx"


def _safe_text(word: str, text: str) -> str:
    """Returns `text` for a folder's name; if it is unsafe or long, `word` and a hash instead."""
    if _SAFE_NAME.fullmatch(text):
        return text
    return f"{word}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
