# SPDX-License-Identifier: MIT
"""Defines branches of a stored run: where they begin, and what each of them changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.files.atomic import file_hash
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import MACHINES, Branching, machine_named
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, TRACE_FILE, WORKLOAD_TEXT_FILE
from schedlab.machines.spec import Branch, RunSpec
from schedlab.runs import results
from schedlab.units import format_time, parse_time
from schedlab.workload.binary_steps import encode_workload_text
from schedlab.workload.model import ATTRIBUTES

if TYPE_CHECKING:
    from schedlab.trace import Trace

UNCHANGED = "unchanged"
"""Name (also of the folder) of the branch without changes."""
COMMANDS_MAX = 1023
"""Maximum characters of the kernel's command text, as in abi/machine_commands.h."""
_EVENT = re.compile(r"([a-z_]+):(\d{1,9})")
_ATTRIBUTE = re.compile(r"(.+):([a-z]+)=(-?\d{1,13})")
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9_.=+,-]+")
_NAME_MAX = 80


@dataclass(frozen=True)
class AttributeChange:
    """A new attribute value that a branch gives to processes."""

    target: str
    """Which processes: a PID, the name of processes, or the name of a group."""
    name: str
    value: int

    def __str__(self) -> str:
        return f"{self.target}:{self.name}={self.value}"


@dataclass(frozen=True)
class BranchChanges:
    """What a branch changes; by default nothing."""

    policy: PolicyChoice | None = None
    settings: tuple[tuple[str, int], ...] = ()
    attributes: tuple[AttributeChange, ...] = ()
    seed: int | None = None

    @property
    def changes(self) -> tuple[str, ...]:
        """All changes except the seed, as text."""
        policy = (str(self.policy),) if self.policy else ()
        settings = (f"{name}={value}" for name, value in self.settings)
        return (*policy, *settings, *map(str, self.attributes))

    @property
    def commands(self) -> list[str]:
        """The kernel's commands for all changes except attributes (abi/machine_commands.h)."""
        seed = [] if self.seed is None else [f"sched_status seed {self.seed}"]
        policy = [f"sched_status {self.policy}"] if self.policy else []
        settings = (f"sched_tunables {name}={value}" for name, value in self.settings)
        return [*seed, *policy, *settings]

    @property
    def title(self) -> str:
        """The branch's title in tables and progress messages."""
        seed = () if self.seed is None else (f"seed {self.seed}",)
        return ", ".join((*self.changes, *seed)) or UNCHANGED

    @property
    def name(self) -> str:
        """The name of the branch's folder."""
        return _UNSAFE_CHARACTERS.sub("-", self.title.replace(", ", "-").replace(" ", ""))[
            :_NAME_MAX
        ]


