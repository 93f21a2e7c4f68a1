# SPDX-License-Identifier: MIT
"""The benchmark of reading traces: what it reads is a trace. (How fast it does depends on the host.)"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from schedlab.trace import Kind, read, validate
from schedlab_tools.benchmarks.instructions import DECODER


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The program, as a module."""
    description = importlib.util.spec_from_file_location(DECODER.stem, DECODER)
    assert description
    assert description.loader
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def test_its_trace_is_valid(benchmark: ModuleType, tmp_path: Path) -> None:
    """Although it is one story, told several times by other processes."""
    steps = 3000
    pattern = benchmark.make_trace(tmp_path / "once.bin", 0, 3, steps)
    events = benchmark.make_trace(tmp_path / "thrice.bin", 3 * pattern, 3, steps)
    trace = read(tmp_path / "thrice.bin")
    validate(trace)
    assert len(trace.events) == events > 2.9 * pattern
    assert len(trace.rows(Kind.POLICY, Kind.TUNABLE)) > 10
