# SPDX-License-Identifier: MIT
"""Reads build results that are stored in the repository, for hosts without a compiler.

These are the WebAssembly in page/schedlab.html, and the catalogue of policies. They are used as
long as the C sources have the same hash.
"""

import base64
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.tools import run_captured
from schedlab.errors import BuildFailed
from schedlab.paths import IS_INSTALLED, ROOT

PAGE = ROOT / "page" / "schedlab.html"
CATALOGUE = ROOT / "policies" / "catalogue.json"
MODULE_ID = "schedlab-module"
"""ID of the HTML element that contains the WebAssembly."""
_SOURCES = ROOT / "page" / "sources.sh"


def sources_hash() -> str:
    """Returns a hash of the C sources; in an installed package, the hash in the catalogue."""
    if IS_INSTALLED:
        return str(_catalogue()["sources"])
    result = run_captured(["/bin/sh", str(_SOURCES)])
    if result.returncode:
        raise BuildFailed(
            f"{_SOURCES} cannot hash the sources; use a complete checkout: {result.stderr.strip()}"
        )
    return result.stdout.strip()


def read_page_hash(page: str) -> str:
    """Returns the hash of the C sources that a page was built from, or ""."""
    match = re.search(r'<meta name="module" content="(\w+)">', page)
    return match[1] if match else ""


def committed_module() -> bytes | None:
    """Returns the WebAssembly in the repository, or None if the C sources have changed."""
    page = _read_if_exists(PAGE)
    if not page or read_page_hash(page) != sources_hash():
        return None
    return base64.b64decode(page.partition(f'id="{MODULE_ID}">')[2].partition("</script>")[0])


def committed_vega() -> str | None:
    """Returns the JavaScript of the charting library Vega in the page; None if there is no page.

    Its modules are available as `vega`, `vegaLite` and `vegaEmbed`.
    """
    _, begin, script = (_read_if_exists(PAGE) or "").partition("<script>")
    return script.partition("</script>")[0] if begin else None


def committed_policy_list() -> list[dict[str, Any]] | None:
    """Returns the list of policies in the repository, or None if the C sources have changed."""
    return list(_catalogue()["policies"]) if _is_up_to_date() else None


def committed_policies() -> tuple[str, ...]:
    """Returns the names of policies in the repository's catalogue, even if the C sources have
    changed.

    Empty if the catalogue cannot be read.
    """
    return tuple(policy["name"] for policy in _catalogue().get("policies", ()))


def catalogue_text(listing: list[dict[str, Any]]) -> str:
    """Returns the text of the catalogue file for a list of policies."""
    content = {"sources": sources_hash(), "policies": listing}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


@cache
def _is_up_to_date() -> bool:
    return bool(_catalogue().get("sources") == sources_hash())


@cache
def _catalogue() -> dict[str, Any]:
    """Returns the content of the catalogue; empty if it cannot be read, as during a merge."""
    try:
        content = json.loads(_read_if_exists(CATALOGUE) or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _read_if_exists(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
