# SPDX-License-Identifier: MIT
"""Tests `bench throughput` and `bench shares --machine linux`: plans and the parsing of runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from printed_by_benchmarks import sysbench
from schedlab.base.outputs import OutputError
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines.outcome import Outcome
from schedlab.metrics import Metrics
from schedlab.runs.plan_execution import Finished
from schedlab_tools.benchmarks import linux_shares
from schedlab_tools.benchmarks import throughput as linux_throughput

RR, WRR = PolicyChoice("rr"), PolicyChoice("wrr", "linux")
THROUGHPUT = linux_throughput.Setting((RR, WRR), "linux", rounds=3, seconds=1)


def test_policies_get_the_cpu_once_per_round(tmp_path: Path) -> None:
    """The guest's shell commands run each policy once per round; stub programs log their calls."""
    (run,) = linux_throughput.plan(tmp_path, THROUGHPUT).runs
    assert str(run.policy) == "fair"
    for name in ("schedlab-linux", "sysbench"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/calls\n')
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    result = subprocess.run(
        ["sh", "-c", run.workload], env=path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    turns = [line.split(", ") for line in result.stdout.splitlines()]
    assert [turn[0] for turn in turns] == [f"== round {n}" for n in (1, 1, 1, 2, 2, 2, 3, 3, 3)]
    policies = [turn[1] for turn in turns]
    assert policies[::3] == ["fair", "rr", "wrr:linux"]
    assert sorted(policies) == sorted(["fair", "rr", "wrr:linux"] * 3)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls[:-1:2]] == policies
    assert calls[-1] == "schedlab-linux policy fair"


def console(*turns: tuple[int, str, str]) -> str:
    """Returns console output for (round, policy, policy whose sysbench rate is used).

    Round n is 2 n events per second faster.
    """
    return "\n".join(
        f"== round {number}, {policy}\n{sysbench(rate, number)}" for number, policy, rate in turns
    )


def test_ratios_are_taken_round_by_round() -> None:
    """The lottery's 990 events make a policy 1 % slower than fair."""
    turns = [(n, p, r) for n in (1, 2) for p, r in (("rr", "lottery:linux"), ("fair", "fair"))]
    fair, rr = linux_throughput.evaluate("[ 1.0] Linux\n" + console(*turns) + "\nmore\n")
    assert (fair.policy, fair.ratio.mean) == ("fair", 1)
    assert fair.rates == (1002, 1004)
    assert rr.rates == (992, 994)
    assert rr.ratio.mean == pytest.approx((992 / 1002 + 994 / 1004) / 2)
    assert rr.ratio.low < rr.ratio.mean < rr.ratio.high
    assert rr.verdict == "met"


def test_rounds_that_are_missing_are_an_error() -> None:
    with pytest.raises(OutputError, match="no round of the fair class"):
        linux_throughput.evaluate(console((1, "rr", "fair")))
    with pytest.raises(OutputError, match="not every policy was there"):
        linux_throughput.evaluate(
            console((1, "fair", "fair"), (1, "rr", "fair"), (2, "rr", "fair"))
        )
    with pytest.raises(OutputError, match="sysbench printed no"):
        linux_throughput.evaluate("== round 1, fair\nsysbench: cannot start\n")


# --- shares


def test_lotteries_share_by_tickets_and_round_robin_by_weight(tmp_path: Path) -> None:
    setting = linux_shares.Setting((PolicyChoice("lottery"), WRR), "linux", seeds=2)
    runs = linux_shares.plan(tmp_path, setting).runs
    assert [(str(run.policy), run.cpus, run.seed) for run in runs] == [
        *(("lottery", 2, 1), ("lottery", 2, 2), ("wrr:linux", 2, 1), ("wrr:linux", 2, 2)),
    ]
    assert runs[0].workload == "shares -n 10 -a 2 -u 250 -t 5000"
    assert runs[2].workload == "shares -n 10 -a 3 -u 250 -t 5000"
    assert runs[0].tick_ns * 5000 == 20 * 10**9


def test_shares_are_compared_with_the_ideal(tmp_path: Path) -> None:
    """Groups are weights; processes outside the groups do not count."""
    setting = linux_shares.Setting((WRR,), "linux")
    (run,) = linux_shares.plan(tmp_path, setting).runs
    measured = metrics_of({"1": (0.05, 0.1), "10": (0.931, 0.9), "other": (0.1, 0.5)})
    finished = Finished(run, tmp_path, Outcome("success", ""), {}, measured)
    one, ten = linux_shares.evaluate([finished])
    assert (one.weight, one.verdict, round(one.error_points, 6)) == (1, "off", -5)
    assert (ten.weight, ten.verdict) == (10, "off")
    (line,) = linux_shares.summary([one, ten])
    assert "0 of 2 shares within 3 percentage points" in line
    assert "farthest: weight 1 on 2 CPUs, seed 1, -5.00 points" in line
    near = metrics_of({"1": (0.12, 0.1)})
    (row,) = linux_shares.evaluate([Finished(run, tmp_path, Outcome("success", ""), {}, near)])
    assert row.verdict == "met"
    failed = Finished(run, tmp_path, Outcome("failed", "why"), {}, None)
    assert linux_shares.evaluate([failed]) == []


def metrics_of(shares: dict[str, tuple[float, float]]) -> Metrics:
    """Returns metrics that consist of groups only: share and ideal share."""
    import polars as pl

    nothing = pl.DataFrame()
    groups = pl.DataFrame(
        [
            {"group": name, "share": share, "ideal_share": ideal}
            for name, (share, ideal) in shares.items()
        ]
    )
    return Metrics(nothing, nothing, groups, nothing, nothing, nothing)
