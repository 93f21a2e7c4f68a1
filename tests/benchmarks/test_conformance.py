# SPDX-License-Identifier: MIT
"""Tests `bench conformance`: the expected and the measured behaviour of a scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schedlab.commands.cli import cli
from schedlab_tools.benchmarks.conformance import SUITES, read_suite

SUITE = SUITES / "eevdf.json"


def bench(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(cli, ["dev", "bench", "conformance", "--json", *arguments])
    return result.exit_code, json.loads(result.stdout)["rows"] if result.stdout else []


def test_eevdf_does_what_is_expected_and_others_do_not() -> None:
    """Without timers, time slices end later but in the same order: within 2.5 ms for a tick of 1
    ms."""
    status, rows = bench("--policy", "eevdf,eevdf:ticks,rr")
    outcomes = {(row["policy"], row["scenario"]): row["kept"] for row in rows}
    names = [scenario.name for scenario in read_suite(SUITE).scenarios]
    assert status == 1
    assert all(outcomes["eevdf", name] and outcomes["eevdf:ticks", name] for name in names)
    assert not any(outcomes["rr", name] for name in names if name not in ("idle", "slices"))


@pytest.mark.parametrize("chosen", ["long-sleep", "equal-slice"])
def test_scenario_detects_a_broken_rule(chosen: str, tmp_path: Path) -> None:
    """Under `paper`, debt waits for its task, and each tick interrupts time slices."""
    suite = json.loads(SUITE.read_text())
    suite["scenarios"] = [scenario for scenario in suite["scenarios"] if scenario["name"] == chosen]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(suite))
    status, (row,) = bench(str(path), "--policy", "eevdf:paper")
    assert status == 1 and not row["kept"] and row["found"] != row["expected"]
