# SPDX-License-Identifier: MIT
"""Tests proposals as data: those of proposals.yaml can be run, and the page states the
outcome of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import polars as pl
import pytest

from guest_machine import sound_trace
from page_contents import texts_of
from schedlab import trace
from schedlab.base.toolchain.policies import parse_setting, read_catalogue
from schedlab.errors import FileRefused
from schedlab.metrics import state_intervals
from schedlab.paths import STUDIES_FOLDER
from schedlab.report.proposals import ProposalOutcome, find_outcomes
from schedlab.report.studies import page_1, study_1
from schedlab.report.study_tables import Measurement
from schedlab.runs.collection import read_collection
from schedlab.runs.perform import perform
from schedlab.runs.plan import Plan
from schedlab.studies import proposals
from schedlab.studies.experiment import TICK_NS
from schedlab.studies.proposals import Proposal, Test, plan_proposal_tests
from schedlab.studies.study import Study, find_study
from schedlab.trace import Kind
from schedlab.workload import workload_files
from schedlab.workload.text import encode_workload
from simulator_command import play

Test.__test__ = False  # type: ignore[attr-defined]

EVERY = proposals.read_proposals()


def test_proposals_have_tests_or_a_reason() -> None:
    assert {proposal.study for proposal in EVERY} == {1, 3, 5}
    assert len({(proposal.study, proposal.name) for proposal in EVERY}) == len(EVERY)
    assert all(bool(proposal.tests) != bool(proposal.missing) for proposal in EVERY)


@pytest.mark.parametrize(
    "proposal", EVERY, ids=lambda proposal: f"{proposal.study}-{proposal.name}"
)
def test_off_and_on_are_policies_of_ours_that_differ(proposal: Proposal) -> None:
    known = read_catalogue()
    for test in proposal.tests:
        assert test.off != test.on
        for side in (test.off, test.on):
            name, *settings = side.split()
            policy, _, preset = name.partition(":")
            assert policy in known and (not preset or preset in known[policy].presets)
            for setting in settings:
                parse_setting(setting)


def test_runs_that_are_alike_are_made_once() -> None:
    planned = plan_proposal_tests(Path("/nowhere"), "quick", (), 1, "sim").runs
    assert len({run.name for run in planned}) == len(planned)
    assert all(run.file for run in planned)
    assert {run.seed for run in planned} == {1, 2, 3, 4, 5}
    of_3 = plan_proposal_tests(Path("/nowhere"), "full", (3,), 1, "sim").runs
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
        proposals._proposals_of_study(Study(folder))


TEST = Test("a", "a.json", "rr", "wrr", "turnaround_mean_ns", "lower")


@pytest.mark.parametrize(
    ("off", "on", "verdict"),
    [
        ((100, 101, 102), (90, 91, 93), "helps"),
        ((100, 101, 102), (110, 112, 113), "harms"),
        ((100, 101, 102), (100, 101, 102), "does nothing"),
        ((100, 101, 102), (100.2, 101.2, 102.2), "does nothing"),
        ((100, 101, 102), (80, 101, 130), "not significant"),
        ((100, 101, 102), (), "not run"),
    ],
)
def test_verdicts(off: tuple[float, ...], on: tuple[float, ...], verdict: str) -> None:
    proposal = Proposal(1, "a", "8.1", "b", (TEST,))
    assert ProposalOutcome(proposal, TEST, Measurement(off), Measurement(on)).verdict == verdict


@pytest.fixture(scope="module")
def of_study_5(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], ProposalOutcome]:
    """Returns the results of its future work's tests, in quick runs: by proposal and quantity."""
    folder = tmp_path_factory.mktemp("proposals")
    perform(plan_proposal_tests(folder, "quick", (5,), 1, "sim"))
    outcomes_5 = (
        one
        for one in find_outcomes(read_collection([folder]))
        if one.proposal.study == 5 and one.was_run
    )
    return {(one.proposal.name, one.test.shows): one for one in outcomes_5}


@pytest.mark.parametrize("name", ["groups", "nice"])
def test_study_5s_future_work_helps(
    of_study_5: dict[tuple[str, str], ProposalOutcome], name: str
) -> None:
    matching = [one for (proposal, _), one in of_study_5.items() if proposal == name]
    assert matching and {one.verdict for one in matching} == {"helps"}


def test_shares_of_groups_and_nice_levels_are_exact(
    of_study_5: dict[tuple[str, str], ProposalOutcome],
) -> None:
    """Ann has a third of the CPU with her two processes; nice 10 has 110 of 2158 alongside
    two of nice 0.
    """
    for words in (
        "CPU share of a process of nice 10 next to two of nice 0",
        "the same: lottery",
    ):
        assert mean(of_study_5["nice", words].on.values) == pytest.approx(110 / 2158, abs=0.01)


