# SPDX-License-Identifier: MIT
"""Converts a user's request (workload or recording, policies, CPUs, seeds) to a plan of runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedlab.base.display.terminal import say
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    FAIR_POLICY,
    PolicyChoice,
    check_owners,
    read_catalogue,
    settings_for,
)
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import DEFAULT_MACHINE, HOST, LINUX_KERNELS, SIMULATOR, machine_named
from schedlab.machines.spec import Machine, RunSpec
from schedlab.paths import new_runs_folder
from schedlab.runs.plan import Plan, all_combinations
from schedlab.runs.recording import Recording, read_recordings
from schedlab.workload import costs, workload_files
from schedlab.workload.changes import Change
from schedlab.workload.delays import Delay
from schedlab.workload.model import WorkloadFile, default_limit_ns
from schedlab.workload.palette import read_palette
from schedlab.workload.shapes.model import Shape
from schedlab.workload.workload_files import is_workload_file

_DEFAULT_CPUS = (1, 2, 3, 4)
_DEFAULT_MACHINE = machine_named(DEFAULT_MACHINE)
DEFAULT_PROGRAM = "mixed -n 24 -g 80"
DEFAULT_WORKLOAD_FILE = "mixed"
"""Workload file that is the default on machines that cannot run programs."""


@dataclass(frozen=True)
class Request:
    """A user's request: one workload, under each policy, on each number of CPUs, with each seed.

    None means the default of the machine, the workload or the recording; `filled` replaces None by
    that default.
    """

    workload: str | None = None
    changes: tuple[Change, ...] = ()
    policies: tuple[PolicyChoice, ...] = (PolicyChoice(DEFAULT_POLICY),)
    settings: tuple[tuple[str, int], ...] = ()
    cpus: tuple[int, ...] | None = None
    machine: Machine = _DEFAULT_MACHINE
    repeats: int = 1
    seed: int = 1
    tick: int | None = None
    """Nanoseconds, like `limit`."""
    limit: int | None = None
    costs: str | None = None
    delays: tuple[Delay, ...] = ()
    shape: Shape | None = None
    memory: int | None = None
    """MiB."""
    kernel: Path | None = None
    replay: Recording | None = None
    out: Path | None = None
    other_recordings: tuple[Recording, ...] = ()
    """Recordings of the same configuration as `replay` with other seeds; each is replayed with its seed."""
    ignore_limits: bool = False
    unchecked: bool = False
    """True if changed policies are run without checking them first."""

    def filled(self) -> Request:
        """Returns the request with all defaults filled in.

        Raises WrongUsage if the machine does not support a value.
        """
        machine = self.machine
        if self.ignore_limits and machine.name != HOST:
            raise WrongUsage(
                f"{format_parameter('machine', machine.name)} has no limits to ignore",
                what="`ignore_limits=`",
                fix=f"leave it out, or add {format_parameter('machine', HOST)}",
            )
        if machine.name == SIMULATOR and self.memory not in (None, machine.memory_mib):
            raise WrongUsage(
                f"{format_parameter('machine', SIMULATOR)} has no memory size",
                what="`memory_mib=`",
                fix="leave it out",
            )
        if self.costs is not None and machine.name != SIMULATOR:
            raise WrongUsage(
                "only the simulator has costs",
                what="`costs=`",
                fix=f"leave it out, or add {format_parameter('machine', SIMULATOR)}",
            )
        default_workload = (
            DEFAULT_WORKLOAD_FILE if machine.programs == frozenset() else DEFAULT_PROGRAM
        )
        return replace(
            self,
            workload=default_workload if self.workload is None else self.workload,
            tick=machine.tick_ns if self.tick is None else self.tick,
            memory=machine.memory_mib if self.memory is None else self.memory,
            cpus=self._standard_cpus(machine) if self.cpus is None else self.cpus,
        )

    def _standard_cpus(self, machine: Machine) -> tuple[int, ...]:
        """Returns the numbers of CPUs of a machine if the user names none."""
        if self.shape:
            return (self.shape.cpus,)
        if machine.name == HOST:
            return (machine.cpus_max,)
        if machine.name in LINUX_KERNELS:
            return (min(count_host_cpus(), machine.cpus_max),)
        return _DEFAULT_CPUS

    def base(self) -> RunSpec:
        """Returns the first run of a filled request; the others are derived from it.

        Raises WrongUsage if the run is impossible.
        """
        assert self.workload is not None
        assert self.cpus is not None
        assert self.tick is not None
        assert self.memory is not None
        values = check_given_once("settings", self.settings)
        workload = self.workload
        if not self.replay:
            workload = resolve_workload(workload, self.machine.programs)
        file = None if self.replay else read_workload(workload, self.changes)
        recorded_costs = self.replay.costs if self.replay and not self.costs else None
        return RunSpec(
            workload,
            self.policies[0],
            values,
            self.cpus[0],
            self.machine,
            self.seed,
            self.tick,
            default_limit_ns(file) if self.limit is None else self.limit,
            self.memory,
            file=file,
            costs=recorded_costs or costs.parse_costs(self.costs or "kernel"),
            delays=check_given_once("delays", self.delays),
            changes=file.changes if file else (),
            shape=self.shape,
            replay=self.replay.replay if self.replay else None,
            ignore_limits=self.ignore_limits,
        )

    def plan(self) -> Plan:
        """Returns the plan of a filled request. Raises WrongUsage if a run is impossible."""
        assert self.workload is not None
        assert self.cpus is not None
        if self.seed + self.repeats - 1 >= 2**63:
            raise WrongUsage(
                f"too large: with {format_parameter('seeds', self.repeats)} the last seed exceeds 2^63 - 1",
                what=format_parameter("first_seed", self.seed),
                fix=f"choose at most {2**63 - self.repeats}",
            )
        base = self.base()
        folder = self.out or new_runs_folder(folder_name(self.workload, self.policies))
        check_owners(self.policies, self.settings)
        bases = [
            base,
            *(
                replace(base, replay=recording.replay, seed=recording.seed)
                for recording in self.other_recordings
            ),
        ]
        runs = (
            run
            for base in bases
            for run in all_combinations(folder, base, self.policies, self.cpus, self.repeats).runs
        )
        configured = (
            replace(run, settings=settings_for(run.policy, self.settings)) for run in runs
        )
        requested = Plan(folder.absolute(), tuple(configured), self.unchecked)
        requested.check()
        requested.check_new()
        note = self.machine.shape_note
        if self.shape and note:
            say(f"schedlab: {format_parameter('shape', self.shape.name)} on {self.machine}: {note}")
        return requested

    def kernel_overrides(self) -> dict[str, Path]:
        """Returns the user's kernel by the name of the part that it replaces; empty if there is none."""
        if self.kernel is None:
            return {}
        for part in self.machine.parts:
            if part.endswith("kernel"):
                return {part: self.kernel}
        raise WrongUsage(
            f"{format_parameter('machine', self.machine.name)} takes no kernel",
            what="`kernel=`",
            fix="leave it out",
        )


