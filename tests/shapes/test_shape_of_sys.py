# SPDX-License-Identifier: MIT
"""Tests detecting a machine's shape from its /sys, using invented copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.files.json_lines import parse
from schedlab.errors import WrongUsage
from schedlab.workload.shapes.reading import parse_shape_node
from schedlab.workload.shapes.sysfs import GUESS_NOTE, OFFLINE_NOTE, read_sys_shape
from schedlab.workload.shapes.writing import format_shape_file


def copy_of_sys(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "devices/system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return folder


def server() -> dict[str, str]:
    """Two nodes of two cores with two hardware threads, numbered as by Linux: 0 and 4 are
    siblings.
    """
    files = {"cpu/online": "0-7", "node/online": "0-1"}
    for node, cpus in enumerate(("0-1,4-5", "2-3,6-7")):
        files[f"node/node{node}/cpulist"] = cpus
        files[f"node/node{node}/distance"] = "10 21" if node == 0 else "21 10"
    for cpu in range(8):
        place, core_cpus = f"cpu/cpu{cpu}", f"{cpu % 4},{cpu % 4 + 4}"
        files[f"{place}/topology/core_cpus_list"] = core_cpus
        for index, (level, kind, shared) in enumerate(
            ((1, "Data", core_cpus), (1, "Instruction", core_cpus), (2, "Unified", core_cpus))
        ):
            files[f"{place}/cache/index{index}/level"] = str(level)
            files[f"{place}/cache/index{index}/type"] = kind
            files[f"{place}/cache/index{index}/shared_cpu_list"] = shared
        files[f"{place}/cache/index3/level"] = "3"
        files[f"{place}/cache/index3/type"] = "Unified"
        files[f"{place}/cache/index3/shared_cpu_list"] = "0-1,4-5" if cpu % 4 < 2 else "2-3,6-7"
        files[f"{place}/cpu_capacity"] = "1024"
    return files


def test_a_server(tmp_path: Path) -> None:
    shape, notes = read_sys_shape(copy_of_sys(tmp_path, server()))
    assert shape.core == (0, 1, 2, 3) * 2
    assert shape.cache == shape.node == (0, 0, 1, 1) * 2
    assert shape.distances == ((10, 21), (21, 10))
    assert shape.kinds == ((1024,),)
    assert shape.text(False) == "core%4/1,cache%4/2,node%4/2,distance10.21:21.10"
    assert notes == [GUESS_NOTE]
    assert parse_shape_node(parse(format_shape_file(shape))) == shape


def test_a_telephone(tmp_path: Path) -> None:
    """It reports its capacities, but frequencies only for the slow CPUs."""
    files = {"cpu/online": "0-3"}
    for cpu, capacity in enumerate((446, 446, 1024, 1024)):
        files[f"cpu/cpu{cpu}/cpu_capacity"] = str(capacity)
        files[f"cpu/cpu{cpu}/topology/thread_siblings_list"] = str(cpu)
    for cpu in (0, 1):
        files[f"cpu/cpu{cpu}/cpufreq/scaling_available_frequencies"] = "900000 1800000 450000"
    shape, notes = read_sys_shape(copy_of_sys(tmp_path, files))
    assert shape.kind == (0, 0, 1, 1)
    assert shape.kinds == ((446, 223, 112), (1024,))
    assert "memory nodes are unknown for some CPUs: one node is assumed" in notes
    assert "caches are unknown: one cache per node is assumed" in notes


def test_cpus_that_are_offline_are_left_out(tmp_path: Path) -> None:
    files = {**server(), "cpu/online": "0,2-4,6"}
    shape, notes = read_sys_shape(copy_of_sys(tmp_path, files))
    assert shape.core == (0, 1, 2, 0, 1)
    assert shape.node == (0, 1, 1, 0, 1)
    assert notes == [
        OFFLINE_NOTE,
        GUESS_NOTE,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"node/node0/distance": "10"},
        {"node/node0/distance": "10 x"},
        {"node/node0/distance": "12 21"},
        {"node/node0/cpulist": ""},
        {"cpu/cpu0/topology/core_cpus_list": "0,99999999999"},
        {"cpu/cpu0/cpu_capacity": "many"},
        {"cpu/cpu0/cpu_capacity": "99999999999999"},
        {"cpu/cpu1/cache/index3/level": "-3"},
        {"cpu/cpu1/cache/index3/shared_cpu_list": "1"},
        {"cpu/cpu0/topology/core_cpus_list": "0-7"},
        {"cpu/cpu0/topology/core_cpus_list": "0,2"},
        {f"cpu/cpu{cpu}/cpu_capacity": str(1000 + cpu) for cpu in range(8)},
    ],
)
def test_any_input_gives_a_shape(change: dict[str, str], tmp_path: Path) -> None:
    """The shape can be read again."""
    shape, notes = read_sys_shape(copy_of_sys(tmp_path, {**server(), **change}))
    assert parse_shape_node(parse(format_shape_file(shape))) == shape
    assert notes


def test_what_is_no_sys_is_refused(tmp_path: Path) -> None:
    for text in ("", "0-", "0-2000", "x"):
        with pytest.raises(WrongUsage):
            read_sys_shape(copy_of_sys(tmp_path, {"cpu/online": text}))
