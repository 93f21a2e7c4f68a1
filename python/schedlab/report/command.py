# SPDX-License-Identifier: MIT
"""Implements `./schedlab report`."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from schedlab.base.display.activity import working
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.host.workers import worker_pool
from schedlab.errors import WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.report import artifact as artifacts
from schedlab.report.build import write_report
from schedlab.report.files import check_report_path
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.worker import evaluate_run

MeasureRequest = tuple[Path, Path, Outcome]
"""A run's folder, the folder for its metrics, and the outcome of its machine."""


def remeasure_runs(
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
    requests = [
        (run.folder, folder / str(number), _machine_outcome(run))
        for number, run in enumerate(collection)
    ]
    remeasured_runs = []
    with worker_pool(min(workers or count_host_cpus(), max(len(requests), 1))) as pool:
        outcomes = pool.map(_measure_run, requests, chunksize=4)
        for run, (_, place, _), outcome in zip(collection, requests, outcomes, strict=True):
            remeasured_runs.append(_with_metrics(run, place, outcome))
            progress("measuring", len(remeasured_runs), len(requests))
    return Collection(remeasured_runs)


def _machine_outcome(run: StoredRun) -> Outcome:
    """Returns how the run's machine ended.

    A trace that could not be measured then may be measurable now.
    """
    status = "success" if run.status == "unmeasured" else run.status
    return Outcome(status, "" if status == "success" else str(run.manifest.get("message", "")))


def _measure_run(request: MeasureRequest) -> Outcome:
    """Measures one run and returns its outcome; runs in a worker process."""
    folder, metrics_folder, outcome = request
    return evaluate_run(folder, outcome, metrics_folder)[1]


def _with_metrics(run: StoredRun, path: Path, outcome: Outcome) -> StoredRun:
    """Returns the run with the metrics in the folder `path`, and this outcome."""
    manifest = {**run.manifest, "status": outcome.status, "message": outcome.message}
    return replace(run, manifest=manifest, metrics_folder=path)


DEFAULT_FOLDER_NAME = "report"


def report_runs(
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
    path = (out or default_report_path(places)).absolute()
    check_report_path(path)
    if artifact:
        artifacts.check_artifact_path(artifact)
    collection = runs.read_collection(places, remeasure=from_traces)
    with ExitStack() as stack:
        report_progress = stack.enter_context(show_progress())
        if from_traces:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
            collection = remeasure_runs(collection, Path(folder), report_progress)
        first = write_report(
            collection, path, formats, report_progress, pictures=pictures or artifact is not None
        )
        if artifact:
            artifacts.write_artifact(artifact, collection, path, figures)
    return {
        "report": str(first),
        **({"artifact": str(artifact)} if artifact else {}),
        "runs": len(collection),
        "failed": [str(run.folder) for run in collection if not run.succeeded],
    }


def default_report_path(places: Sequence[Path]) -> Path:
    """Returns a path in the folder that all runs have in common."""
    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise WrongUsage(
            f"{missing[0]}: not a folder of runs; name a folder that `./schedlab run` made"
        )
    return Path(os.path.commonpath([place.resolve() for place in places])) / DEFAULT_FOLDER_NAME


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows the progress of each kind of work on a report."""
    with working("making the report") as update:
        yield lambda what, done, of: update(f"[{done}/{of}] {what}")
