# SPDX-License-Identifier: MIT
"""Recordings of the kernel on Spike, replayed in the simulator: under their own policy, and under
another, held against the kernel under that one. `-s` prints all differences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from _pytest.mark.structures import ParameterSet
from chessboard import chessboard

from guest_machine import TICK_NS, sound_trace, traced
from schedlab import metrics, trace
from schedlab.metrics import lives
from schedlab.runs.replay import charges, workload_of
from schedlab.trace import BlockReason, Kind
from simulator_command import simulate

pytestmark = pytest.mark.spike

NEARNESS = 0.02
"""Of a mean turnaround, under the same policy; or else a tick."""
NEARNESS_OF_ANOTHER = 0.05
"""Under another policy; or else two ticks: what is near to equal may take another turn."""

SUITES = (
    "timingtests cpu-heavy",
    "timingtests io-bound",
    "timingtests mixed",
    "timingtests starvation",
    "prioritytest mixed",
    "study3 io",
    "study4 trace",
    "study4 mixed -c 4",
    "study4 sleeper",
)
"""Short ones of studies 1, 3 and 4."""


def together(commands: Sequence[str], setups: Sequence[tuple[str, int]]) -> list[ParameterSet]:
    """Commands with policies and CPUs. One worker makes the tests of a command: a recording is made
    once."""
    found = []
    for case in chessboard(commands, setups):
        command, setup = case.values
        assert isinstance(setup, tuple)
        marks = [*case.marks, pytest.mark.xdist_group(f"replay {command}")]
        found.append(pytest.param(command, *setup, marks=marks))
    return found


Turnarounds = dict[str, float]
"""Means of groups, in nanoseconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@cache
def recording(folder: Path, command: str, policy: str, cpus: int) -> trace.Trace:
    """Of a run of the kernel, which is made once. As in the simulator, all CPUs have their ticks at
    the same moment; docs/replay.md has what comes of it where they do not."""
    place = folder / f"{command} {policy} {cpus}".replace(" ", "_").replace(":", "_")
    place.mkdir()
    return traced(place, f"sh -c 'sleep 1; {command}'", cpus, f"policy={policy} stagger=0")


def replay(
    folder: Path, recorded: trace.Trace, policy: str, cpus: int, under: str = "rr"
) -> trace.Trace:
    """With the kernel's costs. `under`: the policy of the recording."""
    path = folder / "replay.bin"
    text = workload_of(recorded, charges("kernel", under)).text
    done = simulate(folder, text, *("--policy", policy, "--cpus", str(cpus), "--trace", str(path)))
    assert done.returncode == 0, done.stderr
    return sound_trace(path)


def turnarounds(events: trace.Trace) -> Turnarounds:
    rows = metrics.compute(events).groups.drop_nulls("turnaround_mean_ns")
    return dict(zip(rows["group"].to_list(), rows["turnaround_mean_ns"].to_list(), strict=True))


def check_near(here: Turnarounds, there: Turnarounds, part: float, ticks: int) -> None:
    """`here`: of the replay."""
    assert here.keys() == there.keys()
    far = []
    for group, expected in there.items():
        difference = here[group] - expected
        print(
            f"  {group:8} kernel {expected / 1e6:8.3f} ms, replay {here[group] / 1e6:8.3f} ms:"
            f" {difference / expected:+.2%}"
        )
        if abs(difference) > max(part * expected, ticks * TICK_NS):
            far.append(group)
    assert not far


OWN = (("rr", 1), ("mlfq", 2), ("rr", 3), ("priority", 4))


@pytest.mark.parametrize(("command", "policy", "cpus"), together(SUITES, OWN))
def test_the_same_policy(folder: Path, command: str, policy: str, cpus: int) -> None:
    recorded = recording(folder, command, policy, cpus)
    print(f"\n{command}, {policy}, {cpus} CPUs")
    again = turnarounds(replay(folder, recorded, policy, cpus, policy))
    check_near(again, turnarounds(recorded), NEARNESS, 1)


WHAT_IF = (
    "timingtests cpu-heavy",
    "timingtests mixed",
    "timingtests starvation",
    "study4 trace",
    "study4 mixed -c 4",
    "cpu-bound -n 8 -i 3000000",
)


OTHERS = (("mlfq", 1), ("priority", 1), ("stride", 1), ("wrr", 1), ("mlfq", 2), ("stride", 2))


@pytest.mark.parametrize(("command", "policy", "cpus"), together(WHAT_IF, OTHERS))
def test_what_if(folder: Path, command: str, policy: str, cpus: int) -> None:
    """Recorded under round-robin, replayed under another policy: what the kernel does under it."""
    recorded = recording(folder, command, "rr", cpus)
    print(f"\n{command}, rr as {policy}, {cpus} CPUs")
    replayed = turnarounds(replay(folder, recorded, policy, cpus))
    there = turnarounds(recording(folder, command, policy, cpus))
    check_near(replayed, there, NEARNESS_OF_ANOTHER, 2)


def waits(events: trace.Trace, group: str, reason: BlockReason) -> int:
    """How often processes of a group waited for something."""
    who = lives.lives(events)
    pids = [
        int(pid)
        for pid, label in zip(who.pid, lives.labels(events, who), strict=True)
        if label == group
    ]
    rows = events.events.filter(kind=int(Kind.BLOCK), first=int(reason))
    return len(rows.filter(pl.col("process").is_in(pids)))


def test_why_a_replay_may_be_wrong(folder: Path) -> None:
    """docs/replay.md: the work depends on timing. Under round-robin, writers of files wait for each
    other's commits of the journal; under mlfq each makes its own. In the replay they still wait."""
    recorded = recording(folder, "mixed", "rr", 1)
    there = recording(folder, "mixed", "mlfq", 1)
    again = replay(folder, recorded, "mlfq", 1)
    in_recording = waits(recorded, "io", BlockReason.JOURNAL)
    on_kernel = waits(there, "io", BlockReason.JOURNAL)
    print(f"\nwaits for the journal: {in_recording} under rr, {on_kernel} under mlfq")
    assert in_recording >= 100
    assert on_kernel <= in_recording / 10
    assert waits(again, "io", BlockReason.PIPE) >= in_recording / 2  # a channel is a pipe to it
    assert turnarounds(again)["io"] > 2 * turnarounds(there)["io"]
    own = turnarounds(replay(folder, recorded, "rr", 1))
    check_near(own, turnarounds(recorded), NEARNESS, 1)
