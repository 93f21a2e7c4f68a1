# SPDX-License-Identifier: MIT
"""What several seeds allow to be said: means with their intervals, and differences.

The runs of a setup differ in their seeds. An interval says where the mean over all seeds, not just
those that were run, lies with 95 % confidence. All of it gives the same for the same values:
random resamples begin with a fixed seed. docs/comparing.md says what a reader may conclude, and
how often the intervals hold what they should (tests/comparison/test_statistics.py measures it).

Few seeds are the rule here, and the plain bootstrap fails with few: its bounds never leave the
values seen, so that of n values they miss the median of a symmetric distribution in 2^(1-n) of
cases: half the time for two. So below `FEW` values the bootstrap gives the standard error alone,
and Student's t the bounds; for a mean, that is Student's interval.

It is not SciPy's, whose bootstrap and permutation tests take 2 to 30 times the CPU time
(docs/comparing.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from schedlab.analysis.comparison.distributions import (
    normal_below,
    normal_quantile,
    student_below,
    student_quantile,
)

Floats = npt.NDArray[np.float64]
Within = tuple[float, float]

CONFIDENCE = 0.95
FEW = 8
"""Fewer values than these: Student's t. From here on BCa and permutations, which assume less."""
ANYWHERE: Within = (-math.inf, math.inf)
_RESAMPLES = 2000
_EXACT = 20_000
"""Up to this many permutations are gone through one by one; of more, a sample is drawn."""
_SAMPLED = 10_000
_SEED = 1
POWER = 0.8
"""The probability with which a sample is to show what there is."""
NOISE = 1e-12
"""The part of a value that floating point may add."""


# --- estimates


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and between what bounds the mean over all seeds probably lies."""

    mean: float
    low: float
    high: float
    count: int
    """Seeds. Of one, or of equal values, the bounds are the mean itself: see `bounded`."""

    @property
    def bounded(self) -> bool:
        """Is there an interval? One seed gives no interval."""
        return self.count > 1


def estimate(values: Sequence[float] | Floats, within: Within = ANYWHERE) -> Estimate:
    """Returns the mean with its interval of 95 %. Raises ValueError for no value, or one that is no number.

    Fewer than `FEW` values: Student's t interval. From there on the bootstrap's (BCa, Efron, 1987;
    its levels widened for small samples as by Hesterberg, 2015). `within`: what values are
    possible; the bounds do not go beyond.
    """
    return estimates([values], within)[0]


def estimates(
    samples: Sequence[Sequence[float] | Floats], within: Within = ANYWHERE
) -> list[Estimate]:
    """`estimate` of each sample. Thousands take a second: those of one size are done at once."""
    arrays = [checked(sample) for sample in samples]
    by_length: dict[int, Estimate] = {}
    for size in {len(array) for array in arrays}:
        places = [number for number, array in enumerate(arrays) if len(array) == size]
        stack = np.stack([arrays[place] for place in places])
        low, high = _mean_bounds(stack)
        for place, mean, below, above in zip(places, stack.mean(axis=1), low, high, strict=True):
            by_length[place] = _estimate(float(mean), float(below), float(above), size, within)
    return [by_length[number] for number in range(len(arrays))]


def contributions(
    runs: Sequence[Sequence[float] | Floats], statistic: Callable[[Floats], float]
) -> Floats:
    """A value for each run, so that their mean is the statistic of all runs' values together.

    What `estimate`, `difference` and `ranking` say of these, they say of the statistic (jackknife
    over runs: Tukey, 1958). For what moves smoothly, such as quartiles; not for extremes.
    """
    arrays = [np.asarray(run, np.float64) for run in runs]
    total = statistic(checked(np.concatenate(arrays)))
    count = len(arrays)
    if count == 1:
        return np.array([total])
    without = np.array(
        [
            statistic(np.concatenate([run for other, run in enumerate(arrays) if other != number]))
            for number in range(count)
        ]
    )
    values: Floats = total + (count - 1) * (without.mean() - without)
    return values


def checked(values: Sequence[float] | Floats) -> Floats:
    """Returns the values as an array. Raises ValueError for none, or one that is no number."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        raise ValueError("there is no value to take the mean of")
    if not np.isfinite(sample).all():
        raise ValueError("a value is not a number; a run without one cannot be part of a mean")
    return sample


def _estimate(value: float, low: float, high: float, count: int, within: Within) -> Estimate:
    """An estimate whose bounds are possible, and hold the value whatever rounding did."""
    lowest, highest = within
    return Estimate(value, min(max(low, lowest), value), max(min(high, highest), value), count)


