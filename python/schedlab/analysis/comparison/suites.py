# SPDX-License-Identifier: MIT
"""Compares policies under the same suite: values by seed, means, and the policies tied for best."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from schedlab.analysis.comparison.best import Ranking, level_per_evaluation, rank_policies
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME, Measure, measure_values
from schedlab.analysis.comparison.statistics import (
    Estimate,
    estimates,
    p_value_within_margin,
    unseen_rate,
)
from schedlab.base.toolchain.policies import sort_policies
from schedlab.runs.collection import Collection, ConfigurationRuns
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload.changes import workload_title

COMPARED_MEASURES = tuple(
    MEASURES_BY_NAME[name]
    for name in (
        *("turnaround", "response", "throughput", "overhead", "fairness", "predictability"),
        *("completion", "wakeup-median", "wakeup-99th", "share-error", "events"),
    )
)
"""Study 3's six metrics, and others that complement them."""

EQUALLY_GOOD_RATIO = 1.01
"""A policy less than 1 % worse than the best counts as equally good, even if the difference is significant."""
RARE_FRACTION = 0.1
"""Fraction of seeds: a final verdict may miss losses that are rarer."""
_SMALLEST_DIFFERENCES = {"share-error": 0.1, "overhead": 1e-5}
"""Smaller differences are ignored, by metric (percentage points; fraction of the CPU time)."""

_CHANGES_CHARACTERS_MAX = 40
"""Longest text of a workload file's changes in a title, in characters."""
_IDEAL_DIFFERENCE_MIN = 0.02
"""Larger differences of ideal shares are due to other weights, not to other demands."""

Sample = tuple[list[float], float]
"""One value per seed, and the resolution of the values."""


