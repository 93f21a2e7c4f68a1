# SPDX-License-Identifier: MIT
"""Opens the page in a browser through a private file.

The page's address contains the token, and all users can read command lines (`ps`). So the browser
gets the name of a file that only the user can read. This file redirects to the page.
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
def redirecting_file(url: str) -> Iterator[str]:
    """Yields the address of the redirecting file, and deletes the file afterwards.

    Raises OSError if no folder is suitable for the file.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-monitor-", dir=_place()) as folder:
        # tempfile makes the folder private, and the file is opened with mode 0600.
        file = Path(folder) / "monitor.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as page:
            page.write(_PAGE.format(url=escape(url)))
        yield file.as_uri()


def _place() -> Path | None:
    """Returns a folder that browsers can read, or None.

    Snap and flatpak browsers have a separate /tmp, and cannot read hidden folders or folders
    outside of the home folder.
    """
    with suppress(RuntimeError, OSError):
        home = Path.home().resolve()
        for place in (paths.BUILD, home):
            hidden = any(name.startswith(".") for name in place.parts)
            if not hidden and place.is_relative_to(home) and os.access(place, os.W_OK | os.X_OK):
                return place
    return None
