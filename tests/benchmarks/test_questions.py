# SPDX-License-Identifier: MIT
"""Tests the gallery's pages of questions: their data is of the present workloads and policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab_tools import questions
from schedlab_tools.benchmarks.questions import measure_question
from schedlab_tools.documents import questions as pages
from schedlab_tools.questions import (
    BUILT_IN,
    COMPILED,
    KEY,
    QUESTIONS,
    SEEDS,
    Question,
    Row,
    add_results,
    is_current,
    read_results,
    values_of,
)

NICE = next(question for question in QUESTIONS if question.name == "nice")


def test_results_are_complete_and_of_the_present_workloads() -> None:
    """If this fails, run `./schedlab dev bench questions` and `./schedlab dev docs questions`."""
    rows = read_results()
    for question in QUESTIONS:
        for measure in question.measures:
            for policy in question.policies:
                assert len(values_of(rows, question, measure, policy)) == SEEDS, (measure, policy)
            assert all(
                is_current(row, measure) for row in rows if row["measure"] == measure.name
            ), measure
    measured = sum(len(question.measures) * len(question.policies) for question in QUESTIONS)
    assert len(rows) == SEEDS * measured
    assert all(row["object_sha256"] for row in rows if row["policy"] in COMPILED)


def assert_repeats(question: Question) -> None:
    stored = {tuple(row[name] for name in KEY): row["value"] for row in read_results()}
    for policy in set(BUILT_IN) & set(question.policies):
        for row in measure_question(question, policy, [1]):
            assert row["value"] == stored[tuple(row[name] for name in KEY)], row


def test_results_of_nice_values_repeat() -> None:
    """If this fails, a policy or the simulator has changed: run `./schedlab dev bench questions`."""
    assert_repeats(NICE)


@pytest.mark.long
@pytest.mark.parametrize(
    "question", [question for question in QUESTIONS if question is not NICE], ids=lambda q: q.name
)
def test_results_repeat(question: Question) -> None:
    assert_repeats(question)


def row(
    policy: str, seed: int, value: float, question: str = "nice", measure: str = "share-250"
) -> Row:
    key = {"question": question, "measure": measure, "policy": policy, "seed": str(seed)}
    return {**key, "value": str(value), "workload_sha256": "", "object_sha256": "", "date": ""}


def test_new_results_replace_earlier_ones_of_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    add_results([row("rr", 1, 50), row("rr", 2, 51), row("rr", 1, 9, question="gone")], path)
    add_results([row("rr", 2, 60), row("scx:bpfland", 1, 70)], path)
    rows = read_results(path)
    assert values_of(rows, NICE, NICE.measures[0], "rr") == [50, 60]
    assert values_of(rows, NICE, NICE.measures[0], "scx:bpfland") == [70]
    assert "gone" not in path.read_text()


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"rr": 50, "eevdf:linux-7-3": 90.5}, "under `eevdf:linux-7-3` only."),
        ({"rr": 50}, "under no policy."),
        ({"cfs:nice": 89, "eevdf:linux-7-3": 90.5}, "under all policies."),
    ],
)
def test_the_answer_follows_from_the_values(values: dict[str, float], answer: str) -> None:
    rows = [row(policy, seed, value) for policy, value in values.items() for seed in (1, 2)]
    assert answer in pages.page(NICE, rows)


def test_less_than_a_limit_is_as_expected() -> None:
    quota = QUESTIONS[0].measures[1]
    assert quota.is_met(12)
    assert not quota.is_met(22.1)
    assert not NICE.measures[0].is_met(93)


def test_a_changed_workload_makes_results_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = NICE.measures[0]
    stored = next(stored for stored in read_results() if stored["question"] == "nice")
    assert is_current(stored, measure)
    monkeypatch.setattr(questions, "file_hash", lambda _path: "other")
    assert not is_current(stored, measure)
