# SPDX-License-Identifier: MIT
"""Executes a search for the best setup, and measures the best setup again with other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.comparison.formatting import as_text
from schedlab.analysis.comparison.statistics import Estimate, estimates
from schedlab.base.display.numbers import counted
from schedlab.base.display.terminal import say
from schedlab.base.files.json_lines import Node
from schedlab.base.files.reading import read_text
from schedlab.base.host.supervision import signals_caught
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.errors import WrongUsage
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan_execution import Interrupted
from schedlab.sweep import command, dataset, description_reader, expansion
from schedlab.sweep.command import Doing, Done
from schedlab.sweep.description import Description
from schedlab.sweep.expansion import Point, Setup
from schedlab.sweep.objectives import Objective
from schedlab.sweep.optimizer import Budget, Search, Values, grid_size
from schedlab.sweep.origin import origin_of
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import Make, key_of
from schedlab.sweep.ranking import Choice, ranked, read_values, title_of, values_by_key

CONFIRMED = "confirmed"
"""Subfolder of the data set for the best setup's runs with other seeds."""

_MANY = 10**7
"""Numbers from this value are rounded for display."""


def rounded(number: int) -> str:
    """Formats a number: `1,024`; `about 2 × 10^12`."""
    if number < _MANY:
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

    done: Done
    setups: int
    grid: int
    """Setups of the full grid, including those excluded by conditions."""
    seeds: int
    best: Choice | None = None
    """The setup with the best mean; None for several metrics or without successful runs."""
    again: Estimate | None = None
    """Its value with other seeds."""
    other_seeds: tuple[int, ...] = ()

    def lines(self, objective: Objective) -> list[str]:
        """Returns a summary for people."""
        runs = f", {counted(self.grid * self.seeds, 'run')}" if self.grid < _MANY else ""
        texts = [
            f"Searched: {counted(self.setups, 'configuration')},"
            f" {counted(self.setups * self.seeds, 'run')}; the full grid has"
            f" {rounded(self.grid)} configuration{'s' * (self.grid != 1)}{runs}."
        ]
        if self.best and self.again:
            seeds = f"seed{'s' if len(self.other_seeds) > 1 else ''} {_span(self.other_seeds)}"
            texts.append(
                f"{title_of(self.best)}, measured again with {seeds}, which were not used in the"
                f" search: {as_text(self.again, objective.quantity)}"
            )
        return texts

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        again = self.again
        return {
            "setups": self.setups,
            "runs": self.setups * self.seeds,
            "grid_setups": self.grid,
            "best": {"policy": self.best[0], "settings": self.best[1]} if self.best else None,
            "again": {"seeds": self.other_seeds, "mean": again.mean, "low": again.low,
                      "high": again.high} if again else None,
        }  # fmt: skip


