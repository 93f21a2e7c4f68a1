# SPDX-License-Identifier: MIT
"""Executes a search for the best setup, and measures the best setup again with other seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.comparison.formatting import estimate_as_text
from schedlab.analysis.comparison.statistics import Estimate, estimates
from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import say
from schedlab.base.files.json_lines import Node
from schedlab.base.files.reading import read_text
from schedlab.base.host.supervision import catch_signals
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.errors import WrongUsage
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan_execution import Interrupted
from schedlab.sweep import command, dataset, description_reader, expansion
from schedlab.sweep.command import ExecutionOptions, SweepOutcome
from schedlab.sweep.description import Description
from schedlab.sweep.expansion import Point, Setup
from schedlab.sweep.objectives import Objective
from schedlab.sweep.optimizer import Budget, Search, Values, grid_size
from schedlab.sweep.origin import make_origin
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import ProgramSet, run_key
from schedlab.sweep.ranking import (
    PolicySettings,
    rank_setups,
    read_values,
    setup_title,
    values_by_key,
)

CONFIRMATION_FOLDER = "confirmed"
"""Subfolder of the data set for the best setup's runs with other seeds."""

_ROUNDED_FROM = 10**7
"""Numbers from this value are rounded for display."""


def format_rounded(number: int) -> str:
    """Formats a number: `1,024`; `about 2 × 10^12`."""
    if number < _ROUNDED_FROM:
        return f"{number:,}"
    first, _, power = f"{number:.0e}".partition("e+")
    return f"about {first} × 10^{int(power)}"


@dataclass(frozen=True)
class SearchRequest:
    """A search that is ready to run."""

    description: Description
    source: str
    base: RunSpec
    """The parameters shared by all runs."""
    objectives: tuple[Objective, ...]
    budget: Budget

    def search(self) -> Search:
        """Returns a new Search; all of them propose the same setups."""
        return Search(
            self.description, self.budget, [objective.better for objective in self.objectives]
        )

    def plan(self, points: Sequence[Point]) -> SweepPlan:
        """Returns a sweep plan of these points."""
        return SweepPlan(self.description.title, tuple(points), self.source)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    done: SweepOutcome
    setups: int
    grid: int
    """Setups of the full grid, including those excluded by conditions."""
    seeds: int
    best: PolicySettings | None = None
    """The setup with the best mean; None for several metrics or without successful runs."""
    confirmation: Estimate | None = None
    """Its value with other seeds."""
    other_seeds: tuple[int, ...] = ()

    def lines(self, objective: Objective) -> list[str]:
        """Returns a summary for people."""
        runs = (
            f", {format_count(self.grid * self.seeds, 'run')}" if self.grid < _ROUNDED_FROM else ""
        )
        texts = [
            f"Searched: {format_count(self.setups, 'configuration')},"
            f" {format_count(self.setups * self.seeds, 'run')}; the full grid has"
            f" {format_rounded(self.grid)} configuration{'s' * (self.grid != 1)}{runs}."
        ]
        if self.best and self.confirmation:
            seeds = (
                f"seed{'s' if len(self.other_seeds) > 1 else ''} {_range_text(self.other_seeds)}"
            )
            texts.append(
                f"{setup_title(self.best)}, measured again with {seeds}, which were not used in the"
                f" search: {estimate_as_text(self.confirmation, objective.quantity)}"
            )
        return texts

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        confirmation = self.confirmation
        return {
            "setups": self.setups,
            "runs": self.setups * self.seeds,
            "grid_setups": self.grid,
            "best": {"policy": self.best[0], "settings": self.best[1]} if self.best else None,
            "again": {"seeds": self.other_seeds, "mean": confirmation.mean, "low": confirmation.low,
                      "high": confirmation.high} if confirmation else None,
        }  # fmt: skip


