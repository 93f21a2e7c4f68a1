# SPDX-License-Identifier: MIT
"""All policies keep the laws of tests/policies/laws.c; the table of policies holds them all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from policy_build import CLANG, POLICIES, WARNINGS, run
from schedlab.paths import ROOT

pytestmark = pytest.mark.xdist_group("policy-laws")

TABLE_TOOL = ROOT / "tools/make_policy_table.sh"


def make_table(*policies: str) -> subprocess.CompletedProcess[str]:
    return run("sh", str(TABLE_TOOL), *policies)


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laws")
    table = folder / "table.c"
    table.write_text(make_table(*map(str, POLICIES)).stdout)
    program = folder / "laws"
    sources = [
        ROOT / "tests/policies/laws.c",
        ROOT / "policies/support/registry.c",
        table,
        *POLICIES,
    ]
    flags = [
        "-std=c17",
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fstrict-flex-arrays=3",
    ]
    command = [CLANG, *flags, *WARNINGS, "-I.", *map(str, sources), "-o", str(program)]
    result = run(*command)
    assert result.returncode == 0, result.stderr
    return program


def test_laws(laws: Path) -> None:
    result = run(str(laws), "5")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{len(POLICIES)} sources, ")


def test_table_has_the_studies_policies_first_and_the_others_by_name() -> None:
    result = make_table("x/wrr.c", "abc.c", "lottery.c", "rr.c", "my-own.c")
    assert result.returncode == 0
    declared = [line for line in result.stdout.splitlines() if line.startswith("extern")]
    names = [line.split("policy_")[1].rstrip(";") for line in declared]
    assert names == ["rr", "wrr", "lottery", "abc", "my_own"]
    assert make_table("rr.c", "abc.c", "my-own.c", "lottery.c", "x/wrr.c").stdout == result.stdout


@pytest.mark.parametrize(
    "files", [[], ["a.h"], ["a.c", "x/a.c"], ["a-b.c", "a_b.c"], ["3.c"], ["a b.c"]]
)
def test_table_refuses(files: list[str]) -> None:
    result = make_table(*files)
    assert result.returncode == 2
    assert result.stderr != ""
    assert result.stdout == ""
