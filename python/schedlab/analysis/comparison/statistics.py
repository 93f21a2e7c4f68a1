# SPDX-License-Identifier: MIT
"""Estimates means over seeds with confidence intervals, and tests differences.

An interval contains the mean over all possible seeds with 95 % confidence. Results are
deterministic: random resamples use a fixed seed. docs/comparing.md explains the conclusions;
tests/comparison/test_statistics.py measures the coverage of the intervals.

The plain bootstrap fails with few seeds. Its bounds stay within the observed values, so n values
miss the median of a symmetric distribution in 2^(1-n) of cases. Below `T_TEST_COUNT_MAX` values, Student's t
gives the bounds and the p-value.

SciPy's bootstrap and permutation tests take 2 to 30 times the CPU time (docs/comparing.md).
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from schedlab.analysis.comparison.distributions import (
    normal_cdf,
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)

Floats = npt.NDArray[np.float64]
ValueRange = tuple[float, float]

CONFIDENCE = 0.95
T_TEST_COUNT_MAX = 8
"""Below this number of values, Student's t is used; otherwise BCa and permutations, which assume less."""
UNBOUNDED: ValueRange = (-math.inf, math.inf)
_RESAMPLES = 2000
_ENUMERATED_MAX = 20_000
"""Up to this number, all permutations are enumerated; beyond it, a sample is drawn."""
_SAMPLED_PERMUTATIONS = 10_000
_RESAMPLING_SEED = 1
DETECTION_POWER = 0.8
"""The probability that a sample of the recommended size detects an existing difference."""
ROUNDING_NOISE = 1e-12
"""Relative size of rounding errors."""


# --- estimates


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int
    """Number of seeds. For one seed, or for equal values, the bounds equal the mean: see `has_interval`."""

    @property
    def has_interval(self) -> bool:
        """True if there is an interval, which needs two seeds."""
        return self.count > 1


def estimate(values: Sequence[float] | Floats, within: ValueRange = UNBOUNDED) -> Estimate:
    """Returns the mean with its 95 % interval.

    Below `T_TEST_COUNT_MAX` values this is Student's t interval; otherwise BCa (Efron, 1987), with levels
    widened for small samples (Hesterberg, 2015). `within`: the possible values, which limit the
    bounds.

    Raises ValueError for an empty sample or a value that is not finite.
    """
    return estimates([values], within)[0]


def estimates(
    samples: Sequence[Sequence[float] | Floats], within: ValueRange = UNBOUNDED
) -> list[Estimate]:
    """Returns `estimate` of each sample. Samples of equal size are computed together, for speed."""
    arrays = [checked_values(sample) for sample in samples]
    by_length: dict[int, Estimate] = {}
    for size in {len(array) for array in arrays}:
        indices = [number for number, array in enumerate(arrays) if len(array) == size]
        stack = np.stack([arrays[place] for place in indices])
        low, high = _mean_bounds(stack)
        for place, mean, low_bound, high_bound in zip(
            indices, stack.mean(axis=1), low, high, strict=True
        ):
            by_length[place] = _estimate(
                float(mean), float(low_bound), float(high_bound), size, within
            )
    return [by_length[number] for number in range(len(arrays))]


def contributions(
    runs: Sequence[Sequence[float] | Floats], statistic: Callable[[Floats], float]
) -> Floats:
    """Returns a value for each run, so that their mean is the statistic of all runs' values together.

    `estimate`, `difference` and `ranking` of these values apply to the statistic (jackknife over
    runs: Tukey, 1958). The statistic must be smooth, such as a quartile; extremes are not.
    """
    arrays = [np.asarray(run, np.float64) for run in runs]
    total = statistic(checked_values(np.concatenate(arrays)))
    count = len(arrays)
    if count == 1:
        return np.array([total])
    leave_one_out = np.array(
        [
            statistic(np.concatenate([run for other, run in enumerate(arrays) if other != number]))
            for number in range(count)
        ]
    )
    values: Floats = total + (count - 1) * (leave_one_out.mean() - leave_one_out)
    return values