def _span(seeds: Sequence[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def request_of(
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
    description = description_reader.read(path, options, read_catalogue(), searched=True)
    bases = list(expansion.bases(description))
    if len(bases) > 1:
        raise WrongUsage(
            "each workload, number of CPUs and tick has a separate best configuration, and there"
            f" are {len(bases)} of them",
            what="`search=`",
            fix="search for one at a time",
        )
    source = read_text(path) if path else ""
    result = SearchRequest(description, source, bases[0], tuple(objectives), budget)
    result.search()
    return result


def carry_out(request: SearchRequest, doing: Doing) -> SearchResult:
    """Executes the missing runs of a search. Raises Interrupted, SchedlabError, WrongUsage."""
    setups, done = _searched(request, doing)
    result = SearchResult(
        done, len(setups), grid_size(request.description), len(request.description.seeds)
    )
    if len(request.objectives) > 1 or done.failed == done.runs:
        return result
    best = _best(doing.out, request.objectives[0])
    chosen = next((setup for setup in setups if _choice(setup, request) == best), None)
    return _again(request, doing, result, chosen) if chosen else result


def _searched(request: SearchRequest, doing: Doing) -> tuple[list[Setup], Done]:
    """Returns all tried setups and the outcome of their runs."""
    search = request.search()
    rounds = search.rounds()
    chosen = next(rounds)
    first = request.plan(_points(request, chosen))
    make = command.built(first.machines, first.tools)
    origin = origin_of(first, make)
    most = search.setups * len(request.description.seeds)
    tried: list[Setup] = []
    already = 0
    with (
        dataset.opened(
            doing.out, first.dimensions, make.to_dict(), first.title, origin, command.standards
        ) as data_set,
        signals_caught() as caught,  # also between two rounds
        command.workers_of(doing, most) as (workers, board),
    ):
        execution = command.Execution(first, make, data_set, doing, workers, board)
        while chosen:
            tried += chosen
            points = _points(request, chosen)
            keys = {key_of(point.run, make): point for point in points}
            left = {key: point for key, point in keys.items() if key not in data_set.statuses}
            already += len(keys) - len(left)
            board.exist_already(len(keys) - len(left))
            if left:
                execution.run(left)
            if caught.number:
                raise Interrupted(caught.number)
            search.report_results(_measured(request, doing.out, points, make))
            chosen = next(rounds, [])
        tried_keys = [key_of(point.run, make) for point in _points(request, tried)]
        failed = sum(data_set.statuses[key] != "success" for key in tried_keys)
        return tried, Done(doing.out, len(tried_keys), already, failed)


def _points(request: SearchRequest, chosen: Sequence[Setup]) -> list[Point]:
    return list(expansion.points(request.base, chosen, request.description))


def _measured(
    request: SearchRequest, folder: Path, points: Sequence[Point], make: Make
) -> list[Values]:
    """Returns the mean over seeds of each objective, for each setup."""
    keys = [key_of(point.run, make) for point in points]
    runs = dataset.read_table(folder, dataset.RUNS)
    runs = runs.filter(pl.col("key").is_in(keys) & (pl.col("status") == "success"))
    by_key: dict[str, list[float | None]] = {key: [] for key in keys}
    for objective in request.objectives:
        known = {} if runs.is_empty() else _known(folder, runs, objective)
        for key in keys:
            by_key[key].append(known.get(key))
    seeds = len(request.description.seeds)
    rows = [[by_key[key] for key in keys[at : at + seeds]] for at in range(0, len(keys), seeds)]
    return [_means(row) for row in rows]


def _known(folder: Path, runs: pl.DataFrame, objective: Objective) -> dict[str, float]:
    values = values_by_key(folder, runs, objective, "value").drop_nulls()
    chosen = values.join(runs.select("key"), on="key", how="semi")
    return dict(zip(chosen["key"].to_list(), chosen["value"].to_list(), strict=True))


def _means(rows: Sequence[Sequence[float | None]]) -> Values:
    """Returns the mean of each column; None if a value is missing."""
    means = []
    for column in zip(*rows, strict=True):
        known = [value for value in column if value is not None]
        if len(known) < len(column):
            return None
        means.append(sum(known) / len(known))
    return means


# --- the best one, again


def _best(folder: Path, objective: Objective) -> Choice | None:
    places = [
        ranking
        for values in read_values(folder, [objective])
        for ranking in ranked(values, objective)
    ]
    return places[0].choice if places else None


def _choice(setup: Setup, request: SearchRequest) -> Choice:
    entry, settings = setup
    run = replace(request.base, policy=entry.choice, settings=settings)
    return str(run.policy), run.settings_text


def _again(
    request: SearchRequest, doing: Doing, result: SearchResult, chosen: Setup
) -> SearchResult:
    """Runs the best setup with as many new seeds, because it was chosen partly by luck."""
    seeds = request.description.seeds
    others = tuple(max(seeds) + 1 + number for number in range(len(seeds)))
    description = replace(request.description, seeds=others)
    points = list(expansion.points(request.base, [chosen], description))
    say(f"schedlab: running the best configuration again with {len(others)} other seeds")
    folder = doing.out / CONFIRMED
    command.carry_out(request.plan(points), replace(doing, out=folder))
    objective, best = request.objectives[0], _choice(chosen, request)
    for values in read_values(folder, [objective]):
        if best in values.choices and values.seeds == others:
            row = values.values[0][values.choices.index(best)]
            again = estimates([row], objective.within)[0]
            return replace(result, best=best, again=again, other_seeds=others)
    return replace(result, best=best)
