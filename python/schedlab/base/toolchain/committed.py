# SPDX-License-Identifier: MIT
"""Reads build results stored in the repository for hosts without a compiler.

These are the WebAssembly in page/schedlab.html and the catalogue of policies. They are valid while
the C sources have the same hash.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.errors import BuildFailed
from schedlab.paths import INSTALLED, ROOT

PAGE = ROOT / "page" / "schedlab.html"
CATALOGUE = ROOT / "policies" / "catalogue.json"
MODULE = "schedlab-module"
"""ID of the WebAssembly's element in the page."""
_SOURCES = ROOT / "page" / "sources.sh"


def sources_hash() -> str:
    """Returns a hash of the C sources; in an installed package, the catalogue's hash."""
    if INSTALLED:
        return str(_catalogue()["sources"])
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
    """Returns the hash of the C sources of a page, or ""."""
    match = re.search(r'<meta name="module" content="(\w+)">', page)
    return match[1] if match else ""


def committed_module() -> bytes | None:
    """Returns the stored WebAssembly, or None if the C sources have changed."""
    page = _text_of(PAGE)
    if not page or hash_in(page) != sources_hash():
        return None
    return base64.b64decode(page.partition(f'id="{MODULE}">')[2].partition("</script>")[0])


def committed_vega() -> str | None:
    """Returns Vega's JavaScript that the page has, whose modules find it by `vega`, `vegaLite` and `vegaEmbed`; None if
    there is no page."""
    _, begin, script = (_text_of(PAGE) or "").partition("<script>")
    return script.partition("</script>")[0] if begin else None


def committed_listing() -> list[dict[str, Any]] | None:
    """Returns the stored catalogue, or None if the C sources have changed."""
    return list(_catalogue()["policies"]) if _serves() else None


def committed_policies() -> tuple[str, ...]:
    """Returns the policies' names in the stored catalogue, even if the C sources have changed.

    Empty if the catalogue cannot be read.
    """
    return tuple(policy["name"] for policy in _catalogue().get("policies", ()))


def catalogue_text(listing: list[dict[str, Any]]) -> str:
    """Returns the text of a catalogue file."""
    content = {"sources": sources_hash(), "policies": listing}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


@cache
def _serves() -> bool:
    return bool(_catalogue().get("sources") == sources_hash())


@cache
def _catalogue() -> dict[str, Any]:
    """Returns the catalogue; empty if it cannot be read, as during a merge."""
    try:
        content = json.loads(_text_of(CATALOGUE) or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
