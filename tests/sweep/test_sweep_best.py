# SPDX-License-Identifier: MIT
"""Tests the best configuration of a sweep: rankings with their intervals, Pareto fronts, and
their chart.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from conftest import Command
from schedlab.analysis.comparison.best import RankedConfiguration
from schedlab.analysis.comparison.statistics import correct_p_values
from schedlab.errors import WrongUsage
from schedlab.machines.outcome import Outcome
from schedlab.runs.worker import Result
from schedlab.sweep import best, dataset, ranking
from schedlab.sweep.effects import Effects, compute_effects
from schedlab.sweep.objectives import parse_objective
from schedlab.sweep.rows import RunRows

MAKE: dict[str, Any] = {"measuring": {}, "machines": {}}
MS = 1_000_000.0
Measured = Mapping[tuple[str, int], Mapping[str, Any]]
"""Columns of the run by settings and seed; a group's columns begin with `GROUP.`."""


def swept(folder: Path, measured: Measured, cpus: int = 1) -> Path:
    """Writes a data set with these measurements. A status other than success is in `status`."""
    setting_columns = {name for row in measured.values() for name in row if name.startswith("set_")}
    with dataset.open_data_set(folder, sorted(setting_columns), MAKE, "") as sweep_dataset:
        finished = []
        for number, ((settings, seed), row) in enumerate(measured.items()):
            identity = {
                "workload": "w.json", "policy": "mlfq", "settings": settings, "changes": "",
                "machine": "sim", "costs": "kernel", "cpus": cpus, "tick_ns": 1_000_000,
                "limit_ns": 10**9, "seed": seed, **{name: row[name] for name in setting_columns},
            }  # fmt: skip
            summary = {"processes": 4, "finished": 4, "clock_step_ns": 1}
            summary |= {
                name: value
                for name, value in row.items()
                if "." not in name and name not in setting_columns
            }
            groups: dict[str, dict[str, Any]] = {}
            for name, value in row.items():
                group, dot, column = name.partition(".")
                if dot:
                    groups.setdefault(group, {"group": group, "processes": 2, "finished": 2})[
                        column
                    ] = value
            outcome = Outcome(str(summary.pop("status", "success")))
            rows = RunRows(summary, tuple(groups.values())) if outcome.succeeded else RunRows()
            finished.append((identity, Result(f"{cpus}-{number}", outcome, 0.0, rows)))
        sweep_dataset.add(finished)
    return folder


def turnarounds(values: Mapping[str, list[float]], column: str = "turnaround_mean_ns") -> Measured:
    return {
        (settings, seed): {column: value}
        for settings, row in values.items()
        for seed, value in enumerate(row, start=1)
    }


def ranked(
    folder: Path, metric: str = "turnaround"
) -> list[RankedConfiguration[ranking.PolicySettings]]:
    objective = parse_objective(metric)
    (values,) = ranking.read_values(folder, [objective])
    return ranking.rank_setups(values, objective)


# --- metrics by name


@pytest.mark.parametrize(
    ("text", "column", "group", "better"),
    [
        ("turnaround", "turnaround_mean_ns", None, "lower"),
        ("throughput", "throughput_per_second", None, "higher"),
        ("fairness", "fairness_turnaround", None, "higher"),
        ("predictability", "response_iqr_ns", None, "lower"),
        ("share-error", "share_error_max_points", None, "lower"),
        ("share-error@inter", "share_error_points", "inter", "lower"),
        ("response@inter", "response_mean_ns", "inter", "lower"),
        ("turnaround_max_ns", "turnaround_max_ns", None, "lower"),
        ("wakeup_latency_p99_ns@a b", "wakeup_latency_p99_ns", "a b", "lower"),
        ("min:migrations", "migrations", None, "lower"),
        ("max:share@cpu", "share", "cpu", "higher"),
        ("max:turnaround", "turnaround_mean_ns", None, "higher"),
    ],
)
def test_metrics_by_name(text: str, column: str, group: str | None, better: str) -> None:
    objective = parse_objective(text)
    assert (objective.column, objective.group, objective.better) == (column, group, better)


