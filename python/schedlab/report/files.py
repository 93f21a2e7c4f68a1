# SPDX-License-Identifier: MIT
"""Names the formats of a report, and writes the files that accompany it: the data of each table
and chart, and pictures on request.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.display.names import write_csv
from schedlab.base.files import replacement
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.host.workers import worker_pool
from schedlab.report import drawing
from schedlab.report.model import Chart, Report, Text
from schedlab.report.specifications import paper_specification
from schedlab.runs import results

if TYPE_CHECKING:
    import polars as pl

FILES_FOLDER = "files"
PICTURE_KINDS = ("svg", "png")
DATA_KINDS = ("csv", "parquet")
_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_POOL_CHARTS_MIN = 12
"""Smallest number of charts for a second process, which takes a second to start."""

ReportDrawn = Callable[[str], None]
"""Called with the name of each chart that has been drawn."""


def check_names(report: Report) -> None:
    """Raises ValueError for a name that is not valid as a file name, or that two blocks share."""
    taken_names: set[str] = set()
    for page in report.pages:
        blocks = [block for block in page.blocks() if not isinstance(block, Text)]
        stills = [still for block in blocks if isinstance(block, Chart) for still in block.still]
        for name in (page.name, *(block.name for block in (*blocks, *stills))):
            if not _NAME_PATTERN.fullmatch(name):
                raise ValueError(f"{name!r}: names are letters, digits and hyphens")
            if name.lower() in taken_names:
                raise ValueError(f"{name}: two tables, charts or pages of a report have this name")
            taken_names.add(name.lower())


def write_files(report: Report, folder: Path, *, on_paper: bool) -> None:
    """Writes the data behind all tables and charts into `folder`.

    `on_paper`: also writes the data of the printed versions of charts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [
        block for page in report.pages for block in page.blocks() if not isinstance(block, Text)
    ]
    stills = report_charts(report) if on_paper else []
    for block in {block.name: block for block in (*blocks, *stills)}.values():
        write_data(block.data, folder / block.name)


def report_charts(report: Report) -> list[Chart]:
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


def draw_pictures(report: Report, folder: Path, advance: ReportDrawn = lambda name: None) -> None:
    """Draws each chart into `folder` as SVG and PNG, with several processes if that saves time."""
    charts = report_charts(report)
    work = [(paper_specification(chart), str(folder / chart.name)) for chart in charts]
    workers = min(count_host_cpus(), len(charts))
    with ExitStack() as stack:
        drawn: Iterable[None] = map(drawing.draw_files, work)
        if len(charts) >= _POOL_CHARTS_MIN and workers > 1:
            drawn = stack.enter_context(worker_pool(workers)).map(drawing.draw_files, work)
        for chart, _ in zip(charts, drawn, strict=True):
            advance(chart.name)


REPORT_FILE = "report.json"
"""The file in each report that lists its content."""


def read_findings(report: Path) -> list[str]:
    """Returns the findings of the report in this folder, in Markdown."""
    texts: list[str] = json.loads((report / REPORT_FILE).read_text(encoding="utf-8"))["findings"]
    return texts


def check_report_path(path: Path) -> None:
    """Raises WrongUsage if the path exists and is not an unmodified report."""
    replacement.check_folder("out", path)


@contextmanager
def report_folder(path: Path) -> Iterator[Path]:
    """Gives a folder to fill. After the block it becomes `path`, and replaces an earlier report.

    If the block raises, nothing changes. Raises WrongUsage as `check_report_path` does.
    """
    path = path.resolve()  # a link is kept, its target replaced
    check_report_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    old_folder = Path(
        tempfile.mkdtemp(dir=path.parent, prefix=f"{results.UNFINISHED_PREFIX}{path.name}-old-")
    )
    old = old_folder / "report"
    try:
        with results.create_run_folder(path) as folder:
            yield folder
            check_report_path(path)  # checked again, since the block took time
            if path.exists():
                os.rename(path, old)
    except BaseException:
        if old.exists() and not path.exists():
            os.rename(old, path)
        raise
    finally:
        replacement.remove(old)
        with suppress(OSError):  # a file that was added at the last moment stays
            old_folder.rmdir()
