# SPDX-License-Identifier: MIT
"""Creates a report's folder: it appears when complete, and replaces only an earlier report."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from schedlab.base.files import replacement
from schedlab.runs import results

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
