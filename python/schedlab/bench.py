# SPDX-License-Identifier: MIT
"""Exact instruction counts of the kernel's operations on Spike, beside a baseline and an aim."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedlab.errors import SchedlabError
from schedlab.machines.base import Boot, Machine
from schedlab.outcome import hung, outcome_of, read_console
from schedlab.paths import ROOT
from schedlab.results import CONSOLE
from schedlab.run import supervise

BASELINES = ROOT / "bench" / "baselines.json"
_ROW = re.compile(r"^bench (\S+) (\d+) (\d+)\s*$", re.MULTILINE)
_LIMIT_NS = 120_000_000_000


@dataclass(frozen=True)
class Row:
    """One operation. `baseline` and `aim` are instructions for one of it; None: there is none."""

    name: str
    iterations: int
    instructions: float
    meaning: str = ""
    baseline: float | None = None
    aim: float | None = None

    @property
    def verdict(self) -> str:
        if self.baseline is not None and self.instructions > self.baseline:
            return "worse than the baseline"
        if self.aim is None:
            return ""
        return "met" if self.instructions <= self.aim else "not met"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def measure(machine: Machine, kernel: Path, disk: Path, program: str) -> list[Row]:
    """Runs a program of the guest on one CPU, and reads the rows that it prints."""
    arguments = f'tick=10ms seed=1 limit=120s run="{program}"'
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        boot = Boot(kernel, disk, 1, 512, arguments)
        seconds = machine.host_limit(1, _LIMIT_NS)
        console = Path(folder) / CONSOLE
        status = asyncio.run(supervise(machine.command(boot), Path(folder), console, seconds))
        text = read_console(console)
    outcome = hung(seconds, text) if status is None else outcome_of(status, text)
    if not outcome.succeeded:
        raise SchedlabError(f"{program}: {outcome.message}")
    return rows_of(text, read_baselines())


def read_baselines() -> dict[str, dict[str, Any]]:
    """Rows by name: meaning, baseline, aim."""
    rows: dict[str, dict[str, Any]] = json.loads(BASELINES.read_text())["rows"]
    return rows


def rows_of(console: str, baselines: dict[str, dict[str, Any]]) -> list[Row]:
    """Of lines "bench NAME ITERATIONS INSTRUCTIONS"; instructions are of all iterations."""
    rows = []
    for name, iterations, instructions in _ROW.findall(console):
        known = baselines.get(name, {})
        rows.append(
            Row(
                name,
                int(iterations),
                int(instructions) / max(1, int(iterations)),
                known.get("meaning", ""),
                known.get("baseline"),
                known.get("aim"),
            )
        )
    return rows


def all_met(rows: Iterable[Row]) -> bool:
    """No row misses its aim or is worse than its baseline."""
    return all(row.verdict in ("", "met") for row in rows)
