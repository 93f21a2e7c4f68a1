# SPDX-License-Identifier: MIT
"""Draws sample points in several dimensions, with coordinates in [0, 1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, get_args

from schedlab.base.toolchain.needs import need_extra

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

Method = Literal["random", "sobol", "halton", "latin-hypercube"]
METHODS: tuple[str, ...] = get_args(Method)


def sample_points(
    method: str, dimensions: int, count: int, seed: int
) -> Iterator[tuple[float, ...]]:
    """Yields an endless sequence of points; the first `count` form the sample of that size.

    random: independent points. sobol (Sobol' 1967, scrambled as by Owen 1998) and halton (Halton
    1960, scrambled): evenly spread sequences. latin-hypercube (McKay, Beckman and Conover 1979):
    one point in each of `count` equal parts of each dimension. The same seed gives the same points.
    """
    if method != "random":
        need_extra("sweep")
    if method == "latin-hypercube":
        from scipy.stats import qmc  # takes longer to import than a small sweep to run

        hypercube = qmc.LatinHypercube(dimensions, rng=seed)
        while True:
            yield from map(tuple, hypercube.random(count).tolist())
    engine = _engine(method, dimensions, seed)
    while True:
        with warnings.catch_warnings():
            # scipy warns that Sobol' points are uneven unless their number is a power of two.
            warnings.simplefilter("ignore", UserWarning)
            drawn = engine.random(count)
        yield from map(tuple, drawn.tolist())


def _engine(method: str, dimensions: int, seed: int) -> QMCEngine:
    if method == "random":
        return _Independent(dimensions, seed)
    from scipy.stats import qmc

    if method == "sobol":
        return qmc.Sobol(dimensions, rng=seed)
    return qmc.Halton(dimensions, rng=seed)


class _Independent:
    """Independent draws with the interface of scipy's engines."""

    def __init__(self, dimensions: int, seed: int) -> None:
        """Begins independent draws in this many dimensions."""
        import numpy as np

        self.dimensions = dimensions
        self.generator = np.random.default_rng(seed)

    def random(self, count: int):  # type: ignore[no-untyped-def]
        """Returns `count` points: rows of numbers from 0 to 1."""
        return self.generator.random((count, self.dimensions))
