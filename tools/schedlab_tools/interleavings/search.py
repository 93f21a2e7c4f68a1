# SPDX-License-Identifier: MIT
"""Tries seeds until a run fails, and minimises that run."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from schedlab import __version__
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spike import Spike
from schedlab.runs import results
from schedlab_tools.interleavings.holds import Hold
from schedlab_tools.interleavings.trial import HOLDS_FILE, Failure, Setup, holds_in, run_trial


@dataclass(frozen=True)
class SmallestFailure:
    """A failing run, and a small subset of its abnormal turns that still fails."""

    setup: Setup
    seed: int  # of the turns
    failure: Failure
    drawn: int
    """Number of abnormal turns that the seed drew."""
    holds: tuple[Hold, ...]
    """A small subset of them that still causes the failure."""


def search(
    setups: Sequence[Setup], seeds: Iterable[int], jobs: int, report_progress: Callable[[int], None]
) -> tuple[Setup, int] | None:
    """Returns the first failure, by seed and then configuration, or None.

    Calls `report_progress` with each finished seed.
    """
    todo = [(setup, seed) for seed in seeds for setup in setups]

    def breaks(one: tuple[Setup, int]) -> bool:
        """Returns whether the run fails."""
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            return run_trial(*one, Path(folder)) is not None

    with ThreadPoolExecutor(jobs) as pool:
        for one, broken in zip(todo, pool.map(breaks, todo), strict=True):
            if broken:
                pool.shutdown(wait=False, cancel_futures=True)
                return one
            report_progress(one[1])
    return None


def minimise(
    setup: Setup, seed: int, tries: int, report_progress: Callable[[int], None]
) -> SmallestFailure:
    """Returns the failing run of a seed with as few abnormal turns as `tries` attempts find.

    Calls `report_progress` with the number of turns of each attempt.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        path = Path(scratch) / "drawn"
        failure = run_trial(setup, seed, path)
        assert failure, "the same seed breaks the same"
        drawn = holds_in(path)

        def breaks(holds: Sequence[Hold]) -> bool:
            report_progress(len(holds))
            result = run_trial(setup, tuple(holds), Path(scratch) / "tried")
            return result is not None and result.kind == failure.kind

        return SmallestFailure(
            setup, seed, failure, len(drawn), minimal_subset(drawn, breaks, tries)
        )


T = TypeVar("T")


def minimal_subset(
    items: Sequence[T], breaks: Callable[[Sequence[T]], bool], tries: int
) -> tuple[T, ...]:
    """Returns a minimal failing subset, or the smallest that `tries` attempts find.

    The algorithm is delta debugging (Zeller and Hildebrandt, 2002): it tests subsets and their
    complements, with increasingly fine divisions.
    """
    tries_left = tries

    def does(some: Sequence[T]) -> bool:
        """Returns whether these items fail, and counts the attempt."""
        nonlocal tries_left
        tries_left -= 1
        return breaks(some)

    if does(()):
        return ()
    smallest, piece_count = tuple(items), 2
    while len(smallest) > 1 and tries_left > 0:
        smaller = _smaller_subset(smallest, piece_count, does, lambda: tries_left > 0)
        if smaller is not None:
            piece_count = 2 if len(smaller) * 2 <= len(smallest) else max(piece_count - 1, 2)
            smallest = smaller
        elif piece_count >= len(smallest):
            break
        else:
            piece_count = min(2 * piece_count, len(smallest))
    return smallest


def _smaller_subset(
    now: tuple[T, ...], pieces: int, breaks: Callable[[Sequence[T]], bool], may: Callable[[], bool]
) -> tuple[T, ...] | None:
    """Returns the first subset or complement that still fails."""
    borders = [len(now) * number // pieces for number in range(pieces + 1)]
    spans = list(pairwise(borders))
    for begin, end in reversed(spans):  # later turns are more often the cause
        if may() and breaks(now[begin:end]):
            return now[begin:end]
    if pieces > 2:
        for begin, end in spans:
            if may() and breaks(now[:begin] + now[end:]):
                return now[:begin] + now[end:]
    return None


def store_failure(result: SmallestFailure, path: Path, scratch: Path) -> tuple[Hold, ...]:
    """Repeats the minimised run, and stores it as a run's folder, which the monitor can play.
    Returns its abnormal turns.
    """
    failure = run_trial(result.setup, result.holds, scratch)
    assert failure, "the same turns break the same"
    with results.create_run_folder(path) as folder:
        for name in (TRACE_FILE, HOLDS_FILE):
            if (scratch / name).exists():
                shutil.copy(scratch / name, folder / name)
        results.write_json(folder / results.MANIFEST_FILE, _manifest(result.setup, failure.words))
    return holds_in(scratch)


def _manifest(setup: Setup, message: str) -> dict[str, object]:
    """Returns the manifest of the stored run."""
    run, release = setup.run, Spike().release()
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        **replace(run, label=f"{setup.workload}-explored").manifest(),
        "boot_arguments": setup.arguments,
        "machine_version": f"{release.version}, with the turns of {HOLDS_FILE}",
        "machine_origin": release.origin,
        "repeatable": True,
        "status": "failed",
        "message": message,
    }
