# SPDX-License-Identifier: MIT
"""`./schedlab reproduce`: runs the studies' experiments and makes one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab import __version__
from schedlab.base.display.terminal import print_result
from schedlab.base.toolchain.policies import unknown
from schedlab.commands.execution import print_plan
from schedlab.commands.options import (
    echo_json,
    execution_options,
    no_kvm_option,
)
from schedlab.commands.request_options import (
    decide_option,
    out_option,
    request_options,
    say_standard_machine,
)
from schedlab.errors import WrongUsage
from schedlab.machines import LINUX_MACHINES, MACHINES, SIMULATOR, STANDARD_MACHINE, machine_named
from schedlab.runs.request import Request
from schedlab.studies.study import studies

if TYPE_CHECKING:
    from schedlab.report.adaptive_seeds import Budget
    from schedlab.studies.experiment import Depth

STUDIES = {f"study-{study.number}": study.number for study in studies()}


class StudyOrExperiment(click.ParamType[str]):
    """A study such as `study-3`, or one of its experiments such as `s3-cpu`."""

    name = "study"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from schedlab.studies.planning import experiment_labels

        if value not in STUDIES and value not in experiment_labels():
            self.fail(
                unknown("study or experiment", value, (*STUDIES, *experiment_labels())), param, ctx
            )
        return value


@click.command()
@click.argument("names", nargs=-1, metavar="[STUDY|EXPERIMENT]...", type=StudyOrExperiment())
@click.option("--quick", is_flag=True, help="Run a part that takes some minutes. [default]")
@click.option(
    "--full",
    is_flag=True,
    help="Run everything; study 5 boots Linux 554 times.",
)
@click.option(
    "--machine",
    type=click.Choice(MACHINES),
    help="Choose the machine: sim runs the experiments as workload files, much "
    "faster; linux runs only study 5. [default: spike; for study 5 also "
    "linux]",
)
@request_options(only=("seed", "tick", "memory"))
@decide_option
@out_option
@no_kvm_option
@execution_options
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    full: bool,
    machine: str | None,
    seed: int,
    tick: int | None,
    memory: int | None,
    decide: Budget | None,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Reproduce the studies in one report.

    STUDY is `study-1` to `study-6`; without any, all six. EXPERIMENT is a label from a report's captions, such as
    `s3-cpu`. Experiments run under their own policies and all built-in ones. All work scales with the tick; the
    studies used 10ms. To continue an interrupted run, name its folder with --out.
    """
    from schedlab.commands.execution import print_findings, print_next_steps
    from schedlab.report import reproduction
    from schedlab.report.adaptive_seeds import print_decided
    from schedlab.report.output import findings_in

    if quick and full:
        raise WrongUsage("--quick and --full: exclude each other; choose one")
    machine = machine or say_standard_machine()
    if machine:
        check_machine(machine)
    filled = Request(
        machine=machine_named(machine or STANDARD_MACHINE), tick=tick, memory=memory
    ).filled()
    assert filled.tick is not None
    assert filled.memory is not None
    numbers = tuple(sorted({STUDIES[name] for name in names if name in STUDIES}))
    experiments = tuple(dict.fromkeys(name for name in names if name not in STUDIES))
    if numbers and experiments:
        raise WrongUsage(
            "studies and experiments are mixed",
            what=" ".join(names),
            fix="name only studies or only experiments",
        )
    depth: Depth = "full" if full else "quick"
    request = reproduction.Request(
        numbers, depth, seed, filled.tick, filled.memory, machine, experiments, decide
    )
    if dry_run:
        print_plan(reproduction.planned(request, out)[1].runs, as_json)
        return
    done = reproduction.reproduce(request, out)
    if as_json:
        runs = [{"folder": str(run.folder), "status": run.status} for run in done.runs]
        place = {"folder": str(done.folder), "report": str(done.report)}
        contests = done.contests
        decided = (
            {} if contests is None else {"contests": [contest.to_dict() for contest in contests]}
        )
        echo_json({"schedlab": __version__, **place, "runs": runs, **decided})
    else:
        print_result(f"Kept in {done.folder}")
        if done.contests is not None:
            print_decided(done.contests)
        print_findings(findings_in(done.report.parent))
        print_next_steps([run.folder for run in done.runs if run.succeeded])
        print_result(f"Report: {done.report}")
    if not done.succeeded:
        raise SystemExit(1)


def check_machine(machine: str) -> None:
    """Raises WrongUsage for a machine without repeatable runs, since a study compares its runs.

    Linux is permitted, because study 5 shows the effect of the host's timing.
    """
    if machine not in LINUX_MACHINES and not machine_named(machine).repeatable:
        raise WrongUsage(
            f"--machine {machine}: its runs cannot be repeated; use spike or "
            f"{SIMULATOR}, or {LINUX_MACHINES[0]} for study-5"
        )