def checked_values(values: Sequence[float] | Floats) -> Floats:
    """Returns the values as an array. Raises ValueError for an empty sample or a value that is not finite."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        raise ValueError("a mean needs at least one value")
    if not np.isfinite(sample).all():
        raise ValueError("a value is not a number; exclude runs without a value")
    return sample


def _estimate(value: float, low: float, high: float, count: int, within: ValueRange) -> Estimate:
    """Returns an estimate with bounds limited to possible values. Rounding cannot move them past the mean."""
    lowest, highest = within
    return Estimate(value, min(max(low, lowest), value), max(min(high, highest), value), count)


def _half_width_factor(freedom: float) -> float:
    """Returns half the width of the 95 % interval, in standard errors."""
    return student_t_quantile(freedom, (1 + CONFIDENCE) / 2)


def _mean_bounds(samples: Floats) -> tuple[Floats, Floats]:
    """Returns the bounds of each sample's mean. `samples` has the shape samples × values."""
    count = samples.shape[1]
    mean = samples.mean(axis=1)
    low, high = mean.copy(), mean.copy()
    varies = np.ptp(samples, axis=1) > 0
    if count == 1 or not varies.any():
        return low, high
    if count < T_TEST_COUNT_MAX:
        half_width = _half_width_factor(count - 1) * samples.std(axis=1, ddof=1) / math.sqrt(count)
        return np.where(varies, mean - half_width, mean), np.where(varies, mean + half_width, mean)
    low[varies], high[varies] = _bca_bounds(samples[varies])
    return low, high


def _bca_bounds(samples: Floats) -> tuple[Floats, Floats]:
    """Returns bounds of the bias-corrected and accelerated bootstrap, in pieces to limit memory."""
    pieces = [_bca_piece(samples[index : index + 500]) for index in range(0, len(samples), 500)]
    return np.concatenate([low for low, _ in pieces]), np.concatenate([high for _, high in pieces])


def _bca_piece(samples: Floats) -> tuple[Floats, Floats]:
    """Returns the bounds of `_bca_bounds` for some of the samples."""
    count = samples.shape[1]
    resampled = samples @ _resamples(count).T / count
    mean = samples.mean(axis=1, keepdims=True)
    noise = ROUNDING_NOISE * np.abs(samples).max(axis=1, keepdims=True)
    below = ((resampled < mean - noise).mean(axis=1) + (resampled <= mean + noise).mean(axis=1)) / 2
    level_min = 1 / resampled.shape[1]
    bias = normal_quantile(np.clip(below, level_min, 1 - level_min))
    deviations = samples - mean
    acceleration = (deviations**3).sum(axis=1) / (6 * (deviations**2).sum(axis=1) ** 1.5)
    # Student's t and the bias of the standard deviation widen the normal's 1.96.
    half_width = math.sqrt(count / (count - 1)) * _half_width_factor(count - 1)
    resampled.sort(axis=1)
    low, high = (
        _sorted_quantiles(
            resampled, normal_cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        )
        for z in (-half_width, half_width)
    )
    return low, high


def _sorted_quantiles(rows: Floats, levels: Floats) -> Floats:
    """Returns a quantile of each sorted row at the row's level, interpolated linearly."""
    position = levels * (rows.shape[1] - 1)
    left = np.floor(position).astype(np.int64)
    right = np.minimum(left + 1, rows.shape[1] - 1)
    row_indices = np.arange(len(rows))
    left_values = rows[row_indices, left]
    quantiles: Floats = left_values + (rows[row_indices, right] - left_values) * (position - left)
    return quantiles


@cache
def _resamples(count: int) -> npt.NDArray[np.int64]:
    generator = np.random.default_rng(_RESAMPLING_SEED)
    return generator.multinomial(count, [1 / count] * count, size=_RESAMPLES)


