# SPDX-License-Identifier: MIT
"""`./schedlab run --workload`: executes a request and shows the results."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import (
    new_table,
    print_full_width,
    print_result,
    result_console,
    say,
)
from schedlab.commands.execution import perform, print_next_steps, print_plan
from schedlab.errors import WrongUsage
from schedlab.report.adaptive_seeds import SEEDS_MIN

if TYPE_CHECKING:
    from schedlab.report.adaptive_seeds import MetricComparison, SeedBudget
    from schedlab.runs.parts import PartReplacements
    from schedlab.runs.plan import Plan
    from schedlab.runs.plan_execution import Finished
    from schedlab.runs.request import Request


def run_workload(
    request: Request, as_json: bool, budget: SeedBudget | None = None, dry_run: bool = False
) -> None:
    """Runs a workload under policies, numbers of CPUs and seeds, and prints tables of metrics.

    `budget`: adds seeds until the comparisons are decided, and prints the decisions instead.
    """
    if budget:
        check_decidable(request)
        request = replace(request, repeats=max(request.repeats, SEEDS_MIN))
    kernel_request = request.kernel_overrides()
    plan = request.plan()
    if dry_run:
        print_plan(plan.runs, as_json)
        return
    finished = perform(plan, replacements=kernel_request)
    if budget:
        comparisons = decide(plan, budget, kernel_request, finished)
        print_decided(finished, comparisons, as_json)
    else:
        print_results(finished, as_json)
    if not all(run.outcome.succeeded for run in finished):
        raise SystemExit(1)


def check_decidable(request: Request) -> None:
    """Raises WrongUsage if there are fewer than two policies, or seeds cannot be added."""
    if len(set(request.policies)) < 2:
        raise WrongUsage("--decide: needs several policies; name them in --policy")
    if request.other_recordings:
        raise WrongUsage(
            "--decide: a recording is replayed once, with its own seed; leave out "
            "--decide, or name one recording"
        )


def print_results(finished: list[Finished], as_json: bool) -> None:
    """Prints the tables, or JSON, and failures on standard error."""
    from schedlab.runs import plan_execution as runs

    if as_json:
        click.echo(runs.results_as_json(finished))
    else:
        print_tables(finished)
    print_failures(finished)


def decide(
    requested: Plan, budget: SeedBudget, kernel_request: PartReplacements, finished: list[Finished]
) -> list[MetricComparison]:
    """Adds runs with other seeds until the budget is used, and appends them to `finished`.

    Returns the comparisons.
    """
    from schedlab.analysis.comparison.suites import Suite, compared_suites
    from schedlab.report import adaptive_seeds
    from schedlab.runs.collection import Collection, load_run

    def perform_added(added: Plan) -> None:
        """Executes the added runs and collects them."""
        added.check_new()
        finished.extend(perform(added, replacements=kernel_request))

    def finished_suites(plan: Plan) -> list[Suite]:
        """Returns the suites of the finished runs."""
        return compared_suites(Collection(load_run(plan.place(run)) for run in plan.runs))

    return adaptive_seeds.add_seeds_until_decided(
        requested, budget, perform_added, finished_suites
    )[1]


def print_decided(
    finished: list[Finished], comparisons: list[MetricComparison], as_json: bool
) -> None:
    """Prints for each metric the winner or the policies that are tied for best; or JSON."""
    from schedlab.report.adaptive_seeds import print_comparisons
    from schedlab.runs import plan_execution as runs

    if as_json:
        click.echo(
            runs.results_as_json(
                finished, contests=[comparison.to_dict() for comparison in comparisons]
            )
        )
    else:
        table = new_table("", ">CPUs", "metric", "best mean", "tied for best", ">seeds")
        for comparison in comparisons:
            best, *others = comparison.remaining_policies
            row = (
                comparison.measure.title,
                best,
                ", ".join(others),
                str(len(comparison.suite.seeds)),
            )
            table.add_row(str(comparison.suite.cpus), *row)
        result_console().print(runs.summarize_runs([finished_run.run for finished_run in finished]))
        print_full_width(table)
        print_comparisons(comparisons)
        folder = finished[0].folder.parent
        print_result(
            f"Kept in {folder}; pages with charts: ./schedlab report {shlex.quote(str(folder))}"
        )
    print_failures(finished)


def print_failures(finished: list[Finished]) -> bool:
    """Prints failures, and attributes that had no effect. Returns True if nothing failed."""
    from schedlab.runs import plan_execution as runs

    messages = list(runs.describe_failures(finished))
    for message in (
        *(f"schedlab: {line}" for line in runs.describe_ignored_attributes(finished)),
        *messages,
    ):
        say(message)
    return not messages


def print_tables(finished: list[Finished]) -> None:
    """Prints tables of metrics, with one table for each workload."""
    from schedlab.runs import plan_execution as runs

    measured = [run for run in finished if run.metrics]
    if measured:
        from schedlab.commands.metric_tables import print_figures, print_metrics
        from schedlab.runs.results import read_printed_figures

        has_several_seeds = len({run.run.seed for run in measured}) > 1
        labelled = [
            (runs.run_heading(run.run, has_several_seeds), run.metrics)
            for run in measured
            if run.metrics
        ]
        result_console().print(runs.summarize_runs([run.run for run in measured]))
        print_metrics(labelled)
        output_by_run = [
            (
                runs.run_heading(run.run, has_several_seeds),
                read_printed_figures(run.folder, run.run.workload),
            )
            for run in measured
        ]
        print_figures([(heading, output) for heading, output in output_by_run if output])
    print_result(f"Kept in {finished[0].folder.parent}")
    print_next_steps([run.folder for run in measured])
