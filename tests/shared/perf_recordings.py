# SPDX-License-Identifier: MIT
"""Unpacks and imports the recordings of tests/recordings."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from schedlab.paths import ROOT
from schedlab.recordings import reader
from schedlab.recordings.convert import Imported, convert

RECORDINGS = ROOT / "tests" / "recordings"
TICK_NS = 4_000_000
TOOLS = {".data": reader.PERF, ".dat": reader.TRACE_CMD}


def unpacked(name: str, folder: Path) -> Path:
    """Returns a recording as it was made. Skips the test if its tool is missing."""
    tool = TOOLS.get(Path(name).suffix)
    if tool and not tool.find():
        pytest.skip(f"{tool.program} is not here: install {' or '.join(tool.packages)}")
    path = folder / name
    path.write_bytes(lzma.decompress((RECORDINGS / f"{name}.xz").read_bytes()))
    return path


def imported(name: str, folder: Path) -> Imported:
    return convert(unpacked(name, folder), folder / "run", "fair", TICK_NS)