def _student(freedom: float) -> float:
    """How many standard errors the bounds are away."""
    return student_quantile(freedom, (1 + CONFIDENCE) / 2)


def _mean_bounds(samples: Floats) -> tuple[Floats, Floats]:
    """Bounds of each sample's mean; the values are samples × values."""
    count = samples.shape[1]
    mean = samples.mean(axis=1)
    low, high = mean.copy(), mean.copy()
    vary = np.ptp(samples, axis=1) > 0
    if count == 1 or not vary.any():
        return low, high
    if count < FEW:
        reach = _student(count - 1) * samples.std(axis=1, ddof=1) / math.sqrt(count)
        return np.where(vary, mean - reach, mean), np.where(vary, mean + reach, mean)
    low[vary], high[vary] = _bca_bounds(samples[vary])
    return low, high


def _bca_bounds(samples: Floats) -> tuple[Floats, Floats]:
    """Bootstrap, bias corrected and accelerated; a piece at a time, for the memory's sake."""
    pieces = [_bca_piece(samples[at : at + 500]) for at in range(0, len(samples), 500)]
    return np.concatenate([low for low, _ in pieces]), np.concatenate([high for _, high in pieces])


def _bca_piece(samples: Floats) -> tuple[Floats, Floats]:
    count = samples.shape[1]
    resampled = samples @ _resamples(count).T / count
    mean = samples.mean(axis=1, keepdims=True)
    noise = NOISE * np.abs(samples).max(axis=1, keepdims=True)
    below = ((resampled < mean - noise).mean(axis=1) + (resampled <= mean + noise).mean(axis=1)) / 2
    edge = 1 / resampled.shape[1]
    bias = normal_quantile(np.clip(below, edge, 1 - edge))
    away = samples - mean
    acceleration = (away**3).sum(axis=1) / (6 * (away**2).sum(axis=1) ** 1.5)
    # What Student's t and the bias of the standard deviation ask for beyond the normal's 1.96.
    wide = math.sqrt(count / (count - 1)) * _student(count - 1)
    resampled.sort(axis=1)
    low, high = (
        _sorted_quantiles(
            resampled, normal_below(bias + (bias + z) / (1 - acceleration * (bias + z)))
        )
        for z in (-wide, wide)
    )
    return low, high


def _sorted_quantiles(rows: Floats, levels: Floats) -> Floats:
    """Quantiles of sorted rows, each at its own level, interpolated linearly."""
    place = levels * (rows.shape[1] - 1)
    left = np.floor(place).astype(np.int64)
    right = np.minimum(left + 1, rows.shape[1] - 1)
    row = np.arange(len(rows))
    quantiles: Floats = rows[row, left] + (rows[row, right] - rows[row, left]) * (place - left)
    return quantiles


@cache
def _resamples(count: int) -> npt.NDArray[np.int64]:
    """Resamples × values: how often each value is in it."""
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(count, [1 / count] * count, size=_RESAMPLES)


# --- differences


@dataclass(frozen=True)
class Difference:
    """What is different after a change, and whether the choice of seeds may explain it."""

    before: Estimate
    after: Estimate
    change: float
    """The value after, less the value before."""
    low: float
    high: float
    paired: bool
    """Each seed's difference was taken: what the seed does to both sides falls out."""
    chance: float | None
    """How probable a difference at least as large is, if there is none (p-value); None: one seed
    cannot tell. By Student's t (Welch's, if not paired); from `FEW` values on by permutations."""
    permutation: float | None
    """The same by permutations, however few the values: with n pairs it is 2^(1-n) at least."""

    @property
    def relative(self) -> float | None:
        """Returns change ÷ before, or None if there was nothing before."""
        return self.change / self.before.mean if self.before.mean else None

    @property
    def count(self) -> int:
        """Values on the side that has fewer."""
        return min(self.before.count, self.after.count)


def difference(
    before: Sequence[float] | Floats,
    after: Sequence[float] | Floats,
    paired: bool,
    resolution: float = 0,
    within: Within = ANYWHERE,
) -> Difference:
    """What changed, with its interval of 95 % and how probable it is by chance alone.

    `paired`: the values of both sides are in the order of the same seeds. `resolution`: values are
    no finer than that (the clock's step; 1 for a count). So equal differences of two or three
    seeds are not taken to be equal for all seeds: they may vary by as much unseen. `within`: as
    `estimate` has it, for both sides.
    """
    first, second = checked(before), checked(after)
    noise = NOISE * max(float(np.abs(first).max()), float(np.abs(second).max()))
    if paired:
        if len(first) != len(second):
            raise ValueError("paired values must be as many before as after")
        if np.abs(second - first).max() <= noise:
            second = first
        low, high, by_student, by_permutation = _paired(second - first, resolution, noise)
    else:
        low, high, by_student, by_permutation = _unpaired(first, second, resolution, noise)
    count = min(len(first), len(second))
    return Difference(
        estimate(first, within),
        estimate(second, within),
        float(second.mean() - first.mean()),
        low,
        high,
        paired,
        by_student if count < FEW else by_permutation,
        by_permutation,
    )


