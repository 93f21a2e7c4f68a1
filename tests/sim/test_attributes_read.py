# SPDX-License-Identifier: MIT
"""Tests that a policy reads the attributes that it declares, and no others.

Each test runs the same processes twice, changes one attribute of one process, and compares the
policy's decisions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from schedlab.base.toolchain.policies import PolicyChoice, attributes_ignored, known_policies
from schedlab.trace import AttributeKind
from schedlab_simulator import Simulator, Workload

MS = 1_000_000
VALUES = {
    AttributeKind.PRIORITY: (2, 8),
    AttributeKind.TICKETS: (3, 30),
    AttributeKind.WEIGHT: (2, 9),
    AttributeKind.NICE: (-5, 5),
    AttributeKind.SLICE: (MS // 2, 9 * MS),
    AttributeKind.RUNTIME: (MS, 4 * MS),
    AttributeKind.DEADLINE: (5 * MS, 9 * MS),
    AttributeKind.PERIOD: (12 * MS, 40 * MS),
    AttributeKind.TASKGROUP: (1, 2),
}
"""Two values of each attribute, both different from the default."""
BODIES = {
    "a": ("run 7ms", "sleep 1ms"),
    "b": ("run 3ms", "sleep 2ms", "run 1ms", "yield"),
    "c": ("run 50ms",),
}
RESERVED = {
    AttributeKind.RUNTIME: 2 * MS,
    AttributeKind.DEADLINE: 8 * MS,
    AttributeKind.PERIOD: 20 * MS,
}
OTHERS: dict[str, dict[str, dict[AttributeKind, int]]] = {
    "plain": {},
    "reserved": dict.fromkeys(BODIES, RESERVED),
    "classes": {"b": {AttributeKind.PRIORITY: 7, AttributeKind.DEADLINE: 6 * MS}},
    "grouped": {"b": {AttributeKind.TASKGROUP: 1}},
}
"""Attributes shared by all runs of a case."""
CPUS = {"grouped": 2}
"""CPU counts of the cases that do not run on one CPU."""


def line(kind: AttributeKind, value: int) -> str:
    unit = "ns" if AttributeKind.SLICE <= kind <= AttributeKind.PERIOD else ""
    return f"{kind.name.lower()} {value}{unit}"


def text(others: str, kind: AttributeKind, value: int) -> str:
    """Returns a workload; the processes of `a` have this value."""
    lines = ["program root", "setgroup 1 parent 0", "setgroup 1 weight 300", "setgroup 2 parent 0"]
    lines += [f"fork {name}" for name in (*BODIES, "a", "c")] + ["sleep 300ms"]
    for name, body in BODIES.items():
        attributes = dict(OTHERS[others].get(name, {}))
        if name == "a":
            attributes.pop(kind, None)
            attributes[kind] = value
        lines += [
            "",
            f"program {name}",
            *(line(*item) for item in attributes.items()),
            "loop",
            *body,
            "end",
        ]
    return "\n".join(lines) + "\n"


def course(choice: str, others: str, workload: Workload) -> list[object]:
    """Returns each process's place and run time, every 10 ms."""
    simulator = Simulator(
        workload, policy=choice, cpus=CPUS.get(others, 1), costs="none", processes=16
    )
    with simulator:
        observations: list[object] = []
        for time in range(10, 310, 10):
            simulator.run(time * MS)
            observations += simulator.processes()[["pid", "place", "cpu", "run_time"]].tolist()
    return observations


WORKLOADS = {
    (kind, others): tuple(Workload.read(text(others, kind, value)) for value in values)
    for kind, values in VALUES.items()
    for others in OTHERS
}
CHOICES = [
    str(PolicyChoice(policy.name, preset))
    for policy in known_policies().values()
    for preset in ("", *policy.presets)
]


@pytest.mark.parametrize("choice", CHOICES)
def test_policy_reads_its_annotation(choice: str) -> None:
    name, _, preset = choice.partition(":")
    ignored = attributes_ignored(
        PolicyChoice(name, preset), (), [kind.name.lower() for kind in VALUES]
    )
    actual = []
    for kind in VALUES:
        courses = (
            [course(choice, others, workload) for workload in WORKLOADS[kind, others]]
            for others in OTHERS
        )
        if all(first == second for first, second in courses):
            actual.append(kind.name.lower())
    assert actual == ignored


NICE = {
    "global": {"duration": 10},
    "tasks": {
        "up": {"nice": -5, "loop": -1, "run": "1s"},
        "down": {"nice": 5, "loop": -1, "run": "1s"},
    },
}


def test_run_names_ignored_attributes(schedlab: Command, tmp_path: Path) -> None:
    """A policy with several runs is named once. The ideal share is the share that the policy can
    give.
    """
    file = tmp_path / "w.json"
    file.write_text(json.dumps(NICE))
    arguments = (
        "--machine",
        "sim",
        "--workload",
        str(file),
        "--cpus",
        "1",
        "--out",
        str(tmp_path / "out"),
    )
    result = schedlab("run", *arguments, "--policy", "cfs:nice,rr", "--runs", "2", "--json")
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stderr.splitlines() if "ignores" in line] == [
        f"schedlab: rr ignores nice, which {file} sets"
    ]
    for run in json.loads(result.stdout)["runs"]:
        reads = run["manifest"]["policy"] == "cfs:nice"
        up = next(row for row in run["metrics"]["groups"] if row["group"] == "up")
        assert run["manifest"]["attributes_ignored"] == ([] if reads else ["nice"])
        assert up["share"] == pytest.approx(0.903 if reads else 0.5, abs=0.001)
        assert up["ideal_share"] == pytest.approx(0.903 if reads else 0.5, abs=0.001)
        assert up["share_error_points"] == pytest.approx(0 if reads else -40.3, abs=0.1)
