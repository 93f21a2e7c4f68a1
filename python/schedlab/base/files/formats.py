# SPDX-License-Identifier: MIT
"""Checks the format versions of files, and says which release of schedlab reads other versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.errors import FileRefused

_SHOWN_MAX = 40
_FIRST_FORMAT = 1
"""Format version of a file that names none."""


def check_format(path: Path, content: Mapping[str, Any], known: int, kind: str) -> None:
    """Raises FileRefused if `content`, read from `path`, has another format version than `known`.

    `kind`: the kind of file, for the message.
    """
    version = content.get("format", _FIRST_FORMAT)
    if isinstance(version, bool) or version != known:
        shown = json.dumps(version)[:_SHOWN_MAX]
        raise FileRefused(f"{path}: {kind} of format {shown}; {explain_format(content, known)}")


def explain_format(content: Mapping[str, Any], known: int) -> str:
    """Returns a sentence: which format this release reads, and which release reads this file."""
    maker = content.get("schedlab")
    maker_name = json.dumps(maker)[1:-1][:_SHOWN_MAX] if isinstance(maker, str) else ""
    other = f"schedlab {maker_name}, which made it," if maker_name else "the release that made it"
    return f"schedlab {__version__} reads format {known}: use {other} to read it"
