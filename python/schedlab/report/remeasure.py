# SPDX-License-Identifier: MIT
"""Measures runs anew from their traces, as the definitions are now; the runs stay as they are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from schedlab.build import host_processors
from schedlab.collection import Collection, Kept
from schedlab.outcome import Outcome
from schedlab.run import evaluate


def remeasured(
    collection: Collection,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Collection:
    """The same runs, with metrics in `folder`, computed by all CPUs of the host.

    A run whose trace cannot be measured has the status `unmeasured`, and says why.
    """
    work = [
        (run.folder, folder / str(number), _outcome_of(run))
        for number, run in enumerate(collection)
    ]
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
    kept = []
    with ProcessPoolExecutor(min(host_processors(), max(len(work), 1)), context) as pool:
        for run, measured in zip(collection, pool.map(_measure, work, chunksize=4), strict=True):
            kept.append(_with_metrics(run, *measured))
            progress("measuring", len(kept), len(work))
    return Collection(kept)


def _outcome_of(run: Kept) -> Outcome:
    """How its machine ended: what a trace that could not be measured then may be now."""
    status = "success" if run.status == "unmeasured" else run.status
    return Outcome(status, "" if status == "success" else str(run.manifest.get("message", "")))


def _measure(work: tuple[Path, Path, Outcome]) -> tuple[Path, Outcome]:
    folder, place, outcome = work
    _, outcome = evaluate(folder, outcome, place)
    return place, outcome


def _with_metrics(run: Kept, place: Path, outcome: Outcome) -> Kept:
    manifest = {**run.manifest, "status": outcome.status, "message": outcome.message}
    return replace(run, manifest=manifest, metrics_folder=place)
