# SPDX-License-Identifier: MIT
"""Writes the files that accompany a report: the data of each table and
chart, and pictures on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.display.names import write_csv
from schedlab.base.host.processor import host_processors
from schedlab.base.host.workers import worker_pool
from schedlab.report import drawing
from schedlab.report.model import Chart, Report, Text
from schedlab.report.specifications import for_paper

if TYPE_CHECKING:
    import polars as pl

FOLDER = "files"
PICTURES = ("svg", "png")
DATA = ("csv", "parquet")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_WORTH_A_POOL = 12
"""Smallest number of charts for a second process, which takes a second to start."""

Advance = Callable[[str], None]
"""Called with the name of each chart that has been drawn."""


def check_names(report: Report) -> None:
    """Raises ValueError for a name that is not valid as a file name, or that two blocks share."""
    taken: set[str] = set()
    for page in report.pages:
        blocks = [block for block in page.blocks() if not isinstance(block, Text)]
        stills = [still for block in blocks if isinstance(block, Chart) for still in block.still]
        for name in (page.name, *(block.name for block in (*blocks, *stills))):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r}: names are letters, digits and hyphens")
            if name.lower() in taken:
                raise ValueError(f"{name}: two tables, charts or pages of a report have this name")
            taken.add(name.lower())


def write_files(report: Report, folder: Path, *, on_paper: bool) -> None:
    """Writes the data behind all tables and charts into `folder`.

    `on_paper`: also writes the data of the printed versions of charts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [
        block for page in report.pages for block in page.blocks() if not isinstance(block, Text)
    ]
    stills = charts_of(report) if on_paper else []
    for block in {block.name: block for block in (*blocks, *stills)}.values():
        write_data(block.data, folder / block.name)


def charts_of(report: Report) -> list[Chart]:
    """Returns the charts of a report and their printed versions."""
    return [
        chart
        for page in report.pages
        for block in page.blocks()
        if isinstance(block, Chart)
        for chart in (block, *block.still)
    ]


def write_data(data: pl.DataFrame, stem: Path) -> None:
    """Writes the numbers as CSV and Parquet."""
    write_csv(data, stem.with_name(f"{stem.name}.csv"))
    data.write_parquet(stem.with_name(f"{stem.name}.parquet"))


def draw_pictures(report: Report, folder: Path, advance: Advance = lambda name: None) -> None:
    """Draws each chart into `folder` as SVG and PNG, with several processes if that saves time."""
    charts = charts_of(report)
    work = [(for_paper(chart), str(folder / chart.name)) for chart in charts]
    workers = min(host_processors(), len(charts))
    with ExitStack() as stack:
        drawn: Iterable[None] = map(drawing.draw, work)
        if len(charts) >= _WORTH_A_POOL and workers > 1:
            drawn = stack.enter_context(worker_pool(workers)).map(drawing.draw, work)
        for chart, _ in zip(charts, drawn, strict=True):
            advance(chart.name)
