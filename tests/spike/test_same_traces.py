# SPDX-License-Identifier: MIT
"""Tests that the pinned compiler makes the same kernel on every machine, so that equal arguments
give equal traces.

tests/golden/traces.txt has the hashes. To rewrite them after a change of the kernel or of the
compiler:

    SCHEDLAB_GOLDEN=write ./schedlab test tests/spike/test_same_traces.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import ROOT
from guest_machine import run_guest
from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.tools import require_compiler

GOLDEN_TRACES = ROOT / "tests" / "golden" / "traces.txt"
POLICIES = ("rr", "mlfq", "lottery", "stride", "cfs")


@pytest.mark.spike
def test_mixed_has_the_trace_of_every_other_machine(tmp_path: Path) -> None:
    if not require_compiler().is_pinned:
        pytest.skip("SCHEDLAB_CLANG names another compiler, whose kernel has other instructions")
    lines = ["# SPDX-License-Identifier: MIT"]
    lines += [
        f"{trace_hash(tmp_path / policy, policy)}  mixed, {policy}, 2 CPUs" for policy in POLICIES
    ]
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        GOLDEN_TRACES.write_text("".join(f"{line}\n" for line in lines))
    assert lines == GOLDEN_TRACES.read_text().splitlines()


def trace_hash(folder: Path, policy: str) -> str:
    folder.mkdir()
    boot = f"policy={policy} tick=1ms seed=1"
    guest = run_guest(folder, "mixed", cpus=2, arguments=boot, traced=True)
    assert guest.status == 0, guest.console
    return file_hash(guest.trace)