@dataclass(frozen=True)
class BranchSource:
    """A stored run that can be repeated, and its trace."""

    folder: Path
    run: RunSpec
    manifest: Mapping[str, Any]
    events: Trace = field(repr=False)

    def policy_at(self, at_ns: int) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
        """Returns the active policy at the time `at_ns`, and its changed tunables."""
        from schedlab.trace import Kind

        time = self.events.column("time_ns")
        texts = dict(self.events.texts.rows())
        policy_rows = [row for row in self.events.rows(Kind.POLICY).tolist() if time[row] < at_ns]
        since = policy_rows[-1] if len(policy_rows) > 1 else 0
        values = self.events.column("second").view("int64")
        tunables = [row for row in self.events.rows(Kind.TUNABLE).tolist() if time[row] < at_ns]
        settings = {} if since else dict(self.run.settings)
        settings.update({texts[row]: int(values[row]) for row in tunables if row > since})
        policy = parse_choices(texts[since])[0] if since else self.run.policy
        return policy, tuple(settings.items())

    def branch_spec(self, branch_changes: BranchChanges, at_ns: int) -> RunSpec:
        """Returns the specification of a branch that begins at `at_ns`.

        Raises WrongUsage if a change is impossible.
        """
        policy, settings = self.policy_at(at_ns)
        previous_settings = {} if branch_changes.policy else dict(settings)
        changes = (
            *branch_changes.changes,
            *(() if branch_changes.seed is None else ("another seed",)),
        )
        branch = Branch(
            self.folder.name,
            file_hash(self.folder / TRACE_FILE),
            at_ns,
            self.run.policy,
            self.run.settings,
            self.run.seed,
            tuple(self.commands(branch_changes, at_ns).splitlines()),
            f"from {format_time(at_ns)} on: {', '.join(changes)}" if changes else "",
        )
        return replace(
            self.run,
            label="",
            policy=branch_changes.policy or policy,
            settings=tuple({**previous_settings, **dict(branch_changes.settings)}.items()),
            seed=self.run.seed if branch_changes.seed is None else branch_changes.seed,
            branch=branch,
        )

    def commands(self, branch_changes: BranchChanges, at_ns: int) -> str:
        """Returns the commands that the kernel executes at `at_ns` (abi/machine_commands.h).

        Raises WrongUsage if a change is impossible.
        """
        lines = branch_changes.commands
        for attribute in branch_changes.attributes:
            pids = matching_pids(self.events, at_ns, attribute.target)
            if not pids:
                raise WrongUsage(
                    f"no process {attribute.target} is alive at {format_time(at_ns)}",
                    what=format_parameter("attributes", attribute),
                    fix="name another process or time",
                )
            lines += [f"sched_status {pid} {attribute.name} {attribute.value}" for pid in pids]
        text = "".join(f"{line}\n" for line in lines)
        if len(text) > COMMANDS_MAX:
            raise WrongUsage(
                f"{branch_changes.title}: {len(lines)} changes are too many for the kernel; name "
                "fewer processes"
            )
        return text


def open_branch_source(path: Path) -> BranchSource:
    """Opens the run in a folder, which is a run's folder or contains exactly one run.

    Raises WrongUsage if the run cannot have branches.
    """
    from schedlab import trace

    folder = results.find_run(path)
    manifest = results.read_manifest(folder)
    run = repeatable_run(folder, manifest)
    try:
        events = trace.read(folder / TRACE_FILE)
        trace.validate(events)
    except trace.TraceError as error:
        raise WrongUsage(str(error)) from None
    return BranchSource(folder, run, manifest, events)


def repeatable_run(folder: Path, manifest: Mapping[str, Any]) -> RunSpec:
    """Returns the specification of a stored run, without reading its trace.

    Raises WrongUsage if the run cannot have branches.
    """
    check_has_branches(folder, manifest["machine"])
    if "recorded_from_ns" in manifest:
        raise WrongUsage(
            f"{folder}: was recorded live, and only runs of `./schedlab run` have "
            "branches; name such a run"
        )
    if "branch" in manifest:
        raise WrongUsage(
            f"{folder}: is itself a branch ({manifest['branch']}); name the run that "
            "it branches from"
        )
    return _checked_spec(folder, RunSpec.from_manifest(manifest, folder), manifest)


def check_has_branches(folder: Path, name: str) -> None:
    """Raises WrongUsage if a machine does not support branches."""
    branching_machines = [
        machine_name
        for machine_name in MACHINES
        if isinstance(machine_named(machine_name), Branching)
    ]
    if name not in branching_machines:
        raise WrongUsage(
            f"ran on {name}, which has no branches",
            what=str(folder),
            fix="repeat the run with "
            f"{' or '.join(format_parameter('machine', machine_name) for machine_name in branching_machines)}",
        )


def _checked_spec(folder: Path, spec: RunSpec, manifest: Mapping[str, Any]) -> RunSpec:
    """Returns `spec` if its repetition has the same inputs as the manifest; else raises WrongUsage."""
    if spec.played() != _read_binary_workload(folder, spec.tick_ns) or spec.machine.arguments(
        spec
    ) != manifest.get("boot_arguments"):
        raise WrongUsage(
            f"{folder}: another version of schedlab ran it differently; run it again first"
        )
    return spec