# --- differences


@dataclass(frozen=True)
class Difference:
    """A difference after a change, and whether it is significant."""

    before: Estimate
    after: Estimate
    change: float
    """The mean after minus the mean before."""
    low: float
    high: float
    paired: bool
    """True if differences are taken per seed, so that a seed's effect on both sides cancels."""
    p_value: float | None
    """The p-value of the difference; None for one seed. By Student's t (Welch's if unpaired); with
    `T_TEST_COUNT_MAX` values or more, by permutations.
    """
    permutation: float | None
    """The p-value by permutations for any number of values; with n pairs it is at least 2^(1-n)."""

    @property
    def relative(self) -> float | None:
        """Returns change ÷ before, or None if the mean before is 0."""
        return self.change / self.before.mean if self.before.mean else None

    @property
    def count(self) -> int:
        """The number of values on the smaller side."""
        return min(self.before.count, self.after.count)


def difference(
    before: Sequence[float] | Floats,
    after: Sequence[float] | Floats,
    paired: bool,
    resolution: float = 0,
    within: ValueRange = UNBOUNDED,
) -> Difference:
    """Returns the difference with its 95 % interval and p-value.

    `paired`: both sides have the same seeds in the same order. `resolution`: the smallest step of
    values (the clock's step; 1 for a count). Equal differences of few seeds are therefore not
    treated as exact: they may vary by one step.

    `within`: the possible values of both sides, as for `estimate`. Raises ValueError if paired
    sides have different lengths.
    """
    first, second = checked_values(before), checked_values(after)
    noise = ROUNDING_NOISE * max(float(np.abs(first).max()), float(np.abs(second).max()))
    if paired:
        if len(first) != len(second):
            raise ValueError("paired values must have equal counts before and after")
        if np.abs(second - first).max() <= noise:
            second = first
        low, high, by_student, by_permutation = _paired_difference(
            second - first, resolution, noise
        )
    else:
        low, high, by_student, by_permutation = _unpaired_difference(
            first, second, resolution, noise
        )
    count = min(len(first), len(second))
    return Difference(
        estimate(first, within),
        estimate(second, within),
        float(second.mean() - first.mean()),
        low,
        high,
        paired,
        by_student if count < T_TEST_COUNT_MAX else by_permutation,
        by_permutation,
    )


BoundsAndPValues = tuple[float, float, float | None, float | None]
"""Low bound, high bound, p-value by Student's t, p-value by permutations."""


def _paired_difference(differences: Floats, resolution: float, noise: float) -> BoundsAndPValues:
    """Returns bounds and p-values of the mean of differences per seed."""
    count, mean = len(differences), float(differences.mean())
    if count == 1:
        return mean, mean, None, None
    if not differences.any():
        return 0.0, 0.0, 1.0, 1.0
    error = float(_standard_errors(differences, resolution))
    by_student = _two_sided(mean, max(error, noise), count - 1)
    threshold = np.abs(mean) - noise
    flip_fraction = sign_flips(threshold, differences) + sign_flips(threshold, -differences)
    by_permutation = min(1.0, float(flip_fraction))
    if count >= T_TEST_COUNT_MAX:
        bounds = estimate(differences)
        return bounds.low, bounds.high, by_student, by_permutation
    return *student_bounds(differences, resolution), by_student, by_permutation


def student_bounds(differences: Floats, resolution: float) -> tuple[float, float]:
    """Returns the 95 % bounds of the mean difference by Student's t; the mean itself for one value or only zeros.

    `resolution`: as for `difference`.
    """
    mean = float(differences.mean())
    if len(differences) == 1 or not differences.any():
        return mean, mean
    half_width = _half_width_factor(len(differences) - 1) * float(
        _standard_errors(differences, resolution)
    )
    return mean - half_width, mean + half_width


def smallest_p_value(pairs: int) -> float:
    """Returns the smallest possible p-value of this number of pairs by permutations; 0 if Student's t is used."""
    return 2.0 ** (1 - pairs) if pairs >= T_TEST_COUNT_MAX else 0.0


