# SPDX-License-Identifier: MIT
"""Shares of the CPUs, from traces of our kernel on Spike: the same on each host."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from guest_machine import ROUND_NS, TICK_NS, traced
from schedlab import metrics, trace
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.studies import shares

pytestmark = pytest.mark.spike

# --- study 1's lottery tests

SETTING = shares.Setting((PolicyChoice("lottery"),), seeds=3, tick_ns=200_000)
"""A short tick: as many draws in a fifth of the time."""


@pytest.mark.parametrize(
    ("name", "cpus"), [("basic", 1), ("grouped", 1), ("low", 2), ("starve", 2), ("switch", 3)]
)
def test_shares_are_ideal_as_far_as_chance_allows(tmp_path: Path, name: str, cpus: int) -> None:
    """Each group's mean share; `./schedlab dev bench shares` does the same with all tests and seeds."""
    test = next(test for test in shares.TESTS if test.name == name)
    runs = []
    for seed in range(1, SETTING.seeds + 1):
        events = traced(
            tmp_path,
            SETTING.command(test),
            cpus,
            "policy=lottery",
            tick_ns=SETTING.tick_ns,
            seed=seed,
        )
        runs.append(metrics.compute(events))
        # The parent may be picked a tick or two late, and the end is seen a little late.
        assert 497 <= runs[-1].summary["elapsed_ns"][0] / SETTING.tick_ns <= 500.1
    for row in shares.cell_rows(SETTING, test, "lottery", cpus, runs):
        assert row.verdict == "met", f"{row.group}: {row.share:.3f} instead of {row.ideal:.3f}"


def test_the_window_holds_the_workload_alone(tmp_path: Path) -> None:
    """All processes are there from its beginning to its end, and no other process runs in it."""
    events = traced(tmp_path, "lotterytest switch -t 50", 4, "policy=lottery")
    found = metrics.compute(events)
    workload = found.processes.filter(pl.col("role") == "workload")
    groups = dict(workload.group_by("group").len().iter_rows())
    assert groups == {"A": 17, "B": 17, "C": 16}
    assert workload["exit_ns"].null_count() == 50
    assert sorted(set(workload["weight"].to_list())) == [10, 20, 30]
    assert found.summary["root_running_ns"][0] < TICK_NS
    assert found.summary["other_running_ns"][0] == 0
    assert found.summary["idle_ns"][0] < TICK_NS


# --- the draws


def winners(events: trace.Trace) -> tuple[list[int], dict[int, int]]:
    """The processes picked in the window, in order, and each process's tickets."""
    window = metrics.measured_window(events)
    found = metrics.compute(events).processes.filter(pl.col("role") == "workload")
    tickets = dict(found.select("pid", "weight").iter_rows())
    rows = events.events[window.begin_row : window.end_row + 1]
    picked = rows.filter(pl.col("kind") == trace.Kind.SCHEDULER_EXIT)["process"].to_list()
    return [pid for pid in picked if pid in tickets], tickets


def excess(observed: np.ndarray, expected: np.ndarray, freedom: int) -> float:
    """Pearson's chi-square, in standard deviations of the normal that it is close to.

    Its cube root is nearly normal (Wilson and Hilferty 1931).
    """
    statistic = float(((observed - expected) ** 2 / expected).sum())
    spread = 2 / (9 * freedom)
    return float((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def draws(folder: Path, generator: int) -> tuple[float, float]:
    """How far 3 × 4,000 draws are from the tickets, and pairs of them from independence."""
    singles = np.zeros(8)
    pairs = np.zeros((8, 8))
    chances = np.zeros(8)
    for seed in (1, 2, 3):
        arguments = f"policy=lottery:thesis set=generator={generator}"
        command = "lotterytest basic -t 4000 -w 10000"
        events = traced(folder, command, 1, arguments, tick_ns=100_000, seed=seed)
        picked, tickets = winners(events)
        assert len(picked) >= 4000
        pids = sorted(tickets)
        places = np.array([pids.index(pid) for pid in picked])
        singles += np.bincount(places, minlength=8)
        np.add.at(pairs, (places[:-1], places[1:]), 1)
        chances = np.array([tickets[pid] for pid in pids]) / sum(tickets.values())
    expected_pairs = np.outer(chances, chances) * pairs.sum()
    return (
        excess(singles, chances * singles.sum(), 7),
        excess(pairs, expected_pairs, 63),
    )


@pytest.mark.parametrize(("generator", "name"), [(0, "splitmix64"), (1, "xorshift")])
def test_draws_are_fair_and_independent(tmp_path: Path, generator: int, name: str) -> None:
    """Of all winners and of all pairs that follow each other: within 3.5 standard deviations."""
    for deviation in draws(tmp_path, generator):
        assert abs(deviation) <= 3.5, name


def test_the_measure_notices_unfair_draws() -> None:
    """A process that is drawn a tenth more often than its tickets say, of 12,000 draws."""
    chances = np.array([30, 30, 20, 20, 10, 10, 5, 5]) / 130
    fair = 12_000 * chances
    unfair = fair + np.array([277, -277, 0, 0, 0, 0, 0, 0])
    assert excess(fair, fair, 7) < -3.5  # too good to be chance
    assert excess(unfair, fair, 7) > 3.5


# --- weighted round-robin


def test_slices_of_weighted_round_robin_are_exact(tmp_path: Path) -> None:
    """Each turn lasts weight × quantum, and turns go round, as long as all three compute."""
    weights = (2, 5, 9)
    command = " & ".join(f"weight {weight} cpu-bound -n 1 -i 15000000" for weight in weights)
    events = traced(tmp_path, f"sh -c '{command}'", 1, "policy=wrr set=quantum_us=2000")
    found = metrics.compute(events, weights="weight").processes
    attributes = events.events.filter(pl.col("kind") == trace.Kind.ATTRIBUTE)
    given = dict(attributes.select("process", "second").iter_rows())
    weight = {
        pid: given[parent]
        for pid, parent in found.select("pid", "parent").iter_rows()
        if parent in given
    }
    assert sorted(weight.values()) == list(weights)
    first_exit = events.events.filter(
        (pl.col("kind") == trace.Kind.EXIT) & pl.col("process").is_in(list(weight))
    )["time_ns"][0]
    turns = (
        metrics.state_intervals(events)
        .filter(
            (pl.col("state") == "running")
            & pl.col("pid").is_in(list(weight))
            & (pl.col("end_ns") < first_exit)
        )
        .sort("begin_ns")
        .select("pid", length=pl.col("end_ns") - pl.col("begin_ns"))
        .rows()
    )[3:]
    assert len(turns) >= 9
    order = [pid for pid, _ in turns]
    assert order == [order[i % 3] for i in range(len(order))]
    for pid, length in turns:
        assert abs(length - weight[pid] * 2 * TICK_NS) <= 2 * ROUND_NS
