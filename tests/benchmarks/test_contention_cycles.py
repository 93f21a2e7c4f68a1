# SPDX-License-Identifier: MIT
"""The check of waiting times on rvsim: what is booted there, and what its console tells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schedlab.base.toolchain.policies import parse_choices
from schedlab.errors import MachineUnfit
from schedlab_tools.benchmarks import cycles, peers
from schedlab_tools.benchmarks.contention import WORK, setups

CONSOLE = """schedlab: 2 CPUs, 192432 KiB of memory free, tick 1000 us, policy rr:table-scan
switch        1        4          4       400
cpu context_switches idle_switches idle_time_ns scheduler_cycles queue_waits queue_wait_cycles
0 203 202 1587627 317171 5 4787
1 202 202 3241310 542109 201 174898
"""
KERNEL = [(0x8000_0000, b"code " * 40), (0x8020_0000, b"data")]


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    contents = {"kernel": cycles._elf(0x8000_0000, KERNEL), "disk": b"files" * 9}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


def run_of(policy: str = "rr:table-scan") -> Any:
    return setups(parse_choices(policy), (2,))[0]


@pytest.mark.skipif(not shutil.which("dtc"), reason="no dtc is here")
def test_the_image_has_kernel_disk_and_device_tree(parts: dict[str, Path]) -> None:
    segments = dict(cycles._segments(cycles.image_of(run_of(), parts)))
    assert segments[0x8000_0000] == KERNEL[0][1] and segments[0x8020_0000] == KERNEL[1][1]
    assert segments[cycles._DISK] == parts["disk"].read_bytes()
    assert len(segments[cycles._STUB]) == 4 * len(cycles._STUB_CODE)
    tree = subprocess.run(
        ["dtc", "-q", "-I", "dtb", "-O", "dts"],
        input=segments[cycles._TREE],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    assert "policy=rr:table-scan seed=1" in tree
    assert f"sh -c '{WORK[0]}; stats -c'" in tree
    assert "linux,initrd-end = <0x00 0x8c00002d>" in tree
    assert tree.count('device_type = "cpu"') == 2


def test_what_the_console_tells() -> None:
    told = cycles.of_console(run_of(), CONSOLE, 6_466_186)
    assert (told.waits, told.waited_us, told.turn) == (206, 179.685, cycles.SIDE_BY_SIDE)
    assert told.of_time == pytest.approx(0.0139, abs=5e-5)
    assert (told.work, told.policy, told.cpus) == (WORK[0], "rr:table-scan", 2)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            'print(\'{"status": 1, "cycles": 5, "console": "panic: no memory"}\')',
            "panic: no memory",
        ),
        ("raise ImportError('no rvsim')", "does not run here: ImportError: no rvsim"),
    ],
)
def test_what_goes_wrong_there_is_told(
    told: str, words: str, tmp_path: Path, parts: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(told)
    monkeypatch.setattr(peers, "environment", lambda name: Path(shutil.which("python3") or ""))
    monkeypatch.setattr(cycles, "_RUNNER", stand_in)
    monkeypatch.setattr(cycles, "image_of", lambda run, parts: b"")
    with pytest.raises(MachineUnfit, match=words):
        cycles.contended_on_rvsim(run_of(), parts)
