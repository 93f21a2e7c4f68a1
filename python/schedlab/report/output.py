# SPDX-License-Identifier: MIT
"""The folder of a report: it appears when it is whole, and replaces only what is a report."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from schedlab.base.files import placing
from schedlab.runs import results

MARK = "report.json"
"""The file in each report that says what is in it."""


def findings_in(report: Path) -> list[str]:
    """Returns what the report in this folder says first, in Markdown."""
    texts: list[str] = json.loads((report / MARK).read_text(encoding="utf-8"))["findings"]
    return texts


def check_place(place: Path) -> None:
    """Raises WrongUsage for what is there and is no report as it was made."""
    placing.check_folder("out", place)


@contextmanager
def report_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which after the block is `place`, instead of a report that was there.

    If the block raises, all is as it was. Raises WrongUsage as `check_place` does.
    """
    place = place.resolve()  # of a link, what it leads to is replaced
    check_place(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    attic = Path(
        tempfile.mkdtemp(dir=place.parent, prefix=f"{results.UNFINISHED}{place.name}-old-")
    )
    old = attic / "report"
    try:
        with results.new_folder(place) as folder:
            yield folder
            check_place(place)  # to make it has taken its time
            if place.exists():
                os.rename(place, old)
    except BaseException:
        if old.exists() and not place.exists():
            os.rename(old, place)
        raise
    finally:
        placing.remove(old)
        with suppress(OSError):  # what was put in at the last moment stays
            attic.rmdir()
