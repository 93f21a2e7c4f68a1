# SPDX-License-Identifier: MIT
"""Tests the commands that repeat kept runs: they name exactly these runs."""

from __future__ import annotations

import shlex
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.commands import run as run_command
from schedlab.commands.request_options import request_from
from schedlab.runs.repeat_commands import repeat_commands
from schedlab.workload.delays import delays_text

MANIFEST: dict[str, Any] = {
    "workload": "mixed -n 24",
    "policy": "rr",
    "tunables": {},
    "cpus": 1,
    "seed": 1,
    "tick_ns": 1_000_000,
    "limit_ns": 60_000_000_000,
    "memory_mib": 512,
    "machine": "spike",
}


def read_back(command: str) -> list[dict[str, Any]]:
    """Returns the manifests of the runs requested by this command, to the extent of its options."""
    program, name, *words = shlex.split(command)
    assert (program, name) == ("./schedlab", "run")
    context = run_command.run.make_context("run", words)
    options = vars(request_from(context.params))
    return [
        {
            "workload": options["workload"],
            "policy": str(policy),
            "tunables": dict(options["settings"]),
            "cpus": cpus,
            "seed": options["seed"] + repeat,
            "tick_ns": options["tick"],
            "limit_ns": options["limit"],
            "memory_mib": options["memory"] or 0,
            "machine": options["machine"].name,
            **({"with": dict(options["changes"])} if options["changes"] else {}),
            **({"delays": delays_text(options["delays"])} if options["delays"] else {}),
            **({"costs": options["costs"]} if options["costs"] else {}),
            **({"ignore_limits": True} if options["ignore_limits"] else {}),
        }
        for policy, cpus, repeat in product(
            options["policies"], options["cpus"], range(options["repeats"])
        )
    ]


RUNS = st.fixed_dictionaries(
    {
        **{name: st.just(value) for name, value in MANIFEST.items()},
        "workload": st.sampled_from(["mixed -n 24", "my files/it's.json"]),
        "policy": st.sampled_from(["rr", "mlfq", "lottery:thesis"]),
        "cpus": st.integers(1, 3),
        "seed": st.integers(0, 4),
        "tick_ns": st.sampled_from([1_000_000, 1_234_567]),
        "limit_ns": st.sampled_from([60_000_000_000, 1_500_000]),
    },
    optional={
        "with": st.just({"tasks.cpu.run": "5 ms", "tasks.cpu.instance": "3"}),
        "delays": st.just("fork=380us"),
    },
)


SIMULATED = RUNS.map(
    lambda run: {**run, "machine": "sim", "memory_mib": 0, "costs": "none,fork=20000"}
)


@given(st.lists(RUNS | SIMULATED, max_size=12))
def test_runs_are_requested_once_and_no_others(runs: list[dict[str, Any]]) -> None:
    requested_runs = [run for command in repeat_commands(runs) for run in read_back(command)]
    assert len(requested_runs) == len({str(sorted(run.items(), key=str)) for run in requested_runs})
    assert all(run in runs for run in requested_runs)
    assert all(run in requested_runs for run in runs)


def test_all_of_some_policies_on_some_cpus_is_one_command() -> None:
    runs = [
        {**MANIFEST, "policy": policy, "cpus": cpus, "seed": seed}
        for policy, cpus, seed in product(["rr", "mlfq"], [1, 2, 4], [3, 4])
    ]
    (command,) = repeat_commands(runs)
    assert "--policy rr,mlfq --cpus 1,2,4 --machine spike --runs 2 --seed 3 " in command
    assert len(repeat_commands(runs[:-1])) == 4, "one for rr, one for mlfq on each number of CPUs"


@pytest.mark.parametrize(
    "other",
    [{"branch": "x"}, {"replay_of": {}}, {"costs": "mine.json (0123)"}, {"machine": "elsewhere"}],
)
def test_what_no_option_names_is_left_out(other: dict[str, Any]) -> None:
    assert repeat_commands([{**MANIFEST, **other}]) == []
    assert len(repeat_commands([{**MANIFEST, **other}, MANIFEST])) == 1


def test_a_run_that_passed_over_limits_does_so_again() -> None:
    run = {**MANIFEST, "machine": "host", "memory_mib": 0, "ignore_limits": True}
    (command,) = repeat_commands([run])
    (again,) = read_back(command)
    assert {**again, "memory_mib": 0} == run, "it has this machine's memory"
