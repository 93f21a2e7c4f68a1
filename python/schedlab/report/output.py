# SPDX-License-Identifier: MIT
"""The folder of a report: it appears when it is whole, and replaces only what is a report."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schedlab import results
from schedlab.errors import WrongUsage

MARK = "report.json"
"""In each report: what is in it. A folder that has it was made by us."""


def check_place(place: Path) -> None:
    """Raises WrongUsage for what is there and is no report."""
    if not place.exists():
        return
    if not place.is_dir():
        raise WrongUsage(f"--out {place}: that is a file; name a folder")
    if any(place.iterdir()) and not (place / MARK).is_file():
        raise WrongUsage(
            f"--out {place}: the folder holds something else than a report; name another one"
        )


@contextmanager
def report_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which after the block is `place`, instead of a report that was there.

    If the block raises, all is as it was. Raises WrongUsage as `check_place` does.
    """
    check_place(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    attic = Path(
        tempfile.mkdtemp(dir=place.parent, prefix=f"{results.UNFINISHED}{place.name}-old-")
    )
    old = attic / "report"
    try:
        with results.new_folder(place) as folder:
            yield folder
            if place.exists():
                os.rename(place, old)
    except BaseException:
        if old.exists() and not place.exists():
            os.rename(old, place)
        raise
    finally:
        shutil.rmtree(attic, ignore_errors=True)