def sample_size(mean: float, deviation: float, level: float = (1 - CONFIDENCE) / 2) -> int:
    """Returns how many differences with this mean and standard deviation are needed to detect the
    mean with 80 % power.

    This is the usual sample size for paired differences (Student, 1908; Neyman and Pearson, 1933).
    `level`: the one-sided error probability.
    """
    normal = NormalDist()
    factor = normal.inv_cdf(1 - level) + normal.inv_cdf(DETECTION_POWER)
    return math.ceil((factor * deviation / mean) ** 2)


def unseen_rate(count: int) -> float:
    """Returns the highest rate (0 to 1) of an event that `count` samples miss in 5 % of cases.

    This is the exact form of the rule of three (Hanley and Lippman-Hand, 1983), which gives 3 /
    count.
    """
    return 1 - math.pow(1 - CONFIDENCE, 1 / count)


def _standard_errors(differences: Floats, resolution: float) -> Floats:
    """Returns standard errors of means along the last axis. Rounding two values to a step adds
    step² / 6 to the variance.
    """
    variance = np.maximum(differences.var(axis=-1, ddof=1), resolution**2 / 6)
    errors: Floats = np.sqrt(variance / differences.shape[-1])
    return errors


def _two_sided(change: float, error: float, freedom: float) -> float:
    return float(2 * student_t_cdf(freedom, -abs(change) / error)) if error else 1.0


def sign_flips(threshold: float | Floats, differences: Floats) -> Floats:
    """Returns the fraction of all choices of signs whose mean is at least `threshold` (Fisher, 1935).

    Works along the last axis; the other axes are those of `threshold`.
    """
    means = differences @ _signs(differences.shape[-1]).T / differences.shape[-1]
    shares: Floats = (means >= np.asarray(threshold)[..., np.newaxis]).mean(axis=-1)
    return shares


@cache
def _signs(count: int) -> Floats:
    """Returns choices of signs (choices × values). The first one is the observed choice."""
    if 2**count <= _SAMPLED_PERMUTATIONS:
        return np.array(list(itertools.product((1.0, -1.0), repeat=count)))
    signs = np.random.default_rng(_RESAMPLING_SEED).choice(
        (1.0, -1.0), size=(_SAMPLED_PERMUTATIONS, count)
    )
    signs[0] = 1.0  # the observed choice keeps p-values above 0 (Phipson and Smyth, 2010)
    return signs


def p_value_beyond_margin(
    before: Sequence[float] | Floats,
    after: Sequence[float] | Floats,
    margin: float,
    paired: bool,
) -> float:
    """Returns the p-value of the null hypothesis that means differ by at most `margin`.

    One-sided Student's t on the differences; Welch's if not `paired`. Small values show that the
    means differ by more. Raises ValueError if a side has fewer than two values, or if paired sides
    have different lengths.
    """
    first, second = checked_values(before), checked_values(after)
    if min(len(first), len(second)) < 2 or (paired and len(first) != len(second)):
        raise ValueError("each side needs at least two values, and paired sides need equally many")
    excess = abs(float(second.mean() - first.mean())) - margin
    if paired:
        freedom = len(first) - 1.0
        error = float((second - first).std(ddof=1)) / math.sqrt(len(first))
    else:
        error, freedom = _welch(first, second, 0)
    if error <= ROUNDING_NOISE * max(float(np.abs(first).max()), float(np.abs(second).max())):
        return 0.0 if excess > 0 else 1.0
    return float(student_t_cdf(freedom, -excess / error))


