# SPDX-License-Identifier: MIT
"""`./schedlab workloads FILE`: what a run of the file acts out, for the page that stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Command

MIXED = "workloads/files/study4-mixed.json"


def test_they_are_what_a_run_acts_out(schedlab: Command, tmp_path: Path) -> None:
    options = ("--with", "tasks.cpu.instance=3", "--seed", "7", "--tick", "2ms")
    run = ("run", "--machine", "sim", "--workload", MIXED, "--policy", "rr", "--cpus", "1")
    done = schedlab(*run, *options, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    (acted_out,) = (tmp_path / "run").glob("*/workload.txt")
    for name in (MIXED, "study4-mixed"):
        assert schedlab("workloads", name, *options).stdout == acted_out.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such",), "no-such: there is no such workload file"),
        (("nothing.json",), "nothing.json: there is no such workload file"),
        (("--seed", "2"), "--seed: of which file?"),
        ((MIXED, "--json"), "leave --json out"),
        ((MIXED, "--with", "tasks.no=3"), "tasks.no"),
    ],
)
def test_what_is_no_file_is_refused(
    schedlab: Command, arguments: tuple[str, ...], words: str
) -> None:
    done = schedlab("workloads", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
