# SPDX-License-Identifier: MIT
"""Tests how `./schedlab dev bench simulator` evaluates the programs' output; no test checks a
speed."""

from __future__ import annotations

from built_once import build_once
from schedlab_tools.benchmarks.simulator import aims, decisions, process_bytes

PRINTED = """bench simulator-bare-loop 100 2.50
bench simulator-decision 100 20.00
bench simulator-decision 100000 50.00
bench simulator-decision-traced 100 334.00
"""


def test_aims_are_judged() -> None:
    judged = {aim.name: (aim.value, aim.verdict) for aim in aims(decisions(PRINTED), 264)}
    assert judged == {
        "a decision, 100 processes, no trace": (20, "met"),
        "the same with a trace, to a file": (334, "not met"),
        "a decision over a bare loop of pick and enqueue": (8, "met"),
        "a decision with 100,000 processes over one with 100": (2.5, "not met"),
        "memory for a process, under the policy that needs most": (264, "not met"),
    }


def test_memory_is_that_of_the_greediest_policy() -> None:
    build_once("simulator")
    assert process_bytes(["rr"]) == 232
    assert process_bytes(["rr", "lottery"]) == process_bytes(["lottery"]) == 376
