# SPDX-License-Identifier: MIT
"""The files beside a report: the data behind each table and chart, and each chart as a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.display.names import write_csv
from schedlab.host.workers import worker_pool
from schedlab.report import drawing
from schedlab.report.model import Chart, Report, Text
from schedlab.report.specifications import for_paper
from schedlab.toolchain.build import host_processors

if TYPE_CHECKING:
    import polars as pl

FOLDER = "files"
PICTURES = ("svg", "png")
DATA = ("csv", "parquet")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_WORTH_A_POOL = 12
"""Charts from which on a second process, which takes a second to begin, pays."""

Advance = Callable[[str], None]
"""Is told of each file's name when it is there."""


def check_names(report: Report) -> None:
    """Raises ValueError for a name that is no file's, or that two have."""
    taken: set[str] = set()
    for page in report.pages:
        blocks = [each for each in page.blocks() if not isinstance(each, Text)]
        stills = [each for block in blocks if isinstance(block, Chart) for each in block.still]
        for name in (page.name, *(each.name for each in (*blocks, *stills))):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r}: names are letters, digits and hyphens")
            if name.lower() in taken:
                raise ValueError(f"{name}: two tables, charts or pages of a report have this name")
            taken.add(name.lower())


def write_files(
    report: Report, folder: Path, advance: Advance = lambda name: None, *, on_paper: bool = False
) -> None:
    """Writes all of them into `folder`; the pictures by as many processes as pay. `on_paper`: those too that stand
    for what can be chosen in a chart.

    A report that is to grow has no pictures: drawing them takes the most of a report's time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [each for page in report.pages for each in page.blocks() if not isinstance(each, Text)]
    charts = [] if report.missing else charts_of(report, on_paper=on_paper)
    small = {page.picture for page in report.pages}
    with ExitStack() as stack:
        pictures = _pictures(charts, small, folder, stack)
        written = {each.name: each for each in (*blocks, *charts)}
        for block in written.values():
            write_data(block.data, folder / block.name)
        for chart, _ in zip(charts, pictures, strict=True):
            advance(chart.name)


def charts_of(report: Report, *, on_paper: bool) -> list[Chart]:
    """Returns the charts of a report, and with `on_paper` those that stand for them there."""
    return [
        chart
        for page in report.pages
        for block in page.blocks()
        if isinstance(block, Chart)
        for chart in (block, *(block.still if on_paper else ()))
    ]


def write_data(data: pl.DataFrame, stem: Path) -> None:
    """Writes the numbers as CSV and Parquet."""
    write_csv(data, stem.with_name(f"{stem.name}.csv"))
    data.write_parquet(stem.with_name(f"{stem.name}.parquet"))


def _pictures(
    charts: Sequence[Chart], small: Container[str], folder: Path, stack: ExitStack
) -> Iterable[None]:
    """Ends with each chart's pictures, in order; of those in `small`, with a small one, too."""
    work = [(for_paper(chart), str(folder / chart.name), chart.name in small) for chart in charts]
    workers = min(host_processors(), len(charts))
    if len(charts) < _WORTH_A_POOL or workers < 2:
        return map(drawing.draw, work)
    return stack.enter_context(worker_pool(workers)).map(drawing.draw, work)
