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

MARK = "report.json"
"""The file in each report that lists its content."""


def findings_in(report: Path) -> list[str]:
    """Returns the findings of the report in this folder, in Markdown."""
    texts: list[str] = json.loads((report / MARK).read_text(encoding="utf-8"))["findings"]
    return texts


def check_place(place: Path) -> None:
    """Raises WrongUsage if the path exists and is not an unmodified report."""
    replacement.check_folder("out", place)


@contextmanager
def report_folder(place: Path) -> Iterator[Path]:
    """Gives a folder to fill. After the block it becomes `place`, and replaces an earlier report.

    If the block raises, nothing changes. Raises WrongUsage as `check_place` does.
    """
    place = place.resolve()  # a link is kept, its target replaced
    check_place(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    attic = Path(
        tempfile.mkdtemp(dir=place.parent, prefix=f"{results.UNFINISHED}{place.name}-old-")
    )
    old = attic / "report"
    try:
        with results.new_folder(place) as folder:
            yield folder
            check_place(place)  # checked again, since the block took time
            if place.exists():
                os.rename(place, old)
    except BaseException:
        if old.exists() and not place.exists():
            os.rename(old, place)
        raise
    finally:
        replacement.remove(old)
        with suppress(OSError):  # a file that was added at the last moment stays
            attic.rmdir()
