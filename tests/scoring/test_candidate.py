# SPDX-License-Identifier: MIT
"""Tests `schedlab.score`: the score of a source, or the reason why it has none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import schedlab
from built_once import build_once
from conftest import ROOT
from schedlab.courses.scoring import candidate, measuring
from schedlab.courses.scoring.workload_sets import read_set
from schedlab.courses.submissions import sandbox, wasm_policy

pytestmark = pytest.mark.xdist_group("grading")

RR = (ROOT / "policies" / "rr.c").read_text()
SLICE = "1, 1, 1000}"
TRUSTED = bool(sandbox.missing_requirement())


@pytest.fixture(autouse=True)
def small_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Returns a set of two workloads, with two variants of each, on one CPU."""
    build_once(str(wasm_policy.SIMULATOR_LIBRARY.relative_to(ROOT)))
    full_set = read_set()
    quick = replace(full_set.levels["quick"], variants=2, cpus=(1,))
    selected_workloads = {name: full_set.workloads[name] for name in ("desktop", "crowd")}
    objectives = tuple(
        replace(
            objective,
            group_by_workload={
                name: group
                for name, group in objective.group_by_workload.items()
                if name in selected_workloads
            },
        )
        for objective in full_set.objectives_of(quick)
        if set(objective.group_by_workload) & set(selected_workloads)
    )
    small = replace(
        full_set, levels={"quick": quick}, workloads=selected_workloads, objectives=objectives
    )
    monkeypatch.setattr(candidate, "read_set", lambda: small)
    monkeypatch.setattr(measuring, "cache_folder", lambda: tmp_path)
    candidate._set_trials.cache_clear()
    yield
    candidate._set_trials.cache_clear()


def changed(old: str, new: str) -> str:
    assert old in RR
    return RR.replace(old, new, 1)


def test_source_is_scored_against_the_reference(tmp_path: Path) -> None:
    """The reference itself scores 1 in all; longer time slices are another policy; a file
    equals its text.
    """
    file = tmp_path / "mine.c"
    file.write_text(changed(SLICE, "1, 20, 1000}"))
    with ThreadPoolExecutor(2) as threads:
        same, long = schedlab.score_many([RR, file], threads, trusted=TRUSTED)
    assert (same["failure"], same["failed_at"], same["score"]) == ("", "", 1)
    assert {objective["factor"] for objective in same["objectives"].values()} == {1}
    assert long["score"] not in (None, 1)
    assert long["objectives"]["starvation"]["factor"] < 0.5
    assert schedlab.score(file.read_text(), trusted=TRUSTED) == long
    hidden = schedlab.score(file, key=b"another key", trusted=TRUSTED)
    assert hidden["score"] != long["score"]
    assert hidden["key_sha256"] != long["key_sha256"] is None


PICK = "task_t *rr_pick(run_queue_t *queue, uint32_t cpu)\n{\n"


@pytest.mark.parametrize(
    ("source", "at", "words"),
    [
        ("int main(void) { return 0; }\n", "compile", "it defines no policy"),
        (changed("RR_SLICE, RR_TABLE_SCAN", "RR_SLICE"), "compile", "candidate.c:.*RR_TABLE_SCAN"),
        (
            changed(PICK, PICK + "    for (volatile int i = 0; i < 2;) {}\n"),
            "laws",
            r"alone: .*pick\(\): it does not end within 10,000,000 instructions, in rr_pick\(\) at candidate.c:\d+",
        ),
        (
            changed(PICK, PICK + "    if (queue->queued == 3)\n        return NULL;\n"),
            "laws",
            "turns: policy rr broke a rule: ",
        ),
    ],
    ids=["no policy", "no C", "endless", "a rule"],
)
def test_failures_give_a_reason(source: str, at: str, words: str) -> None:
    result = schedlab.score(source, trusted=TRUSTED)
    assert (result["failed_at"], result["score"]) == (at, None)
    assert re.search(words, result["failure"])


def test_what_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate, "INSTRUCTIONS_MAX", 100_000)
    result = schedlab.score(RR, trusted=TRUSTED)
    assert result["failed_at"] == "simulator"
    assert result["failure"].startswith(
        "up to desktop-0, 1 CPUs, its hooks have executed more than 100,000"
    )


@pytest.mark.long
def test_the_most_laborious_of_the_shipped_policies_has_a_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Uses the whole set."""
    for module in (candidate, measuring):
        monkeypatch.setattr(module, "read_set", read_set, raising=False)
    candidate._set_trials.cache_clear()
    result = schedlab.score(ROOT / "policies" / "stride.c", trusted=TRUSTED)
    assert (result["failure"], result["failed_at"]) == ("", "")
    assert result["score"] > 1
