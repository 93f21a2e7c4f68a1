# SPDX-License-Identifier: MIT
"""Tests hostile names in sweeps: listed, run, ranked, drawn, compared and reported."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostile_names import NAMES, UNSAFE, call
from schedlab.base.display.names import visible
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.runs.parts import build_parts
from schedlab.runs.worker import Result
from schedlab.sweep import dataset
from schedlab.sweep.rows import RunRows


def _hostile_sweep(folder: Path, workloads: Sequence[str], policies: Sequence[str]) -> None:
    """Writes a data set; settings, changes and other names equal the workload's hostile name."""
    make: dict[str, Any] = {"measuring": {}, "machines": {}}
    with dataset.open_data_set(folder, (), make, "".join(NAMES)) as sweep_dataset:
        finished = []
        for place, policy, seed in product(range(len(workloads)), policies, (1, 2)):
            name, number = workloads[place], policies.index(policy)
            identity = {
                "workload": name, "policy": policy, "settings": name, "changes": name,
                "machine": name, "costs": name, "cpus": 1, "tick_ns": 1_000_000,
                "limit_ns": 10**9, "seed": seed,
            }  # fmt: skip
            time = 1e6 + seed + 1e5 * number
            summary = {"processes": 4, "finished": 4, "clock_step_ns": 1}
            measured = {"turnaround_mean_ns": time, "response_mean_ns": 1e8 - time}
            group = {"group": name, "processes": 2, "finished": 2, "response_mean_ns": time}
            rows = RunRows({**summary, **measured}, (group,))
            key = f"{place}-{number}-{seed}"
            finished.append((identity, Result(key, Outcome("success"), 0.0, rows)))
        sweep_dataset.add(finished)


BEST = ("--best", "turnaround", "--best", "response")


def test_a_sweep_is_ranked(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    _hostile_sweep(sweep, NAMES, ("rr", "back\b[red]\n"))
    shown = call("sweep", "--from", sweep, "--best", "turnaround", "--top", "2").stdout
    assert shown.count("is better): ") == len(NAMES)
    assert shown.count("back\\x08[red]\\n") == len(NAMES)
    read = json.loads(call("sweep", "--from", sweep, *BEST, "--json").stdout)
    assert sorted(scene["workload"] for scene in read["scenes"]) == sorted(NAMES)


def test_a_sweep_is_drawn(tmp_path: Path) -> None:
    sweep, chart = tmp_path / "sweep", tmp_path / "chart.svg"
    _hostile_sweep(sweep, ("".join(NAMES),), NAMES)
    call("sweep", "--from", sweep, *BEST, "--chart", chart)
    ET.parse(chart)
    assert not UNSAFE.search(chart.read_text())


def test_a_frontier_without_setups_is_refused_in_words(tmp_path: Path) -> None:
    """All configurations are omitted, because none has both metrics."""
    _hostile_sweep(tmp_path / "sweep", NAMES[:3], NAMES[:3])
    chart = tmp_path / "chart.svg"
    words = ("--best", "turnaround", "--best", "min:switches", "--chart", str(chart))
    with pytest.raises(WrongUsage, match=r"no configuration of .* has both metrics"):
        CliRunner().invoke(
            cli, ["sweep", "--from", str(tmp_path / "sweep"), *words],
            catch_exceptions=False, standalone_mode=False,
        )  # fmt: skip
    assert not chart.exists()


def test_a_sweep_of_hostile_files_is_run_listed_and_reported(tmp_path: Path) -> None:
    """Hostile are the names of files and directories, of its description, and of tasks."""
    build_parts(["simulator"])
    hostile_name = "".join(name for name in NAMES if not set(name) & set("/\0"))[:60]
    files = []
    for number, name in enumerate((hostile_name, "line\nfeed[red]x", "--help")):
        (tmp_path / str(number)).mkdir()
        files.append(tmp_path / str(number) / f"{name}.json")
        task = {"instance": 2, "loop": 1, "run": "1ticks"}
        files[-1].write_text(json.dumps({"description": name, "tasks": {"batch": task}}))
    sweep = tmp_path / f"{hostile_name}.yaml"
    described = {"description": "".join(NAMES), "workloads": [str(path) for path in files]}
    sweep.write_text(json.dumps({**described, "policies": ["rr"], "seeds": [1, 2]}))
    out = tmp_path / f"out {hostile_name}"
    listed = call("sweep", sweep, "--dry-run").stdout
    assert len(listed.splitlines()) == 7
    call("sweep", sweep, "--dry-run", "--json")
    more = ("--best", "turnaround", "--keep-traces", "--jobs", "1")
    result = call("sweep", sweep, "--out", out, *more)
    assert visible(f"Kept in {out}") in result.output
    call("compare", out, out)
    call("report", out, "--out", tmp_path / "report", "--format", "markdown")
