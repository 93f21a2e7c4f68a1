# SPDX-License-Identifier: MIT
"""Tests `bench linux-agreement`: the rule, the page, and that the data is of the current simulator."""

from __future__ import annotations

import pytest

import schedlab
from schedlab.paths import ROOT
from schedlab_tools.benchmarks.linux_agreement import TICK_NS, measure, preempted_stays
from schedlab_tools.linux_agreement import (
    DEFAULTS,
    GUEST,
    HALVES,
    KEY,
    MEASURED,
    ORDER,
    SHARES,
    SIMULATOR,
    Cell,
    Row,
    Workload,
    cells,
    judge,
    read_data,
    read_variants,
    read_workloads,
)

TUNING = Workload("work", "mixed", "tuning", "work.json", "")
FILES = ROOT / "workloads" / "files" / "agreement"


def row(machine: str, seed: int, shares: str = "a=60.00 b c=40.00", **values: int) -> Row:
    measured = dict.fromkeys(MEASURED, "") | {name: str(value) for name, value in values.items()}
    key = {"workload": "work", "machine": machine, "variant": "", "cpus": "1", "seed": str(seed)}
    origin = {"versions": "some", "date": "2026-01-01"}
    return {**key, "shares": shares, **measured, **origin}


@pytest.mark.parametrize(
    ("guest", "other", "verdict"),
    [
        ((1_000_000,), (1_090_000,), "near"),
        ((1_000_000,), (1_110_000,), "off"),
        ((10_000,), (59_000,), "near"),
        (
            (1_000_000, 2_000_000, 1_500_000),
            (2_500_000, 1_400_000, 1_800_000),
            "within the interval",
        ),
        ((1_000_000, 1_010_000, 990_000), (1_200_000, 1_210_000, 1_220_000), "off"),
    ],
)
def test_the_rule(guest: tuple[float, ...], other: tuple[float, ...], verdict: str) -> None:
    assert judge(Cell(TUNING, 1, SIMULATOR, "slice_median_ns", guest, other)) == verdict


def test_cells_compare_the_same_seeds_only() -> None:
    rows = [
        row(GUEST, 1, preemptions=100),
        row(GUEST, 2, preemptions=300),
        row(SIMULATOR, 2, "b c=55.00 a=45.00", preemptions=310),
        row(SIMULATOR, 3, preemptions=900),
    ]
    by_metric = {cell.metric: cell for cell in cells(rows, [TUNING], SIMULATOR)}
    assert set(by_metric) == {"preemptions", SHARES, ORDER}
    assert by_metric["preemptions"].guest == (300,) and by_metric["preemptions"].other == (310,)
    assert by_metric[SHARES].other == (15,) and by_metric[ORDER].other == (1,)
    assert [judge(by_metric[name]) for name in ("preemptions", SHARES, ORDER)] == [
        "near",
        "off",
        "off",
    ]


def test_experiments_leave_the_other_half_alone() -> None:
    """Only the chosen settings ran on it."""
    chosen = {variant.variant for variant in read_variants() if variant.half == "all"}
    used = {row["variant"] for row in read_data() if row["half"] == HALVES[1]}
    assert len(chosen) == 1 and used <= {"", *chosen}


@pytest.mark.parametrize("name", ["sleeper-short", "hogs-slices"])
def test_the_data_is_of_this_simulator(name: str) -> None:
    """If this fails, run `./schedlab dev bench linux-agreement --machine sim --seeds 3 --again`."""
    workload = next(w for w in read_workloads() if w.workload == name)
    for variant in (DEFAULTS, *read_variants()):
        new = measure(workload, SIMULATOR, variant, 1, 1)
        stored = [old for old in read_data() if all(old[key] == new[key] for key in KEY)]
        assert [{**old, "date": new["date"], "versions": new["versions"]} for old in stored] == [
            new
        ]


def stays(workload: str, group: str, **settings: int) -> float:
    """Returns the median time, in ms, that a group's tasks have a CPU before they are preempted."""
    runs = schedlab.run(
        str(FILES / f"{workload}.json"), "eevdf", tick_ns=TICK_NS, settings=settings
    )
    return float(preempted_stays(runs, [group]).median()) / 1e6  # type: ignore[arg-type]


def test_ticks_end_shorter_slices_if_timers_end_requests() -> None:
    assert stays("hogs-slices", "long") == pytest.approx(0.4, abs=0.01)
    assert stays("hogs-slices", "long", exact=2) > 1
    assert stays("hogs-slices", "short", exact=2) == pytest.approx(0.4, abs=0.01)


def test_a_waking_task_does_not_preempt_for_another() -> None:
    """The holder of the lock works for 0.5 ms, then wakes the next one."""
    assert stays("locks", "holder") == pytest.approx(0.5, abs=0.05)
    assert stays("locks", "holder", wakeup=1) > 0.6
