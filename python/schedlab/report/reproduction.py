# SPDX-License-Identifier: MIT
"""Reproduces the studies: runs their experiments and makes the report."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.display.terminal import say, say_progress
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.machines import LINUX_MACHINES, SIMULATOR, machine_named
from schedlab.machines.linux.packages import MEGABYTES, cached_packages
from schedlab.machines.spec import RunSpec
from schedlab.paths import new_runs_folder
from schedlab.report.adaptive_seeds import Budget, Contest, decide
from schedlab.report.output import check_place
from schedlab.runs.collection import Collection, StoredRun, load_run
from schedlab.runs.perform import perform, still_to_run, unfinished
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Finished, Interrupted, Software, describe
from schedlab.runs.progress import Durations, OverallProgress
from schedlab.runs.results import is_complete
from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.linux_experiments import LINUX, SYSBENCH
from schedlab.studies.planning import plan, sample_first
from schedlab.studies.proposals import plan_of_proposals
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.analysis.comparison.suites import Suite

SPIKE = "spike"
LINUX_STUDY = 5
"""The number of the study about Linux."""
MEMORY_MIB = 512
REPORT = "report"
"""Name of the report's folder, next to the folders of the runs."""
_FAILURES_SHOWN = 10


@dataclass(frozen=True)
class Request:
    """The studies or experiments to reproduce, and how."""

    studies: tuple[int, ...]
    """Numbers of studies; empty for all."""
    depth: Depth
    seed: int = 1
    tick_ns: int = TICK_NS
    memory_mib: int = MEMORY_MIB
    machine: str | None = None
    """None: schedlab's kernel on Spike, and Linux for the studies that need it (`with_linux`)."""
    experiments: tuple[str, ...] = ()
    """Labels of runs, such as s3-cpu; empty for all experiments of the studies."""
    decide: Budget | None = None
    """Adds seeds until the comparisons are decided or the budget is used up.

    None: adds no seeds.
    """

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines to run on, in this order."""
        if self.machine == LINUX:
            return LINUX_MACHINES
        if self.machine:
            return (self.machine,)
        if self.with_column:
            return (SPIKE, LINUX)
        return (SPIKE, *LINUX_MACHINES) if self.with_linux else (SPIKE,)

    @property
    def with_linux(self) -> bool:
        """True if study 5 or everything is requested. Linux is then fetched, and booted for each of its runs."""
        if self.experiments:
            machines = {EXPERIMENTS[e].machine for e in self.experiments if e in EXPERIMENTS}
            return not machines.isdisjoint(LINUX_MACHINES)
        return LINUX_STUDY in self.studies or (not self.studies and self.depth == "full")

    @property
    def with_column(self) -> bool:
        """True for the default request, which runs only study 5's tables on
        Linux, if the guest was fetched.
        """
        default = not (self.studies or self.experiments)
        return default and self.depth == "quick" and self.machine is None

    @property
    def names(self) -> tuple[str, ...]:
        """The studies or experiments, as the command line names them; empty for all."""
        return self.experiments or tuple(f"study-{number}" for number in self.studies)

    @property
    def folder_name(self) -> str:
        """The name of a new folder."""
        machine = () if self.machine in (None, SPIKE) else (self.machine,)
        names = ("experiments",) if self.experiments else self.names
        return "-".join((*(names or ("study",)), *machine, self.depth))

    def command(self, folder: Path) -> str:
        """Returns the command that resumes the reproduction."""
        words = ["./schedlab", "reproduce", *self.names, f"--{self.depth}"]
        if self.machine:
            words += ["--machine", self.machine]
        if self.tick_ns != TICK_NS and self.machine not in LINUX_MACHINES:
            words += ["--tick", format_time(self.tick_ns)]
        if self.seed != 1:
            words += ["--seed", str(self.seed)]
        if self.machine in (None, SPIKE) and self.memory_mib != MEMORY_MIB:
            words += ["--memory", str(self.memory_mib)]
        if self.decide:
            words += ["--decide", str(self.decide)]
        return shlex.join([*words, "--out", str(folder)])


@dataclass(frozen=True)
class Reproduction:
    """The result of a reproduction."""

    folder: Path
    report: Path
    """The file to open."""
    runs: Collection
    contests: list[Contest] | None
    """The comparisons, if seeds were added to decide them."""

    @property
    def succeeded(self) -> bool:
        return all(run.succeeded for run in self.runs)


def reproduce(request: Request, out: Path | None) -> Reproduction:
    """Performs the missing runs, and makes the report of all runs.

    After a failed run, the other runs continue, and the report shows the failure. A signal ends the
    program; finished runs are kept, and a message gives the command that resumes.
    """
    plans, plan = planned(request, out)
    folder = plan.folder
    check_place(folder / REPORT)
    with to_be_continued(request, plan):
        carry_out(plans, plan)
        contests = None
        if request.decide:
            plan, contests = decide(plan, request.decide, perform_added, contests_of)
        runs = Collection(carried_out(plan))
        say_progress(f"schedlab: making the report of {len(runs):,} runs")
        return Reproduction(folder, make_report(runs, folder / REPORT), runs, contests)


def planned(request: Request, out: Path | None) -> tuple[dict[str, Plan], Plan]:
    """Returns the plan of each machine, and the plan of all runs."""
    folder = (out or new_runs_folder(request.folder_name)).absolute()
    plans = plans_of(at_hand(request), request, folder)
    if request.experiments:
        labels = set(request.experiments)
        plans = {
            name: Plan(folder, tuple(run for run in study_plan.runs if run.label in labels))
            for name, study_plan in plans.items()
        }
    plan = Plan(folder, tuple(run for study_plan in plans.values() for run in study_plan.runs))
    if not plan.runs:
        raise WrongUsage(
            f"--machine {request.machine}: runs none of {' '.join(request.names)}; leave --machine out"
            + (f", or name study-{LINUX_STUDY}" if request.machine in LINUX_MACHINES else "")
        )
    plan.check()
    return plans, plan


def perform_added(added: Plan) -> None:
    """Runs the missing runs of added seeds, on each machine."""
    for name in dict.fromkeys(run.machine.name for run in added.runs):
        machine_plan = Plan(
            added.folder, tuple(run for run in added.runs if run.machine.name == name)
        )
        report_failures(perform(machine_plan, unfinished, with_metrics=False))


def contests_of(plan: Plan) -> list[Suite]:
    """Returns the suites that decide which policy is best, as in the report."""
    from schedlab.report.build import compared_in
    from schedlab.report.findings import contests

    return contests(compared_in(Collection(carried_out(plan))))


def carry_out(plans: Mapping[str, Plan], plan: Plan) -> None:
    """Executes the runs of `plan`, the machines' plans together, that do not exist yet."""
    parts = in_parts(plans)
    left = [tuple(still_to_run(part)) for _, part in parts]
    count = sum(map(len, left))
    finished = len(plan.runs) - count
    say_progress(
        f"schedlab: {count:,} runs, in {plan.folder}"
        + (f"; {finished:,} are there already" if finished else "")
    )
    began = time.monotonic()
    for number, (name, part) in enumerate(parts):
        done = sum(map(len, left[:number]))
        later = tuple(run for runs in left[number + 1 :] for run in runs)
        progress_of_all = OverallProgress(done, later, len(plan.runs), began)
        if part.runs:
            select = partial(unfinished_of, part)
            report_failures(
                perform(plans[name], select, with_metrics=False, overall=progress_of_all)
            )


