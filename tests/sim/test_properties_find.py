# SPDX-License-Identifier: MIT
"""Tests that the invariants of test_properties detect policies that were broken on purpose.

Each policy has one mistake, which Hypothesis must find.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from schedlab.base.toolchain.tools import require_compiler
from schedlab.paths import ROOT
from schedlab_simulator import declarations
from schedlab_simulator.library import opened
from scheduling_case import LawBroken
from scheduling_machine import Scheduler
from simulator_command import built
from test_properties import bounds


class Mistake(NamedTuple):
    """A text of a policy, its replacement, and the invariant that it breaks."""

    policy: str
    right: str
    wrong: str
    law: str


MISTAKES = {
    "a slice is a tick too long": Mistake(
        "rr",
        "state->ticks >= queue",
        "state->ticks > queue",
        "rr: slices_are_exact",
    ),
    "a process is lost": Mistake(
        "rr",
        "STATE_OF(task, struct rr_task)->ticks = 0;",
        "STATE_OF(task, struct rr_task)->ticks = 0;\n    if (reason == ENQUEUE_YIELDED) return;",
        "policy rr broke a rule: its pick.. returned null while tasks are queued that may run",
    ),
    "the lowest level goes first": Mistake(
        "priority",
        "state->aging.level = (uint32_t)state->priority;",
        "state->aging.level = (uint32_t)(PRIORITY_LOWEST - state->priority);",
        "priority: highest_first",
    ),
    "a boost forgets allotments": Mistake(
        "mlfq",
        "    state->allotment_used = 0;\n    state->slice_used = 0;",
        "    state->slice_used = 0;",
        "mlfq: levels_follow_use",
    ),
}

FLAGS = ["-std=c17", "-O1", "-I.", "-Ikernel", "-Ipolicies", "-D_GNU_SOURCE", "-fPIC"]


def library_with(mistake: Mistake, folder: Path) -> Path:
    """Returns the simulator's library, with this policy instead of the correct one."""
    built("sim/libschedlab-sim.so")
    others = [built("sim/simulator.a"), built("sim/declarations.o")]
    name = mistake.policy
    source, engine, path = (
        folder / file_name for file_name in (f"{name}.c", "engine.o", "library.so")
    )
    shutil.copy(ROOT / f"policies/{name}.c", source)
    places = (ROOT / f"policies/{name}.c", *sorted((ROOT / "policies").glob("*.h")))
    # A header next to the policy is found before the correct one.
    wrong = next(candidate for candidate in places if mistake.right in candidate.read_text())
    (folder / wrong.name).write_text(wrong.read_text().replace(mistake.right, mistake.wrong))
    names = [f"-DENGINE=engine_{name}", f"-DPOLICY=policy_{name}"]
    run(
        *require_compiler().host,
        *FLAGS,
        *names,
        "-include",
        source,
        "-c",
        "sim/engine.c",
        "-o",
        engine,
    )
    link = ["-shared", "--version-script=sim/library.map", "--allow-multiple-definition"]
    parts: list[str | Path] = [engine, "--whole-archive", *others]  # the first definition counts
    run(*require_compiler().linker, *link, *parts, "-o", path)
    return path


def run(*arguments: str | Path) -> None:
    subprocess.run(arguments, cwd=ROOT, check=True)


@contextmanager
def in_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the binding call this library within the block."""
    monkeypatch.setenv(declarations.CHOICE, str(path))
    opened.cache_clear()
    try:
        yield
    finally:
        monkeypatch.delenv(declarations.CHOICE)
        opened.cache_clear()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mistake = MISTAKES[name]
    search_settings = settings(bounds(), max_examples=400, phases=(Phase.generate,))
    machine = type("Machine", (Scheduler,), {"policy": mistake.policy})
    with in_use(library_with(mistake, tmp_path), monkeypatch):
        with pytest.raises(LawBroken) as failure:
            run_state_machine_as_test(machine, settings=search_settings)
        message = str(failure.value)
        assert re.search(mistake.law, message), message
