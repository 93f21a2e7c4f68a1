# SPDX-License-Identifier: MIT
"""Formats of the files that releases of schedlab leave: which of them this release reads, and which release reads
the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.errors import FileRefused

_SHOWN = 40
_FIRST = 1
"""What has no format is of this one."""


def check_format(path: Path, content: Mapping[str, Any], known: int, what: str) -> None:
    """Raises FileRefused if `content`, which was read from `path`, is of another format than the known one."""
    version = content.get("format", _FIRST)
    if isinstance(version, bool) or version != known:
        shown = json.dumps(version)[:_SHOWN]
        raise FileRefused(f"{path}: {what} of format {shown}; {reader_of(content, known)}")


def reader_of(content: Mapping[str, Any], known: int) -> str:
    """Says which formats this release reads, and which release reads what has this content."""
    maker = content.get("schedlab")
    maker_name = json.dumps(maker)[1:-1][:_SHOWN] if isinstance(maker, str) else ""
    other = f"schedlab {maker_name}, which made it," if maker_name else "the release that made it"
    return f"schedlab {__version__} reads format {known}: use {other} to read it"
