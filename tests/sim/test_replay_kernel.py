# SPDX-License-Identifier: MIT
"""Tests replays in the simulator of kernel recordings from Spike.

Recordings are replayed under their own policy and under another. The latter is compared with a
kernel run under the same policy. `-s` prints all differences.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from guest_machine import TICK_NS, sound_trace, traced
from schedlab import metrics, trace
from schedlab.runs.replay import derive_workload, parse_charges
from simulator_command import simulate

pytestmark = pytest.mark.spike

NEARNESS = 0.02
"""Relative tolerance of a mean turnaround under the same policy; at least a tick."""
NEARNESS_OF_ANOTHER = 0.05
"""The tolerance under another policy; at least two ticks, because near ties may be ordered
differently.
"""

Turnarounds = dict[str, float]
"""Means of groups, in nanoseconds."""


def recording(folder: Path, command: str, policy: str, cpus: int) -> trace.Trace:
    """Returns a recording of a kernel run. As in the simulator, all CPUs tick at the same moment;
    docs/replay.md explains the effect of other ticks.
    """
    path = folder / policy
    path.mkdir()
    return traced(path, f"sh -c 'sleep 1; {command}'", cpus, f"policy={policy} stagger=0")


def replay(
    folder: Path, recorded: trace.Trace, policy: str, cpus: int, under: str = "rr"
) -> trace.Trace:
    """Replays with the kernel's costs. `under`: the policy, by default the recording's."""
    path = folder / "replay.bin"
    text = derive_workload(recorded, parse_charges("kernel", under)).text
    result = simulate(
        folder, text, *("--policy", policy, "--cpus", str(cpus), "--trace", str(path))
    )
    assert result.returncode == 0, result.stderr
    return sound_trace(path)


def turnarounds(events: trace.Trace) -> Turnarounds:
    rows = metrics.compute(events).groups.drop_nulls("turnaround_mean_ns")
    return dict(zip(rows["group"].to_list(), rows["turnaround_mean_ns"].to_list(), strict=True))


def check_near(
    replayed_times: Turnarounds, kernel_times: Turnarounds, part: float, ticks: int
) -> None:
    """`replayed_times`: the replay's times."""
    assert replayed_times.keys() == kernel_times.keys()
    far = []
    for group, expected in kernel_times.items():
        difference = replayed_times[group] - expected
        print(
            f"  {group:8} kernel {expected / 1e6:8.3f} ms, replay {replayed_times[group] / 1e6:8.3f} ms:"
            f" {difference / expected:+.2%}"
        )
        if abs(difference) > max(part * expected, ticks * TICK_NS):
            far.append(group)
    assert not far


@pytest.mark.parametrize(
    ("command", "policy", "cpus"),
    [
        ("timingtests io-bound", "rr", 1),
        ("timingtests starvation", "mlfq", 2),
        ("prioritytest mixed", "priority", 4),
        ("study3 io", "rr", 3),
        ("study4 mixed -c 4", "mlfq", 2),
        ("study4 sleeper", "rr", 1),
    ],
)
def test_the_same_policy(tmp_path: Path, command: str, policy: str, cpus: int) -> None:
    recorded = recording(tmp_path, command, policy, cpus)
    print(f"\n{command}, {policy}, {cpus} CPUs")
    again = turnarounds(replay(tmp_path, recorded, policy, cpus, policy))
    check_near(again, turnarounds(recorded), NEARNESS, 1)


@pytest.mark.parametrize(
    ("command", "policy", "cpus"),
    [
        ("timingtests cpu-heavy", "mlfq", 1),
        ("timingtests mixed", "stride", 2),
        ("timingtests starvation", "priority", 1),
        ("study4 trace", "wrr", 1),
        ("study4 mixed -c 4", "mlfq", 2),
        ("cpu-bound -n 8 -i 3000000", "stride", 1),
    ],
)
def test_what_if(tmp_path: Path, command: str, policy: str, cpus: int) -> None:
    """A round-robin recording, replayed under another policy, matches the kernel under that
    policy.
    """
    recorded = recording(tmp_path, command, "rr", cpus)
    print(f"\n{command}, rr as {policy}, {cpus} CPUs")
    replayed = turnarounds(replay(tmp_path, recorded, policy, cpus))
    kernel_times = turnarounds(recording(tmp_path, command, policy, cpus))
    check_near(replayed, kernel_times, NEARNESS_OF_ANOTHER, 2)
