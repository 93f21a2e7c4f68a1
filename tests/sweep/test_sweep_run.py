# SPDX-License-Identifier: MIT
"""Tests real sweeps: workers of this host and of a cluster, a killed worker, interruptions,
resuming.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Command
from processes import in_session, wait_until
from schedlab.base.files.replacement import LIST_NAME
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands import sweep_options as options
from schedlab.errors import SchedlabError
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs import executor
from schedlab.runs.progress import ProgressBoard
from schedlab.sweep import command, dataset
from schedlab.sweep.expansion import Point
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import ProgramSet, run_key
from schedlab.workload import workload_files
from sweeps import SEEDS, SETUPS, WORKLOAD, assert_same, started, sweep_file

pytestmark = pytest.mark.xdist_group("sweeps")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the sweep, run without interruption by two workers of this host."""
    folder = tmp_path_factory.mktemp("reference")
    plan = command.plan_sweep(sweep_file(folder, SEEDS), {})
    done = command.execute_plan(plan, command.ExecutionOptions(folder / "out", workers=2))
    assert (done.runs, done.existing_runs, done.failed) == (SEEDS * SETUPS, 0, 0)
    return folder / "out"


# --- this host


def test_one_worker_and_another_order_give_the_same(tmp_path: Path, reference: Path) -> None:
    plan = command.plan_sweep(sweep_file(tmp_path, SEEDS), {})
    turned = replace(plan, points=plan.points[::-1])
    command.execute_plan(turned, command.ExecutionOptions(tmp_path / "out", workers=1))
    assert_same(tmp_path / "out", reference)


def test_an_interrupted_sweep_goes_on(tmp_path: Path, reference: Path) -> None:
    path, out = sweep_file(tmp_path, SEEDS), tmp_path / "out"
    call = ("schedlab", "sweep", str(path), "--out", str(out))
    with started(*call, "--jobs", "1") as sweep:
        wait_until((out / "runs" / "part-000001.parquet").exists, "nothing is finished", 120)
        sweep.send_signal(signal.SIGINT)
        text, _ = sweep.communicate(timeout=60)
        assert sweep.returncode == 128 + signal.SIGINT, text
        assert f"To continue, repeat the command with --out {out}" in text
        wait_until(lambda: not in_session(sweep.pid), "the sweep has left processes", 20)
    before = dataset.read_table(out, "runs")
    assert 0 < len(before) < SEEDS * SETUPS
    parts = {part: part.read_bytes() for part in dataset.part_files(out, "runs")}
    done = command.execute_plan(
        command.plan_sweep(path, {}), command.ExecutionOptions(out, workers=1)
    )
    assert (done.runs, done.existing_runs, done.failed) == (SEEDS * SETUPS, len(before), 0)
    assert {part: part.read_bytes() for part in parts} == parts
    assert_same(out, reference)
    again = command.execute_plan(
        command.plan_sweep(path, {}), command.ExecutionOptions(out, workers=1)
    )
    assert (again.existing_runs, again.runs) == (SEEDS * SETUPS, SEEDS * SETUPS)


def test_more_values_are_appended(tmp_path: Path) -> None:
    path, out = sweep_file(tmp_path, 1), tmp_path / "out"
    for cpus, already in (("1", 0), ("1,2", SETUPS)):
        given = options.nodes_of_options([], [], [], [], [], None, {"cpus": cpus})
        done = command.execute_plan(
            command.plan_sweep(path, given), command.ExecutionOptions(out, workers=1)
        )
        assert (done.existing_runs, done.runs) == (already, already + SETUPS)


# --- runs that fail


KILLER = """#!/bin/sh
# Seed 2 ends the process that started it; seed 3 fails; seed 4 leaves a trace that is none. It
# performs no batches of runs, so that it gets the arguments of each run.
case "$*" in
--batch) exit 2 ;;
*"--seed 2 "*) kill -KILL $PPID; sleep 5 ;;
*"--seed 3 "*) echo "it went wrong"; exit 1 ;;
*"--seed 4 "*) echo nonsense > trace.bin ;;
*) exec {simulator} "$@" ;;
esac
"""


def runs(folder: Path, seeds: range) -> list[RunSpec]:
    (folder / "w.json").write_text(WORKLOAD)
    file = workload_files.read_workload_file(folder / "w.json")
    fixed = ((), 1, machine_named("sim"))
    of_all = (1_000_000, 10**10, 0)
    return [
        RunSpec("w.json", PolicyChoice("rr"), *fixed, seed, *of_all, file=file) for seed in seeds
    ]


def execute(
    plan: SweepPlan, make: ProgramSet, data_set: dataset.DataSet, by_key: dict[str, Point]
) -> None:
    """Runs the missing runs with two processes."""
    left = {key: point for key, point in by_key.items() if key not in data_set.statuses}
    doing = command.ExecutionOptions(data_set.folder)
    with (
        executor.local_workers(2, processes=True) as workers,
        ProgressBoard((), 2, total=10) as board,
    ):
        command.Execution(plan, make, data_set, doing, workers, board).run(left)


