# SPDX-License-Identifier: MIT
"""Proposals as data: what proposals.yaml says can be run, and the page states the outcome of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.toolchain.policies import parse_setting, read_catalogue
from schedlab.errors import FileRefused
from schedlab.report.proposals import Outcome
from schedlab.report.study_tables import Measured
from schedlab.studies import proposals
from schedlab.studies.pack import Study
from schedlab.studies.proposals import Proposal, Test, plan_of_proposals

Test.__test__ = False  # type: ignore[attr-defined]

EVERY = proposals.proposals()


def test_each_has_tests_or_says_why_not() -> None:
    assert {each.study for each in EVERY} == {1, 3, 5}
    assert len({(each.study, each.name) for each in EVERY}) == len(EVERY)
    assert all(bool(each.tests) != bool(each.missing) for each in EVERY)


@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each.study}-{each.name}")
def test_off_and_on_are_policies_of_ours_that_differ(each: Proposal) -> None:
    known = read_catalogue()
    for test in each.tests:
        assert test.off != test.on
        for side in (test.off, test.on):
            name, *settings = side.split()
            policy, _, preset = name.partition(":")
            assert policy in known and (not preset or preset in known[policy].presets)
            for setting in settings:
                parse_setting(setting)


def test_runs_that_are_alike_are_made_once() -> None:
    planned = plan_of_proposals(Path("/nowhere"), "quick", (), 1, "sim").runs
    assert len({run.name for run in planned}) == len(planned)
    assert all(run.file for run in planned)
    assert {run.seed for run in planned} == {1, 2, 3, 4, 5}
    of_3 = plan_of_proposals(Path("/nowhere"), "full", (3,), 1, "sim").runs
    assert {run.seed for run in of_3} == set(range(1, 21))
    assert {run.workload.split("/")[1] for run in of_3} == {"3"}


@pytest.mark.parametrize(
    "text", ["- {name: a}", "- {name: a, place: b, proposes: c}", "[", "- {name: a, place: b,"
             " proposes: c, missing: d, tests: [{shows: x, workload: y, off: rr, on: wrr, column: z,"
             " better: more}]}"]
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_by_name(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "proposals.yaml").write_text(text)
    with pytest.raises(FileRefused, match=r"proposals\.yaml"):
        proposals._proposals(Study(folder))


TEST = Test("a", "a.json", "rr", "wrr", "turnaround_mean_ns", "lower")


@pytest.mark.parametrize(
    ("off", "on", "verdict"),
    [
        ((100, 101, 102), (90, 91, 93), "helps"),
        ((100, 101, 102), (110, 112, 113), "harms"),
        ((100, 101, 102), (100, 101, 102), "does nothing"),
        ((100, 101, 102), (100.2, 101.2, 102.2), "does nothing"),
        ((100, 101, 102), (80, 101, 130), "not told apart"),
        ((100, 101, 102), (), "not run"),
    ],
)
def test_verdicts(off: tuple[float, ...], on: tuple[float, ...], verdict: str) -> None:
    proposal = Proposal(1, "a", "8.1", "b", (TEST,))
    assert Outcome(proposal, TEST, Measured(off), Measured(on)).verdict == verdict
