# SPDX-License-Identifier: MIT
"""`./schedlab reproduce`: runs the studies' experiments and makes one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab import __version__
from schedlab.base.display.terminal import print_result
from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.commands.execution import print_plan
from schedlab.commands.options import (
    echo_json,
    execution_options,
    no_kvm_option,
)
from schedlab.commands.request_options import (
    choose_machine_without_spike,
    decide_option,
    out_option,
    request_options,
)
from schedlab.errors import WrongUsage
from schedlab.machines import DEFAULT_MACHINE, LINUX_MACHINES, MACHINES, SIMULATOR, machine_named
from schedlab.runs.request import Request
from schedlab.studies.study import find_studies

if TYPE_CHECKING:
    from schedlab.report.adaptive_seeds import SeedBudget
    from schedlab.studies.experiment import Depth

STUDIES = {f"study-{study.number}": study.number for study in find_studies()}


class StudyOrExperiment(click.ParamType[str]):
    """A study such as `study-3`, or one of its experiments such as `s3-cpu`."""

    name = "study"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name if it is a study or an experiment; otherwise fails with
        similar names.
        """
        from schedlab.studies.planning import experiment_labels

        if value not in STUDIES and value not in experiment_labels():
            self.fail(
                describe_unknown_name(
                    "study or experiment", value, (*STUDIES, *experiment_labels())
                ),
                param,
                ctx,
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
    decide: SeedBudget | None,
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
    from schedlab.report.adaptive_seeds import print_comparisons
    from schedlab.report.files import read_findings

    if quick and full:
        raise WrongUsage("--quick and --full: exclude each other; choose one")
    machine = machine or choose_machine_without_spike()
    if machine:
        check_machine(machine)
    filled = Request(
        machine=machine_named(machine or DEFAULT_MACHINE), tick=tick, memory=memory
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
    request = reproduction.ReproductionRequest(
        numbers, depth, seed, filled.tick, filled.memory, machine, experiments, decide
    )
    if dry_run:
        print_plan(reproduction.make_plans(request, out)[1].runs, as_json)
        return
    reproduced = reproduction.reproduce(request, out)
    if as_json:
        runs = [{"folder": str(run.folder), "status": run.status} for run in reproduced.runs]
        place = {"folder": str(reproduced.folder), "report": str(reproduced.report)}
        comparisons = reproduced.comparisons
        decided = (
            {}
            if comparisons is None
            else {"contests": [comparison.to_dict() for comparison in comparisons]}
        )
        echo_json({"schedlab": __version__, **place, "runs": runs, **decided})
    else:
        print_result(f"Kept in {reproduced.folder}")
        if reproduced.comparisons is not None:
            print_comparisons(reproduced.comparisons)
        print_findings(read_findings(reproduced.report.parent))
        print_next_steps([run.folder for run in reproduced.runs if run.succeeded])
        print_result(f"Report: {reproduced.report}")
    if not reproduced.succeeded:
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
