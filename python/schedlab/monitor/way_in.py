# SPDX-License-Identifier: MIT
"""How a browser is told of the page: by a file that only its user can read.

The page's address has the token in it, and the words that a program is started with are for all users
of a machine to see (`ps`). So the browser is given the name of a file, which leads on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from schedlab import paths

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>schedlab</title>
<p><a href="{url}">The monitor</a></p>
</html>
"""


@contextmanager
def way_in(url: str) -> Iterator[str]:
    """Gives the address of such a file, which is gone afterwards. OSError: there is no place for it."""
    with tempfile.TemporaryDirectory(prefix="schedlab-monitor-", dir=_place()) as folder:
        # Both are this user's alone: tempfile makes folders so, and the file is made so.
        file = Path(folder) / "monitor.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as page:
            page.write(_PAGE.format(url=escape(url)))
        yield file.as_uri()


def _place() -> Path | None:
    """Where browsers can read: those that come as a snap or a flatpak have a /tmp of their own, and
    see nothing in hidden folders, nor outside of the home folder. None: there is no such place."""
    with suppress(RuntimeError, OSError):
        home = Path.home().resolve()
        for place in (paths.BUILD, home):
            hidden = any(name.startswith(".") for name in place.parts)
            if not hidden and place.is_relative_to(home) and os.access(place, os.W_OK | os.X_OK):
                return place
    return None
