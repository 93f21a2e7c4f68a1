# SPDX-License-Identifier: MIT
"""What `./schedlab report` does."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from schedlab.display.terminal import messages, say
from schedlab.errors import WrongUsage
from schedlab.report import artifact as artifacts
from schedlab.report.build import write_report
from schedlab.report.output import check_place
from schedlab.runs import collection as runs
from schedlab.units import format_duration

DEFAULT_NAME = "report"
_STEPS = 10
"""Lines for each kind of work, where there is no terminal."""


def report(
    places: Sequence[Path],
    out: Path | None,
    formats: Sequence[str],
    from_traces: bool,
    artifact: Path | None = None,
    figures: Sequence[str] = (),
) -> dict[str, Any]:
    """Makes the report, and the artifact of its figures; gives what there is to say of it: files, runs, and how
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
        first = write_report(collection, place, formats, tell)
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
    """Shows a bar for each kind of work on standard error; lines if that is no terminal."""
    if messages().is_terminal:
        with _bars() as tell:
            yield tell
    else:
        yield progress_lines()


def progress_lines() -> Callable[[str, int, int], None]:
    """A line for each tenth of each kind of work: `[40/80] pictures  12 s`, since the beginning."""
    began = time.monotonic()
    told: dict[str, int] = {}

    def tell(what: str, done: int, of: int) -> None:
        tenths = done * _STEPS // of if of else 0
        if tenths > told.get(what, 0):
            say(f"[{done}/{of}] {what}  {format_duration(time.monotonic() - began)}")
        told[what] = tenths

    return tell


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages(), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield tell