def unfinished_of(part: Plan, plan: Plan, base: Software) -> Plan:
    """Returns the unfinished runs of a part.

    Raises WrongUsage before any run starts if a run anywhere in the
    plan was made by other software.
    """
    left = set(unfinished(plan, base).runs)
    return Plan(part.folder, tuple(run for run in part.runs if run in left))


def in_parts(plans: Mapping[str, Plan]) -> list[tuple[str, Plan]]:
    """Returns the parts of the plans in execution order, each with its machine.

    The first part has one run of each test on the first machine, to estimate the remaining time.
    The second part has the simulator's runs, which are the fastest.
    """
    (name, first), *others = plans.items()
    sample, rest = (Plan(first.folder, runs) for runs in sample_first(first.runs))
    quick = [plan for plan in others if plan[0] == SIMULATOR]
    slow = [plan for plan in others if plan[0] != SIMULATOR]
    return [(name, sample), *quick, (name, rest), *slow]


def plans_of(machines: Iterable[str], request: Request, folder: Path) -> dict[str, Plan]:
    """Returns the plan of each machine. If the request names no machine, the simulator is added."""
    plans = {name: plan_on(name, request, folder) for name in machines}
    if request.machine is None:
        plans[SIMULATOR] = Plan(
            folder,
            (*only_simulated(request, folder), *proposed(SIMULATOR, request, folder).runs),
        )
        plans[SPIKE] = Plan(folder, plans[SPIKE].runs + proposed(SPIKE, request, folder).runs)
    return plans


