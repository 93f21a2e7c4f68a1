# SPDX-License-Identifier: MIT
"""Tests `./schedlab score`: the draws of a key, the card for given values, and the runs kept."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands import score as command
from schedlab.commands.score import score
from schedlab.courses.scoring import measuring
from schedlab.courses.scoring.score_card import (
    MeasuredPolicies,
    ScoreCard,
    improvement_gaps,
    make_card,
)
from schedlab.courses.scoring.workload_sets import (
    KeyedDraws,
    Objective,
    WorkloadSet,
    read_set,
    set_names,
)
from schedlab.machines.spec import RunSpec
from schedlab.runs.perform import perform
from schedlab.runs.plan import Plan
from scx_objects import object_bytes, write_object

SET = read_set()
QUICK = SET.levels["quick"]
RR, MLFQ = PolicyChoice("rr"), PolicyChoice("mlfq")


def test_what_a_key_draws_is_the_same_everywhere() -> None:
    drawn = KeyedDraws(b"key", "name")
    assert [drawn.below(1000) for _ in range(5)] == [366, 766, 300, 198, 907]
    one, other = ([*SET.runs(key, QUICK, RR)] for key in (b"one", b"other"))
    assert one == [*SET.runs(b"one", QUICK, RR)]
    assert [run.seed for run in one] != [run.seed for run in other]
    assert {run.changes for run in one} != {run.changes for run in other}


@pytest.mark.parametrize("name", set_names())
def test_runs_of_a_set_can_be_executed(name: str) -> None:
    workload_set = read_set(name)
    for level in workload_set.levels.values():
        runs = [*workload_set.runs(b"key", level, RR)]
        assert len(runs) == len({run.name for run in runs})
        assert len(runs) == len(workload_set.workloads) * level.variants * len(level.cpus)
        for run in runs:
            run.machine.check(run)
        assert {objective.name for objective in workload_set.objectives_of(level)}
        for objective in workload_set.objectives_of(level):
            assert set(objective.group_by_workload) <= set(workload_set.workloads)


PUBLISHED = {
    "1": (
        "b8c9442ebc81eb411666971ddf88858d2088f5c87aac1655cf68634c309077bb",
        "0120b31db1b95964d109aee21a207116c9140dd0ece9b324d406c031c465df04",
    ),
    "2": (
        "f0dd0a737e50b19e25c8c604f1368a790603a30e9182ad853f497f3857cf76b1",
        "0039e61ef8eff50297cbef7fcb75922a41ed7719a04919e8eee136af90eb1037",
    ),
}
"""The hashes of each set's files and draws."""


def test_a_published_set_never_changes() -> None:
    """Neither its files nor their draws change: the card of an earlier round can be reproduced."""
    assert set_names() == [*PUBLISHED]
    for name, hashes in PUBLISHED.items():
        workload_set, drawn = read_set(name), hashlib.sha256()
        for level in workload_set.levels.values():
            for run in workload_set.runs(b"key", level, RR):
                drawn.update(f"{run.label} {run.cpus} {run.seed} {run.changes}\n".encode())
        assert (workload_set.sha256, drawn.hexdigest()) == hashes


def made_up(**factors: Sequence[Sequence[float]]) -> MeasuredPolicies:
    """Returns policies with these factors, by objective (`x`, `y`) and variant, over a
    reference of 1.
    """
    logs = {
        policy: {
            name: -np.log(np.array(variant_factors))
            for name, variant_factors in zip("xy", policy_factors, strict=False)
        }
        for policy, policy_factors in {"rr": [[1.0, 1, 1], [1.0, 1, 1]], **factors}.items()
    }
    return MeasuredPolicies(logs, {})


OBJECTIVES = tuple(
    Objective(name, name, "turnaround", 1, {}, weight, ("quick", "confirmed"))
    for name, weight in (("x", 1), ("y", 3))
)
SMALL = replace(SET, objectives=OBJECTIVES)


def carded(measured: MeasuredPolicies, policy: str = "mine") -> ScoreCard:
    return make_card(SMALL, QUICK, measured, policy)


def test_a_card_has_factors_and_their_mean() -> None:
    policy_card = carded(
        made_up(mine=[[2, 2, 2], [1, 1, 1]], other=[[3.9, 4, 4.1], [0.5, 0.5, 0.5]])
    )
    first, second = policy_card.figures
    assert first.log_improvement and second.log_improvement
    assert math.exp(first.log_improvement.mean) == pytest.approx(2)
    assert (first.best_other, second.best_other) == ("other", "rr")
    assert policy_card.score == pytest.approx(2 ** (1 / 4))
    assert (policy_card.dominated_by, policy_card.surely_dominated_by) == ((), ())


