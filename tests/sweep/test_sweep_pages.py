# SPDX-License-Identifier: MIT
"""Tests a sweep in other commands: its report, heat maps, and a comparison of two sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from refused import refusal
from schedlab.errors import WrongUsage
from schedlab.sweep import dataset, page
from schedlab.sweep.effects import (
    compute_effects,
    mean_cells,
)
from schedlab.sweep.objectives import parse_objective
from sweeps import WORKLOAD
from test_sweep_best import MS, Measured, swept

TURNAROUND = parse_objective("turnaround")


def grid(first: int = 4, second: int = 3) -> Measured:
    """Turnaround is a × b ms, plus the seed's offset."""
    return {
        (f"a={a},b={b}", seed): {
            "turnaround_mean_ns": (a * b + seed / 100) * MS,
            "set_a": a,
            "set_b": b,
            "quick.response_mean_ns": a * MS,
            "batch.response_mean_ns": b * MS,
        }
        for a in range(1, first + 1)
        for b in range(1, second + 1)
        for seed in (1, 2)
    }


def test_heat_map_has_the_mean_of_pairs(tmp_path: Path) -> None:
    folder = swept(tmp_path, grid())
    table = mean_cells(folder, TURNAROUND, ("a", "b"))
    means = {(row["x"], row["y"]): row["value"] for row in table.to_dicts()}
    assert len(means) == 12
    assert means["4", "3"] == pytest.approx(12.015 * MS)
    assert set(table["runs"]) == {2}
    assert page.strongest_pairs(compute_effects(folder, TURNAROUND)) == [("a", "b")]
    chart = page.heat_map(folder, TURNAROUND, ("a", "b"))
    assert "Least: 1.01 at 1, 1; most: 12.0 at 4, 3" in chart.description
    with pytest.raises(WrongUsage, match="unknown dimension c; choose from seed, a, b"):
        mean_cells(folder, TURNAROUND, ("a", "c"))
    for wrong in ("a", "a,a", "a,b,c", ","):
        with pytest.raises(WrongUsage, match="not two dimensions"):
            page.parse_pair(wrong)


def test_a_sweep_has_a_report(tmp_path: Path) -> None:
    failed: Measured = {("a=9,b=9", 1): {"status": "limit", "set_a": 9, "set_b": 9}}
    folder = swept(tmp_path, {**grid(), **failed})
    made = page.make_page(folder)
    blocks = [getattr(block, "name", "") for block in made.blocks()]
    assert blocks == [
        "best-turnaround-1", "effects-turnaround", "interactions-turnaround", "map-turnaround-a-b",
    ]  # fmt: skip
    assert "25 runs of 13 configurations, of which 1 failed" in made.lead
    with pytest.raises(WrongUsage, match="of 1 runs failed"):
        page.make_page(swept(tmp_path / "none", failed))


def test_report_compare_and_pictures_of_sweeps_that_ran(tmp_path: Path, schedlab: Command) -> None:
    (tmp_path / "w.json").write_text(WORKLOAD)
    call = (
        "sweep", "--workload", str(tmp_path / "w.json"), "--set", "slice=1,4", "--cpus", "1,2",
        "--jobs", "1",
    )  # fmt: skip
    out = tmp_path / "out"
    picture = (
        "--effects",
        "turnaround",
        "--chart",
        str(tmp_path / "map.svg"),
        "--map",
        "slice,cpus",
    )
    completed = schedlab(*call, "--policy", "rr", "--out", str(out), *picture)
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "map.svg").read_text().startswith("<svg")
    compared = schedlab("compare", str(out), str(out), "--all", "--json")
    assert len(json.loads(compared.stdout)["setups"]) == 4
    made = schedlab("report", str(out), "--out", str(tmp_path / "page"), "--format", "markdown")
    assert made.returncode == 0, made.stderr
    assert f"{len(dataset.read_table(out, 'runs'))} runs, 0 failed" in made.stdout
    assert "name only the sweep" in refusal("report", str(out), str(tmp_path / "page"))
    assert "without traces" in refusal("report", str(out), "--from-traces")
