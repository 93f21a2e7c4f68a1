# SPDX-License-Identifier: MIT
"""Implements `./schedlab report`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from schedlab.base.display.activity import working
from schedlab.base.host.processor import host_processors
from schedlab.base.host.workers import worker_pool
from schedlab.errors import WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.report import artifact as artifacts
from schedlab.report.build import write_report
from schedlab.report.output import check_place
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.worker import evaluate

Work = tuple[Path, Path, Outcome]
"""A run's folder, the folder for its metrics, and the outcome of its machine."""


def remeasured(
    collection: Collection,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
    workers: int | None = None,
) -> Collection:
    """Returns the same runs with metrics recomputed into `folder` by `workers` processes.

    `workers`: None for one process per CPU. A run whose trace cannot be measured
    has the status `unmeasured` and a message. Raises SchedlabError if the host
    prevents the processes from working.
    """
    work = [
        (run.folder, folder / str(number), _outcome_of(run))
        for number, run in enumerate(collection)
    ]
    remeasured_runs = []
    with worker_pool(min(workers or host_processors(), max(len(work), 1))) as pool:
        outcomes = pool.map(_measure, work, chunksize=4)
        for run, (_, place, _), outcome in zip(collection, work, outcomes, strict=True):
            remeasured_runs.append(_with_metrics(run, place, outcome))
            progress("measuring", len(remeasured_runs), len(work))
    return Collection(remeasured_runs)


def _outcome_of(run: StoredRun) -> Outcome:
    """Returns how the run's machine ended.

    A trace that could not be measured then may be measurable now.
    """
    status = "success" if run.status == "unmeasured" else run.status
    return Outcome(status, "" if status == "success" else str(run.manifest.get("message", "")))


def _measure(work: Work) -> Outcome:
    folder, place, outcome = work
    return evaluate(folder, outcome, place)[1]


def _with_metrics(run: StoredRun, place: Path, outcome: Outcome) -> StoredRun:
    manifest = {**run.manifest, "status": outcome.status, "message": outcome.message}
    return replace(run, manifest=manifest, metrics_folder=place)


DEFAULT_NAME = "report"


def report(
    places: Sequence[Path],
    out: Path | None,
    formats: Sequence[str],
    from_traces: bool,
    artifact: Path | None = None,
    figures: Sequence[str] = (),
    *,
    pictures: bool = False,
) -> dict[str, Any]:
    """Makes the report and the artifact of its figures. Returns files, runs
    and the number of failed runs.

    An artifact needs the report's pictures, so it implies them.
    """
    place = (out or default_place(places)).absolute()
    check_place(place)
    if artifact:
        artifacts.check_place(artifact)
    collection = runs.read(places, remeasure=from_traces)
    with ExitStack() as stack:
        show = stack.enter_context(progress())
        if from_traces:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
            collection = remeasured(collection, Path(folder), show)
        first = write_report(
            collection, place, formats, show, pictures=pictures or artifact is not None
        )
        if artifact:
            artifacts.write_artifact(artifact, collection, place, figures)
    return {
        "report": str(first),
        **({"artifact": str(artifact)} if artifact else {}),
        "runs": len(collection),
        "failed": [str(run.folder) for run in collection if not run.succeeded],
    }


def default_place(places: Sequence[Path]) -> Path:
    """Returns a path in the folder that all runs have in common."""
    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise WrongUsage(
            f"{missing[0]}: not a folder of runs; name a folder that `./schedlab run` made"
        )
    return Path(os.path.commonpath([place.resolve() for place in places])) / DEFAULT_NAME


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows the progress of each kind of work on a report."""
    with working("making the report") as update:
        yield lambda what, done, of: update(f"[{done}/{of}] {what}")
