# SPDX-License-Identifier: MIT
"""Tests the simulator and the monitor's model, compiled for other hosts by the pinned compiler.
Programs that can run on this host are run.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Command
from schedlab.base.toolchain.build import make_command
from schedlab.base.toolchain.policies import known_policies
from schedlab.base.toolchain.tools import require_compiler

pytestmark = pytest.mark.long

PARTS = ("sim/schedlab-sim", "sim/libschedlab-sim.so", "model/libschedlab-model.so")
ELF, MACH_O = b"\x7fELF", b"\xcf\xfa\xed\xfe"
HOSTS = {
    "aarch64-linux-gnu.2.34": (ELF, 18, 183),
    "aarch64-macos": (MACH_O, 4, 0x0100000C),
    "x86_64-macos": (MACH_O, 4, 0x01000007),
}
"""The first bytes of a file, and the offset and value that name the processor. Linking shows
that the host has each function that the file calls.
"""
OF_LINUX = (b"/proc/", b"prctl\0", b"memfd_create\0", b"sched_getaffinity\0", b"eventfd\0")


def made_for(target: str, path: Path, *names: str, policies: str = "") -> list[Path]:
    """Builds files for another host in a separate directory."""
    made = [path / name for name in names]
    host = [word if "linux-gnu" not in word else target for word in require_compiler().host]
    words = [f"B={path}", f"HOST_CC={shlex.join(host).replace('$', '$$')}"]
    if policies:
        words.append(f"POLICIES={policies}")
    subprocess.run([*make_command((*words, *map(str, made))), "-j2"], cwd=ROOT, check=True)
    return made


@pytest.mark.parametrize("target", HOSTS)
def test_it_is_built_and_asks_for_nothing_of_linux(target: str, tmp_path: Path) -> None:
    begin, place, processor = HOSTS[target]
    program, library, model = made_for(
        target, tmp_path, *PARTS, policies="policies/rr.c policies/mlfq.c"
    )
    for file in (program, library, model):
        content = file.read_bytes()
        assert content.startswith(begin)
        number = content[place : place + (2 if begin == ELF else 4)]
        assert int.from_bytes(number, "little") == processor
        assert [name for name in OF_LINUX if name in content] == []
    assert b"simulator_create\0" in library.read_bytes()
    assert (ROOT / "sim" / "simulator.h").read_bytes() in library.read_bytes()
    assert b"model_begin\0" in model.read_bytes()


def test_traces_on_aarch64_are_those_of_this_host(tmp_path: Path, schedlab: Command) -> None:
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not emulator:
        pytest.skip("no qemu-aarch64 is on the PATH: install qemu-user-static")
    (program,) = made_for("aarch64-linux-musl", tmp_path / "b", PARTS[0])
    policies = ",".join(known_policies())
    arguments = ("run", "--machine", "sim", "--policy", policies, "--cpus", "4", "--out", "runs")
    assert schedlab(*arguments, cwd=tmp_path).returncode == 0
    runs = [*(tmp_path / "runs").glob("*/manifest.json")]
    assert len(runs) > 10
    for manifest in runs:
        expected = (manifest.parent / "trace.bin").read_bytes()
        again = shlex.split(json.loads(manifest.read_text())["boot_arguments"])
        (manifest.parent / "trace.bin").unlink()
        subprocess.run([emulator, program, *again], cwd=manifest.parent, check=True)
        assert (manifest.parent / "trace.bin").read_bytes() == expected, manifest.parent.name