@pytest.mark.parametrize(
    "text",
    [
        *("turnarounds", "turnaround_mean", "share", "truncated", "key"),  # no metrics
        *("switches", "migrations"),  # neither more nor less is better
        *("best:turnaround", "turnaround@", "predictability@inter"),
    ],
)
def test_metrics_that_are_none(text: str) -> None:
    with pytest.raises(WrongUsage, match=text):
        parse_objective(text)


# --- rankings


def test_best_is_first_and_worse_ones_are_marked(tmp_path: Path) -> None:
    folder = swept(
        tmp_path,
        turnarounds(
            {
                "a=1": [20.0 * MS, 21.0 * MS, 22.5 * MS],
                "a=2": [10.0 * MS, 11.0 * MS, 12.0 * MS],
                "a=3": [10.1 * MS, 12.5 * MS, 11.0 * MS],
            }
        ),
    )
    places = ranked(folder)
    assert [place.name[1] for place in places] == ["a=2", "a=3", "a=1"]
    assert [place.is_tied_for_best for place in places] == [True, True, False]
    assert places[0].deficit is None and places[0].value.mean == 11 * MS
    assert places[2].deficit and places[2].deficit.change == pytest.approx(61 / 6 * MS)
    assert places[2].deficit.low < 61 / 6 * MS < places[2].deficit.high
    reversed_places = ranked(folder, "max:turnaround")
    assert [place.name[1] for place in reversed_places] == ["a=1", "a=3", "a=2"]


def test_p_values_are_those_of_the_paired_t_test_corrected_by_holm(tmp_path: Path) -> None:
    generator = random.Random(1)
    values = {
        f"a={setup}": [(100 + setup + generator.gauss(0, 3)) * MS for _ in range(9)]
        for setup in range(12)
    }
    places = ranked(swept(tmp_path, turnarounds(values)))
    first = np.array(values[places[0].name[1]])
    plain = [stats.ttest_rel(values[place.name[1]], first) for place in places[1:]]
    corrected = correct_p_values([float(result.pvalue) for result in plain])
    for place, test, expected in zip(places[1:], plain, corrected, strict=True):
        assert place.p_value == pytest.approx(expected, rel=1e-9)
        assert place.deficit
        bounds = (place.deficit.low, place.deficit.high)
        assert bounds == pytest.approx(tuple(test.confidence_interval()), rel=1e-9)


@pytest.mark.parametrize(("worse", "is_worse"), [(1.0, False), (2.0, True)])
def test_setup_is_worse_if_its_interval_shows_it(
    tmp_path: Path, worse: float, is_worse: bool
) -> None:
    """The first configuration's probability is 3 % one-sided, and 6 % two-sided."""
    behind = [0.1, 2.2, -0.5, 1.4]
    rows = {"a=1": [10.0 * MS] * 4, "a=2": [(10 + worse + offset) * MS for offset in behind]}
    path = ranked(swept(tmp_path, turnarounds(rows)))[1]
    assert path.deficit and path.p_value is not None
    assert (
        (path.deficit.low > 0) == (path.p_value < 0.05) == (not path.is_tied_for_best) == is_worse
    )


def test_among_many_alike_the_best_is_seldom_ruled_out() -> None:
    """If all are equal, the apparent best is best by luck. The guarantee is against ruling
    out an equally good one. It is not exact, since the apparent best was selected from the
    same values.
    """
    objective = parse_objective("turnaround")
    out = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(100, 5, (1, 20, 6)) * MS
        setups = tuple(("mlfq", f"a={number}") for number in range(20))
        places = ranking.rank_setups(
            ranking.Values((), tuple(range(6)), setups, values, (0.0,), {}), objective
        )
        out += sum(not place.is_tied_for_best for place in places if place.name == setups[0])
    assert out <= 0.05 * 200


