# SPDX-License-Identifier: MIT
"""Where in the space of several dimensions a sample looks: places from 0 up to 1 in each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, get_args

from schedlab.base.toolchain.needs import need_extra

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

Method = Literal["random", "sobol", "halton", "latin-hypercube"]
METHODS: tuple[str, ...] = get_args(Method)


def places(method: str, dimensions: int, count: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Points without end; the first `count` are what the method makes of that many.

    random: independent; sobol (Sobol' 1967, scrambled as by Owen, 1998), halton (Halton 1960,
    scrambled likewise): sequences that leave no gaps, and fill what is left with their next points;
    latin-hypercube (McKay, Beckman and Conover, 1979): each of `count` equal parts of each
    dimension has one point. The same seed gives the same points.
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
            # That of Sobol' any number but a power of two is less even: so it is, and allowed.
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
    """Independent draws, with the interface of scipy's engines."""

    def __init__(self, dimensions: int, seed: int) -> None:
        import numpy as np

        self.dimensions = dimensions
        self.generator = np.random.default_rng(seed)

    def random(self, count: int):  # type: ignore[no-untyped-def]
        return self.generator.random((count, self.dimensions))
