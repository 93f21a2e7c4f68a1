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
from schedlab.errors import MachineUnfit, WrongUsage, format_parameter
from schedlab.machines import LINUX_MACHINES, SIMULATOR, machine_named
from schedlab.machines.linux.packages import MEGABYTES, cached_packages
from schedlab.machines.spec import RunSpec
from schedlab.paths import new_runs_folder
from schedlab.report.adaptive_seeds import MetricComparison, SeedBudget, add_seeds_until_decided
from schedlab.report.files import check_report_path
from schedlab.runs.collection import Collection, StoredRun, load_run
from schedlab.runs.perform import list_unfinished, perform, select_unfinished
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Finished, Interrupted, Software, describe_failures
from schedlab.runs.progress import Durations, OverallProgress
from schedlab.runs.results import is_complete
from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.linux_experiments import LINUX_MACHINE, SYSBENCH
from schedlab.studies.planning import plan, split_sample
from schedlab.studies.proposals import plan_proposal_tests
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.analysis.comparison.suites import Suite

SPIKE = "spike"
LINUX_STUDY = 5
"""The number of the study about Linux."""
MEMORY_MIB = 512
REPORT_FOLDER = "report"
"""Name of the report's folder, next to the folders of the runs."""
_FAILURES_SHOWN_MAX = 10


