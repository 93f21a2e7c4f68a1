# SPDX-License-Identifier: MIT
"""Interface of machines, and the specification of a run with its conversion to a manifest and back."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import WrongUsage, parameter
from schedlab.machines.folder import SHAPE_FILE, WORKLOAD_FILE, WORKLOAD_PLAYED, WORKLOAD_TEXT
from schedlab.machines.outcome import Outcome
from schedlab.workload import costs as profiles
from schedlab.workload import workload_files
from schedlab.workload.binary_steps import read_words
from schedlab.workload.changes import Change, changes_text
from schedlab.workload.costs import KERNEL, Costs
from schedlab.workload.delays import Delay, delays_of, delays_text
from schedlab.workload.model import STANDARD_LIMIT_NS, WorkloadFile
from schedlab.workload.shapes import reading as shapes
from schedlab.workload.shapes.model import Shape
from schedlab.workload.text import bytes_of

Parts = Mapping[str, Path]
"""Files that runs start from, by the names of schedlab.runs.parts."""


@dataclass(frozen=True)
class Release:
    """The machine's program and its version."""

    path: str
    version: str
    origin: str


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
    """Parts that it starts from, by the names of schedlab.runs.parts; the first is the program it runs."""
    tools: tuple[str, ...]
    """Additional parts for workload files."""
    needs: tuple[str, ...]
    """Programs of the system, by the names of schedlab.base.toolchain.needs."""
    cpus_max: int
    tick_ns: int
    memory_mib: int
    """Defaults of the machine."""

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
        """Returns the machine's arguments. They contain nothing of the host: no path, no date."""
        ...

    def release(self) -> Release:
        """Returns the machine's program, installed if necessary.

        Raises MachineUnfit with the reason.
        """
        ...

    def start(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> list[str]:
        """Returns the command of a run, which is started in the run's folder.

        Additional files are made in `scratch`, which exists until the run has ended.
        """
        ...

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        """Returns the outcome, from the exit status (negative for a signal) and the files.

        Afterwards the trace is in `folder`, if there is one, and all output in `console`. `scratch`
        is the folder passed to `start`.
        """
        ...

    def host_cpus(self, cpus: int) -> int:
        """Returns the number of host CPUs that a run keeps busy."""
        ...

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        """Returns the host seconds after which a run is considered hung.

        The machine should end by itself after `limit_ns` of simulated or guest time.
        """
        ...


@runtime_checkable
class Branching(Protocol):
    """A machine that can fork a run at a moment and continue it in several branches."""

    def branched(
        self, command: list[str], at_ns: int, folders: Mapping[Path, str], jobs: int
    ) -> list[str]:
        """Returns the command of `start`, extended to branch at `at_ns` into these folders, `jobs` in parallel.

        Each folder maps to the commands that its kernel receives at that moment. Afterwards each
        folder has a console and a trace; `branch_status` returns its status.
        """
        ...

    def branch_status(self, folder: Path) -> int | None:
        """Returns a branch's exit status, or None if it did not end by itself.

        Deletes the branch's control files.
        """
        ...


_machines: dict[str, Machine] = {}


def register(*machines: Machine) -> None:
    """Registers machines by name; the package registers all adapters when it is imported."""
    _machines.update((machine.name, machine) for machine in machines)


def machine_named(name: str) -> Machine:
    """Returns a machine by name. Raises WrongUsage if there is none."""
    if name not in _machines:
        known = ", ".join(_machines)
        raise WrongUsage(
            "unknown machine", what=parameter("machine", name), fix=f"choose from {known}"
        )
    return _machines[name]


_SAFE_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.,=+-]{0,79})?")
"""A part of a folder name; the complete name has at most 255 bytes."""


@dataclass(frozen=True)
class Replay:
    """The recorded demand of processes, which the simulator replays instead of a workload file."""

    sha256: str
    """Hash of the recorded trace or traces."""
    facts: Mapping[str, Any] = field(hash=False)
    """Facts about the recording, for the manifest."""
    source: str = field(repr=False, hash=False)
    """The demand as text (docs/simulator.md)."""
    processes_max: int
    """Maximum number of processes."""

    def processes(self) -> int:
        """Returns the maximum number of processes."""
        return self.processes_max


