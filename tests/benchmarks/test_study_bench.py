# SPDX-License-Identifier: MIT
"""Tests `./schedlab dev bench study`: the list of configurations and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import Command
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.errors import FileRefused, WrongUsage
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab_tools.benchmarks.study import COLUMNS, read, select_setups


def test_full_list_can_be_executed() -> None:
    """Each configuration has a separate folder, and an existing policy that accepts its
    settings."""
    setups = read()
    assert len(setups) == len({run.name for run in setups}) == 862
    plan = Plan(Path("somewhere"), setups)
    plan.check()
    check_policies(read_catalogue(), plan)


ROW = "s1,timingtests,rr,slice=3,1,1,1000000,60000000000,512"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([",".join(COLUMNS[1:]), ROW], "line 1: the columns must be experiment,"),
        ([",".join(COLUMNS), ROW, ROW.replace(",512", "")], "line 3: 9 columns are wanted"),
        ([",".join(COLUMNS), ROW.replace("512", "many")], "line 2: memory_mib is 'many'; a whole"),
        ([",".join(COLUMNS), ROW.replace("=3", "")], "line 2: 'slice' is not of the form"),
    ],
)
def test_a_list_that_was_spoilt_is_refused(lines: list[str], problem: str, tmp_path: Path) -> None:
    """The message names the wrong line; FileRefused ends with status 2."""
    path = tmp_path / "study.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(FileRefused, match=re.escape(f"{path}: {problem}")):
        read(path)


def test_patterns_choose_experiments() -> None:
    setups = read()
    assert select_setups(setups, ()) == setups
    few = select_setups(setups, ("s4-mixed-20", "s4-mixed-4*"))
    assert {run.label for run in few} == {"s4-mixed-20", "s4-mixed-40"}
    with pytest.raises(WrongUsage, match=r"s9-\*: the list has no experiment"):
        select_setups(setups, ("s4-mixed-20", "s9-*"))


@pytest.mark.spike
def test_a_few_setups_are_carried_out_and_leave_nothing(schedlab: Command, tmp_path: Path) -> None:
    result = schedlab(
        *("dev", "bench", "study", "--experiment", "s4-mixed-2", "--json"),
        environment={"TMPDIR": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["setups"] == 2
    parts = [output[name] for name in ("machines_s", "python_s", "report_s")]
    assert all(seconds > 0 for seconds in parts)
    assert output["cpu_s"] == pytest.approx(sum(parts))
    assert output["wall_s"] > 0
    assert list(tmp_path.iterdir()) == []