def test_runs_that_fail_or_end_their_worker_are_rows_and_hurt_no_other(tmp_path: Path) -> None:
    real = command.build_program_set({machine_named("sim")})
    program = tmp_path / "simulator"
    program.write_bytes(real.programs["simulator"])
    program.chmod(0o755)
    script = KILLER.replace("{simulator}", str(program)).encode()
    make = ProgramSet(real.measuring, real.machines, {"simulator": script})
    plan = SweepPlan("", tuple(Point(run) for run in runs(tmp_path, range(1, 11))))
    by_key = plan.by_key(make)
    out = tmp_path / "out"

    def carry_out(retry: bool, make: ProgramSet) -> None:
        with dataset.open_data_set(out, plan.dimensions, real.to_dict(), "") as data_set:
            if retry:
                data_set.drop_failed()
            execute(plan, make, data_set, by_key)

    carry_out(False, make)
    runs_table = dataset.read_table(out, "runs").sort("seed")
    statuses = dict(zip(runs_table["seed"], runs_table["status"], strict=True))
    failed = {2: "worker-died", 3: "failed", 4: "unmeasured"}
    assert statuses == {seed: failed.get(seed, "success") for seed in range(1, 11)}
    messages = dict(zip(runs_table["seed"], runs_table["message"], strict=True))
    assert "its worker process was killed" in messages[2]
    assert "it went wrong" in messages[3]
    assert "the trace could not be measured" in messages[4]
    assert messages[5] is None
    assert runs_table["turnaround_mean_ns"].null_count() == 3
    # They are not run again unless requested.
    carry_out(False, replace(make, programs=real.programs))
    assert dataset.read_table(out, "runs").sort("seed").equals(runs_table)
    carry_out(True, replace(make, programs=real.programs))
    assert dataset.read_table(out, "runs")["status"].to_list() == ["success"] * 10


def test_workers_of_another_version_are_refused(tmp_path: Path) -> None:
    make = command.build_program_set({machine_named("sim")})
    other = replace(make, measuring={**make.measuring, "sources_sha256": "0" * 64})
    plan = SweepPlan("", tuple(Point(run) for run in runs(tmp_path, range(1, 2))))
    message = r"worker \d+: has another sources: \w+… there, 0000"
    with (
        dataset.open_data_set(tmp_path / "out", (), make.to_dict(), "") as data_set,
        pytest.raises(SchedlabError, match=message),
    ):
        execute(plan, other, data_set, plan.by_key(make))


# --- what determines a run, and what is kept


def test_the_key_is_of_all_that_decides(tmp_path: Path) -> None:
    make = ProgramSet({"schedlab": "1"}, {"sim": {"machine_version": "1"}}, {})
    (run,) = runs(tmp_path, range(1, 2))
    (tmp_path / "v.json").write_text(WORKLOAD.replace('"4ticks"', '"5ticks"'))
    others = [
        replace(run, seed=2),
        replace(run, cpus=2),
        replace(run, policy=PolicyChoice("rr", "table-scan")),
        replace(run, settings=(("slice", 2),)),
        replace(run, tick_ns=2_000_000),
        replace(run, limit_ns=10**9),
        replace(run, file=workload_files.read_workload_file(tmp_path / "v.json")),
        replace(run, workload="v.json"),
    ]
    keys = [run_key(spec, make) for spec in (run, *others)]
    keys.append(run_key(run, replace(make, machines={"sim": {"machine_version": "2"}})))
    keys.append(run_key(run, replace(make, measuring={"schedlab": "2"})))
    assert len(set(keys)) == len(keys)
    (same,) = runs(tmp_path, range(1, 2))
    assert run_key(same, make) == keys[0]


def test_traces_are_stored_as_by_run(schedlab: Command, tmp_path: Path) -> None:
    path = sweep_file(tmp_path, 1)
    more = ("--out", str(tmp_path / "out"), "--keep-traces", "--jobs", "1")
    result = schedlab("sweep", str(path), "--policy", "rr", *more)
    assert result.returncode == 0, result.stderr
    trace_folders = sorted((tmp_path / "out" / "traces").iterdir())
    assert len(trace_folders) == 2
    names = {path.name for path in trace_folders[0].iterdir()}
    assert names == {
        *("manifest.json", "trace.bin", "console.log", "metrics"),
        *("workload.steps", "workload.json", LIST_NAME),
    }
    from schedlab.runs.collection import read_collection

    collected = read_collection(trace_folders).summary.sort("turnaround_mean_ns")
    swept = dataset.read_table(tmp_path / "out", "runs").sort("turnaround_mean_ns")
    assert collected["turnaround_mean_ns"].to_list() == swept["turnaround_mean_ns"].to_list()
