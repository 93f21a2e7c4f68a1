# SPDX-License-Identifier: MIT
"""Tests that program commands are checked before a machine starts: invalid ones are refused,
valid ones are not.
"""

from __future__ import annotations

import re

import pytest

from schedlab.errors import WrongUsage
from schedlab.paths import ROOT
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload.programs import check_known, disk_programs, read_options, workload_programs


def check(command: str) -> None:
    check_known(command, disk_programs())


@pytest.mark.parametrize("name", workload_programs())
def test_all_options_of_a_program_are_known(name: str) -> None:
    """They are in the program's table, whose rows begin with a letter in a brace."""
    text = (ROOT / f"workloads/{name}.c").read_text()
    if "workloads/api/suite.h" in text:
        text += (ROOT / "workloads/api/suite.c").read_text()
    letters = {f"-{letter}" for letter in re.findall(r"^\s*\{'(\w)'", text, re.MULTILINE)}
    assert read_options(name).keys() == {*letters, "-s"}
    assert all(option.meaning for option in read_options(name).values())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cpu-bound -q 3", "cpu-bound -q: there is no such option. It has -n (processes), -i"),
        ("cpu-bound -n", "cpu-bound -n: it needs a number"),
        ("cpu-bound -n 0", "cpu-bound -n: 0 is out of its range, which is 1 to 100000"),
        ("timingtests mixed -z 1", "timingtests -z: there is no such option"),
    ],
)
def test_an_option_that_cannot_be_is_refused(command: str, message: str) -> None:
    with pytest.raises(WrongUsage, match=re.escape(message)):
        check(command)


def test_commands_that_are_run_are_not_refused() -> None:
    for command in (
        *(experiment.command for experiment in EXPERIMENTS.values() if experiment.machine is None),
        "cpu-bound",
        "cpu-bound --help",
        "mixed -n 24 -g 80 -s 7",
        "/bin/cpu-bound -q 3",
        "sh -c ls",
        "play anything",
    ):
        check(command)