Outcome = tuple[float, float, float | None, float | None]
"""Low, high, p-value by Student's t, p-value by permutations."""


def _paired(differences: Floats, resolution: float, noise: float) -> Outcome:
    count, mean = len(differences), float(differences.mean())
    if count == 1:
        return mean, mean, None, None
    if not differences.any():
        return 0.0, 0.0, 1.0, 1.0
    error = float(_standard_errors(differences, resolution))
    by_student = _two_sided(mean, max(error, noise), count - 1)
    at_least = np.abs(mean) - noise
    flipped = sign_flips(at_least, differences) + sign_flips(at_least, -differences)
    by_permutation = min(1.0, float(flipped))
    if count >= FEW:
        bounds = estimate(differences)
        return bounds.low, bounds.high, by_student, by_permutation
    return *student_bounds(differences, resolution), by_student, by_permutation


def student_bounds(differences: Floats, resolution: float) -> tuple[float, float]:
    """Between what the mean difference over all seeds probably lies (95 %), by Student's t however many there are; of
    one, or of nothing but zeros, that is the mean itself. `resolution`: as `difference` has it."""
    mean = float(differences.mean())
    if len(differences) == 1 or not differences.any():
        return mean, mean
    reach = _student(len(differences) - 1) * float(_standard_errors(differences, resolution))
    return mean - reach, mean + reach


def floor_of_chance(pairs: int) -> float:
    """The least p-value that so many paired values can have: that of all signs alike, if it is by permutations."""
    return 2.0 ** (1 - pairs) if pairs >= FEW else 0.0


def sample_size(mean: float, deviation: float, level: float = (1 - CONFIDENCE) / 2) -> int:
    """Returns how many differences tell their mean from 0 with a probability of 80 %, if they scatter with this
    standard deviation (the usual size of a sample for paired differences: Student 1908; Neyman and Pearson 1933).

    `level`: the probability of a mistake on the side on which the mean lies.
    """
    normal = NormalDist()
    factor = normal.inv_cdf(1 - level) + normal.inv_cdf(POWER)
    return math.ceil((factor * deviation / mean) ** 2)


def unseen_rate(count: int) -> float:
    """Returns the highest rate, from 0 to 1, of an event that so many values miss altogether in 5 % of cases.

    The exact form of the rule of three (Hanley and Lippman-Hand, 1983), which says 3 / count.
    """
    return 1 - math.pow(1 - CONFIDENCE, 1 / count)


def _standard_errors(differences: Floats, resolution: float) -> Floats:
    """Standard errors of the means along the last axis. Two roundings to a step add a sixth of its
    square."""
    variance = np.maximum(differences.var(axis=-1, ddof=1), resolution**2 / 6)
    errors: Floats = np.sqrt(variance / differences.shape[-1])
    return errors


def _two_sided(change: float, error: float, freedom: float) -> float:
    return float(2 * student_below(freedom, -abs(change) / error)) if error else 1.0


def sign_flips(threshold: float | Floats, differences: Floats) -> Floats:
    """The part of all choices of signs that gives a mean of at least `threshold` (Fisher, 1935).

    Along the last axis; the others are as those of `threshold`.
    """
    means = differences @ _signs(differences.shape[-1]).T / differences.shape[-1]
    shares: Floats = (means >= np.asarray(threshold)[..., np.newaxis]).mean(axis=-1)
    return shares


@cache
def _signs(count: int) -> Floats:
    """Choices of signs × values; the first is what was seen."""
    if 2**count <= _SAMPLED:
        return np.array(list(itertools.product((1.0, -1.0), repeat=count)))
    drawn = np.random.default_rng(_SEED).choice((1.0, -1.0), size=(_SAMPLED, count))
    drawn[0] = 1.0  # so that no p-value is 0 (Phipson and Smyth, 2010)
    return drawn