@dataclass(frozen=True)
class ReproductionRequest:
    """The studies or experiments to reproduce, and how."""

    studies: tuple[int, ...]
    """Numbers of studies; empty for all."""
    depth: Depth
    seed: int = 1
    tick_ns: int = TICK_NS
    memory_mib: int = MEMORY_MIB
    machine: str | None = None
    """None: schedlab's kernel on Spike, and Linux for the studies that need it (`has_linux`)."""
    experiments: tuple[str, ...] = ()
    """Labels of runs, such as s3-cpu; empty for all experiments of the studies."""
    decide: SeedBudget | None = None
    """Adds seeds until the comparisons are decided or the budget is used up.

    None: adds no seeds.
    """

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines to run on, in this order."""
        if self.machine == LINUX_MACHINE:
            return LINUX_MACHINES
        if self.machine:
            return (self.machine,)
        if self.has_linux_column:
            return (SPIKE, LINUX_MACHINE)
        return (SPIKE, *LINUX_MACHINES) if self.has_linux else (SPIKE,)

    @property
    def has_linux(self) -> bool:
        """True if study 5 or everything is requested. Linux is then fetched, and booted for each of its runs."""
        if self.experiments:
            machines = {
                EXPERIMENTS[experiment].machine
                for experiment in self.experiments
                if experiment in EXPERIMENTS
            }
            return not machines.isdisjoint(LINUX_MACHINES)
        return LINUX_STUDY in self.studies or (not self.studies and self.depth == "full")

    @property
    def has_linux_column(self) -> bool:
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
        command = ["./schedlab", "reproduce", *self.names, f"--{self.depth}"]
        if self.machine:
            command += ["--machine", self.machine]
        if self.tick_ns != TICK_NS and self.machine not in LINUX_MACHINES:
            command += ["--tick", format_time(self.tick_ns)]
        if self.seed != 1:
            command += ["--seed", str(self.seed)]
        if self.machine in (None, SPIKE) and self.memory_mib != MEMORY_MIB:
            command += ["--memory", str(self.memory_mib)]
        if self.decide:
            command += ["--decide", str(self.decide)]
        return shlex.join([*command, "--out", str(folder)])


@dataclass(frozen=True)
class Reproduction:
    """The result of a reproduction."""

    folder: Path
    report: Path
    """The file to open."""
    runs: Collection
    comparisons: list[MetricComparison] | None
    """The comparisons, if seeds were added to decide them."""

    @property
    def succeeded(self) -> bool:
        """Returns whether all runs succeeded."""
        return all(run.succeeded for run in self.runs)


def reproduce(request: ReproductionRequest, out: Path | None) -> Reproduction:
    """Performs the missing runs, and makes the report of all runs.

    After a failed run, the other runs continue, and the report shows the failure. A signal ends the
    program; finished runs are kept, and a message gives the command that resumes.
    """
    plans, plan = make_plans(request, out)
    folder = plan.folder
    check_report_path(folder / REPORT_FOLDER)
    with resume_hint(request, plan):
        run_plans(plans, plan)
        comparisons = None
        if request.decide:
            plan, comparisons = add_seeds_until_decided(
                plan, request.decide, run_added_seeds, rankable_suites_of
            )
        runs = Collection(finished_runs(plan))
        say_progress(f"schedlab: making the report of {len(runs):,} runs")
        return Reproduction(folder, make_report(runs, folder / REPORT_FOLDER), runs, comparisons)


def make_plans(request: ReproductionRequest, out: Path | None) -> tuple[dict[str, Plan], Plan]:
    """Returns the plan of each machine, and the plan of all runs."""
    folder = (out or new_runs_folder(request.folder_name)).absolute()
    plans = plan_machines(available_machines(request), request, folder)
    if request.experiments:
        labels = set(request.experiments)
        plans = {
            name: Plan(folder, tuple(run for run in study_plan.runs if run.label in labels))
            for name, study_plan in plans.items()
        }
    plan = Plan(folder, tuple(run for study_plan in plans.values() for run in study_plan.runs))
    if not plan.runs:
        names = " ".join(request.names)
        if request.machine is None:
            raise WrongUsage(
                f"{names}: no machine here runs this; run `./schedlab doctor` to see why"
            )
        raise WrongUsage(
            f"runs none of {names}",
            what=format_parameter("machine", request.machine),
            fix="leave it out"
            + (f", or name study-{LINUX_STUDY}" if request.machine in LINUX_MACHINES else ""),
        )
    plan.check()
    return plans, plan


def run_added_seeds(added: Plan) -> None:
    """Runs the missing runs of added seeds, on each machine."""
    for name in dict.fromkeys(run.machine.name for run in added.runs):
        machine_plan = Plan(
            added.folder, tuple(run for run in added.runs if run.machine.name == name)
        )
        report_failures(perform(machine_plan, select_unfinished, with_metrics=False))


def rankable_suites_of(plan: Plan) -> list[Suite]:
    """Returns the suites that decide which policy is best, as in the report."""
    from schedlab.report.build import find_compared_suites
    from schedlab.report.findings import rankable_suites

    return rankable_suites(find_compared_suites(Collection(finished_runs(plan))))


def run_plans(plans: Mapping[str, Plan], plan: Plan) -> None:
    """Executes the runs of `plan`, the machines' plans together, that do not exist yet."""
    part_plans = split_plans(plans)
    missing_runs = [tuple(list_unfinished(part)) for _, part in part_plans]
    count = sum(map(len, missing_runs))
    finished = len(plan.runs) - count
    say_progress(
        f"schedlab: {count:,} runs, in {plan.folder}"
        + (f"; {finished:,} are there already" if finished else "")
    )
    began = time.monotonic()
    for number, (name, part) in enumerate(part_plans):
        finished_count = sum(map(len, missing_runs[:number]))
        later_runs = tuple(run for runs in missing_runs[number + 1 :] for run in runs)
        progress_of_all = OverallProgress(finished_count, later_runs, len(plan.runs), began)
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
    unfinished_runs = set(select_unfinished(plan, base).runs)
    return Plan(part.folder, tuple(run for run in part.runs if run in unfinished_runs))


def split_plans(plans: Mapping[str, Plan]) -> list[tuple[str, Plan]]:
    """Returns the parts of the plans in execution order, each with its machine.

    The first part has one run of each test on the first machine, to estimate the remaining time.
    The second part has the simulator's runs, which are the fastest.
    """
    (name, first), *others = plans.items()
    sample, rest = (Plan(first.folder, runs) for runs in split_sample(first.runs))
    simulator_plans = [plan for plan in others if plan[0] == SIMULATOR]
    other_plans = [plan for plan in others if plan[0] != SIMULATOR]
    return [(name, sample), *simulator_plans, (name, rest), *other_plans]


