# SPDX-License-Identifier: MIT
"""Tests shape files: reading, refusals, and the copy kept with a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from schedlab.base.files.json_lines import parse
from schedlab.errors import WrongUsage
from schedlab.runs.results import read_manifest
from schedlab.workload.shapes.model import Shape
from schedlab.workload.shapes.reading import (
    builtin_shapes,
    find_shape,
    parse_shape_node,
    read_shape,
)
from schedlab.workload.shapes.writing import format_shape_file

SHAPE: dict[str, Any] = {
    "format": 1,
    "cpus": 12,
    "cores": ["0-1", "2-3", "4", "5", "6-7", "8-9", "10", "11"],
    "caches": 6,
    "nodes": 6,
    "distances": [[10, 21], [22, 10]],
    "kinds": [
        {"name": "fast", "cpus": "0-3,6-9", "capacity": 1024, "levels": [512, 768, 1024]},
        {"name": "slow", "cpus": "4-5,10-11", "capacity": 600},
    ],
    "model": {
        "busy_siblings": [0.6, 0.455],
        "cold": {"core": 0, "cache": "5us", "node": 50},
        "levels": "demand",
    },
}
TEXT = (
    "core0.0.1.1.2.3.4.4.5.5.6.7,cache/6,node/6,kind%6/4,speed1024.768.512:600,"
    "distance10.21:22.10,threads600.455,cold0.5000.50000,demand"
)


def written(folder: Path, content: object) -> Path:
    path = folder / "mine.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_contents_of_a_file(tmp_path: Path) -> None:
    shape = read_shape(written(tmp_path, SHAPE))
    assert shape.text() == TEXT
    assert shape.text(with_model=False) == TEXT[: TEXT.index(",threads")]
    assert shape.cpus == 12
    assert shape.source == json.dumps(SHAPE)


def test_what_is_left_out_is_as_if_all_cpus_were_alike() -> None:
    shape = parse_shape_node(parse('{"format": 1, "cpus": 3}'))
    assert shape == Shape((0, 1, 2), (0, 0, 0), (0, 0, 0), (0, 0, 0))
    assert shape.text() == "core/1"
    sets = '{"format": 1, "cpus": 4, "cores": ["0,2", "3,1"]}'
    assert parse_shape_node(parse(sets)).text() == "core%2/1"
    nodes = '{"format": 1, "cpus": 4, "nodes": 2, "distances": [[10, 20], [20, 10]]}'
    assert parse_shape_node(parse(nodes)).cache == (0, 0, 1, 1)


@pytest.mark.parametrize("name", builtin_shapes())
def test_a_shape_is_what_was_written(name: str) -> None:
    for shape in (find_shape(name), parse_shape_node(parse(json.dumps(SHAPE)))):
        assert parse_shape_node(parse(format_shape_file(shape))) == shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format: 2: expected 1, the only format"),
        ({"cpus": 1025}, "cpus: 1025: expected a whole number from 1 to 1024"),
        ({"cpu": 4}, "cpu: unknown: expected one of format, description, cpus"),
        ({"cores": 0}, "cores: 0: expected how many CPUs are in each"),
        ({"cores": ["0-11", "11"]}, "cores.1: CPU 11: is in two parts of cores; name it once"),
        ({"cores": ["0-5"]}, "cores: CPU 6 is missing: expected all 12"),
        ({"cores": ["0-12"]}, 'cores.0: "0-12": expected CPUs from 0 to 11, such as "0-3,8"'),
        ({"cores": 12, "caches": 12, "nodes": 12, "distances": [[10]], "kinds": []}, "kinds: an array: expected"),
        ({"cores": ["0,6", "1-5,7-11"]}, "cores: CPU 6: not in one cache with the other CPUs of its core"),
        ({"caches": 5}, "caches: CPU 6: not in one node with the other CPUs of its cache; move it there"),
        ({"cores": 6}, "kinds: CPU 4: not of one kind with the other CPUs of its core"),
        ({"distances": [[10, 21]]}, "distances: an array: expected 2 arrays of 2 distances"),
        ({"distances": [[10, 21], [10]]}, "distances.1: an array: expected 2 arrays"),
        ({"distances": [[10, 9], [10, 10]]}, "distances.0.1: 9: expected a whole number from 10"),
        ({"distances": [[11, 21], [21, 10]]}, "distances.0.0: 11: expected 10, the distance of a node to"),
        ({"distances": None}, "distances: null: expected 2 arrays of 2 distances"),
        ({"kinds": [{"cpus": "0-11", "capacity": 512}]}, "kinds: the fastest kind has another capacity than 1024"),
        ({"kinds": [{"cpus": "0-11"}]}, "kinds.0: an object: expected `capacity` in it"),
        ({"kinds": [{"cpus": "0-11", "capacity": 1024, "levels": [512]}]}, "kinds.0.levels: an array: expected 1"),
        ({"kinds": [{"cpus": "0-11", "capacity": 1024, "mhz": 1}]}, "kinds.0.mhz: unknown: expected one of name, cpus"),
        ({"model": {"busy_siblings": 1.5}}, "model.busy_siblings: 1.5: expected a part of a CPU's speed"),
        ({"model": {"busy_siblings": 0.0001}}, "model.busy_siblings: 0.0001: expected a part"),
        ({"model": {"busy_siblings": []}}, "model.busy_siblings: an array: expected 1 to 7 parts"),
        ({"model": {"cold": 5}}, "model.cold: 5: expected an object: the cost of a cold cache"),
        ({"model": {"cold": {"cache": "1s"}}}, 'model.cold.cache: "1s": expected a time of at most 100 ms'),
        ({"model": {"cold": {"disk": 1}}}, "model.cold.disk: unknown: expected one of core, cache, node"),
        ({"model": {"levels": "lowest"}}, 'model.levels: "lowest": expected highest or demand'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as refused:
        read_shape(written(tmp_path, {**SHAPE, **change}))
    assert str(refused.value).startswith(f"{tmp_path}/mine.json:1: {message}")


def test_several_nodes_have_distances(tmp_path: Path) -> None:
    incomplete_shape = {key: value for key, value in SHAPE.items() if key != "distances"}
    with pytest.raises(
        WrongUsage, match="expected the key distances in it, because it has several"
    ):
        read_shape(written(tmp_path, incomplete_shape))


def test_missing_shape(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="cannot be read: No such file"):
        find_shape(f"{tmp_path}/none.json")
    with pytest.raises(WrongUsage, match=r"unknown shape; name a file .*two-sockets"):
        find_shape("three-sockets")


# --- commands


def test_a_run_remembers_its_shape_and_is_carried_out_again(
    schedlab: Command, tmp_path: Path
) -> None:
    """The copy in the run's directory is used, regardless of the original file."""
    shape = written(tmp_path, {**SHAPE, "cpus": 2, "cores": 2, "caches": 2, "nodes": 2, "distances": [[10]],
                               "kinds": [{"cpus": "0-1", "capacity": 1024}]})  # fmt: skip
    common = ("--machine", "sim", "--workload", "ladder")
    result = schedlab("run", *common, "--shape", str(shape), "--out", str(tmp_path / "runs"))
    assert result.returncode == 0, result.stderr
    manifest = read_manifest(tmp_path / "runs" / "rr-2cpu-seed1")
    assert manifest["shape"].startswith("mine.json (")
    assert "--shape core/2,threads600.455,cold0.5000.50000,demand" in manifest["boot_arguments"]
    shape.unlink()
    again = schedlab("verify", str(tmp_path / "runs"), "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stdout + again.stderr
    repeated_manifest = read_manifest(tmp_path / "again" / "rr-2cpu-seed1")
    assert repeated_manifest["shape"] == manifest["shape"]
