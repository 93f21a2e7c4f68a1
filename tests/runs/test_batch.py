# SPDX-License-Identifier: MIT
"""Tests that a process that simulates many runs writes the same traces as a process per run."""

from __future__ import annotations

from pathlib import Path

from schedlab.machines.folder import TRACE_FILE
from schedlab.runs.worker import SimulatorProcess
from schedlab.workload.binary_steps import encode_workload_text
from simulator_command import built, simulate

TEXT = "program root\n  fork a\n  fork a\n  wait\n  wait\n\nprogram a\n  run 3ms\n  sleep 2ms\n  run 1ms\n"
WORKLOAD = encode_workload_text(TEXT, 1_000_000)
OTHER_WORKLOAD = encode_workload_text(TEXT.replace("3ms", "5ms"), 1_000_000)


def start(folder: Path, *, is_stopped: bool = False) -> SimulatorProcess:
    folder.mkdir()
    command = [str(built("sim/schedlab-sim")), "--batch"]
    return SimulatorProcess(command, folder, lambda: is_stopped)


def words(policy: str, cpus: int) -> list[str]:
    options = {"policy": policy, "cpus": str(cpus), "trace": TRACE_FILE}
    return [
        *(word for name, value in options.items() for word in (f"--{name}", value)),
        "workload.steps",
    ]


def test_traces_are_those_of_single_processes(tmp_path: Path) -> None:
    process = start(tmp_path / "batch")
    for number, (policy, cpus, workload, text) in enumerate(
        [
            ("rr", 1, WORKLOAD, TEXT),
            ("eevdf", 2, WORKLOAD, TEXT),
            ("rr", 2, OTHER_WORKLOAD, TEXT.replace("3ms", "5ms")),
            ("rr", 1, WORKLOAD, TEXT),
        ]
    ):
        assert process.run(words(policy, cpus), workload, 60) == 0
        alone = tmp_path / str(number)
        alone.mkdir()
        simulate(
            alone,
            text,
            "--policy",
            policy,
            "--cpus",
            str(cpus),
            "--trace",
            str(alone / "trace.bin"),
        )
        trace = (tmp_path / "batch" / TRACE_FILE).read_bytes()
        assert trace == (alone / "trace.bin").read_bytes()
    process.close()


def test_a_wrong_run_ends_the_process_and_the_next_run_starts_another(tmp_path: Path) -> None:
    process = start(tmp_path / "batch")
    assert process.run(words("absent", 1), WORKLOAD, 60) is None
    assert process.run(words("rr", 1), WORKLOAD, 60) == 0
    process.close()


def test_a_run_that_takes_too_long_ends_the_process(tmp_path: Path) -> None:
    endless = encode_workload_text(
        "program root\n  loop 4000000000\n    run 1ms\n  end\n", 1_000_000
    )
    process = start(tmp_path / "batch")
    options = ["--limit", str(10**15), *words("rr", 1)]
    assert process.run(options, endless, 0.5) is None
    process.close()