def plan_on(machine: str, request: Request, folder: Path) -> Plan:
    """Returns the runs of a request on this machine."""
    planned_studies = plan(
        folder,
        request.depth,
        request.studies,
        request.seed,
        request.tick_ns,
        request.memory_mib,
        machine,
    )
    if machine == LINUX and request.with_column:
        return Plan(folder, tuple(run for run in planned_studies.runs if run.label == SYSBENCH))
    return planned_studies


def only_simulated(request: Request, folder: Path) -> tuple[RunSpec, ...]:
    """Returns the runs of experiments that only the simulator can run."""
    simulated = plan_on(SIMULATOR, request, folder)
    return tuple(run for run in simulated.runs if EXPERIMENTS[run.label].machine == SIMULATOR)


def proposed(machine: str, request: Request, folder: Path) -> Plan:
    """Returns the tests of the studies' proposals that this machine runs."""
    return plan_of_proposals(folder, request.depth, request.studies, request.seed, machine)


def at_hand(request: Request) -> list[str]:
    """Returns the available machines of a request.

    If the request does not name Linux and it is unavailable, prints the reason and leaves it out.
    """
    available = []
    for name in request.machines:
        try:
            if request.machine is None and name in LINUX_MACHINES:
                machine_named(name).release()
                need_guest(request)
        except MachineUnfit as unfit:
            say(f"schedlab: skipping study {LINUX_STUDY} on Linux (NOT RUN): {unfit}")
            break
        available.append(name)
    return available


def need_guest(request: Request) -> None:
    """Raises MachineUnfit if the guest is not fetched and was not requested."""
    if request.with_column and not cached_packages():
        raise MachineUnfit(
            "the Linux guest is not installed; run `./schedlab reproduce "
            f"study-{LINUX_STUDY}` ({MEGABYTES} MB)"
        )


def carried_out(plan: Plan) -> Iterator[StoredRun]:
    """Yields the finished runs of a plan."""
    for run in plan.runs:
        place = plan.place(run)
        if is_complete(place):
            yield load_run(place)


def make_report(runs: Collection, folder: Path) -> Path:
    """Makes the report, and returns the file to open."""
    from schedlab.report.build import write_report
    from schedlab.report.command import progress

    began = time.monotonic()
    with progress() as show:
        made = write_report(runs, folder, progress=show)
    durations = Durations()
    durations.learn_report(len(runs), time.monotonic() - began)
    durations.save()
    return made


def report_failures(finished: Sequence[Finished]) -> None:
    """Prints the first failed runs and their failures."""
    messages = list(describe(list(finished)))
    for message in messages[:_FAILURES_SHOWN]:
        say(message)
    if len(messages) > _FAILURES_SHOWN:
        say(f"{len(messages) - _FAILURES_SHOWN} more runs failed; their manifests give the reasons")


@contextmanager
def to_be_continued(request: Request, plan: Plan) -> Iterator[None]:
    """If a signal ends the block, says how to resume."""
    try:
        yield
    except Interrupted as interruption:
        number = interruption.number
    except KeyboardInterrupt:
        number = signal.SIGINT
    else:
        return
    count = len(list(carried_out(plan)))
    say(
        f"schedlab: interrupted; {count} of {len(plan.runs)} runs are finished "
        f"and kept. To continue:\n {request.command(plan.folder)}"
    )
    raise SystemExit(128 + number)
