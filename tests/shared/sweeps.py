# SPDX-License-Identifier: MIT
"""A sweep for tests to run, and its helpers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from schedlab.base.host.isolated import module_command
from schedlab.sweep import dataset

WORKLOAD = """{
    "tasks": {
        "batch": {"instance": 3, "loop": 1, "run": "4ticks"},
        "quick": {"instance": 2, "loop": 5, "run": 200, "sleep": "2ticks"}
    }
}"""
SWEEP = """
description: Test
workloads: {file: w.json, with: {tasks.batch.instance: [2, 3]}}
policies:
  - rr
  - {policy: mlfq, set: {boost: 0..60+20, slice_3: [1, 2]}}
seeds: 1..SEEDS
"""
SEEDS = 5
SETUPS = 2 * (1 + 4 * 2)


def sweep_file(folder: Path, seeds: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "w.json").write_text(WORKLOAD)
    path = folder / "sweep.yaml"
    path.write_text(SWEEP.replace("SEEDS", str(seeds)))
    return path


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: dataset.read_table(folder, name) for name in ("runs", "groups", "told")}


def assert_same(one: Path, other: Path) -> None:
    """Compares row by row, by key."""
    for name, table in tables(one).items():
        assert table.equals(tables(other)[name]), name


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a command in the background; the block's end ends it."""
    process = subprocess.Popen(
        module_command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