@pytest.mark.parametrize(
    ("other", "dominated", "surely"),
    [
        ([[2, 2.1, 2.2], [1, 1, 1]], True, True),
        ([[1, 3, 1], [1, 1, 1]], True, False),  # not significant
        ([[2, 2.1, 2.2], [0.99, 0.99, 0.99]], False, False),
        ([[1, 1, 1], [1, 1, 1]], False, False),  # it is as good
        ([[2, 2, 2]], False, False),  # and has no value of the second
    ],
)
def test_who_dominates(other: Sequence[Sequence[float]], dominated: bool, surely: bool) -> None:
    policy_card = carded(made_up(mine=[[1, 1, 1], [1, 1, 1]], other=other))
    assert ("other" in policy_card.dominated_by) is dominated
    assert ("other" in policy_card.surely_dominated_by) is surely


def score_text(shown: MeasuredPolicies, hidden: MeasuredPolicies) -> str:
    gap = improvement_gaps(shown, hidden, "rr", "mine")
    console = Console(file=io.StringIO(), width=160)
    for part in command._card_texts(SMALL, QUICK, b"k" * 32, carded(shown), carded(hidden), gap):
        console.print(part, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_overfitted_policy_is_reported() -> None:
    shown = made_up(mine=[[2.9, 3, 3.1], [1, 1.01, 0.99]])
    hidden = made_up(mine=[[1.1, 1, 0.9], [1, 1.02, 0.98]])
    text = score_text(shown, hidden)
    assert "Overfitted to the public variants: x." in text
    assert "mine is on the Pareto front with public variants." in text
    assert "3.01 [2." in text
    assert "Overfitted" not in score_text(shown, shown)


@pytest.fixture
def tiny() -> WorkloadSet:
    """Returns a set with one workload, two variants, one CPU."""
    quick = replace(QUICK, variants=2, cpus=(1,))
    crowd = {"tasks.hog.instance": [2, 3], "tasks.sleeper.instance": [2]}
    objectives = tuple(
        objective
        for objective in SET.objectives_of(QUICK)
        if set(objective.group_by_workload) == {"crowd"}
    )
    return replace(SET, levels={"quick": quick}, workloads={"crowd": crowd}, objectives=objectives)


def test_measurements_are_stored(
    tiny: WorkloadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are stored by policy; stored ones are not run again."""
    monkeypatch.setattr(measuring, "cache_folder", lambda: tmp_path / "cache")
    ran: list[str] = []

    def carry_out(runs: Sequence[RunSpec], folder: Path) -> Path:
        ran.extend(f"{run.policy} {run.label}" for run in runs)
        perform(Plan(folder, tuple(runs), unchecked=True), with_metrics=True)
        return folder

    def measured(*policies: PolicyChoice) -> MeasuredPolicies:
        path = tmp_path / str(len(ran))
        return measuring.measure(tiny, b"key", tiny.levels["quick"], policies, path, carry_out)

    first = measured(RR)
    assert ran == ["rr crowd-0", "rr crowd-1"]
    both = measured(RR, MLFQ)
    assert ran[2:] == ["mlfq crowd-0", "mlfq crowd-1"]
    assert _plain(both.values["rr"]) == _plain(first.values["rr"])
    again = measured(MLFQ, RR)
    assert len(ran) == 4
    assert {name: _plain(policy_values) for name, policy_values in again.values.items()} == {
        name: _plain(policy_values) for name, policy_values in both.values.items()
    }
    assert set(both.values["rr"]) == {"fairness"}


def test_the_object_of_a_sched_ext_scheduler_identifies_its_values(
    tiny: WorkloadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed object is measured again, an equal one is not."""
    monkeypatch.setattr(measuring, "cache_folder", lambda: tmp_path / "cache")
    path = write_object("fifo", tmp_path)
    choice = PolicyChoice("scx", str(path))
    ran: list[str] = []

    def carry_out(runs: Sequence[RunSpec], folder: Path) -> Path:
        ran.extend(run.label for run in runs)
        perform(Plan(folder, tuple(runs), unchecked=True), with_metrics=True)
        return folder

    def measure() -> MeasuredPolicies:
        folder = tmp_path / str(len(ran))
        return measuring.measure(tiny, b"key", tiny.levels["quick"], (choice,), folder, carry_out)

    first = measure()
    assert not first.failures
    assert set(first.values[str(choice)]) == {"fairness"}
    assert len(ran) == 2
    assert _plain(measure().values[str(choice)]) == _plain(first.values[str(choice)])
    assert len(ran) == 2
    path.write_bytes(object_bytes("five"))
    changed = measuring.missing_runs(tiny, b"key", tiny.levels["quick"], (choice,))
    assert len(changed) == 2


@pytest.mark.parametrize("level", ["true", "confirmed"])
def test_sched_ext_schedulers_are_scored_in_the_simulator_only(level: str) -> None:
    done = CliRunner().invoke(score, ["scx:./a.o", "--level", level])
    assert f"--level {level}: sched_ext schedulers are scored in the simulator only; use" in str(
        done.exception
    )


def _plain(
    values: Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]],
) -> dict[str, list[float]]:
    return {name: variant_values.tolist() for name, variant_values in values.items()}