def plan_machines(
    machines: Iterable[str], request: ReproductionRequest, folder: Path
) -> dict[str, Plan]:
    """Returns the plan of each machine. If the request names no machine, the simulator is added."""
    plans = {name: plan_machine(name, request, folder) for name in machines}
    if request.machine is None:
        plans[SIMULATOR] = Plan(
            folder,
            (
                *simulator_only_runs(request, folder),
                *plan_proposals(SIMULATOR, request, folder).runs,
            ),
        )
        plans[SPIKE] = Plan(folder, plans[SPIKE].runs + plan_proposals(SPIKE, request, folder).runs)
    return plans


def plan_machine(machine: str, request: ReproductionRequest, folder: Path) -> Plan:
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
    if machine == LINUX_MACHINE and request.has_linux_column:
        return Plan(folder, tuple(run for run in planned_studies.runs if run.label == SYSBENCH))
    return planned_studies


def simulator_only_runs(request: ReproductionRequest, folder: Path) -> tuple[RunSpec, ...]:
    """Returns the runs of experiments that only the simulator can run."""
    simulated = plan_machine(SIMULATOR, request, folder)
    return tuple(run for run in simulated.runs if EXPERIMENTS[run.label].machine == SIMULATOR)


def plan_proposals(machine: str, request: ReproductionRequest, folder: Path) -> Plan:
    """Returns the tests of the studies' proposals that this machine runs."""
    return plan_proposal_tests(folder, request.depth, request.studies, request.seed, machine)


def available_machines(request: ReproductionRequest) -> list[str]:
    """Returns the available machines of a request.

    If the request does not name Linux and it is unavailable, prints the reason and leaves it out.
    """
    available = []
    for name in request.machines:
        try:
            if request.machine is None and name in LINUX_MACHINES:
                machine_named(name).release()
                require_guest(request)
        except MachineUnfit as unfit:
            say(f"schedlab: skipping study {LINUX_STUDY} on Linux (NOT RUN): {unfit}")
            break
        available.append(name)
    return available


def require_guest(request: ReproductionRequest) -> None:
    """Raises MachineUnfit if the guest is not fetched and was not requested."""
    if request.has_linux_column and not cached_packages():
        raise MachineUnfit(
            "the Linux guest is not installed; run `./schedlab reproduce "
            f"study-{LINUX_STUDY}`, which downloads it ({MEGABYTES} MB)"
        )


def finished_runs(plan: Plan) -> Iterator[StoredRun]:
    """Yields the finished runs of a plan."""
    for run in plan.runs:
        run_folder = plan.place(run)
        if is_complete(run_folder):
            yield load_run(run_folder)


def make_report(runs: Collection, folder: Path) -> Path:
    """Makes the report, and returns the file to open."""
    from schedlab.report.build import write_report
    from schedlab.report.command import show_progress

    began_s = time.monotonic()
    with show_progress() as show:
        report_file = write_report(runs, folder, progress=show)
    durations = Durations()
    durations.learn_report(len(runs), time.monotonic() - began_s)
    durations.save()
    return report_file


def report_failures(finished: Sequence[Finished]) -> None:
    """Prints the first failed runs and their failures."""
    messages = list(describe_failures(list(finished)))
    for message in messages[:_FAILURES_SHOWN_MAX]:
        say(message)
    if len(messages) > _FAILURES_SHOWN_MAX:
        say(
            f"{len(messages) - _FAILURES_SHOWN_MAX} more runs failed; their manifests give the reasons"
        )


@contextmanager
def resume_hint(request: ReproductionRequest, plan: Plan) -> Iterator[None]:
    """If a signal ends the block, says how to resume."""
    try:
        yield
    except Interrupted as interruption:
        number = interruption.number
    except KeyboardInterrupt:
        number = signal.SIGINT
    else:
        return
    count = len(list(finished_runs(plan)))
    say(
        f"schedlab: interrupted; {count} of {len(plan.runs)} runs are finished "
        f"and kept. To continue:\n {request.command(plan.folder)}"
    )
    raise SystemExit(128 + number)