def test_equal_differences_are_not_taken_for_certain_below_the_clock(tmp_path: Path) -> None:
    rows = turnarounds({"a=1": [10.0, 11.0], "a=2": [10.5, 11.5]})
    coarse = {
        who: {**row, "clock_step_ns": 100, "processes": 1, "finished": 1}
        for who, row in rows.items()
    }
    assert all(place.is_tied_for_best for place in ranked(swept(tmp_path / "coarse", coarse)))
    fine = {who: {**row, "clock_step_ns": 0} for who, row in rows.items()}
    assert [place.is_tied_for_best for place in ranked(swept(tmp_path / "fine", fine))] == [
        True,
        False,
    ]


def test_tails_are_ranked_with_enough_processes(tmp_path: Path) -> None:
    rows = turnarounds({"a=1": [2 * MS, 4 * MS], "a=2": [MS, 2 * MS]}, "turnaround_p99_ns")
    few = {("a=3", seed): {"processes": 4} for seed in (1, 2)}
    places = ranked(swept(tmp_path, {**rows, **few}), "turnaround-99th")
    assert [place.name[1] for place in places] == ["a=2", "a=1"]
    (values,) = ranking.read_values(tmp_path, [parse_objective("turnaround-99th")])
    assert list(values.left_out.values()) == [
        "a run has no such value: it needs at least 100 processes that ended"
    ]


def test_setups_that_lack_a_value_are_left_out_and_named(tmp_path: Path) -> None:
    measured = dict(turnarounds({"a=1": [1.0, 2.0], "a=2": [3.0, 4.0], "a=3": [1.0, 1.0]}))
    measured["a=2", 2] = {"status": "hung"}
    measured["a=3", 1] = {"turnaround_mean_ns": 1.0, "finished": 3}  # one process continues
    measured["a=4", 1] = {"turnaround_mean_ns": 9.0}
    (values,) = ranking.read_values(swept(tmp_path, measured), [parse_objective("turnaround")])
    assert values.setups == (("mlfq", "a=1"),)
    assert {setup[1]: why for setup, why in values.left_out.items()} == {
        "a=2": "1 of 2 runs failed: hung",
        "a=3": "a run has no such value",
        "a=4": "only 1 of 2 seeds exist",
    }


def test_groups_have_separate_values(tmp_path: Path) -> None:
    measured = {
        ("a=1", 1): {"response_mean_ns": 1.0, "x.response_mean_ns": 9.0, "y.response_mean_ns": 1.0},
        ("a=2", 1): {"response_mean_ns": 2.0, "x.response_mean_ns": 3.0, "y.response_mean_ns": 2.0},
    }
    folder = swept(tmp_path, measured)
    firsts = [ranked(folder, f"response{of}")[0].name[1] for of in ("", "@x", "@y")]
    assert firsts == ["a=1", "a=2", "a=1"]
    with pytest.raises(WrongUsage, match="no run has a group z; choose from x, y"):
        ranked(folder, "response@z")


# --- fronts


OBJECTIVES = [parse_objective("turnaround"), parse_objective("throughput")]


def values_of(rows: list[list[tuple[float, float]]]) -> ranking.Values:
    """Returns values of configurations: seeds of pairs."""
    array = np.array(rows).transpose(2, 0, 1)
    setups = tuple(("mlfq", f"a={number}") for number in range(len(rows)))
    return ranking.Values((), tuple(range(array.shape[2])), setups, array, (0.0, 0.0), {})


def test_the_front_is_of_those_that_no_other_surpasses_in_everything() -> None:
    generator = random.Random(2)
    rows = [[(generator.randrange(12) + 0.0, generator.randrange(12) + 0.0)] for _ in range(80)]
    front = ranking.find_front(values_of(rows), OBJECTIVES)
    pairs = [row[0] for row in rows]
    expected = {
        f"a={number}"
        for number, (cost, gain) in enumerate(pairs)
        if not any(c <= cost and g >= gain and (c < cost or g > gain) for c, g in pairs)
    }
    assert {setup[1] for setup in front.members} == expected
    costs = [front.estimates[setup][0].mean for setup in front.members]
    assert costs == sorted(costs)