@dataclass(frozen=True)
class Suite:
    """An experiment on a number of CPUs under two policies or more, with the same seeds."""

    experiment: str
    cpus: int
    tick_ns: int
    machine: str
    title: str
    """The command or the workload file; several if they differ by seed or policy."""
    policies: tuple[str, ...]
    """The policies in the order of all tables."""
    seeds: tuple[int, ...]
    failures: Mapping[str, str]
    """Policies with a failed run, and how it failed."""
    samples: Mapping[tuple[str, str], Sample]
    """Samples by policy and metric, where every seed has a value."""
    means: Mapping[tuple[str, str], Estimate]
    evaluations_max: int = 1
    """How often the results are evaluated at most, with more seeds each time."""

    @property
    def study(self) -> int | None:
        """The number of the experiment's study, or None if it belongs to no study."""
        experiment = EXPERIMENTS.get(self.experiment)
        return experiment.study if experiment else None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that at least two policies have."""
        return tuple(
            measure for measure in COMPARED_MEASURES if len(self.policies_with(measure)) > 1
        )

    @cached_property
    def differing_measures(self) -> tuple[Measure, ...]:
        """Measures with different values under the policies; empty for a single seed."""
        if len(self.seeds) < 2:
            return ()
        return tuple(measure for measure in self.measures if not self.has_equal_values(measure))

    def policies_with(self, measure: Measure) -> list[str]:
        """Returns the policies with a value of the measure."""
        return [policy for policy in self.policies if (policy, measure.name) in self.samples]

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """Rankings by metric; empty for a single seed, which cannot separate policies."""
        if len(self.seeds) < 2:
            return {}
        return {measure.name: self._ranking(measure) for measure in self.measures}

    def _ranking(self, measure: Measure) -> Ranking:
        samples = {
            policy: self.samples[policy, measure.name] for policy in self.policies_with(measure)
        }
        coarsest = max(resolution for _, resolution in samples.values())
        values = {policy: sample for policy, (sample, _) in samples.items()}
        return rank_policies(values, measure.better or "lower", coarsest, self.evaluations_max)

    def best_policies(self, measure: Measure) -> list[str]:
        """Returns the policies tied for best or within 1 % of the best, the best first. With one
        seed, these are all policies.
        """
        return self._good_by_metric[measure.name]

    @cached_property
    def _good_by_metric(self) -> dict[str, list[str]]:
        """Returns the cached results of `_find_as_good` by metric."""
        return {measure.name: self._find_as_good(measure) for measure in self.measures}

    def _find_as_good(self, measure: Measure) -> list[str]:
        """Returns the policies tied for best or within 1 % of the best, the best first."""
        order = self.policies_by_mean(measure)
        if measure.name not in self.rankings:
            return order
        possible = self.rankings[measure.name].tied_for_best
        return [policy for policy in order if policy in possible or self.is_near(policy, measure)]

    def is_settled(self, measure: Measure) -> bool:
        """True if more seeds would change nothing: one policy remains, or all remaining ones are
        significantly close.
        """
        best, *others = self.best_policies(measure)
        return all(self._is_surely_near(other, best, measure) for other in others)

    def _is_surely_near(self, policy: str, best: str, measure: Measure) -> bool:
        """Returns whether the policy is significantly less than 1 % worse than the best."""
        mean = self.means[best, measure.name].mean
        floor = self._floor(best, measure)
        worst = (
            mean / EQUALLY_GOOD_RATIO
            if measure.better == "higher"
            else EQUALLY_GOOD_RATIO * max(mean, floor)
        )
        sample, other = (self.samples[name, measure.name][0] for name in (best, policy))
        return p_value_within_margin(sample, other, abs(worst - mean)) < level_per_evaluation(
            self.evaluations_max
        )

    def withstands_rare_losses(self, measure: Measure) -> bool:
        """True if losses in seeds that were not drawn cannot change the ranking.

        No test of means is valid if a policy may lose without bound in arbitrarily rare seeds
        (Bahadur and Savage, 1956). Seeds without a loss do not exclude rare losses.

        Unless losses with a frequency of RARE would have been seen, a policy is excluded only if
        the winner's lead covers unseen losses. They are assumed to be as frequent as the seeds
        allow, and each as large as the excluded policy's mean.
        """
        unseen_fraction = unseen_rate(len(self.seeds))
        best = self.best_policies(measure)
        others = [policy for policy in self.policies_with(measure) if policy not in best]
        return unseen_fraction <= RARE_FRACTION or all(
            1 - 1 / self.ratio(policy, measure) >= unseen_fraction for policy in others
        )

    def is_near(self, policy: str, measure: Measure) -> bool:
        """True if the policy is within 1 % of the best mean, so that it counts as equally good."""
        return self.ratio(policy, measure) < EQUALLY_GOOD_RATIO

    def policies_by_mean(self, measure: Measure) -> list[str]:
        """Returns the policies that have a value, the best mean first."""
        sign = -1 if measure.better == "higher" else 1
        return sorted(
            self.policies_with(measure),
            key=lambda policy: sign * self.means[policy, measure.name].mean,
        )

    def ratio(self, policy: str, measure: Measure) -> float:
        """Returns how many times worse the policy is than the best, which has 1. Values below the
        floor count as the floor: a latency of 0 counts as one clock step.
        """
        floor = self._floor(policy, measure)
        mean, best = (
            max(self.means[name, measure.name].mean, floor)
            for name in (policy, self.policies_by_mean(measure)[0])
        )
        if mean == best:
            return 1.0
        above, below = (best, mean) if measure.better == "higher" else (mean, best)
        return above / below if below > 0 else math.inf

    def _floor(self, policy: str, measure: Measure) -> float:
        """Returns the resolution of the values, or the smallest difference that matters if that is larger."""
        return max(
            self.samples[policy, measure.name][1], _SMALLEST_DIFFERENCES.get(measure.name, 0)
        )

    def has_equal_values(self, measure: Measure) -> bool:
        """True if all policies have the same values."""
        return (
            len(
                {
                    tuple(self.samples[policy, measure.name][0])
                    for policy in self.policies_with(measure)
                }
            )
            == 1
        )


def compared_suites(collection: Collection) -> list[Suite]:
    """Returns all suites that can be compared, in the order of the studies.

    Seeds that some policy lacks are ignored. Experiments without a common seed are omitted.
    """
    setups_by_experiment = _experiments_to_compare(collection)
    seeds = {key: _common_seeds(setups) for key, setups in setups_by_experiment.items()}
    runs = [
        run
        for key, setups in setups_by_experiment.items()
        for repeated in setups
        for run in repeated.runs
        if run.seed in seeds[key]
    ]
    if not runs:
        return []
    is_subset = len(runs) < sum(
        len(repeated.runs) for setups in setups_by_experiment.values() for repeated in setups
    )
    compared = collection.of(runs) if is_subset else collection
    table = measure_values(compared)
    if table.is_empty():
        return []
    samples = _collect_samples(_with_known_shares(compared, table))
    all_suites = [
        _make_suite(key, setups, seeds[key], samples)
        for key, setups in setups_by_experiment.items()
    ]
    distinct = _make_titles_unique(
        [suite for suite in all_suites if suite.seeds and suite.measures]
    )
    return _add_means(sorted(distinct, key=_sort_key))


SuiteKey = tuple[str, int, int, str]
"""Experiment, CPUs, tick, machine."""


def _experiments_to_compare(collection: Collection) -> dict[SuiteKey, list[ConfigurationRuns]]:
    """Returns the experiments that ran under two policies or more.

    Experiments that repeat another one at a slower machine's speed are omitted: they do not compare
    policies.
    """
    setups_by_key: dict[SuiteKey, list[ConfigurationRuns]] = {}
    for setup, repeated in collection.repeated.items():
        experiment = EXPERIMENTS.get(setup.experiment)
        if experiment and experiment.repeated_experiment:
            continue
        key = (setup.experiment, setup.cpus, setup.tick_ns, setup.machine)
        setups_by_key.setdefault(key, []).append(repeated)
    return {key: setups for key, setups in setups_by_key.items() if len(setups) > 1}


def _common_seeds(setups: Sequence[ConfigurationRuns]) -> tuple[int, ...]:
    return tuple(sorted(set.intersection(*({run.seed for run in setup.runs} for setup in setups))))


def _sort_key(suite: Suite) -> tuple[float, int, int]:
    """Returns the sort key: the order of the studies, then other workloads in the order of the runs."""
    names = list(EXPERIMENTS)
    if suite.study is None:
        return math.inf, len(names), 0
    return suite.study, names.index(suite.experiment), suite.cpus


def _with_known_shares(collection: Collection, table: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of whole workloads, without share errors that cannot be compared.

    Share errors are not comparable if all processes ended, because each got all the CPU time that
    it demanded. They are not comparable either if the policy has its own ideal shares.
    """
    unfinished = collection.summary.filter(
        (pl.col("status") == "success") & (pl.col("finished") < pl.col("processes"))
    )
    comparable_runs = unfinished.filter(
        ~pl.col("run").is_in(_runs_with_other_shares(collection.groups).implode())
    )["run"]
    usable = (pl.col("measure") != "share-error") | pl.col("run").is_in(comparable_runs.implode())
    return table.filter(pl.col("group").is_null() & usable)


