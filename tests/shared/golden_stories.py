# SPDX-License-Identifier: MIT
"""Runs the scenarios of tests/scenario on this host, by the tests' model and by the simulator.

Their stories of the scenario of ties are kept in tests/golden.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from guest_machine import sound_trace
from schedlab import trace
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.paths import BUILD_FOLDER, ROOT
from trace_story import Story

GOLDEN = ROOT / "tests" / "golden"
MODEL = BUILD_FOLDER / "scenario_model"
SIMULATOR = BUILD_FOLDER / "scenario_simulator"
ACTED_TOGETHER = 3
"""The model's exit status if two CPUs acted at the same time."""

PINNED = ("rr", "priority", "wrr", "lottery", "mlfq", "stride", "hybrid", "cfs")
"""Policies whose stories are in tests/golden. Others must only complete the scenario."""

MEASURING = (
    "lottery",
    "lottery:proposed",
    "lottery:transfers",
    "stride",
    "cfs",
    "cfs:linux",
    "cfs:nice",
    "priority:passes",
)
"""Policies that decide by the nanoseconds that a process ran or a CPU was idle. A tie on the model,
which has no costs, is not a tie on the kernel, where system calls take time: the model's story
is pinned.
"""


TOGETHER = ("wrr:arrays",)
"""Policies whose turns let two CPUs act at the same time in the scenario of ties. Their
stories differ between machines, so none is pinned.
"""


STARVING = ("wrr:listing",)
"""Policies that let the scenario's root starve until others have ended. On the kernel it then sets
an attribute of a process that is gone, which is an error, so no story is pinned.
"""


def policies_and_presets() -> list[str]:
    """Returns all built-in "policy" and "policy:preset" names."""
    return [
        text
        for policy in read_catalogue().values()
        for text in (policy.name, *(f"{policy.name}:{preset}" for preset in policy.presets))
    ]


def is_pinned(policy: str) -> bool:
    """Returns True if tests/golden has a story of it."""
    return policy.partition(":")[0] in PINNED and policy not in (*TOGETHER, *STARVING)


def golden_file(policy: str, cpus: int) -> Path:
    """Returns the path of its story of ties."""
    return GOLDEN / f"ties-{policy.replace(':', '-')}-{cpus}.txt"


def schedule_text(events: trace.Trace, policy: str, cpus: int) -> str:
    """Returns the story of a trace, with a heading."""
    heading = f"# {policy}, {cpus} CPU{'s' if cpus > 1 else ''}: tick, CPU, what happens"
    return "\n".join(["# SPDX-License-Identifier: MIT", heading, *Story(events).lines(), ""])


@cache
def built(program: Path) -> Path:
    """Returns the program, after building it."""
    build(str(program.relative_to(ROOT)))
    return program


def model_schedule(folder: Path, scenario: str, policy: str, cpus: int) -> tuple[str, bool]:
    """Returns the model's story, and whether two CPUs acted at the same time."""
    path = folder / "model.bin"
    command = [str(built(MODEL)), scenario, policy, str(cpus), "1", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode in (0, ACTED_TOGETHER), result.stderr
    return schedule_text(sound_trace(path), policy, cpus), result.returncode == ACTED_TOGETHER


def simulator_schedule(
    folder: Path, scenario: str, policy: str, cpus: int, costs: str = "none"
) -> str:
    """Returns the simulator's story. It checks for lost and doubled processes after each tick."""
    path = folder / "simulator.bin"
    command = [str(built(SIMULATOR)), scenario, policy, str(cpus), "1", str(path), costs]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return schedule_text(sound_trace(path), policy, cpus)
