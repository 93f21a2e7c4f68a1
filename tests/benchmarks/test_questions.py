# SPDX-License-Identifier: MIT
"""Tests the gallery's pages of questions: their data is of the present workloads and policies."""

from __future__ import annotations

import pytest

from schedlab_tools.benchmarks.questions import measure_question
from schedlab_tools.questions import (
    BUILT_IN,
    COMPILED,
    KEY,
    QUESTIONS,
    SEEDS,
    Question,
    Row,
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