def _runs_with_other_shares(groups: pl.DataFrame) -> pl.Series:
    """Returns the runs whose ideal shares differ from those under most policies.

    Their policy shares by another attribute than the one set by the test.
    """
    expected = pl.col("share") - pl.col("share_error_points") / 100
    usual_share = expected.median().over("experiment", "cpus", "tick_ns", "machine", "group")
    differs = (expected - usual_share).abs() > _IDEAL_DIFFERENCE_MIN
    return groups.filter(differs)["run"].unique()


Samples = dict[tuple[str, int, int, str, str, str], dict[int, tuple[float, float]]]
"""Values by experiment, CPUs, tick, machine, policy and metric: for each seed, the value and its resolution."""


def _collect_samples(table: pl.DataFrame) -> Samples:
    """Returns the values of the table by suite, policy, metric and seed."""
    samples: Samples = {}
    columns = ("experiment", "cpus", "tick_ns", "machine", "policy", "measure")
    for *key, seed, value, resolution in table.select(
        *columns, "seed", "value", "resolution"
    ).iter_rows():
        samples.setdefault(tuple(key), {}).setdefault(seed, (value, resolution))
    return samples


def _make_suite(
    key: SuiteKey, setups: Sequence[ConfigurationRuns], seeds: tuple[int, ...], samples: Samples
) -> Suite:
    """Returns the suite of configurations that differ in policy only."""
    by_policy = {setup.setup.policy_title: setup for setup in setups}
    failed = {
        policy: _failure_text(setup, seeds)
        for policy, setup in by_policy.items()
        if _failure_text(setup, seeds)
    }
    policy_samples: dict[tuple[str, str], Sample] = {}
    for policy in by_policy:
        for measure in COMPARED_MEASURES:
            values_by_seed = samples.get((*key, policy, measure.name), {})
            if seeds and values_by_seed.keys() >= set(seeds):
                values_in_order = [values_by_seed[seed] for seed in seeds]
                policy_samples[policy, measure.name] = (
                    [value for value, _ in values_in_order],
                    max(resolution for _, resolution in values_in_order),
                )
    title = "; ".join(_distinct_commands(setups, seeds))
    checks = max(run.evaluations_max for setup in setups for run in setup.runs)
    return Suite(
        *key, title, tuple(sort_policies(by_policy)), seeds, failed, policy_samples, {}, checks
    )