def p_value_within_margin(
    before: Sequence[float] | Floats, after: Sequence[float] | Floats, margin: float
) -> float:
    """Returns the p-value of the null hypothesis that means differ by at least `margin`.

    This is the less significant of the two one-sided tests of equivalence (Schuirmann, 1987), by
    Student's t on the differences per seed. Small values show that the means differ by less. Raises
    ValueError if a side has fewer than two values, or if the lengths differ.
    """
    first, second = checked_values(before), checked_values(after)
    if len(first) < 2 or len(first) != len(second):
        raise ValueError("each side needs at least two values, and both sides equally many")
    distance_to_margin = margin - abs(float(second.mean() - first.mean()))
    error = float((second - first).std(ddof=1)) / math.sqrt(len(first))
    if error <= ROUNDING_NOISE * max(float(np.abs(first).max()), float(np.abs(second).max())):
        return 0.0 if distance_to_margin > 0 else 1.0
    return float(student_t_cdf(len(first) - 1.0, -distance_to_margin / error))


def _unpaired_difference(
    before: Floats, after: Floats, resolution: float, noise: float
) -> BoundsAndPValues:
    """Tests the difference by Welch's t (1947), and by permutations of values between the sides."""
    change = float(after.mean() - before.mean())
    if len(before) == 1 or len(after) == 1:
        return change, change, None, None
    error, freedom = _welch(before, after, resolution)
    half_width = _half_width_factor(freedom) * error
    by_student = _two_sided(change, max(error, noise), freedom)
    return (
        change - half_width,
        change + half_width,
        by_student,
        _permutation_p_value(before, after, noise),
    )


def _welch(before: Floats, after: Floats, resolution: float) -> tuple[float, float]:
    """Returns the standard error of the difference of means, and its degrees of freedom."""
    sides = (before, after)
    squares = [max(float(side.var(ddof=1)), resolution**2 / 12) / len(side) for side in sides]
    error = math.sqrt(sum(squares))
    spread = sum(square**2 / (len(side) - 1) for square, side in zip(squares, sides, strict=True))
    return error, error**4 / spread if spread else 1.0


def _permutation_p_value(before: Floats, after: Floats, noise: float) -> float:
    """Returns the fraction of all divisions of the values into two sides with at least the observed difference."""
    # The side with the lower mean is first, so that swapping the sides draws the same sample.
    first, second = sorted((before, after), key=lambda side: float(side.mean()))
    values = np.concatenate((first, second))
    values = values - values.mean()
    # All values sum to 0, so the sum of one side determines the difference of means.
    sums = np.abs(_divisions(len(first), len(second)) @ values)
    observed = abs(values[: len(first)].sum()) - noise * len(values)
    return float((sums >= observed).mean())


@cache
def _divisions(first: int, second: int) -> Floats:
    """Returns divisions × values: 1 for a value on the first side. The first row is the observed division."""
    count = first + second
    if math.comb(count, first) <= _ENUMERATED_MAX:
        combinations = np.array(list(itertools.combinations(range(count), first)))
        divisions = np.zeros((len(combinations), count))
        np.put_along_axis(divisions, combinations, 1.0, axis=1)
        return divisions
    observed = np.repeat((1.0, 0.0), (first, second))
    generator = np.random.default_rng(_RESAMPLING_SEED)
    return np.concatenate(
        ([observed], generator.permuted(np.tile(observed, (_SAMPLED_PERMUTATIONS - 1, 1)), axis=1))
    )


def p_values_above_zero(differences: Floats, resolution: float, noise: float) -> Floats:
    """Returns p-values of the null hypothesis that means along the last axis are at most 0 (Student's t).

    Needs at least two values. Differences up to `noise` count as 0.
    """
    means = differences.mean(axis=-1)
    errors = _standard_errors(differences, max(resolution, noise))
    score = np.divide(means, errors, out=np.zeros_like(means), where=errors > 0)
    p_values = student_t_cdf(differences.shape[-1] - 1, -score)
    result: Floats = np.where(means > noise, p_values, 1.0)
    return result


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number (Holm, 1979), in the given order.

    If there is no real difference, the probability that any of them is below 5 % is at most 5 %.
    """
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[number]))
        corrected[number] = highest
    return corrected
