# SPDX-License-Identifier: MIT
"""What `./schedlab report` does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from schedlab.base.display.working import working
from schedlab.errors import WrongUsage
from schedlab.report import artifact as artifacts
from schedlab.report.build import write_report
from schedlab.report.output import check_place
from schedlab.runs import collection as runs

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
    """Makes the report, and the artifact of its figures, which has their pictures. Returns files, runs, and how
    many failed."""
    place = (out or default_place(places)).absolute()
    check_place(place)
    if artifact:
        artifacts.check_place(artifact)
    collection = runs.read(places, measured_anew=from_traces)
    with ExitStack() as stack:
        tell = stack.enter_context(progress())
        if from_traces:
            from schedlab.report.remeasure import remeasured

            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
            collection = remeasured(collection, Path(folder), tell)
        first = write_report(
            collection, place, formats, tell, pictures=pictures or artifact is not None
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
    """Returns a place in the folder that all runs have in common."""
    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise WrongUsage(f"{missing[0]} is not a folder of runs")
    return Path(os.path.commonpath([place.resolve() for place in places])) / DEFAULT_NAME


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows how far each kind of work on a report is."""
    with working("making the report") as update:
        yield lambda what, done, of: update(f"[{done}/{of}] {what}")