def probability_beyond(
    before: Sequence[float] | Floats,
    after: Sequence[float] | Floats,
    margin: float,
    paired: bool,
) -> float:
    """How probable means so far apart are, if in truth they differ by `margin` at most (p-value).

    One-sided, by Student's t of the differences; Welch's, if not `paired`: small if the means surely
    differ by more. Each side has two values at least, of the same seeds if paired; else ValueError.
    """
    first, second = checked(before), checked(after)
    if min(len(first), len(second)) < 2 or (paired and len(first) != len(second)):
        raise ValueError("two values of each side at least, and as many if paired")
    beyond = abs(float(second.mean() - first.mean())) - margin
    if paired:
        freedom = len(first) - 1.0
        error = float((second - first).std(ddof=1)) / math.sqrt(len(first))
    else:
        error, freedom = _welch(first, second, 0)
    if error <= NOISE * max(float(np.abs(first).max()), float(np.abs(second).max())):
        return 0.0 if beyond > 0 else 1.0
    return float(student_below(freedom, -beyond / error))


def probability_apart(
    before: Sequence[float] | Floats, after: Sequence[float] | Floats, margin: float
) -> float:
    """How probable means so near each other are, if in truth they differ by `margin` at least (p-value).

    One of the two one-sided tests of equivalence (Schuirmann, 1987), the one that tells less, by Student's t of
    each seed's difference: small if the means surely differ by less. Two values of each side at least, else ValueError.
    """
    first, second = checked(before), checked(after)
    if len(first) < 2 or len(first) != len(second):
        raise ValueError("two values of each side at least, and as many of both")
    within = margin - abs(float(second.mean() - first.mean()))
    error = float((second - first).std(ddof=1)) / math.sqrt(len(first))
    if error <= NOISE * max(float(np.abs(first).max()), float(np.abs(second).max())):
        return 0.0 if within > 0 else 1.0
    return float(student_below(len(first) - 1.0, -within / error))


def _unpaired(before: Floats, after: Floats, resolution: float, noise: float) -> Outcome:
    """Welch's t (1947), and permutations of the values' sides."""
    change = float(after.mean() - before.mean())
    if len(before) == 1 or len(after) == 1:
        return change, change, None, None
    error, freedom = _welch(before, after, resolution)
    reach = _student(freedom) * error
    by_student = _two_sided(change, max(error, noise), freedom)
    return change - reach, change + reach, by_student, _permutations(before, after, noise)


def _welch(before: Floats, after: Floats, resolution: float) -> tuple[float, float]:
    """Standard error of the difference of means, and its degrees of freedom."""
    sides = (before, after)
    parts = [max(float(side.var(ddof=1)), resolution**2 / 12) / len(side) for side in sides]
    error = math.sqrt(sum(parts))
    spread = sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    return error, error**4 / spread if spread else 1.0


def _permutations(before: Floats, after: Floats, noise: float) -> float:
    """The part of all ways to deal the values to two sides that puts them as far apart."""
    # The side with the lower mean first: so a sample of deals is the same either way round.
    first, second = sorted((before, after), key=lambda side: float(side.mean()))
    values = np.concatenate((first, second))
    values = values - values.mean()
    # As all values sum up to 0, the sum of one side tells how far apart the means are.
    sums = np.abs(_deals(len(first), len(second)) @ values)
    seen = abs(values[: len(first)].sum()) - noise * len(values)
    return float((sums >= seen).mean())


@cache
def _deals(first: int, second: int) -> Floats:
    """Deals × values: 1 for a value on the first side; the first deal is what was seen."""
    count = first + second
    if math.comb(count, first) <= _EXACT:
        chosen = np.array(list(itertools.combinations(range(count), first)))
        dealt = np.zeros((len(chosen), count))
        np.put_along_axis(dealt, chosen, 1.0, axis=1)
        return dealt
    seen = np.repeat((1.0, 0.0), (first, second))
    generator = np.random.default_rng(_SEED)
    return np.concatenate(([seen], generator.permuted(np.tile(seen, (_SAMPLED - 1, 1)), axis=1)))


def chances_of_more(differences: Floats, resolution: float, noise: float) -> Floats:
    """The p-values that means along the last axis are not above 0 (Student's t), of two values at
    least. What is no more than `noise` counts as nothing."""
    means = differences.mean(axis=-1)
    errors = _standard_errors(differences, max(resolution, noise))
    score = np.divide(means, errors, out=np.zeros_like(means), where=errors > 0)
    chances = student_below(differences.shape[-1] - 1, -score)
    result: Floats = np.where(means > noise, chances, 1.0)
    return result


def holm(chances: Sequence[float]) -> list[float]:
    """p-values corrected for how many there are (Holm, 1979), in the order given.

    If all is chance, the probability that any of them is below 5 % is at most 5 %.
    """
    order = sorted(range(len(chances)), key=lambda number: chances[number])
    corrected, highest = [0.0] * len(chances), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[number]))
        corrected[number] = highest
    return corrected
