# SPDX-License-Identifier: MIT
"""Tests how `./schedlab dev bench shares` evaluates runs, without running any."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conftest import Command
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.paths import ROOT
from schedlab.studies import shares
from schedlab.studies.lottery_tests import LOTTERY_TESTS

LOTTERIES = (PolicyChoice("lottery"), PolicyChoice("lottery", "thesis"))
ROW = shares.GroupShare(
    test="low",
    policy="lottery",
    cpus=1,
    group="A",
    runs=10,
    ideal=0.5,
    share=0.52,
    selections=0.52,
    draws=5000,
    published=0.504,
    judged=True,
)


def test_commands_scale_with_the_tick() -> None:
    """The work of a tick is what 1 GHz completes in it."""
    test = LOTTERY_TESTS[2]
    setting = shares.MeasurementOptions(LOTTERIES, tick_ns=10_000_000, ticks=50)
    assert setting.command(test) == "lotterytest 3 -t 50 -w 1000000"
    yielding = replace(setting, yield_work=5000, original=True)
    assert yielding.command(test) == "lotterytest 3 -t 50 -w 1000000 -y 5000 -o 1"


def test_verdicts() -> None:
    """The standard error is that of a proportion of independent draws; 3.5 errors are allowed."""
    assert ROW.standard_error == pytest.approx((0.5 * 0.5 / 5000) ** 0.5)
    assert ROW.deviation == pytest.approx(0.02 / 0.0070711, rel=1e-4)
    assert ROW.verdict == "met"
    assert replace(ROW, share=0.526).verdict == "off"
    assert replace(ROW, share=0.474).verdict == "off"
    assert replace(ROW, draws=20_000).verdict == "off"
    assert replace(ROW, share=0.9, judged=False).verdict == ""


def test_tests_are_those_of_the_workload_and_of_the_study() -> None:
    """Names and groups match the program, and rows match the published tables."""
    source = (ROOT / "workloads" / "lotterytest.c").read_text()
    names = re.findall(r'^        "(\w+)",$', source, re.MULTILINE)
    assert names == [test.name for test in LOTTERY_TESTS]
    for test in LOTTERY_TESTS:
        for group in test.rows:
            assert f'{{"{group}", ' in source
            for cpus in range(1, 6):
                assert shares.published_share(test, group, cpus) is not None
        assert shares.published_share(test, next(iter(test.rows)), 6) is None


@pytest.mark.parametrize(
    "arguments", [("--tests", "7"), ("--tests", "low"), ("--seeds", "0"), ("--tick", "1ns")]
)
def test_wrong_usage(schedlab: Command, arguments: tuple[str, ...]) -> None:
    """Wrong usage ends with status 2 before anything is built or run."""
    result = schedlab("dev", "bench", "shares", *arguments)
    assert result.returncode == 2
    assert arguments[0] in result.stderr
