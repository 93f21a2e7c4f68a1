# SPDX-License-Identifier: MIT
"""Seeds are tried until a run breaks; then that one is made small."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from schedlab_tools.interleavings.holds import Hold
from schedlab_tools.interleavings.shrink import shrunk
from schedlab_tools.interleavings.trial import Failure, Setup, carry_out, holds_of


@dataclass(frozen=True)
class Found:
    """A run that breaks."""

    setup: Setup
    seed: int
    failure: Failure
    drawn: int
    """Turns of other than normal length that the seed drew."""
    holds: tuple[Hold, ...]
    """Those of them with which it still breaks so, as few as were found."""


def search(
    setups: Sequence[Setup], seeds: Iterable[int], jobs: int, told: Callable[[int], None]
) -> tuple[Setup, int] | None:
    """Returns what breaks first, by seed and then setup; None: nothing does. `told` hears each seed that is done."""
    todo = [(setup, seed) for seed in seeds for setup in setups]

    def breaks(one: tuple[Setup, int]) -> bool:
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            return carry_out(*one, Path(folder)) is not None

    with ThreadPoolExecutor(jobs) as pool:
        for one, broken in zip(todo, pool.map(breaks, todo), strict=True):
            if broken:
                pool.shutdown(wait=False, cancel_futures=True)
                return one
            told(one[1])
    return None


def made_small(setup: Setup, seed: int, tries: int, told: Callable[[int], None]) -> Found:
    """Returns the run that breaks under a seed, with as few turns of other than normal length as so many tries find.
    `told` hears how many each try has."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        place = Path(scratch) / "drawn"
        failure = carry_out(setup, seed, place)
        assert failure, "the same seed breaks the same"
        drawn = holds_of(place)

        def breaks(some: Sequence[Hold]) -> bool:
            told(len(some))
            found = carry_out(setup, tuple(some), Path(scratch) / "tried")
            return found is not None and found.kind == failure.kind

        return Found(setup, seed, failure, len(drawn), shrunk(drawn, breaks, tries))