# --- the user's view


def example(folder: Path) -> Path:
    generator = random.Random(3)
    measured = {}
    for slice_, seed in itertools.product((1, 2, 4, 8), (1, 2, 3)):
        noise = generator.gauss(0, 0.2)
        measured[f"slice={slice_}", seed] = {
            "turnaround_mean_ns": (100 / slice_ + noise) * MS,
            "response_mean_ns": (5 * slice_ + noise) * MS,
        }
    return swept(folder, measured)


def test_command_ranks_the_data_set(schedlab: Command, tmp_path: Path) -> None:
    folder = example(tmp_path / "sweep")
    result = schedlab("sweep", "--from", str(folder), "--best", "turnaround", "--top", "2")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert result.stdout.startswith(
        "turnaround, mean (lower is better): w.json, 1 CPU, sim, tick 1ms"
    )
    assert lines[3][:3] == ["1", "mlfq", "slice=8"] and lines[3][-1] == "best"
    assert lines[4][:3] == ["2", "mlfq", "slice=4"] and "worse" in lines[4]
    assert (
        "4 configurations, 3 seeds; winner or tied for best (95 % confidence): 1" in result.stdout
    )
    result = schedlab(
        *("sweep", "--from", str(folder), "--best", "turnaround", "--best", "response", "--json"),
        *("--chart", str(tmp_path / "chart.svg")),
    )
    assert result.returncode == 0, result.stderr
    (scene,) = json.loads(result.stdout)["scenes"]
    assert [configuration["on_front"] for configuration in scene["setups"]] == [True] * 4
    svg = (tmp_path / "chart.svg").read_text()
    assert (
        svg.startswith("<svg") and "turnaround, mean (ms)" in svg and "response, mean (ms)" in svg
    )


# --- effects


def explained(folder: Path, metric: str = "turnaround") -> tuple[Effects, dict[Any, float]]:
    """Returns the explained parts, by dimension."""
    computed_effects = compute_effects(folder, best.parse_effects_objective(metric))
    parts = {
        effect.dimensions: effect.part
        for effect in (*computed_effects.main, *computed_effects.pairs)
    }
    return computed_effects, {
        names[0] if len(names) == 1 else names: part for names, part in parts.items()
    }


def grid(value: Any) -> Measured:
    """Two tunables of two values each, two seeds."""
    return {
        (f"a={a},b={b}", seed): {"turnaround_mean_ns": value(a, b, seed), "set_a": a, "set_b": b}
        for a, b, seed in itertools.product((1, 2), (3, 5), (1, 2))
    }


def test_what_adds_up_has_no_interaction(tmp_path: Path) -> None:
    computed_effects, parts = explained(swept(tmp_path, grid(lambda a, b, seed: 3 * a + b + 1000)))
    assert computed_effects.is_grid
    assert (computed_effects.runs, computed_effects.left_out) == (8, 0)
    assert parts["a"] == pytest.approx(9 / (9 + 4))
    assert parts["b"] == pytest.approx(4 / (9 + 4))
    assert parts["seed"] == parts["a", "b"] == pytest.approx(0)
    assert [level.value for level in computed_effects.main[0].levels] == ["1", "2"]
    assert computed_effects.main[0].levels[0].mean == 3 + 4 + 1000


def test_interactions_are_separated(tmp_path: Path) -> None:
    """Neither has an effect alone: the value depends on whether both are at the maximum, or
    neither.
    """
    measured = grid(lambda a, b, seed: 10.0 if (a == 1) == (b == 3) else 20.0)
    _, parts = explained(swept(tmp_path, measured))
    assert parts["a", "b"] == pytest.approx(1)
    assert parts["a"] == parts["b"] == pytest.approx(0)
