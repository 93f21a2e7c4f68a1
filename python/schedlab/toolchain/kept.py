# SPDX-License-Identifier: MIT
"""What the repository keeps compiled, for hosts that have no compiler for it: the WebAssembly and the list of policies
in page/schedlab.html. They serve as long as the C sources are those of which they were made."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from functools import cache
from typing import Any

from schedlab.errors import BuildFailed
from schedlab.paths import ROOT

PAGE = ROOT / "page" / "schedlab.html"
MODULE, LISTING = "schedlab-module", "schedlab-policies"
"""The names of the parts in the page."""
_SOURCES = ROOT / "page" / "sources.sh"


def sources_hash() -> str:
    """Returns a hash of the C sources as they are now; the launcher asks for the same one."""
    done = subprocess.run(
        ["/bin/sh", str(_SOURCES)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildFailed(f"{_SOURCES} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def hash_in(page: str) -> str:
    """Returns the hash of the C sources that a page was made of, or "" if it says none."""
    found = re.search(r'<meta name="module" content="(\w+)">', page)
    return found[1] if found else ""


def kept_module() -> bytes | None:
    """Returns the WebAssembly that is kept, or None if the C sources have changed since."""
    page = _kept()
    return base64.b64decode(_part(page, MODULE)) if page else None


def kept_listing() -> list[dict[str, Any]] | None:
    """Returns what the policies say of themselves, or None if the C sources have changed since."""
    page = _kept()
    return list(json.loads(_part(page, LISTING))) if page else None


@cache
def page_policies() -> tuple[str, ...]:
    """Returns the names of the policies that the kept page has, in their order, whatever the C sources are now; none
    if it cannot be read."""
    listing = _part(_page() or "", LISTING)
    return tuple(each["name"] for each in json.loads(listing or "[]"))


@cache
def _kept() -> str | None:
    page = _page()
    return page if page and hash_in(page) == sources_hash() else None


def _page() -> str | None:
    try:
        return PAGE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _part(page: str, name: str) -> str:
    return page.partition(f'id="{name}">')[2].partition("</script>")[0]
