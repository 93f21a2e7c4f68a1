# SPDX-License-Identifier: MIT
"""What `./schedlab report` does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from schedlab import collection as runs
from schedlab.errors import WrongUsage
from schedlab.report.build import write_report
from schedlab.report.output import check_place
from schedlab.terminal import messages

DEFAULT_NAME = "report"


def report(
    places: Sequence[Path], out: Path | None, formats: Sequence[str], from_traces: bool
) -> dict[str, Any]:
    """Makes the report; gives what there is to say of it: files, runs, and how many failed."""
    place = (out or default_place(places)).absolute()
    check_place(place)
    collection = runs.read(places)
    with ExitStack() as stack:
        tell = stack.enter_context(progress_bars())
        if from_traces:
            from schedlab.report.remeasure import remeasured

            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
            collection = remeasured(collection, Path(folder), tell)
        first = write_report(collection, place, formats, tell)
    return {
        "report": str(first),
        "runs": len(collection),
        "failed": [str(run.folder) for run in collection if not run.succeeded],
    }


def default_place(places: Sequence[Path]) -> Path:
    """In the folder that all runs have in common."""
    missing = [place for place in places if not place.is_dir()]
    if missing:
        raise WrongUsage(f"{missing[0]} is not a folder of runs")
    return Path(os.path.commonpath([place.resolve() for place in places])) / DEFAULT_NAME


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """On standard error, a bar for each kind of work; nothing if that is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = messages()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield tell