@dataclass(frozen=True)
class Branch:
    """The continued run of a branch, the branch point and the kernel's commands at that time."""

    run: str
    """Folder name of the continued run."""
    trace_sha256: str
    at_ns: int
    policy: PolicyChoice
    """Value before the branch, as for the next two fields."""
    settings: tuple[tuple[str, int], ...]
    seed: int
    command_lines: tuple[str, ...]
    """Commands to the kernel, in the format of abi/machine_commands.h; empty if nothing changes."""
    title: str = ""
    """Description of the changes; empty if nothing changes."""

    @property
    def commands(self) -> str:
        """The commands as one text."""
        return "".join(f"{line}\n" for line in self.command_lines)

    def manifest(self) -> dict[str, Any]:
        """Returns the manifest's fields of a branch."""
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


@dataclass(frozen=True)
class RunSpec:
    """The complete specification of a run: workload, policy, machine and parameters."""

    workload: str
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...]
    cpus: int
    machine: Machine
    seed: int
    tick_ns: int
    limit_ns: int
    memory_mib: int
    label: str = ""
    """Name of the workload if a plan has several."""
    file: WorkloadFile | None = field(default=None, hash=False, repr=False)
    """The workload file; None if the workload is a command of the kernel."""
    costs: Costs = KERNEL
    """Costs of operations in the simulator."""
    delays: tuple[Delay, ...] = ()
    """Additional durations of operations, in the kernel and in the simulator."""
    arguments: str = ""
    """Additional boot arguments of the kernel, such as `recheck=1`."""
    changes: tuple[Change, ...] = ()
    """Values that replace values of the workload file; already applied to `file`."""
    shape: Shape | None = None
    """The machine's shape; None if all CPUs are equal."""
    ignore_limits: bool = False
    """True to load a policy although it ignores nice values or control groups in use on this machine."""
    replay: Replay | None = field(default=None, repr=False)
    """The replay that replaces a workload file."""
    branch: Branch | None = None
    """The run that this run continues; None if it starts at time 0."""

    @property
    def name(self) -> str:
        """Name of the run's folder, which distinguishes it from the other runs of its plan."""
        policy = str(self.policy).replace(":", "-")
        changes = changes_text(self.changes).replace(" ", ",")
        parts = [
            _in_name("label", self.label) or _in_name("with", changes),
            policy,
            _in_name("set", self.settings_text),
            f"{self.cpus}cpu",
            f"seed{self.seed}",
        ]
        return "-".join(part for part in parts if part)

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
    def given(self) -> WorkloadFile | Replay | None:
        """The replay or workload file, or None if the workload is a command."""
        return self.replay or self.file

    def files(self) -> dict[str, str]:
        """Returns the texts of the run's files by file name."""
        run_files = {WORKLOAD_FILE: self.file.source} if self.file else {}
        if self.shape:
            run_files[SHAPE_FILE] = self.shape.source
        if self.replay:
            run_files[WORKLOAD_TEXT] = self.replay.source
        return run_files

    def played(self) -> bytes | None:
        """Returns the workload in the format of abi/workload_file.h, or None for a command."""
        if self.replay:
            return read_words(self.replay.source, self.tick_ns, WORKLOAD_TEXT)
        return bytes_of(self.file, self.seed, self.tick_ns, self.cpus) if self.file else None

    def write_files(self, folder: Path) -> None:
        """Writes the files that a run's folder needs at the start."""
        for name, text in self.files().items():
            (folder / name).write_text(text)
        if (played := self.played()) is not None:
            (folder / WORKLOAD_PLAYED).write_bytes(played)

    @property
    def past(self) -> RunSpec:
        """The specification of the continued run, for a branch."""
        if not self.branch:
            return self
        before = self.branch
        return replace(
            self, policy=before.policy, settings=before.settings, seed=before.seed, branch=None
        )

    def manifest(self) -> dict[str, Any]:
        """Returns the specification as JSON values.

        `files` maps file names to texts; in a run's folder these are separate files next to
        manifest.json.
        """
        given = self.given
        files = self.files()
        return {
            "label": self.label,
            "workload": self.workload,
            **({"workload_sha256": given.sha256} if given else {}),
            **({"costs": self.costs.name} if given else {}),
            **(
                {"costs_text": self.costs.text}
                if given and self.costs.name != self.costs.text
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
        """Returns the specification in a manifest, also of version 0.1.0.

        Values must have the types of schedlab.runs.results.FIELDS. `folder` has the files that are
        not in the manifest; a manifest cannot refer to any other file. Raises WrongUsage if a file
        is missing or a value is invalid.
        """
        try:
            return _spec_of(manifest, manifest.get("files") or _files_in(folder))
        except ValueError as error:
            raise WrongUsage(f"{folder or 'manifest'}: {error}") from None


def _files_in(folder: Path | None) -> dict[str, str]:
    names = (WORKLOAD_FILE, SHAPE_FILE, WORKLOAD_TEXT)
    return {
        name: read_text(folder / name) for name in names if folder and (folder / name).is_file()
    }


def _spec_of(manifest: Mapping[str, Any], files: Mapping[str, str]) -> RunSpec:
    """Raises ValueError for invalid values, and WrongUsage for invalid files."""
    changes = tuple((manifest.get("with") or {}).items())
    replay = _replay_of(manifest, files)
    file = None
    if WORKLOAD_FILE in files and not replay:
        file = workload_files.of_text(files[WORKLOAD_FILE], Path(WORKLOAD_FILE), changes)
    elif workload_files.is_workload_file(manifest["workload"]) and not replay:
        raise WrongUsage(f"workload: the copy of {manifest['workload']!r} is missing")
    return RunSpec(
        manifest["workload"],
        parse_choices(manifest["policy"])[0],
        tuple(manifest["tunables"].items()),
        manifest["cpus"],
        machine_named(manifest["machine"]),
        manifest["seed"],
        manifest["tick_ns"],
        manifest.get("limit_ns", STANDARD_LIMIT_NS),
        manifest.get("memory_mib") or 0,
        label=manifest.get("label") or "",
        file=file,
        costs=_costs_of(manifest) if file or replay else KERNEL,
        delays=delays_of(manifest.get("delays") or ""),
        arguments=manifest.get("arguments") or "",
        changes=changes,
        shape=_shape_of(manifest, files),
        ignore_limits=bool(manifest.get("ignore_limits")),
        replay=replay,
        branch=_branch_of(manifest),
    )


def _shape_of(manifest: Mapping[str, Any], files: Mapping[str, str]) -> Shape | None:
    if "shape" not in manifest:
        return None
    if SHAPE_FILE not in files:
        raise WrongUsage(f"shape: the copy of {manifest['shape']!r} is missing")
    return replace(shapes.of_text(files[SHAPE_FILE], Path(SHAPE_FILE)), name=manifest["shape"])


def _replay_of(manifest: Mapping[str, Any], files: Mapping[str, str]) -> Replay | None:
    if "replay_of" not in manifest:
        return None
    if WORKLOAD_TEXT not in files:
        raise WrongUsage(f"replay_of: {WORKLOAD_TEXT}, the replayed workload, is missing")
    if "workload_sha256" not in manifest:
        raise WrongUsage("workload_sha256: the hash of the replayed workload is missing")
    processes = manifest.get("processes") or _simulator_option(manifest, "processes")
    # manifests may come from untrusted sources
    read_words(files[WORKLOAD_TEXT], manifest["tick_ns"], WORKLOAD_TEXT)
    return Replay(
        manifest["workload_sha256"],
        manifest["replay_of"],
        files[WORKLOAD_TEXT],
        int(processes),
    )


def _branch_of(manifest: Mapping[str, Any]) -> Branch | None:
    if "branch_of" not in manifest:
        return None
    before = manifest["branch_of"]
    for name in ("run", "trace_sha256", "seed"):
        if name not in before:
            raise WrongUsage(
                f"branch_of: {name} is missing; add that of the run that the branch continues"
            )
    return Branch(
        before["run"],
        before["trace_sha256"],
        before["at_ns"],
        parse_choices(before["policy"])[0],
        tuple(before["tunables"].items()),
        before["seed"],
        tuple(before["told"]),
        manifest.get("branch") or "",
    )


def _costs_of(manifest: Mapping[str, Any]) -> Costs:
    name = manifest.get("costs") or KERNEL.name
    if name in profiles.BUILT_IN:
        return Costs(name, name)
    return Costs(name, profiles.checked_text(manifest.get("costs_text") or _costs_0_1_0(manifest)))


def _costs_0_1_0(manifest: Mapping[str, Any]) -> str:
    """Returns the costs in a manifest of version 0.1.0: an argument of the simulator, followed by delays."""
    text = _simulator_option(manifest, "costs")
    added = [f",{name}+={longer}" for name, longer in delays_of(manifest.get("delays") or "")]
    return text.removesuffix("".join(added))


def _simulator_option(manifest: Mapping[str, Any], option: str) -> str:
    """Returns the value of a simulator option. Raises ValueError if it is missing."""
    words = shlex.split(manifest.get("boot_arguments") or "")
    if f"--{option}" not in words[:-1]:
        raise ValueError(f"boot_arguments: unknown option --{option}")
    return words[words.index(f"--{option}") + 1]


def _in_name(word: str, text: str) -> str:
    """Returns the text, or its hash if it is too long or unsafe in a folder name."""
    if _SAFE_NAME.fullmatch(text):
        return text
    return f"{word}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
