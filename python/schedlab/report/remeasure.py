# SPDX-License-Identifier: MIT
"""Measures runs anew from their traces, as the definitions are now; the runs stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from schedlab.base.host.workers import worker_pool
from schedlab.base.toolchain.build import host_processors
from schedlab.machines.outcome import Outcome
from schedlab.runs.collection import Collection, Kept
from schedlab.runs.worker import evaluate

Work = tuple[Path, Path, Outcome]
"""A run's folder, where its metrics go, how its machine ended."""


def remeasured(
    collection: Collection,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
    workers: int | None = None,
) -> Collection:
    """Returns the same runs, with metrics in `folder` that were computed by `workers` processes; None: one for
    each CPU.

    A run whose trace cannot be measured has the status `unmeasured`, and says why. Raises
    SchedlabError if the host does not let the processes do their work.
    """
    work = [
        (run.folder, folder / str(number), _outcome_of(run))
        for number, run in enumerate(collection)
    ]
    kept = []
    with worker_pool(min(workers or host_processors(), max(len(work), 1))) as pool:
        outcomes = pool.map(_measure, work, chunksize=4)
        for run, (_, place, _), outcome in zip(collection, work, outcomes, strict=True):
            kept.append(_with_metrics(run, place, outcome))
            progress("measuring", len(kept), len(work))
    return Collection(kept)


def _outcome_of(run: Kept) -> Outcome:
    """Returns how its machine ended: a trace that could not be measured then may be measured now."""
    status = "success" if run.status == "unmeasured" else run.status
    return Outcome(status, "" if status == "success" else str(run.manifest.get("message", "")))


def _measure(work: Work) -> Outcome:
    folder, place, outcome = work
    return evaluate(folder, outcome, place)[1]


def _with_metrics(run: Kept, place: Path, outcome: Outcome) -> Kept:
    manifest = {**run.manifest, "status": outcome.status, "message": outcome.message}
    return replace(run, manifest=manifest, metrics_folder=place)
