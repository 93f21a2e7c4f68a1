# SPDX-License-Identifier: MIT
"""Defines branches of a stored run: the moment where they begin, and the changes of each branch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.files.atomic import file_hash
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import MACHINES, Branching, machine_named
from schedlab.machines.folder import TRACE_FILE, WORKLOAD_PLAYED, WORKLOAD_TEXT
from schedlab.machines.spec import Branch, RunSpec
from schedlab.runs import results
from schedlab.units import format_time, parse_time
from schedlab.workload.binary_steps import read_words
from schedlab.workload.model import ATTRIBUTES

if TYPE_CHECKING:
    from schedlab.trace import Trace

UNCHANGED = "unchanged"
"""Name and folder of the branch without changes."""
COMMANDS_MAX = 1023
"""Maximum length of the kernel's command text in characters, as in abi/machine_commands.h."""
_EVENT = re.compile(r"([a-z_]+):(\d{1,9})")
_ATTRIBUTE = re.compile(r"(.+):([a-z]+)=(-?\d{1,13})")
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_.=+,-]+")
_NAME_MAX = 80


@dataclass(frozen=True)
class Attribute:
    """An attribute that a branch sets."""

    life_table: str
    """A PID, the name of processes, or the name of a group."""
    name: str
    value: int

    def __str__(self) -> str:
        return f"{self.life_table}:{self.name}={self.value}"


@dataclass(frozen=True)
class Future:
    """The changes of a branch; none by default."""

    policy: PolicyChoice | None = None
    settings: tuple[tuple[str, int], ...] = ()
    attributes: tuple[Attribute, ...] = ()
    seed: int | None = None

    @property
    def changes(self) -> tuple[str, ...]:
        """All changes except the seed, as text."""
        policy = (str(self.policy),) if self.policy else ()
        settings = (f"{name}={value}" for name, value in self.settings)
        return (*policy, *settings, *map(str, self.attributes))

    @property
    def title(self) -> str:
        """The branch's title in tables and progress messages."""
        seed = () if self.seed is None else (f"seed {self.seed}",)
        return ", ".join((*self.changes, *seed)) or UNCHANGED

    @property
    def name(self) -> str:
        """The name of the branch's folder."""
        return _NOT_OF_NAMES.sub("-", self.title.replace(", ", "-").replace(" ", ""))[:_NAME_MAX]


@dataclass(frozen=True)
class Past:
    """A stored run that branches repeat up to a moment."""

    folder: Path
    run: RunSpec
    manifest: Mapping[str, Any]
    events: Trace = field(repr=False)

    def under(self, at_ns: int) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
        """Returns the policy at a moment, and its changed tunables."""
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

    def future(self, future: Future, at_ns: int) -> RunSpec:
        """Returns the specification of a branch at a moment.

        Raises WrongUsage if a change is impossible.
        """
        policy, settings = self.under(at_ns)
        known = {} if future.policy else dict(settings)
        changes = (*future.changes, *(() if future.seed is None else ("another seed",)))
        branch = Branch(
            self.folder.name,
            file_hash(self.folder / TRACE_FILE),
            at_ns,
            self.run.policy,
            self.run.settings,
            self.run.seed,
            tuple(self.commands(future, at_ns).splitlines()),
            f"from {format_time(at_ns)} on: {', '.join(changes)}" if changes else "",
        )
        return replace(
            self.run,
            label="",
            policy=future.policy or policy,
            settings=tuple({**known, **dict(future.settings)}.items()),
            seed=self.run.seed if future.seed is None else future.seed,
            branch=branch,
        )

    def commands(self, future: Future, at_ns: int) -> str:
        """Returns the commands that the kernel executes at the moment (abi/machine_commands.h).

        Raises WrongUsage if a change is impossible.
        """
        lines = [] if future.seed is None else [f"sched_status seed {future.seed}"]
        if future.policy:
            lines.append(f"sched_status {future.policy}")
        lines += [f"sched_tunables {name}={value}" for name, value in future.settings]
        for attribute in future.attributes:
            pids = alive(self.events, at_ns, attribute.life_table)
            if not pids:
                raise WrongUsage(
                    f"no process {attribute.life_table} is alive at {format_time(at_ns)}",
                    what=parameter("attributes", attribute),
                    fix="name another process or time",
                )
            lines += [f"sched_status {pid} {attribute.name} {attribute.value}" for pid in pids]
        text = "".join(f"{line}\n" for line in lines)
        if len(text) > COMMANDS_MAX:
            raise WrongUsage(
                f"{future.title}: {len(lines)} changes are too many for the kernel; name "
                "fewer processes"
            )
        return text


def past(place: Path) -> Past:
    """Returns the run in a folder, which is the run's folder or contains one run.

    Raises WrongUsage if the run cannot have branches.
    """
    from schedlab import trace

    folder = results.find_run(place)
    manifest = results.read_manifest(folder)
    run = repeatable_run(folder, manifest)
    try:
        events = trace.read(folder / TRACE_FILE)
        trace.validate(events)
    except trace.TraceError as error:
        raise WrongUsage(str(error)) from None
    return Past(folder, run, manifest, events)


