# SPDX-License-Identifier: MIT
"""Opens the page in a browser without showing the page's address to other users.

The address contains the session's token, and all users can read the command lines of processes
(`ps`). So the browser's command line only names a private file, which redirects to the page.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from schedlab import paths

_REDIRECT_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>schedlab</title>
<p><a href="{url}">The monitor</a></p>
</html>
"""


@contextmanager
def redirect_file(url: str) -> Iterator[str]:
    """Writes a private HTML file that redirects to `url`; yields the file's own address.

    Deletes the file afterwards. Raises OSError if no folder is suitable for the file.
    """
    with tempfile.TemporaryDirectory(
        prefix="schedlab-monitor-", dir=_browser_readable_folder()
    ) as folder:
        # tempfile makes the folder private, and the file is opened with mode 0600.
        file = Path(folder) / "monitor.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as page:
            page.write(_REDIRECT_PAGE.format(url=escape(url)))
        yield file.as_uri()


def _browser_readable_folder() -> Path | None:
    """Returns a folder that browsers can read, or None.

    Snap and flatpak browsers have a separate /tmp, and cannot read hidden folders or folders
    outside of the home folder.
    """
    with suppress(RuntimeError, OSError):
        home = Path.home().resolve()
        for folder in (paths.BUILD_FOLDER, home):
            is_hidden = any(name.startswith(".") for name in folder.parts)
            if (
                not is_hidden
                and folder.is_relative_to(home)
                and os.access(folder, os.W_OK | os.X_OK)
            ):
                return folder
    return None
