# SPDX-License-Identifier: MIT
"""Cells that agree, differ, or cannot be decided, on invented figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept_runs import MS, keep_run
from schedlab import metrics, trace
from schedlab.analysis.agreement.cells import Cell, CellKey, compute_cells
from schedlab.analysis.agreement.known import JudgedCell, KnownDifference, KnownReason
from schedlab.analysis.agreement.plan import (
    ComparedRun,
    KernelWindow,
    compared_experiment,
    simulated_run_spec,
)
from schedlab.analysis.agreement.variants import ValueRange
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.runs import collection
from schedlab.trace.divergence import first_divergence
from schedlab.workload.text import format_workload
from simulator_command import simulate

EXPERIMENT = "s1-timing-cpu-heavy"


def keep(
    path: Path,
    machine: str,
    completion: float | None,
    seed: int = 1,
    policy: str = "rr",
    **groups: tuple[float, float],
) -> None:
    """`groups`: each one's turnaround and running time, in ms."""
    ran = sum(running for _, running in groups.values())
    keep_run(
        path / machine,
        EXPERIMENT,
        policy,
        seed,
        machine=machine,
        tables={
            "summary": [{"completion_ns": None if completion is None else int(completion * MS)}],
            "groups": [
                {
                    "group": name,
                    "turnaround_mean_ns": turnaround * MS if completion is not None else None,
                    "running_ns": int(running * MS),
                    "share": running / ran,
                }
                for name, (turnaround, running) in groups.items()
            ],
        },
    )


def by_what(path: Path) -> dict[str, Cell]:
    return {cell.key.what: cell for cell in compute_cells(collection.read_collection([path]))}


def test_two_percent_or_a_tick(tmp_path: Path) -> None:
    keep(tmp_path, "spike", 200, slow=(180, 100), fast=(10, 5), late=(10, 5))
    keep(tmp_path, "sim", 203.9, slow=(184, 100), fast=(10.9, 5), late=(11.1, 5))
    cells = by_what(tmp_path)
    assert {what: cell.verdict for what, cell in cells.items()} == {
        "completion": "near",  # 1.95 %
        "turnaround of fast": "near",  # 9 %, but less than a tick
        "turnaround of late": "off",  # 1.1 ticks
        "turnaround of slow": "off",  # 2.2 %
    }
    slow = cells["turnaround of slow"]
    assert slow.relative == pytest.approx(4 / 180)
    assert slow.ticks == pytest.approx(4)
    assert slow.half_width is None


def test_shares_if_the_window_ends_first(tmp_path: Path) -> None:
    """In 100 ticks of all processes together, one tick is one percentage point."""
    keep(tmp_path, "spike", None, a=(0, 80), b=(0, 20))
    keep(tmp_path, "sim", None, a=(0, 81.5), b=(0, 18.5))
    cells = by_what(tmp_path)
    assert {what: cell.verdict for what, cell in cells.items()} == {
        "share of a": "near",  # 1.5 points, 1.9 %
        "share of b": "off",  # 1.5 points, 7.5 %
    }
    assert cells["share of b"].ticks == pytest.approx(-1.5)


def test_chance_may_explain_a_difference(tmp_path: Path) -> None:
    """A spread of 20 ticks between seeds hides a difference of 5; a spread of a hundredth
    does not.
    """
    for seed, (wide, narrow) in enumerate([(80, 99.99), (100, 100.0), (120, 100.01)], 1):
        keep(tmp_path, "spike", 100, seed, wide=(wide, 10), narrow=(narrow, 10))
    for seed, (wide, narrow) in enumerate([(125, 105.01), (105, 105.0), (85, 104.99)], 1):
        keep(tmp_path, "sim", 100, seed, wide=(wide, 10), narrow=(narrow, 10))
    cells = by_what(tmp_path)
    assert cells["completion"].verdict == "near"
    assert cells["turnaround of wide"].verdict == "not significant"
    assert cells["turnaround of narrow"].verdict == "off"
    width = cells["turnaround of wide"].half_width
    assert width is not None and width > 20 * MS


def test_pairs_of_seeds_see_through_what_seeds_do(tmp_path: Path) -> None:
    """Each seed takes 5 ticks longer: without pairing, the spread of 20 ticks would hide it."""
    for seed, time in enumerate((80.0, 100.01, 120.0), 1):
        keep(tmp_path, "spike", time, seed, g=(1, 1))
        keep(tmp_path, "sim", time + 5 + seed / 100, seed, g=(1, 1))
    assert by_what(tmp_path)["completion"].verdict == "off"
    keep(tmp_path, "sim", 105.04, 4, g=(1, 1))
    assert by_what(tmp_path)["completion"].verdict == "not significant"


