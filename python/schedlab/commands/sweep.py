# SPDX-License-Identifier: MIT
"""`./schedlab sweep`: runs many configurations into one data set."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import print_result, result_console, say
from schedlab.commands.execution import PLANNED_RUNS_SHOWN, print_planned, report_if_ended_by_signal
from schedlab.commands.options import (
    EXISTING_FOLDER,
    FILE,
    FOLDER,
    echo_json,
    execution_options,
)
from schedlab.errors import WrongUsage
from schedlab.paths import new_runs_folder

if TYPE_CHECKING:
    from schedlab.base.files.json_lines import Node
    from schedlab.sweep.command import ExecutionOptions, SweepOutcome
    from schedlab.sweep.effects import Effects
    from schedlab.sweep.objectives import Objective
    from schedlab.sweep.plan import SweepPlan

DESCRIPTION_OPTIONS = ("workloads", "changes", "policies", "settings", "conditions", "sample")
"""Options that describe the runs, in addition to the simple options."""


@dataclass(frozen=True)
class Request:
    """The options by name, without the description of the runs."""

    file: Path | None
    dry_run: bool
    scheduler: str | None
    certificate: Path | None
    workers: int | None
    keep_traces: bool
    retry_failed: bool
    out: Path | None
    metrics: tuple[str, ...]
    top: int
    effects: str | None
    pair: str | None
    chart: Path | None
    source: Path | None
    as_json: bool
    load: str | None
    group: str | None
    search: str | None


@click.command()
@click.argument("file", required=False, metavar="[FILE.yaml]", type=FILE)
@click.option("--workload", "workloads", multiple=True, help="Run this workload. May be repeated.")
@click.option(
    "--with",
    "changes",
    multiple=True,
    metavar="PLACE=VALUES",
    help="Vary a value of the workload file, such as tasks.cpu.instance=10,20. May be repeated.",
)
@click.option(
    "--load",
    metavar="LOADS",
    help="Draw curves against the load of a file with arrivals: 0.1-0.95, 0.1-0.9+0.1 or 0.5,0.9.",
)
@click.option("--group", metavar="GROUP", help="With --load, use only the processes of this group.")
@click.option(
    "--policy", "policies", multiple=True, help="POLICY or POLICY:PRESET, several with commas."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[POLICY.]NAME=VALUES",
    help="Vary a tunable: 1,2,4 or 1-8 or 1-32+4 or 60-3840*2. May be repeated.",
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Keep only configurations that fulfil this condition: 'slice_1 <= "
    "slice_0'. May be repeated.",
)
@click.option(
    "--sample",
    metavar="METHOD:COUNT[:SEED]",
    help="Run a sample of this number of configurations instead of all: random, sobol, "
    "halton, latin-hypercube.",
)
@click.option(
    "--search",
    metavar="RUNS[:SEED]",
    help="With --best, search for the best configuration in this many runs.",
)
@click.option(
    "--machine", "machines", metavar="NAMES", help="Machines: sim, spike, qemu. [default: sim]"
)
@click.option("--cpus", metavar="CPUS", help="Numbers of CPUs: 4, 1,2,8 or 1-4. [default: 1]")
@click.option("--seeds", metavar="SEEDS", help="Seeds: 7, 1,2,3, 1-8 or 1-3,7. [default: 1]")
@click.option("--tick", metavar="TIMES", help="Lengths of a tick.  [default: 1ms]")
@click.option("--costs", metavar="PROFILE", help="Costs of operations on sim. [default: kernel]")
@click.option(
    "--shape",
    "shapes",
    metavar="SHAPES",
    help="Shapes of the machine, instead of --cpus; see `./schedlab shape`. "
    "[default: all CPUs are equal]",
)
@click.option(
    "--limit", metavar="TIME", help="End a run after this time of the guest. [default: 60s]"
)
@click.option("--memory", metavar="MIB", help="Memory of the kernel's machine, MiB. [default: 512]")
@execution_options
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on this Dask cluster, such as tls://10.0.0.1:8786. [default: all CPUs of this host]",
)
@click.option(
    "--certificate",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder with the cluster's certificate (./schedlab dask certificate).",
)
@click.option(
    "--jobs", "workers", type=click.IntRange(1, 1024), help="Number of processes of this host."
)
@click.option(
    "--best",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Rank configurations by this metric: turnaround, response@GROUP, "
    "min:migrations. Several give their Pareto front.",
)
@click.option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Number of configurations to show.",
)
@click.option(
    "--effects",
    metavar="METRIC",
    help="Show which dimensions a metric depends on, alone and in pairs.",
)
@click.option(
    "--map",
    "pair",
    metavar="A,B",
    help="With --effects and --chart, draw a heat map over these two dimensions. "
    "[default: the pairs with the largest interactions]",
)
@click.option(
    "--chart",
    type=FILE,
    help="Draw an .svg or .png: the frontier of two --best metrics, or heat maps of --effects.",
)
@click.option(
    "--from",
    "source",
    type=EXISTING_FOLDER,
    help="Run nothing, and rank the results in this sweep's folder.",
)
@click.option("--keep-traces", is_flag=True, help="Keep each run's folder, with its trace.")
@click.option("--retry-failed", is_flag=True, help="Run failed runs again.")
@click.option(
    "--out",
    type=FOLDER,
    help="Write the data set to this folder, or continue there. [default: a new one in runs/]",
)
def sweep(**options: Any) -> None:
    """Run many configurations and keep the results as one data set.

    FILE.yaml or options define policies with ranges of their tunables, workloads, CPUs, seeds and machines.
    Options replace what the file says. The runs use all CPUs of this host, or a cluster. Finished runs are not
    repeated: the same command with the same --out continues an interrupted sweep. docs/sweeps.md is the
    reference.
    """
    from schedlab.sweep import best, description_reader

    request = Request(**{field.name: options.pop(field.name) for field in fields(Request)})
    objectives = best.parse_objectives(request.metrics)
    effect = best.parse_effects_objective(request.effects) if request.effects else None
    check_pictures(request, objectives)
    if request.load or request.group:
        set_load_seeds(request, options)
    if request.source:
        check_source(request, request.source, any(options.values()), objectives)
        print_answers(request, request.source, objectives, effect)
        if request.load:
            print_load_curves(request, request.source, None)
        return
    check_cluster(request)
    if request.file and not request.search:
        request = replace(request, search=description_reader.read_search_budget(request.file))
    run_and_show(request, options, objectives, effect)


def run_and_show(
    request: Request,
    options: dict[str, Any],
    objectives: list[Objective],
    effect: Objective | None,
) -> None:
    """Runs what is missing, and prints the answers."""
    from schedlab.commands.sweep_options import nodes_of_options
    from schedlab.sweep import command

    described = {name: options.pop(name) for name in DESCRIPTION_OPTIONS}
    name = f"sweep-{request.file.stem if request.file else 'options'}"
    folder = (request.out or new_runs_folder(name)).absolute()
    if request.search:
        run_search(request, nodes_of_options(**described, simple=options), folder, objectives)
        return
    plan = command.plan_sweep(
        request.file, nodes_of_options(**described, simple=options), requested_loads(request)
    )
    if request.dry_run:
        print_sweep_plan(plan, request.as_json)
        return
    outcome = carry_out(plan, execution_options_of(request, folder))
    has_question = bool(objectives or effect)
    if has_question and outcome.runs > outcome.failed:
        print_answers(request, folder, objectives, effect)
    if request.load and outcome.runs > outcome.failed:
        print_load_curves(request, folder, plan)
    if not (has_question and request.as_json):
        print_outcome(outcome, request.as_json)
    if outcome.failed:
        raise SystemExit(1)


def requested_loads(request: Request) -> str | None:
    """Returns the requested loads as text, or None."""
    from schedlab.sweep import load_curves

    return load_curves.expand_loads(request.load) if request.load else None


def check_pictures(request: Request, objectives: list[Objective]) -> None:
    """Raises WrongUsage for charts that cannot be drawn."""
    from schedlab.sweep import best
    from schedlab.sweep.page import parse_pair

    if request.chart:
        best.check_chart(request.chart, objectives, bool(request.load or request.effects))
    if not request.pair:
        return
    parse_pair(request.pair)
    if not (request.effects and request.chart):
        raise WrongUsage(
            f"--map {request.pair}: draws effects; add --effects METRIC --chart FILE.svg"
        )


def execution_options_of(request: Request, folder: Path) -> ExecutionOptions:
    """Returns how to execute the runs: locally or on a cluster."""
    from schedlab.sweep.command import ExecutionOptions

    return ExecutionOptions(
        folder,
        request.scheduler,
        request.certificate,
        request.workers,
        request.keep_traces,
        request.retry_failed,
    )


def run_search(
    request: Request, given: dict[str, Node], folder: Path, objectives: list[Objective]
) -> None:
    """Searches for the best configuration, and prints it."""
    from schedlab.sweep import search
    from schedlab.sweep.optimizer import grid_size, parse_budget

    assert request.search
    if request.load:
        raise WrongUsage("--search: works for one load; replace --load by --with load=0.8")
    search_plan = search.prepare_search(
        request.file, given, objectives, parse_budget(request.search)
    )
    if request.dry_run:
        setups, seeds = search_plan.search().setups, len(search_plan.description.seeds)
        size = grid_size(search_plan.description)
        if request.as_json:
            echo_json({"runs": setups * seeds, "setups": setups, "grid_setups": size})
            return
        per_point = f"{format_count(seeds, 'seed')} each"
        print_result(
            f"at most {format_count(setups, 'configuration')} with {per_point},"
            f" of {search.format_rounded(size)} in the full grid"
        )
        return
    with report_if_interrupted(folder):
        outcome = search.execute_search(search_plan, execution_options_of(request, folder))
    if outcome.done.runs > outcome.done.failed:
        print_answers(request, folder, objectives, None, {"search": outcome.to_dict()})
    if not request.as_json:
        for line in outcome.lines(objectives[0]):
            print_result(line)
        print_outcome(outcome.done, False)
    if outcome.done.failed:
        raise SystemExit(1)


def set_load_seeds(request: Request, options: dict[str, Any]) -> None:
    """Sets the default seeds of load curves if nothing sets them.

    Raises WrongUsage without `--load`.
    """
    from schedlab.sweep import load_curves

    if not request.load:
        raise WrongUsage(f"--group {request.group}: applies to load curves; add --load 0.1-0.95")
    load_curves.expand_loads(request.load)
    if not (request.source or request.file):
        options["seeds"] = options["seeds"] or load_curves.DEFAULT_SEEDS


def print_load_curves(request: Request, folder: Path, plan: SweepPlan | None) -> None:
    """Prints the load curves as tables and draws them, by default into the data set's folder.

    `plan`: the runs of this command; None to read the data set.
    """
    from schedlab.sweep import load_curves

    assert request.load
    place = request.chart or folder / "load.svg"
    jobs = load_curves.list_jobs(plan.points) if plan else load_curves.read_stored_jobs(folder)
    loads = None if plan else load_curves.expand_loads(request.load)
    scenes = list(load_curves.read_scenes(folder, request.group, jobs, loads))
    for number, scene in enumerate(scenes):
        if not request.as_json:
            result_console().print(load_curves.load_table(scene))
        file = place.with_name(f"{place.stem}-{number + 1}{place.suffix}") if number else place
        for path in load_curves.draw_load_curves(scene, file, replaces=not request.chart):
            say(f"schedlab: {path}")


def check_source(request: Request, source: Path, runs: bool, objectives: list[Objective]) -> None:
    """Raises WrongUsage for options that do not fit an existing data set.

    `runs`: the command also executes runs.
    """
    run_options = (
        request.file,
        request.out,
        request.scheduler,
        request.certificate,
        request.workers,
    )
    if runs or any(run_options):
        raise WrongUsage(
            f"--from {source}: ranks existing runs and runs nothing; leave out FILE.yaml, and options"
            " of new runs such as --policy, --jobs or --out"
        )
    if not (objectives or request.effects or request.load):
        raise WrongUsage(
            f"--from {source}: the metric is missing; add --best METRIC, such as "
            "--best turnaround, --effects METRIC or --load LOADS"
        )


def check_cluster(request: Request) -> None:
    """Raises WrongUsage for options of a cluster that contradict each other, or for an invalid
    certificate.
    """
    if request.scheduler and request.workers:
        raise WrongUsage(
            "--jobs: a cluster decides its number of workers; leave out --jobs or --scheduler"
        )
    if request.certificate and not request.scheduler:
        raise WrongUsage("--certificate: applies to a cluster; add --scheduler ADDRESS")
    if request.scheduler:
        from schedlab.runs.certificate import certificate_for

        certificate_for(request.scheduler, request.certificate)


def print_answers(
    request: Request,
    folder: Path,
    objectives: list[Objective],
    effect: Objective | None,
    more: dict[str, Any] | None = None,
) -> None:
    """Prints the answers about the data set."""
    from schedlab.sweep.effects import compute_effects
    from schedlab.sweep.listing import effects_tables

    if effect:
        answer = compute_effects(folder, effect)
        if request.chart and len(objectives) < 2:
            draw_maps(request, folder, effect, answer)
        if request.as_json:
            result = {"folder": str(folder), "effects": {effect.text: answer.to_dict()}}
            echo_json(result)
            return
        for part in effects_tables(answer, effect):
            result_console().print(part)
    if objectives:
        print_best(request, folder, objectives, more or {})


def draw_maps(request: Request, folder: Path, effect: Objective, answer: Effects) -> None:
    """Draws the heat maps of the strongest or the chosen interactions."""
    from schedlab.sweep import page

    assert request.chart
    pair = page.parse_pair(request.pair) if request.pair else None
    for path in page.draw_heat_maps(folder, effect, answer, request.chart, pair):
        say(f"schedlab: {path}")


def print_best(
    request: Request, folder: Path, objectives: list[Objective], more: dict[str, Any]
) -> None:
    """Prints the best setups, and draws the front."""
    from schedlab.sweep import best

    if request.as_json:
        echo_json(
            {"folder": str(folder), "scenes": best.rankings_as_dicts(folder, objectives), **more}
        )
    else:
        for table in best.ranking_tables(folder, objectives, request.top):
            result_console().print(table)
    if request.chart and len(objectives) > 1:
        for path in best.draw_fronts(folder, objectives, request.chart):
            say(f"schedlab: {path}")


def print_sweep_plan(plan: SweepPlan, as_json: bool) -> None:
    """Prints the number of planned runs, and some of them."""
    from schedlab.sweep.plan import evenly_spaced, title_of

    shown = [title_of(point) for point in evenly_spaced(plan.points, PLANNED_RUNS_SHOWN)]
    print_planned(len(plan.points), shown, as_json, dimensions=plan.dimensions)


def carry_out(plan: SweepPlan, execution: ExecutionOptions) -> SweepOutcome:
    """Executes the plan. If it is interrupted, says how to resume."""
    from schedlab.sweep import command

    with report_if_interrupted(execution.out):
        return command.execute_plan(plan, execution)


def report_if_interrupted(folder: Path) -> AbstractContextManager[None]:
    """If a signal ends the block, prints what is finished and how to resume."""
    from schedlab.sweep.dataset import read_statuses

    def describe_finished(_: object) -> str:
        count = len(read_statuses(folder))
        verb = "is" if count == 1 else "are"
        return (
            f"; {format_count(count, 'run')} {verb} finished and kept. To continue, repeat the command"
            f" with --out {folder}"
        )

    return report_if_ended_by_signal(describe_finished)


def print_outcome(outcome: SweepOutcome, as_json: bool) -> None:
    """Prints how many runs the sweep has, and how many failed."""
    if as_json:
        echo_json(
            {"folder": str(outcome.folder), "runs": outcome.runs, "already": outcome.existing_runs,
             "failed": outcome.failed}
        )  # fmt: skip
        return
    failed = f", {outcome.failed} failed" if outcome.failed else ""
    print_result(f"{format_count(outcome.runs, 'run')}{failed}. Kept in {outcome.folder}")