def test_nearness_helps_little_by_memory_and_more_by_cores(
    of_study_5: dict[tuple[str, str], ProposalOutcome],
) -> None:
    memory, cores = (one for (name, _), one in of_study_5.items() if name == "numa")
    for one, least, most in ((memory, 0.002, 0.02), (cores, 0.02, 0.1)):
        assert least < 1 - mean(one.on.values) / mean(one.off.values) < most
    assert cores.verdict == "helps"


def test_wrr_that_knows_nodes_moves_less_between_them(tmp_path: Path) -> None:
    """Counts moves of tasks from one of the two nodes to the other, in the same workload."""
    moves = []
    for near in ((), (("near", 1),)):
        folder = tmp_path / str(len(near))
        planned = plan_proposal_tests(folder, "quick", (5,), 1, "sim").runs
        (run,) = (
            run
            for run in planned
            if "two-nodes" in run.label and run.settings == near and run.seed == 1
        )
        (done,) = perform(Plan(folder, (run,)))
        ran = state_intervals(trace.read(done.folder / "trace.bin"))
        ran = ran.filter(pl.col("state") == "running").sort("pid", "begin_ns")
        node = pl.col("cpu") // 16
        moves.append(
            ran.select((node != node.shift(1)) & (pl.col("pid") == pl.col("pid").shift(1)))
            .sum()
            .item()
        )
    assert moves[1] < moves[0] / 2


def test_a_scan_of_all_levels_decides_as_the_bitmap(tmp_path: Path) -> None:
    """Only their durations differ."""
    file = workload_files.read_workload_file(STUDIES_FOLDER / "1" / "mixture.json")
    decisions = []
    for name, settings in (("bitmap", "scan=0"), ("scan", "scan=1"), ("wide", "level_width=3")):
        trace = tmp_path / name
        options = ("--policy", "priority:thesis", "--set", settings, "--cpus", "2", "--seed", "1")
        result = play(
            tmp_path, encode_workload(file, 1, TICK_NS, 2), *options, "--trace", str(trace)
        )
        assert result.returncode == 0, result.stderr
        events = sound_trace(trace)
        rows = events.rows(Kind.SWITCH)
        decisions.append(
            [events.column(column)[rows].tolist() for column in ("time_ns", "process", "cpu")]
        )
    assert decisions[0] == decisions[1]
    assert decisions[0] != decisions[2]


def test_inheritance_shortens_the_waits_of_study_1s_critical_task(tmp_path: Path) -> None:
    """It waits for a lock of the lowest level: under hybrid, under levels alone, and with
    ceilings.
    """
    planned = plan_proposal_tests(tmp_path, "quick", (1,), 1, "sim").runs
    perform(Plan(tmp_path, tuple(run for run in planned if run.label == "proposal-locks")))
    tested = [outcome for outcome in find_outcomes(read_collection([tmp_path])) if outcome.was_run]
    assert len(tested) == 3
    assert {outcome.verdict for outcome in tested} == {"helps"}


def test_study_1s_page_says_what_each_generator_does(tmp_path: Path) -> None:
    """Its sentences have the means of the runs; a better generator changes no share."""
    planned = plan_proposal_tests(tmp_path, "quick", (1,), 1, "sim").runs
    names = set(study_1.Queries.generators.values())
    runs = tuple(
        run
        for run in planned
        if run.label == "proposal-critical"
        and f"{run.policy} {','.join(f'{name}={value}' for name, value in run.settings)}".strip()
        in names
    )
    assert len({(run.cpus, run.settings) for run in runs}) >= 6
    perform(Plan(tmp_path, runs))
    collection = read_collection([tmp_path])
    page = page_1.make_page(study_1.Queries(find_study(1), collection))
    sentences = re.findall(r"\*\*Generators\*\*.*", texts_of(page))
    outcomes = [
        outcome
        for outcome in find_outcomes(collection)
        if outcome.proposal.name == "random-numbers" and outcome.change
    ]
    assert {outcome.verdict for outcome in outcomes} == {"does nothing"}
    assert len(sentences) == 2
    for cpus, sentence in enumerate(sentences, start=1):
        means = {
            f"{mean(side.values):.4f}"
            for outcome in outcomes
            if outcome.test.cpus == str(cpus)
            for side in (outcome.off, outcome.on)
        }
        assert set(re.findall(r"\d\.\d{4}", sentence)) == means
        assert sentence.count("≈") == 3
