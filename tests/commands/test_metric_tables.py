# SPDX-License-Identifier: MIT
"""Tests that tables never cut figures off, regardless of the number of columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import ROOT
from schedlab.base.display import terminal
from schedlab.commands.metric_tables import print_metrics
from schedlab.metrics import Metrics, measure
from schedlab.runs.parts import build_parts
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload
from schedlab_simulator import Simulator

HEADINGS = [f"policy-{letter}, 2 CPUs" for letter in "abcdefg"]
Printed = Callable[[int | None], str]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Metrics:
    build_parts(["simulator"])
    path = tmp_path_factory.mktemp("run") / "trace.bin"
    text = format_workload(
        workload_files.read_workload_file(ROOT / "docs" / "typist.json"), 1, 1_000_000
    )
    with Simulator(text, tick_ns=1_000_000, trace=path) as machine:
        machine.run(60_000_000_000)
    return measure(path)


@pytest.fixture
def printed(measured: Metrics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Printed:
    """Returns all columns as printed on a terminal of this width; None means a file."""

    def on(width: int | None) -> str:
        with (tmp_path / "out").open("w+") as out:

            def console(**options: Any) -> Console:
                return Console(file=out, **{**options, **({"width": width} if width else {})},
                               force_terminal=width is not None, no_color=True)  # fmt: skip

            monkeypatch.setattr(terminal, "_console", console)
            monkeypatch.setattr(terminal, "result_console", lambda: console(width=200))
            monkeypatch.setattr(
                "schedlab.commands.metric_tables.result_console", terminal.result_console
            )
            print_metrics([(heading, measured) for heading in HEADINGS])
            out.seek(0)
            return out.read()

    return on


@pytest.mark.parametrize(("width", "tables"), [(80, 3), (120, 2), (300, 1)])
def test_a_terminal_has_as_many_tables_as_it_takes(
    printed: Printed, width: int, tables: int
) -> None:
    text = printed(width)
    assert "…" not in text
    assert sum("metric" in line for line in text.splitlines()) == tables
    for heading in HEADINGS:
        assert text.count(heading.partition(",")[0]) == 2