_SEED_FIELDS = {"seed": "`first_seed=`", "repeats": "`seeds=`"}
"""Fields that determine seeds, and their names in messages."""


def replay_request(place: Path, **given: Any) -> Request:
    """Returns the request that replays a recording in the simulator.

    `place`: a run's folder, a trace, or a folder of runs with different seeds. `given`: the user's
    values by field name; all others come from the recording. Raises WrongUsage if the replay is
    impossible.
    """
    simulator = machine_named(SIMULATOR)
    if given.get("machine", simulator) != simulator:
        raise WrongUsage(
            f"only {SIMULATOR} replays recordings",
            what=format_parameter("machine", given["machine"]),
            fix="leave it out",
        )
    first, *others = read_recordings(place)
    seeds = next((shown for name, shown in _SEED_FIELDS.items() if name in given), "")
    if others and seeds:
        raise WrongUsage(
            f"{place}: contains {1 + len(others)} recordings, and each is replayed "
            f"once, with its own seed; leave out {seeds}, or name one recording"
        )
    if "policies" not in given:
        _check_policy(place, first)
        first, *others = (recording.with_switches() for recording in (first, *others))
    for recording in (first, *others):
        for note in recording.notes:
            say(f"schedlab: {recording.path.parent if others else place}: {note}")
    recorded: dict[str, Any] = {
        "machine": simulator,
        "policies": (first.policy,),
        "settings": () if "policies" in given else first.settings,
        "cpus": (first.cpus,),
        "tick": first.tick_ns,
        "seed": first.seed,
        "limit": first.limit_ns,
    }
    fixed = {"workload": first.title, "replay": first, "other_recordings": tuple(others)}
    return Request(**{**recorded, **given, **fixed}).filled()


