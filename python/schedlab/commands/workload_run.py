# SPDX-License-Identifier: MIT
"""`./schedlab run --workload`: what is asked for becomes a plan, which is carried out and shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.commands.carrying_out import perform
from schedlab.display.terminal import results, say
from schedlab.errors import WrongUsage
from schedlab.paths import new_runs_folder
from schedlab.toolchain.policies import PolicyChoice

if TYPE_CHECKING:
    from schedlab.machines.run import Run
    from schedlab.runs.carrying_out import Finished
    from schedlab.runs.plan import Plan
    from schedlab.runs.recording import Recording
    from schedlab.workload.changes import Change
    from schedlab.workload.model import WorkloadFile


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
    limit: int
    costs: str | None
    memory: int
    kernel: Path | None
    replay: Recording | None
    out: Path | None

    def base(self) -> Run:
        """The first of the runs. Raises WrongUsage for what cannot be run."""
        from schedlab.machines.run import Run
        from schedlab.workload import costs

        values = one_value_each(self.settings)
        file = None if self.replay else workload_file(self.workload, self.changes)
        recorded_costs = self.replay.costs if self.replay and not self.costs else None
        return Run(
            self.workload,
            self.policies[0],
            values,
            self.cpus[0],
            self.machine,
            self.seed,
            self.tick,
            self.limit,
            self.memory,
            file=file,
            costs=recorded_costs or costs.choose(self.costs or "kernel"),
            changes=file.changes if file else (),
            replay=self.replay,
        )

    def plan(self) -> Plan:
        """Returns all runs, which may be carried out."""
        from schedlab.runs import plan

        if self.seed + self.repeats - 1 >= 2**63:
            raise WrongUsage(
                f"--seed {self.seed}: with --runs {self.repeats} the last seed is too large"
            )
        base = self.base()
        folder = self.out or new_runs_folder(folder_name(self.workload, self.policies))
        wanted = plan.product(folder.absolute(), base, self.policies, self.cpus, self.repeats)
        wanted.check()
        wanted.check_new()
        return wanted


def run_workload(request: Request, as_json: bool) -> None:
    """Under policies, on numbers of CPUs, with seeds; prints tables of what they did."""
    instead = kernel_instead(request.kernel, request.machine)
    finished = perform(request.plan(), request.machine, instead=instead)
    show(finished, as_json)
    if not all(each.outcome.succeeded for each in finished):
        raise SystemExit(1)


def workload_file(workload: str, changes: tuple[Change, ...]) -> WorkloadFile | None:
    """Returns the file, or None if it is none, and says what in it has no effect."""
    from schedlab.workload import workload_files

    if not workload_files.is_workload_file(workload):
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


def one_value_each(settings: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Returns the settings in the order given. The same tunable twice is a mistake."""
    values = dict(settings)
    if len(values) < len(settings):
        names = [name for name, _ in settings]
        twice = next(name for name in names if names.count(name) > 1)
        raise WrongUsage(f"--set {twice}: given more than once")
    return settings


def folder_name(workload: str, policies: tuple[PolicyChoice, ...]) -> str:
    """Program and policies, in characters that are safe in names."""
    first = workload.removesuffix(".json").split()[0:1]
    program = "".join(
        c if c.isalnum() or c in "-_" else "-" for c in first and first[0].rpartition("/")[2]
    )
    names = "+".join(dict.fromkeys(choice.name for choice in policies))[:40]
    return f"{program or 'run'}-{names}"


def kernel_instead(kernel: Path | None, machine: str) -> dict[str, Path]:
    """The part that a kernel of the user's own takes the place of."""
    from schedlab.machines import machine_named

    if kernel is None:
        return {}
    for part in machine_named(machine).parts:
        if part.endswith("kernel"):
            return {part: kernel}
    raise WrongUsage(f"--kernel: --machine {machine} has none; leave it out")


def show(finished: list[Finished], as_json: bool) -> None:
    """The table or JSON on standard output; what failed, on standard error."""
    from schedlab.runs import carrying_out as runs

    if as_json:
        click.echo(runs.as_json(finished))
    else:
        show_tables(finished)
    for message in runs.describe(finished):
        say(message)


def show_tables(finished: list[Finished]) -> None:
    from schedlab.runs import carrying_out as runs

    measured = [each for each in finished if each.metrics]
    if measured:
        from schedlab import metrics

        several = len({each.run.seed for each in measured}) > 1
        labelled = [
            (runs.label(each.run, several), each.metrics) for each in measured if each.metrics
        ]
        results().print(runs.summary(measured[0].run), markup=False)
        for table in metrics.tables(labelled):
            results().print(table)
    results().print(f"Kept in {finished[0].folder.parent}", markup=False, soft_wrap=True)
