# SPDX-License-Identifier: MIT
"""Policies under the same suite: their values by seed, their means, and which policies may be the best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from schedlab.analysis.comparison.best import Ranking, level_of, ranking
from schedlab.analysis.comparison.measures import BY_NAME, Measure, measured
from schedlab.analysis.comparison.statistics import (
    Estimate,
    estimates,
    probability_apart,
    unseen_rate,
)
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.runs.collection import Collection, Repeated
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload.changes import workload_title

COMPARED = tuple(
    BY_NAME[name]
    for name in (
        *("turnaround", "response", "throughput", "overhead", "fairness", "predictability"),
        *("completion", "wakeup-median", "wakeup-99th", "share-error", "events"),
    )
)
"""The six of study 3, and what they leave out."""

MARGIN = 1.01
"""A policy that is less than 1 % worse than the best is as good, whatever the seeds tell."""
RARE = 0.1
"""Part of the seeds: losses that are rarer may be unseen in a final verdict."""
_FLOORS = {"share-error": 0.1, "overhead": 1e-5}
"""Smaller differences are not looked at, by metric (points; part of the CPUs' time)."""

_CHANGES = 40
"""Letters of changes in a workload file that a title has room for."""
_OTHER_IDEAL = 0.02
"""Ideal shares that differ by more than that are of other weights, not of other demands."""

Sample = tuple[list[float], float]
"""A value for each seed, and how fine they are."""


@dataclass(frozen=True)
class Suite:
    """An experiment on a number of CPUs, under two policies or more, with the same seeds."""

    experiment: str
    cpus: int
    tick_ns: int
    machine: str
    title: str
    """The command that was run, or the name of a workload file; several, where seeds or policies had others."""
    policies: tuple[str, ...]
    """The policies in the order of all tables."""
    seeds: tuple[int, ...]
    failed: Mapping[str, str]
    """Policies of which a run failed, and how."""
    samples: Mapping[tuple[str, str], Sample]
    """Samples by policy and metric, where every seed has a value."""
    means: Mapping[tuple[str, str], Estimate]
    looks: int = 1
    """How often it is looked at most, with more seeds each time, whether policies are told apart."""

    @property
    def study(self) -> int | None:
        """Returns the number of its study, or None if it is of no study."""
        known = EXPERIMENTS.get(self.experiment)
        return known.study if known else None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that two policies or more have."""
        return tuple(measure for measure in COMPARED if len(self.having(measure)) > 1)

    @cached_property
    def contests(self) -> tuple[Measure, ...]:
        """Metrics in which policies differ, and several seeds tell how much that says."""
        if len(self.seeds) < 2:
            return ()
        return tuple(measure for measure in self.measures if not self.alike(measure))

    def having(self, measure: Measure) -> list[str]:
        """The policies that have such a value."""
        return [policy for policy in self.policies if (policy, measure.name) in self.samples]

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """Rankings by metric. There are none for a single seed, which cannot tell the best from
        another policy."""
        if len(self.seeds) < 2:
            return {}
        return {measure.name: self._ranking(measure) for measure in self.measures}

    def _ranking(self, measure: Measure) -> Ranking:
        samples = {policy: self.samples[policy, measure.name] for policy in self.having(measure)}
        finest = max(resolution for _, resolution in samples.values())
        values = {policy: sample for policy, (sample, _) in samples.items()}
        return ranking(values, measure.better or "lower", finest, self.looks)

    def as_good(self, measure: Measure) -> list[str]:
        """The policies that cannot be told from the best, or are as good for all practical purposes: the best
        first. Of one seed, all."""
        return self._good[measure.name]

    @cached_property
    def _good(self) -> dict[str, list[str]]:
        return {measure.name: self._find_good(measure) for measure in self.measures}

    def _find_good(self, measure: Measure) -> list[str]:
        order = self.order(measure)
        if measure.name not in self.rankings:
            return order
        possible = self.rankings[measure.name].possible
        return [policy for policy in order if policy in possible or self.is_near(policy, measure)]

    def settled(self, measure: Measure) -> bool:
        """Would more seeds tell nothing more? One policy is left; or those that are left are surely as good."""
        best, *others = self.as_good(measure)
        return all(self._surely_near(other, best, measure) for other in others)

    def _surely_near(self, policy: str, best: str, measure: Measure) -> bool:
        mean = self.means[best, measure.name].mean
        floor = self._floor(best, measure)
        worst = mean / MARGIN if measure.better == "higher" else MARGIN * max(mean, floor)
        sample, other = (self.samples[name, measure.name][0] for name in (best, policy))
        return probability_apart(sample, other, abs(worst - mean)) < level_of(self.looks)

    def withstands_rare_losses(self, measure: Measure) -> bool:
        """Whether losses in seeds that were not drawn leave the ranking as it is.

        No test of means holds if a policy may lose without bound in seeds as rare as you like (Bahadur and Savage,
        1956), and seeds without a loss do not show that there is one. So a policy is ruled out before RARE would have
        been seen only if its lead covers the losses that may be unseen: as often as the seeds allow, and each as large
        as the mean of the policy that is ruled out.
        """
        unseen = unseen_rate(len(self.seeds))
        left = self.as_good(measure)
        others = [policy for policy in self.having(measure) if policy not in left]
        return unseen <= RARE or all(
            1 - 1 / self.ratio(policy, measure) >= unseen for policy in others
        )

    def is_near(self, policy: str, measure: Measure) -> bool:
        """Is it so near the best mean that it is as good, whatever the seeds tell?"""
        return self.ratio(policy, measure) < MARGIN

    def order(self, measure: Measure) -> list[str]:
        """Returns the policies that have a value, the best mean first."""
        sign = -1 if measure.better == "higher" else 1
        return sorted(
            self.having(measure), key=lambda policy: sign * self.means[policy, measure.name].mean
        )

    def ratio(self, policy: str, measure: Measure) -> float:
        """How many times as bad as the best it is: 1 for the best. What is finer than values are
        counts as that: a latency of 0 is one below the clock's step."""
        floor = self._floor(policy, measure)
        mean, best = (
            max(self.means[name, measure.name].mean, floor)
            for name in (policy, self.order(measure)[0])
        )
        if mean == best:
            return 1.0
        above, below = (best, mean) if measure.better == "higher" else (mean, best)
        return above / below if below > 0 else math.inf

    def _floor(self, policy: str, measure: Measure) -> float:
        """What is finer than values are, or not looked at."""
        return max(self.samples[policy, measure.name][1], _FLOORS.get(measure.name, 0))

    def alike(self, measure: Measure) -> bool:
        """Do all policies have the same values?"""
        return (
            len({tuple(self.samples[policy, measure.name][0]) for policy in self.having(measure)})
            == 1
        )


def suites(collection: Collection) -> list[Suite]:
    """All that can be compared, in the order of the studies. Seeds that not all policies have are
    left out; where they have none in common, nothing can be compared."""
    several = _several(collection)
    seeds = {key: _common(setups) for key, setups in several.items()}
    runs = [
        run
        for key, setups in several.items()
        for repeated in setups
        for run in repeated.runs
        if run.seed in seeds[key]
    ]
    if not runs:
        return []
    # Of all runs, the tables have been read for other pages.
    some = len(runs) < sum(len(repeated.runs) for setups in several.values() for repeated in setups)
    compared = Collection(runs) if some else collection
    table = measured(compared)
    if table.is_empty():
        return []
    samples = _samples(_telling(compared, table))
    made = [_suite(key, setups, seeds[key], samples) for key, setups in several.items()]
    distinct = _told_apart([suite for suite in made if suite.seeds and suite.measures])
    return _with_means(sorted(distinct, key=_place))


Key = tuple[str, int, int, str]
"""Experiment, CPUs, tick, machine."""


def _several(collection: Collection) -> dict[Key, list[Repeated]]:
    """Returns the experiments that ran under two policies or more, but not those that repeat another
    with the operations of a slower machine: that is no comparison of policies."""
    setups_by_key: dict[Key, list[Repeated]] = {}
    for setup, repeated in collection.repeated.items():
        known = EXPERIMENTS.get(setup.experiment)
        if known and known.repeats:
            continue
        key = (setup.experiment, setup.cpus, setup.tick_ns, setup.machine)
        setups_by_key.setdefault(key, []).append(repeated)
    return {key: setups for key, setups in setups_by_key.items() if len(setups) > 1}


def _common(setups: Sequence[Repeated]) -> tuple[int, ...]:
    """The seeds that all have."""
    return tuple(sorted(set.intersection(*({run.seed for run in setup.runs} for setup in setups))))


def _place(suite: Suite) -> tuple[int, int]:
    """The place in the studies' order; other workloads come last, in the order of the runs."""
    names = list(EXPERIMENTS)
    known = suite.experiment in EXPERIMENTS
    return (names.index(suite.experiment), suite.cpus) if known else (len(names), 0)


def _telling(collection: Collection, table: pl.DataFrame) -> pl.DataFrame:
    """Of the whole, and of share errors those alone that can be compared: not of runs in which all
    processes ended, as they got all they asked for; nor those from an ideal of the policy's own."""
    cut = collection.summary.filter(
        (pl.col("status") == "success") & (pl.col("finished") < pl.col("processes"))
    )
    known = cut.filter(~pl.col("run").is_in(_own_ideals(collection.groups).implode()))["run"]
    usable = (pl.col("measure") != "share-error") | pl.col("run").is_in(known.implode())
    return table.filter(pl.col("group").is_null() & usable)


def _own_ideals(groups: pl.DataFrame) -> pl.Series:
    """Marks the runs in which ideal shares differ from those under most policies, because the policy
    shares by another attribute than the one that the test sets."""
    expected = pl.col("share") - pl.col("share_error_points") / 100
    usual = expected.median().over("experiment", "cpus", "tick_ns", "machine", "group")
    away = (expected - usual).abs() > _OTHER_IDEAL
    return groups.filter(away)["run"].unique()


Samples = dict[tuple[str, int, int, str, str, str], dict[int, tuple[float, float]]]
"""Values by experiment, CPUs, tick, machine, policy and metric: for each seed, the value and its
resolution."""


def _samples(table: pl.DataFrame) -> Samples:
    samples: Samples = {}
    columns = ("experiment", "cpus", "tick_ns", "machine", "policy", "measure")
    for *key, seed, value, resolution in table.select(
        *columns, "seed", "value", "resolution"
    ).iter_rows():
        samples.setdefault(tuple(key), {}).setdefault(seed, (value, resolution))
    return samples


def _suite(key: Key, setups: Sequence[Repeated], seeds: tuple[int, ...], samples: Samples) -> Suite:
    by_policy = {setup.setup.policy_title: setup for setup in setups}
    failed = {
        policy: _how(setup, seeds) for policy, setup in by_policy.items() if _how(setup, seeds)
    }
    policy_samples: dict[tuple[str, str], Sample] = {}
    for policy in by_policy:
        for measure in COMPARED:
            of_seeds = samples.get((*key, policy, measure.name), {})
            if seeds and of_seeds.keys() >= set(seeds):
                values = [of_seeds[seed] for seed in seeds]
                policy_samples[policy, measure.name] = (
                    [value for value, _ in values],
                    max(resolution for _, resolution in values),
                )
    title = "; ".join(_commands(setups, seeds))
    checks = max(run.looks for setup in setups for run in setup.runs)
    return Suite(
        *key, title, tuple(in_policy_order(by_policy)), seeds, failed, policy_samples, {}, checks
    )


def _commands(setups: Sequence[Repeated], seeds: Sequence[int]) -> Iterable[str]:
    """Each once. A quick run of an experiment has another than a full one."""
    runs = (run for setup in setups for run in setup.runs if run.seed in seeds)
    return dict.fromkeys(short_title(workload_title(run.manifest)) for run in runs)


def short_title(title: str) -> str:
    """Returns what a workload is called where there is little room: a file without its folder, and without changes that
    are too many to read."""
    name, _, changes = title.partition(" with ")
    file = Path(name)
    if file.suffix != ".json":
        return title
    if not changes:
        return file.stem
    return f"{file.stem} with {changes}" if len(changes) <= _CHANGES else f"{file.stem}, changed"


def _told_apart(suites: list[Suite]) -> list[Suite]:
    """Returns the suites, those with the experiment's name that have a title in common."""
    count = Counter((suite.title, suite.cpus) for suite in suites)
    return [
        replace(suite, title=f"{suite.title} ({suite.experiment}, {suite.machine})")
        if count[suite.title, suite.cpus] > 1
        else suite
        for suite in suites
    ]


def _how(setup: Repeated, seeds: Sequence[int]) -> str:
    """Returns how runs of these seeds failed, or "" if none did."""
    words = [f"seed {run.seed}: {run.status}" for run in setup.failed if run.seed in seeds]
    return ", ".join(words)


def _with_means(suites: Sequence[Suite]) -> list[Suite]:
    """Computes all means at once, as there are thousands."""
    means: list[dict[tuple[str, str], Estimate]] = [{} for _ in suites]
    for measure in COMPARED:
        places = [
            (number, policy)
            for number, suite in enumerate(suites)
            for policy in suite.having(measure)
        ]
        values = [suites[number].samples[policy, measure.name][0] for number, policy in places]
        for (number, policy), estimate in zip(
            places, estimates(values, measure.within), strict=True
        ):
            means[number][policy, measure.name] = estimate
    return [
        replace(suite, means=suite_means) for suite, suite_means in zip(suites, means, strict=True)
    ]