def _distinct_commands(setups: Sequence[ConfigurationRuns], seeds: Sequence[int]) -> Iterable[str]:
    """Returns the distinct commands. A quick run of an experiment has another command than a full one."""
    runs = (run for setup in setups for run in setup.runs if run.seed in seeds)
    return dict.fromkeys(short_title(workload_title(run.manifest)) for run in runs)


def short_title(title: str) -> str:
    """Returns a short name of a workload: a file without its directory, and without changes if they are long."""
    name, _, changes = title.partition(" with ")
    file = Path(name)
    if file.suffix != ".json":
        return title
    if not changes:
        return file.stem
    return (
        f"{file.stem} with {changes}"
        if len(changes) <= _CHANGES_CHARACTERS_MAX
        else f"{file.stem}, changed"
    )


def _make_titles_unique(suites: list[Suite]) -> list[Suite]:
    """Returns the suites; if several have the same title, it is extended by experiment and machine."""
    count = Counter((suite.title, suite.cpus) for suite in suites)
    return [
        replace(suite, title=f"{suite.title} ({suite.experiment}, {suite.machine})")
        if count[suite.title, suite.cpus] > 1
        else suite
        for suite in suites
    ]


def _failure_text(setup: ConfigurationRuns, seeds: Sequence[int]) -> str:
    """Returns how runs of these seeds failed, or "" if none did."""
    failed_seeds = [f"seed {run.seed}: {run.status}" for run in setup.failed if run.seed in seeds]
    return ", ".join(failed_seeds)


def _add_means(suites: Sequence[Suite]) -> list[Suite]:
    """Computes all means at once, because there are thousands."""
    means: list[dict[tuple[str, str], Estimate]] = [{} for _ in suites]
    for measure in COMPARED_MEASURES:
        positions = [
            (number, policy)
            for number, suite in enumerate(suites)
            for policy in suite.policies_with(measure)
        ]
        values = [suites[number].samples[policy, measure.name][0] for number, policy in positions]
        for (number, policy), estimate in zip(
            positions, estimates(values, measure.within), strict=True
        ):
            means[number][policy, measure.name] = estimate
    return [
        replace(suite, means=suite_means) for suite, suite_means in zip(suites, means, strict=True)
    ]
