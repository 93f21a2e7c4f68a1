# SPDX-License-Identifier: MIT
"""Tests intervals, differences and rankings: known cases, invariants, and error rates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from schedlab.analysis.comparison import statistics
from schedlab.analysis.comparison.best import rank_policies
from schedlab.analysis.comparison.formatting import estimate_as_text
from schedlab.analysis.comparison.statistics import (
    Estimate,
    Floats,
    contributions,
    correct_p_values,
    difference,
    estimate,
    estimates,
    p_value_beyond_margin,
)
from schedlab.metrics import interquartile_range

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
SAMPLES = st.lists(NUMBERS, min_size=1, max_size=12)
PATIENT = settings(deadline=None)

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]


# --- estimates


def test_student_below_few_by_hand() -> None:
    interval = estimate([1, 2, 3])
    assert interval.mean == 2
    assert interval.high - 2 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert interval.low == pytest.approx(4 - interval.high)


def test_bca_is_scipys_but_for_the_widened_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = np.random.default_rng(4).exponential(size=40)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, rng=np.random.default_rng(2)
    ).confidence_interval
    # Undoes the widening: Student's quantile × √(n ÷ (n − 1)) becomes the normal quantile.
    normal = 1.959964 / math.sqrt(40 / 39)
    monkeypatch.setattr(statistics, "_half_width_factor", lambda freedom: normal)
    ours = estimate(sample)
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


@PATIENT
@given(SAMPLES)
def test_bounds_hold_the_mean_and_are_the_same_again(values: list[float]) -> None:
    interval = estimate(values)
    assert interval.low <= interval.mean <= interval.high
    assert interval == estimate(values)
    assert interval.count == len(values)
    assert interval.has_interval == (len(values) > 1)
    if len(set(values)) == 1:
        assert interval.low == interval.mean == interval.high


@PATIENT
@given(st.lists(SAMPLES, min_size=1, max_size=6))
def test_many_at_once_equal_one_at_a_time(samples: list[list[float]]) -> None:
    for together, sample in zip(estimates(samples), samples, strict=True):
        alone = estimate(sample)
        scale = max(1.0, *(abs(value) for value in sample))
        for name in ("mean", "low", "high"):
            assert getattr(together, name) == pytest.approx(getattr(alone, name), abs=1e-9 * scale)


DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda random, size: random.normal(size=size), 0.0),
    "uniform": (lambda random, size: random.uniform(size=size), 0.5),
    "exponential": (lambda random, size: random.exponential(size=size), 1.0),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [2, 5, 20])
def test_coverage_of_the_mean(name: str, count: int) -> None:
    """Matches docs/comparing.md: 95 % of intervals cover the mean if values are nearly normal."""
    draw, truth = DISTRIBUTIONS[name]
    samples = draw(np.random.default_rng(11), (3000, count))
    intervals = estimates(list(samples))
    coverage = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    least = 0.85 if name == "exponential" else 0.91
    assert least <= coverage <= 0.975


@PATIENT
@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=5))
def test_contributions_have_the_statistic_as_their_mean(runs: list[list[float]]) -> None:
    """If all runs have the same size, the contributions to the mean are the runs' means."""
    parts = contributions(runs, lambda values: float(np.median(values)))
    assert len(parts) == len(runs)
    assert parts.mean() == pytest.approx(np.median(np.concatenate(runs)), rel=1e-6, abs=1e-3)
    alike = [run[:1] for run in runs]
    means = contributions(alike, lambda values: float(values.mean()))
    assert means == pytest.approx(np.array([run[0] for run in alike]), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("count", [2, 10])
def test_coverage_of_a_pooled_interquartile_range(count: int) -> None:
    """Predictability is compared in this way: by the contributions of the runs."""
    random = np.random.default_rng(8)
    truth = 2 * 0.67449
    covered_count = 0
    for _ in range(400):
        runs = [random.normal(random.normal(0, 0.05), 1, size=40) for _ in range(count)]
        interval = estimate(contributions(runs, lambda values: interquartile_range(values) or 0.0))
        covered_count += interval.low <= truth <= interval.high
    assert covered_count / 400 >= 0.88


# --- differences


def test_paired_by_hand() -> None:
    result = difference([1, 2, 3, 4], [2, 3, 4, 6], paired=True)
    assert result.change == 1.25
    theirs = stats.ttest_rel([2, 3, 4, 6], [1, 2, 3, 4])
    bounds = theirs.confidence_interval()
    assert result.p_value == pytest.approx(theirs.pvalue)
    assert (result.low, result.high) == pytest.approx((bounds.low, bounds.high))
    assert result.permutation == 2 / 16
    assert result.relative == 0.5


def test_unpaired_is_welchs() -> None:
    before, after = [1.0, 2.0, 4.0], [3.0, 8.0, 9.0, 20.0]
    result = difference(before, after, paired=False)
    theirs = stats.ttest_ind(after, before, equal_var=False)
    bounds = theirs.confidence_interval()
    assert result.p_value == pytest.approx(theirs.pvalue)
    assert (result.low, result.high) == pytest.approx((bounds.low, bounds.high))
    exact = stats.permutation_test(
        (np.array(before), np.array(after)),
        lambda x, y, axis: np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis)),
        vectorized=True,
        alternative="greater",
        n_resamples=np.inf,
    )
    assert result.permutation == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("paired", [False, True])
