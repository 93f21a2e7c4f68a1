# SPDX-License-Identifier: MIT
"""What a user asks to be run, of a workload under policies, and the plan that comes of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from schedlab.display.terminal import say
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.run import Run
from schedlab.paths import new_runs_folder
from schedlab.runs.plan import Plan, product
from schedlab.runs.recording import Recording
from schedlab.shapes.model import Shape
from schedlab.toolchain.policies import PolicyChoice, check_owners, settings_for
from schedlab.workload import costs, workload_files
from schedlab.workload.changes import Change
from schedlab.workload.delays import Delay
from schedlab.workload.model import WorkloadFile, limit_of
from schedlab.workload.palette import palette
from schedlab.workload.workload_files import is_workload_file


@dataclass(frozen=True)
class Request:
    """What is run, by the options' names."""

    workload: str
    changes: tuple[Change, ...]
    policies: tuple[PolicyChoice, ...]
    settings: tuple[tuple[str, int], ...]
    cpus: tuple[int, ...]
    machine: str
    repeats: int
    seed: int
    tick: int
    limit: int | None
    """Nanoseconds; None: what the workload needs."""
    costs: str | None
    delays: tuple[Delay, ...]
    shape: Shape | None
    memory: int
    kernel: Path | None
    replay: Recording | None
    out: Path | None
    beside: tuple[Recording, ...] = ()
    """Other recordings of the same setup as `replay`, with other seeds: each is replayed with its own."""
    ignore_limits: bool = False
    unchecked: bool = False
    """Also of policies that were changed and have not passed a check since."""

    def base(self) -> Run:
        """The first of the runs. Raises WrongUsage for what cannot be run."""
        values = one_value_each("--set", self.settings)
        workload = self.workload
        if not self.replay:
            workload = found(workload, machine_named(self.machine).programs)
        file = None if self.replay else workload_file(workload, self.changes)
        recorded_costs = self.replay.costs if self.replay and not self.costs else None
        return Run(
            workload,
            self.policies[0],
            values,
            self.cpus[0],
            self.machine,
            self.seed,
            self.tick,
            limit_of(file) if self.limit is None else self.limit,
            self.memory,
            file=file,
            costs=recorded_costs or costs.choose(self.costs or "kernel"),
            delays=one_value_each("--delay", self.delays),
            changes=file.changes if file else (),
            shape=self.shape,
            replay=self.replay,
            ignore_limits=self.ignore_limits,
        )

    def plan(self) -> Plan:
        """Returns all runs, which may be carried out."""
        if self.seed + self.repeats - 1 >= 2**63:
            raise WrongUsage(
                f"--seed {self.seed}: with --runs {self.repeats} the last seed is too large"
            )
        base = self.base()
        folder = self.out or new_runs_folder(folder_name(self.workload, self.policies))
        check_owners(self.policies, self.settings)
        bases = [base, *(replace(base, replay=each, seed=each.seed) for each in self.beside)]
        runs = (
            run
            for each in bases
            for run in product(folder, each, self.policies, self.cpus, self.repeats).runs
        )
        own = (replace(run, settings=settings_for(run.policy, self.settings)) for run in runs)
        wanted = Plan(folder.absolute(), tuple(own), self.unchecked)
        wanted.check()
        wanted.check_new()
        note = machine_named(self.machine).shape_note
        if self.shape and note:
            say(f"schedlab: --shape {self.shape.name} on {self.machine}: {note}")
        return wanted

    def kernel_instead(self) -> dict[str, Path]:
        """Returns the part that a kernel of the user's own takes the place of."""
        if self.kernel is None:
            return {}
        for part in machine_named(self.machine).parts:
            if part.endswith("kernel"):
                return {part: self.kernel}
        raise WrongUsage(f"--kernel: --machine {self.machine} has none; leave it out")


def found(workload: str, programs: frozenset[str] | None) -> str:
    """Returns what is run where there are these programs: of a name alone that none of them has, the ready
    workload file of that name. `programs`: None if any may be there."""
    name = workload.strip()
    if programs is None or name in programs:
        return workload
    ready = palette().get(name)
    return os.path.relpath(ready.file) if ready else workload


def workload_file(workload: str, changes: tuple[Change, ...]) -> WorkloadFile | None:
    """Returns the file, or None if it is none, and says what in it has no effect."""
    if not is_workload_file(workload):
        if changes:
            raise WrongUsage(
                f"--with {changes[0][0]}: --workload {workload!r} is no workload file; programs"
                " have options of their own"
            )
        return None
    file = workload_files.read(Path(workload.strip()), changes)
    for note in file.notes:
        say(f"schedlab: {workload}, {note}")
    return file


def one_value_each(
    option: str, settings: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Returns the settings in the order given. The same name twice is a mistake."""
    values = dict(settings)
    if len(values) < len(settings):
        names = [name for name, _ in settings]
        twice = next(name for name in names if names.count(name) > 1)
        raise WrongUsage(f"{option} {twice}: given more than once")
    return settings


def folder_name(workload: str, policies: tuple[PolicyChoice, ...]) -> str:
    """Program and policies, in characters that are safe in names."""
    first = workload.removesuffix(".json").split()[0:1]
    program = "".join(
        c if c.isalnum() or c in "-_" else "-" for c in first and first[0].rpartition("/")[2]
    )
    names = "+".join(dict.fromkeys(choice.name for choice in policies))[:40]
    return f"{program or 'run'}-{names}"