def _range_text(seeds: Sequence[int]) -> str:
    """Returns the first and the last seed in words."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def prepare_search(
    path: Path | None,
    options: Mapping[str, Node],
    objectives: Sequence[Objective],
    budget: Budget,
) -> SearchRequest:
    """Prepares a search. Raises WrongUsage before anything is written."""
    if not objectives:
        raise WrongUsage(
            "the metric is missing",
            what="`search=`",
            fix="add `best=METRIC`, such as `best='turnaround'`",
        )
    description = description_reader.read_description(
        path, options, read_catalogue(), searched=True
    )
    bases = list(expansion.base_runs(description))
    if len(bases) > 1:
        raise WrongUsage(
            "each workload, number of CPUs and tick has a separate best configuration, and there"
            f" are {len(bases)} of them",
            what="`search=`",
            fix="name one workload, one number of CPUs and one tick",
        )
    source = read_text(path) if path else ""
    result = SearchRequest(description, source, bases[0], tuple(objectives), budget)
    result.search()
    return result


def execute_search(request: SearchRequest, execution_options: ExecutionOptions) -> SearchResult:
    """Executes the missing runs of a search. Raises Interrupted, SchedlabError, WrongUsage."""
    setups, outcome = _run_search(request, execution_options)
    result = SearchResult(
        outcome, len(setups), grid_size(request.description), len(request.description.seeds)
    )
    if len(request.objectives) > 1 or outcome.failed == outcome.runs:
        return result
    best = _best_setup(execution_options.out, request.objectives[0])
    chosen = next((setup for setup in setups if _policy_settings(setup, request) == best), None)
    return _confirm_best(request, execution_options, result, chosen) if chosen else result


def _run_search(
    request: SearchRequest, execution_options: ExecutionOptions
) -> tuple[list[Setup], SweepOutcome]:
    search = request.search()
    rounds = search.rounds()
    chosen = next(rounds)
    first_plan = request.plan(_points_of_setups(request, chosen))
    program_set = command.build_program_set(first_plan.machines, first_plan.tools)
    origin = make_origin(first_plan, program_set)
    runs_max = search.setups * len(request.description.seeds)
    tried: list[Setup] = []
    existing_runs = 0
    with (
        dataset.open_data_set(
            execution_options.out,
            first_plan.dimensions,
            program_set.to_dict(),
            first_plan.title,
            origin,
            command.tunable_defaults,
        ) as data_set,
        catch_signals() as caught,  # also between two rounds
        command.open_workers(execution_options, runs_max) as (workers, board),
    ):
        execution = command.Execution(
            first_plan, program_set, data_set, execution_options, workers, board
        )
        while chosen:
            tried += chosen
            points = _points_of_setups(request, chosen)
            keys = {run_key(point.run, program_set): point for point in points}
            missing_points = {
                key: point for key, point in keys.items() if key not in data_set.statuses
            }
            existing_runs += len(keys) - len(missing_points)
            board.exist_already(len(keys) - len(missing_points))
            if missing_points:
                execution.run(missing_points)
            if caught.number:
                raise Interrupted(caught.number)
            search.report_results(_mean_values(request, execution_options.out, points, program_set))
            chosen = next(rounds, [])
        tried_keys = [
            run_key(point.run, program_set) for point in _points_of_setups(request, tried)
        ]
        failed = sum(data_set.statuses[key] != "success" for key in tried_keys)
        return tried, SweepOutcome(execution_options.out, len(tried_keys), existing_runs, failed)


def _points_of_setups(request: SearchRequest, chosen: Sequence[Setup]) -> list[Point]:
    """Returns the points of these setups, with all seeds."""
    return list(expansion.with_seeds(request.base, chosen, request.description))


def _mean_values(
    request: SearchRequest, folder: Path, points: Sequence[Point], program_set: ProgramSet
) -> list[Values]:
    """Returns the mean over seeds of each objective, for each setup."""
    keys = [run_key(point.run, program_set) for point in points]
    runs = dataset.read_table(folder, dataset.RUNS)
    runs = runs.filter(pl.col("key").is_in(keys) & (pl.col("status") == "success"))
    by_key: dict[str, list[float | None]] = {key: [] for key in keys}
    for objective in request.objectives:
        value_by_key = {} if runs.is_empty() else _values_of_objective(folder, runs, objective)
        for key in keys:
            by_key[key].append(value_by_key.get(key))
    seeds = len(request.description.seeds)
    rows = [
        [by_key[key] for key in keys[index : index + seeds]] for index in range(0, len(keys), seeds)
    ]
    return [_means(row) for row in rows]


def _values_of_objective(
    folder: Path, runs: pl.DataFrame, objective: Objective
) -> dict[str, float]:
    """Returns the known values of an objective, by run key."""
    values = values_by_key(folder, runs, objective, "value").drop_nulls()
    chosen = values.join(runs.select("key"), on="key", how="semi")
    return dict(zip(chosen["key"].to_list(), chosen["value"].to_list(), strict=True))


def _means(rows: Sequence[Sequence[float | None]]) -> Values:
    """Returns the mean of each column; None if a value is missing."""
    means = []
    for column in zip(*rows, strict=True):
        usable_values = [value for value in column if value is not None]
        if len(usable_values) < len(column):
            return None
        means.append(sum(usable_values) / len(usable_values))
    return means


# --- the best one, again


def _best_setup(folder: Path, objective: Objective) -> PolicySettings | None:
    """Returns the setup with the best mean; None without successful runs."""
    places = [
        ranking
        for values in read_values(folder, [objective])
        for ranking in rank_setups(values, objective)
    ]
    return places[0].name if places else None


def _policy_settings(setup: Setup, request: SearchRequest) -> PolicySettings:
    entry, settings = setup
    run = replace(request.base, policy=entry.choice, settings=settings)
    return str(run.policy), run.settings_text


def _confirm_best(
    request: SearchRequest, execution_options: ExecutionOptions, result: SearchResult, chosen: Setup
) -> SearchResult:
    """Runs the best setup with as many new seeds, because it was chosen partly by luck."""
    seeds = request.description.seeds
    new_seeds = tuple(max(seeds) + 1 + number for number in range(len(seeds)))
    description = replace(request.description, seeds=new_seeds)
    points = list(expansion.with_seeds(request.base, [chosen], description))
    say(f"schedlab: running the best configuration again with {len(new_seeds)} other seeds")
    folder = execution_options.out / CONFIRMATION_FOLDER
    command.execute_plan(request.plan(points), replace(execution_options, out=folder))
    objective, best = request.objectives[0], _policy_settings(chosen, request)
    for values in read_values(folder, [objective]):
        if best in values.setups and values.seeds == new_seeds:
            row = values.values[0][values.setups.index(best)]
            confirmation = estimates([row], objective.within)[0]
            return replace(result, best=best, confirmation=confirmation, other_seeds=new_seeds)
    return replace(result, best=best)