def test_beyond_a_margin_is_a_shifted_test(paired: bool) -> None:
    before, after = [10.0, 12.0, 11.0, 9.0], [20.0, 26.0, 24.0, 21.0]
    shifted = [value - 8 for value in after]
    theirs = (
        stats.ttest_rel(shifted, before, alternative="greater")
        if paired
        else stats.ttest_ind(shifted, before, equal_var=False, alternative="greater")
    )
    probability = p_value_beyond_margin(before, after, 8, paired)
    assert probability == pytest.approx(theirs.pvalue)
    assert p_value_beyond_margin(after, before, 8, paired) == pytest.approx(probability)


def test_one_seed_shows_no_chance() -> None:
    result = difference([5], [7], paired=True)
    assert (result.change, result.low, result.high) == (2, 2, 2)
    assert result.p_value is None and result.permutation is None
    assert difference([5], [7, 8], paired=False).p_value is None


@PATIENT
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=11), st.booleans())
def test_reversed_comparison_changes_only_the_sign(
    pairs: list[tuple[float, float]], paired: bool
) -> None:
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    forth, back = difference(before, after, paired), difference(after, before, paired)
    assert forth.change == pytest.approx(-back.change, abs=1e-6)
    assert forth.low <= forth.change + 1e-6 and forth.change <= forth.high + 1e-6
    if len(pairs) < statistics.T_TEST_COUNT_MAX:
        assert forth.low == pytest.approx(-back.high, rel=1e-6, abs=1e-3)
    if forth.p_value is None:
        assert back.p_value is None
    else:
        assert 0 <= forth.p_value <= 1
        assert forth.p_value == pytest.approx(back.p_value, abs=1e-6)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("count", [2, 10])
def test_chance_alone_is_called_more_than_chance_in_one_of_twenty(paired: bool, count: int) -> None:
    random = np.random.default_rng(9)
    p_values = [
        difference(random.normal(size=count), random.normal(size=count), paired).p_value
        for _ in range(1500 if paired else 400)  # permutations of unpaired values are slow
    ]
    wrong = np.mean([p_value is not None and p_value < 0.05 for p_value in p_values])
    assert wrong <= 0.065


def test_holm_by_hand() -> None:
    assert correct_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_p_values([]) == []
    assert correct_p_values([0.9, 0.8]) == [1.0, 1.0]


# --- which policy is best


def test_the_clear_one_is_alone() -> None:
    result = rank_policies(
        {"slow": [10.0, 11.0, 12.0], "fast": [1.0, 2.1, 3.0], "last": [20.0, 21.0, 22.1]}
    )
    assert result.order == ("fast", "slow", "last")
    assert result.tied_for_best == ("fast",)
    assert rank_policies({"a": [1.0, 2.0], "b": [8.0, 9.1]}, "higher").best == "b"


@PATIENT
@given(st.integers(2, 5), st.integers(1, 9), st.data())
def test_the_best_is_possible_and_order_does_not_matter(
    policies: int, count: int, data: st.DataObject
) -> None:
    sample = st.lists(st.integers(0, 50).map(float), min_size=count, max_size=count)
    values = {str(number): data.draw(sample) for number in range(policies)}
    result = rank_policies(values, resolution=1)
    assert result.best in result.tied_for_best
    mirrored = rank_policies(
        {name: [-value for value in sample] for name, sample in reversed(values.items())},
        "higher",
        resolution=1,
    )
    assert set(mirrored.tied_for_best) == set(result.tied_for_best)


@pytest.mark.parametrize("count", [2, 10])
def test_the_true_best_is_possible_in_nineteen_of_twenty(count: int) -> None:
    """The truly best policy stays possible in 95 % of cases.

    Of seven policies, all but the last two are equal; a seed shifts all of them together.
    """
    random = np.random.default_rng(12)
    lost = 0
    for _ in range(500):
        seed = random.normal(size=count)
        values = {
            str(number): seed + random.normal(0.0 if number < 5 else 0.5, 1, count)
            for number in range(7)
        }
        lost += "0" not in rank_policies(values).tied_for_best
    assert lost / 500 <= 0.065


# --- text output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(12.345, 11.893, 12.796, 5), "12.3 [11.9, 12.8]"),
        (Estimate(12.345, 11.2, 13.4, 5), "12.3 [11.2, 13.4]"),
        (Estimate(12345, 10345, 14345, 5), "12,300 [10,300, 14,300]"),
        (Estimate(86, 86, 86, 5), "86 [86, 86]"),
        (Estimate(86, 86, 86, 1), "86 (1 seed)"),
        (Estimate(12, -40.3, 64.7, 2), "12 [-40, 65]"),
        (Estimate(0, 0, 0, 3), "0 [0, 0]"),
        (Estimate(0.001234, 0.00117, 0.0013, 3), "0.00123 [0.00117, 0.00130]"),
        (Estimate(1 / 3, 1 / 3, 1 / 3, 3), "0.333 [0.333, 0.333]"),
        (Estimate(86.00931, 86.00929, 86.00933, 3), "86.009 [86.009, 86.009]"),
    ],
)
def test_digits(value: Estimate, text: str) -> None:
    assert estimate_as_text(value) == text


@PATIENT
@given(NUMBERS, NUMBERS, NUMBERS, st.integers(2, 5))
def test_printed_values_are_near_the_exact_ones(a: float, b: float, c: float, count: int) -> None:
    low, mean, high = sorted((a, b, c))
    words = (
        estimate_as_text(Estimate(mean, low, high, count)).replace(",", "").replace("[", "").split()
    )
    printed = [float(word.strip("]")) for word in words]
    # Half of the last printed digit: of the interval, or of the value's third digit without one.
    digits = 1e-4 if high > low else 5e-3
    tolerance = max((high - low) * 0.26, digits * max(abs(low), abs(high)), 1e-9)
    assert printed[0] == pytest.approx(mean, abs=tolerance)
    assert printed[1] <= printed[0] <= printed[2]