def test_failed_run_is_reported(tmp_path: Path) -> None:
    keep(tmp_path, "spike", 100, g=(1, 1))
    keep_run(tmp_path / "sim", EXPERIMENT, "rr", 1, machine="sim", status="limit")
    cell = by_what(tmp_path)["completion"]
    assert cell.verdict == "failed"
    assert "seed 1 on sim: limit" in cell.failure
    assert cell.to_dict()["kernel"] is None


# --- reasons

REASON = KnownReason("why", "Because.")
KNOWN_DIFFERENCE = KnownDifference(EXPERIMENT, "rr", "1", "completion", REASON)
CLASS = KnownDifference("s1-*", "rr", "*", "*", REASON)


SPANS = ValueRange(90 * MS, 160 * MS)


@pytest.mark.parametrize(
    ("simulator", "reason", "spans", "judgement", "is_wrong"),
    [
        (100.5, None, None, "near", False),
        (100.5, CLASS, None, "near", False),
        (100.5, KNOWN_DIFFERENCE, None, "unexpectedly near", True),
        (101.0, None, SPANS, "near", False),
        (150.0, None, None, "off", True),
        (150.0, KNOWN_DIFFERENCE, None, "known", False),
        (150.0, CLASS, None, "known", False),
        (150.0, KNOWN_DIFFERENCE, SPANS, "known", False),
        (150.0, CLASS, SPANS, "microseconds", False),
        (150.0, None, SPANS, "microseconds", False),
        (150.0, None, ValueRange(101.9 * MS, 160 * MS), "microseconds", False),
        (150.0, None, ValueRange(120 * MS, 160 * MS), "off", True),
    ],
)
def test_judgements(
    simulator: float,
    reason: KnownDifference | None,
    spans: ValueRange | None,
    judgement: str,
    is_wrong: bool,
) -> None:
    """A figure between those of other costs is a matter of microseconds, unless it has a separate
    reason.
    """
    key = CellKey(EXPERIMENT, "rr", 1, "completion")
    cell = Cell(key, (100.0 * MS,), (simulator * MS,), False, MS, p_value=0.0)
    judged_cell = JudgedCell(cell, reason, spans)
    assert judged_cell.judgement == judgement
    assert judged_cell.is_wrong == is_wrong
    assert CLASS.matches(key) and not CLASS.matches(CellKey(EXPERIMENT, "mlfq", 1, "completion"))


# --- where runs diverge

WORK = """
program root
  group root
  mark begin
  fork one
  fork two
  loop 2
    wait
  end
  mark end
program one
  group one
  run {one}us
program two
  group two
  run 3ms
"""


def test_runs_diverge_if_the_machines_pick_differently(tmp_path: Path) -> None:
    traces = []
    for name, one in (("kernel", 1500), ("simulator", 2500)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "trace.bin"
        text = WORK.format(one=one)
        assert (
            simulate(tmp_path / name, text, "--costs", "none", "--trace", str(path)).returncode == 0
        )
        traces.append(trace.read(path))
    assert first_divergence(traces[0], traces[0]) is None
    divergence = first_divergence(traces[0], traces[1])
    assert divergence is not None
    # One, two, one; then one has ended after 2.5 ms, or continues until 3 ms, when two is next.
    assert divergence.cpu == 0
    assert divergence.one is not None and divergence.other is not None
    assert divergence.time_ns == min(divergence.one.time_ns, divergence.other.time_ns)
    assert {divergence.one.group, divergence.other.group} <= {"root", "one", "two"}
    assert divergence.one.pid != divergence.other.pid
    assert "switches alike, CPU 0 turns to" in divergence.describe(
        "on the kernel", "in the simulator"
    )


# --- commands


def test_the_first_process_sleeps_no_longer_than_the_kernels(tmp_path: Path) -> None:
    """Under ule the children inherit the sleep. From the machine's start at 5 ms, a heavy process
    would take 33.88 ms to end.
    """
    ule = PolicyChoice("ule")
    window = KernelWindow(begin_ns=5_060_500, end_ns=48_442_000)
    case = ComparedRun(compared_experiment("s1-priority-starvation"), ule, cpus=1, seed=1)
    run = simulated_run_spec(case, window)
    assert run.file is not None
    machine = ("--policy", "ule", "--seed", "1", "--costs", run.costs.text)
    path = tmp_path / "trace.bin"
    text = format_workload(run.file, 1, case.experiment.tick_ns)
    assert simulate(tmp_path, text, *machine, "--trace", str(path)).returncode == 0
    run_metrics = metrics.compute(trace.read(path))
    begin = run_metrics.summary["begin_ns"][0]
    assert abs(begin - window.begin_ns) < 5_000
    heavy = run_metrics.groups.filter(group="heavy")["turnaround_mean_ns"][0]
    assert heavy == pytest.approx(27.81 * MS, rel=0.001), "on the kernel"