def _check_policy(path: Path, recorded: Recording) -> None:
    """Raises WrongUsage if the simulator lacks the recording's policy, such as Linux's fair class.

    The user must then choose a policy.
    """
    catalogue = read_catalogue()
    if recorded.policy.name == FAIR_POLICY.name:
        raise WrongUsage(
            f"it was recorded under {FAIR_POLICY.name}, Linux's own scheduler, which the "
            "simulator does not have",
            what=str(path),
            fix=_policy_fix(catalogue),
        )
    if recorded.policy.name not in catalogue:
        raise WrongUsage(
            f"it was recorded under '{recorded.policy}', which schedlab does not have",
            what=str(path),
            fix=_policy_fix(catalogue),
        )


def _policy_fix(names: Iterable[str]) -> str:
    return f"name the policy to replay it under with `policy=`: one of {', '.join(names)}"


def resolve_workload(workload: str, programs: frozenset[str] | None) -> str:
    """Returns what `workload` names: a program of the machine, or else a built-in workload file.

    `programs`: the machine's programs; None if any program may exist.
    """
    name = workload.strip()
    if programs is None or name in programs:
        return workload
    palette_entry = read_palette().get(name)
    return os.path.relpath(palette_entry.file) if palette_entry else workload


def read_workload(workload: str, changes: tuple[Change, ...]) -> WorkloadFile | None:
    """Reads the workload file; returns None if the workload is a program.

    Reports parts of the file that have no effect.
    """
    if not is_workload_file(workload):
        if changes:
            raise WrongUsage(
                f"{format_parameter('workload', workload)} is a program, and only workload files "
                "have values to change",
                what=format_parameter("changes", changes[0][0]),
                fix="leave it out, or name a workload file",
            )
        return None
    file = workload_files.read_workload_file(Path(workload.strip()), changes)
    for note in file.notes:
        say(f"schedlab: {workload}, {note}")
    return file


def check_given_once(
    parameter_name: str, settings: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Returns settings by name, in the given order. Raises WrongUsage if a name is repeated."""
    values = dict(settings)
    if len(values) < len(settings):
        setting_names = [name for name, _ in settings]
        repeated = next(name for name in setting_names if setting_names.count(name) > 1)
        raise WrongUsage(
            "given more than once",
            what=format_parameter(parameter_name, repeated),
            fix="give it once",
        )
    return settings


def folder_name(workload: str, policies: tuple[PolicyChoice, ...]) -> str:
    """Returns a folder name of the program and the policies, with safe characters only."""
    first = workload.removesuffix(".json").split()[0:1]
    program = "".join(
        c if c.isalnum() or c in "-_" else "-" for c in first and first[0].rpartition("/")[2]
    )
    names = "+".join(dict.fromkeys(choice.name for choice in policies))[:40]
    return f"{program or 'run'}-{names}"
