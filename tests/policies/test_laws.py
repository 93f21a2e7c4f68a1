# SPDX-License-Identifier: MIT
"""Tests that all policies keep the invariants (tests/policies), and that the table of
policies lists all of them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from policy_build import POLICIES, run
from policy_laws import keep_the_laws
from schedlab.paths import ROOT

pytestmark = pytest.mark.xdist_group("policy-laws")

TABLE_TOOL = ROOT / "tools/make_policy_table.sh"


def make_table(*policies: str) -> subprocess.CompletedProcess[str]:
    return run("sh", str(TABLE_TOOL), *policies)


def test_laws(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seeds = 20 if pytestconfig.getoption("--long") else 1
    summary = keep_the_laws(POLICIES, tmp_path, seeds)
    assert summary.startswith(f"{len(POLICIES)} sources, ")


def test_table_has_the_studies_policies_first_and_the_others_by_name() -> None:
    result = make_table("x/wrr.c", "abc.c", "lottery.c", "rr.c", "my-own.c")
    assert result.returncode == 0
    declared = [line for line in result.stdout.splitlines() if line.startswith("extern")]
    names = [line.split("policy_")[1].rstrip(";") for line in declared]
    assert names == ["rr", "wrr", "lottery", "abc", "my_own"]
    assert make_table("rr.c", "abc.c", "my-own.c", "lottery.c", "x/wrr.c").stdout == result.stdout


def test_only_the_folder_of_a_file_makes_it_a_study_s_source() -> None:
    result = make_table("studies/policies/rr.c", "studies/policies/studies/abc.c")
    assert result.stdout.count("&policy_rr,") == 1
    assert "policies_count = 1;" in result.stdout


@pytest.mark.parametrize(
    "files", [[], ["a.h"], ["a.c", "x/a.c"], ["a-b.c", "a_b.c"], ["3.c"], ["a b.c"]]
)
def test_table_refuses(files: list[str]) -> None:
    result = make_table(*files)
    assert result.returncode == 2
    assert result.stderr != ""
    assert result.stdout == ""
