# SPDX-License-Identifier: MIT
"""Proposals as data: what proposals.yaml says can be run, and the page states the outcome of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kept_runs import keep_figures
from schedlab.base.toolchain.policies import parse_setting, read_catalogue
from schedlab.errors import FileRefused
from schedlab.report.model import Table
from schedlab.report.proposals import Outcome, page
from schedlab.report.study_tables import Measured
from schedlab.runs.collection import read
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


def test_what_was_not_run_has_no_row(tmp_path: Path) -> None:
    proposal = EVERY[0]
    test = proposal.tests[0]
    for policy in (test.off, test.on):
        name, *settings = policy.split()
        more = {"label": test.label, "tunables": dict(map(parse_setting, settings))}
        place = tmp_path / str(len(settings))
        keep_figures(place, policy=name, cpus=int(test.cpus), manifest=more)
    shown = page(read([tmp_path]))
    assert shown
    (table,) = (each for each in shown.blocks() if isinstance(each, Table))
    tested = [row for row in table.rows if row[8].text == test.off]
    assert [row[2].text for row in tested] == [proposal.proposes.replace("`", "")]
    assert not any(row[4].text == "not run" for row in table.rows)
    assert "others were not run." in shown.lead


def test_more_is_better_where_it_is() -> None:
    test = Test("a", "a.json", "rr", "wrr", "share", "higher")
    proposal = Proposal(1, "a", "8.1", "b", (test,))
    assert Outcome(proposal, test, Measured((1, 2, 3)), Measured((2, 3, 4))).verdict == "helps"


def splitmix(count: int) -> npt.NDArray[np.uint64]:
    """As policies/random.h has it."""
    value = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return mixed


def test_a_mersenne_twister_draws_no_fairer_than_splitmix() -> None:
    """Study 1 hopes for less variance in short tests: 60 draws with 30, 20 and 10 tickets, 20,000
    times. By either generator the shares scatter as those of independent draws do."""
    trials, draws = 20_000, 60
    numbers = {
        "splitmix64": splitmix(trials * draws),
        "MT19937": np.random.MT19937(1).random_raw(trials * draws),
    }
    for name, drawn in numbers.items():
        tickets = (drawn % np.uint64(60)).astype(np.int64).reshape(trials, draws)
        share = (tickets < 30).mean(axis=1)
        variance = 0.5 * 0.5 / draws
        assert abs(share.var() / variance - 1) < 4 * (2 / trials) ** 0.5, name