def repeatable_run(folder: Path, manifest: Mapping[str, Any]) -> RunSpec:
    """Returns the run of a folder without reading its trace.

    Raises WrongUsage if the run cannot have branches.
    """
    check_machine(folder, manifest["machine"])
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
    return _checked(folder, RunSpec.from_manifest(manifest, folder), manifest)


def check_machine(folder: Path, name: str) -> None:
    """Raises WrongUsage if a machine does not support branches."""
    able = [
        machine_name
        for machine_name in MACHINES
        if isinstance(machine_named(machine_name), Branching)
    ]
    if name not in able:
        raise WrongUsage(
            f"ran on {name}; only runs on "
            f"{' or '.join(parameter('machine', machine_name) for machine_name in able)}"
            " have branches",
            what=str(folder),
        )


def _checked(folder: Path, spec: RunSpec, manifest: Mapping[str, Any]) -> RunSpec:
    """Returns a run that can be repeated.

    Raises WrongUsage if a repetition would differ from the manifest.
    """
    if spec.played() != _played(folder, spec.tick_ns) or spec.machine.arguments(
        spec
    ) != manifest.get("boot_arguments"):
        raise WrongUsage(
            f"{folder}: another version of schedlab ran it differently; run it again first"
        )
    return spec


def _played(folder: Path, tick_ns: int) -> bytes | None:
    """Returns the workload file of a run, including runs of schedlab 0.2.0; None for a command."""
    if (folder / WORKLOAD_PLAYED).is_file():
        return (folder / WORKLOAD_PLAYED).read_bytes()
    text = folder / WORKLOAD_TEXT
    return read_words(read_text(text), tick_ns, WORKLOAD_TEXT) if text.is_file() else None


# --- moments


def moment(text: str, events: Trace) -> tuple[int, str]:
    """Parses a moment such as "1.2s" or "switch:100".

    Returns the kernel time in ns, and a note for the user.

    Raises WrongUsage if the run's programs were not running at that time.
    """
    at_ns, note = _moment(text, events)
    first, last = _begin_ns(events), events.end_ns
    if not first < at_ns <= last:
        raise WrongUsage(
            f"outside of the run, whose programs ran from {format_time(first)} to "
            f"{format_time(last)}",
            what=parameter("at", text),
            fix="choose a time in this range",
        )
    return at_ns, note


def _moment(text: str, events: Trace) -> tuple[int, str]:
    from schedlab.trace import Kind

    event = _EVENT.fullmatch(text.strip())
    if not event:
        try:
            return parse_time(text), ""
        except ValueError as error:
            raise WrongUsage(
                str(error),
                what=parameter("at", text),
                fix="name a time, or a record of the trace, such as switch:100, the 100th SWITCH",
            ) from None
    name, number = event[1].upper(), int(event[2])
    if name not in Kind.__members__:
        kinds = ", ".join(kind.name.lower() for kind in Kind)
        raise WrongUsage(
            f"unknown record {event[1]}", what=parameter("at", text), fix=f"choose from {kinds}"
        )
    rows = events.rows(Kind[name])
    if not 1 <= number <= len(rows):
        raise WrongUsage(
            f"the trace has only {len(rows)} records of this kind",
            what=parameter("at", text),
            fix="choose a lower number",
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


def parse_attribute(text: str) -> Attribute:
    """Parses text such as "7:tickets=100" or "cpu:priority=3". Raises ValueError."""
    match = _ATTRIBUTE.fullmatch(text.strip())
    if not match:
        raise ValueError("not of the form PID:ATTRIBUTE=VALUE or NAME:ATTRIBUTE=VALUE")
    life_table, name, value = match[1], match[2], int(match[3])
    if name not in ATTRIBUTES:
        raise ValueError(f"unknown attribute '{name}'; choose from {', '.join(ATTRIBUTES)}")
    limits = ATTRIBUTES[name]
    if not limits.least <= value <= limits.most:
        raise ValueError(f"{name} is out of range; choose {limits.least} to {limits.most}")
    return Attribute(life_table, name, value)


def alive(events: Trace, at_ns: int, life_table: str) -> Sequence[int]:
    """Returns the PIDs of the processes that exist at a moment and have this PID, name or group."""
    from schedlab.metrics.lives import labels, lives, names

    everyone = lives(events)
    time = events.column("time_ns")
    called = zip(names(events, everyone), labels(events, everyone), strict=True)
    return [
        int(pid)
        for pid, fork, end, is_schedlab in zip(
            everyone.pid.tolist(),
            everyone.fork_row.tolist(),
            everyone.exit_row.tolist(),
            called,
            strict=True,
        )
        if time[fork] < at_ns
        and (end < 0 or time[end] >= at_ns)
        and life_table in (str(pid), *is_schedlab)
    ]