def _read_binary_workload(folder: Path, tick_ns: int) -> bytes | None:
    """Returns the run's workload in binary form, or None if the workload is a command.

    Also converts the workload text of runs made by schedlab 0.2.0.
    """
    if (folder / BINARY_WORKLOAD_FILE).is_file():
        return (folder / BINARY_WORKLOAD_FILE).read_bytes()
    text = folder / WORKLOAD_TEXT_FILE
    return (
        encode_workload_text(read_text(text), tick_ns, WORKLOAD_TEXT_FILE)
        if text.is_file()
        else None
    )


# --- moments


def parse_branch_point(text: str, events: Trace) -> tuple[int, str]:
    """Parses a branch point such as "1.2s" or "switch:100".

    Returns the kernel's time (ns), and a note for the user. Raises WrongUsage if the run's programs
    were not running at that time.
    """
    at_ns, note = _find_moment(text, events)
    first, last = _begin_ns(events), events.end_ns
    if not first < at_ns <= last:
        raise WrongUsage(
            f"outside of the run, whose programs ran from {format_time(first)} to "
            f"{format_time(last)}",
            what=format_parameter("at", text),
            fix="choose a time in this range",
        )
    return at_ns, note


def _find_moment(text: str, events: Trace) -> tuple[int, str]:
    from schedlab.trace import Kind

    event = _EVENT.fullmatch(text.strip())
    if not event:
        try:
            return parse_time(text), ""
        except ValueError as error:
            raise WrongUsage(
                str(error),
                what=format_parameter("at", text),
                fix="name a time, or a record of the trace, such as switch:100, the 100th SWITCH",
            ) from None
    name, number = event[1].upper(), int(event[2])
    if name not in Kind.__members__:
        kinds = ", ".join(kind.name.lower() for kind in Kind)
        raise WrongUsage(
            f"unknown record {event[1]}",
            what=format_parameter("at", text),
            fix=f"choose from {kinds}",
        )
    rows = events.rows(Kind[name])
    if not 1 <= number <= len(rows):
        raise WrongUsage(
            f"the trace has {len(rows)} records of this kind",
            what=format_parameter("at", text),
            fix=f"choose 1 to {len(rows)}" if len(rows) else "choose another kind",
        )
    time = int(events.column("time_ns")[rows[number - 1]])
    return time + 1, f"{text} was at {format_time(time)}; the branches begin right after it"


def _begin_ns(events: Trace) -> int:
    """Returns the time (ns) when the first program starts.

    The kernel accepts commands only after this time.
    """
    from schedlab.trace import Kind

    rows = events.rows(Kind.EXEC)
    return int(events.column("time_ns")[rows[0]]) if len(rows) else events.end_ns


# --- attributes


def parse_attribute(text: str) -> AttributeChange:
    """Parses text such as "7:tickets=100" or "cpu:priority=3". Raises ValueError."""
    match = _ATTRIBUTE.fullmatch(text.strip())
    if not match:
        raise ValueError("not of the form PID:ATTRIBUTE=VALUE or NAME:ATTRIBUTE=VALUE")
    target, name, value = match[1], match[2], int(match[3])
    if name not in ATTRIBUTES:
        raise ValueError(f"unknown attribute '{name}'; choose from {', '.join(ATTRIBUTES)}")
    limits = ATTRIBUTES[name]
    if not limits.least <= value <= limits.most:
        raise ValueError(f"{name} is out of range; choose {limits.least} to {limits.most}")
    return AttributeChange(target, name, value)


def matching_pids(events: Trace, at_ns: int, target: str) -> Sequence[int]:
    """Returns the PIDs of the processes that exist at `at_ns` and match `target` (see AttributeChange)."""
    from schedlab.metrics.lives import labels, lives, names

    all_lives = lives(events)
    time = events.column("time_ns")
    names_and_groups = zip(names(events, all_lives), labels(events, all_lives), strict=True)
    return [
        int(pid)
        for pid, fork, end, name_and_group in zip(
            all_lives.pid.tolist(),
            all_lives.fork_row.tolist(),
            all_lives.exit_row.tolist(),
            names_and_groups,
            strict=True,
        )
        if time[fork] < at_ns
        and (end < 0 or time[end] >= at_ns)
        and target in (str(pid), *name_and_group)
    ]
