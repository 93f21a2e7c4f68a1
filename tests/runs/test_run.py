# SPDX-License-Identifier: MIT
"""Tests the execution of a plan, with stand-ins for machines: results, cancellation and output."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from conftest import Programs
from schedlab.base.files.replacement import LIST_NAME
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.machines import Boot, kernel_machine, machine_named
from schedlab.machines.outcome import Outcome
from schedlab.machines.qemu import find_qemu
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import INSTRUCTION_SET, SPIKE_VARIABLE, spike_problem
from schedlab.runs import plan_execution as running
from schedlab.runs import progress, worker
from schedlab.runs.plan import Plan, all_combinations
from schedlab.runs.progress import Durations, ProgressBoard, guest_seconds
from schedlab.runs.results import create_run_folder, find_run
from script_machine import ScriptMachine

BASE = RunSpec(
    workload="mixed",
    policy=PolicyChoice("rr"),
    settings=(),
    cpus=1,
    machine=machine_named("spike"),
    seed=1,
    tick_ns=1_000_000,
    limit_ns=1_000_000_000,
    memory_mib=64,
)


def plan_in(folder: Path, *cpus: int, repeats: int = 1) -> Plan:
    return all_combinations(folder, BASE, (PolicyChoice("rr"),), cpus, repeats)


def carry_out(plan: Plan, machine: ScriptMachine, slots: int = 2) -> list[running.Finished]:
    kernel = plan.folder.parent / "kernel.elf"
    kernel.write_bytes(b"kernel")
    durations = Durations(plan.folder.parent / "durations.json")
    with (
        running.copy_software({"kernel": kernel, "disk": kernel}, {"commit": "abc"}) as base,
        ProgressBoard(plan.runs, slots, durations) as board,
    ):
        machine_plan = replace(plan, runs=tuple(replace(run, machine=machine) for run in plan.runs))
        return running.execute_plan(machine_plan, base, slots, board)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "evaluate_run", lambda folder, outcome, *, store: (None, outcome))


def test_a_plan_is_the_product_of_all_choices(tmp_path: Path) -> None:
    policies = (PolicyChoice("rr"), PolicyChoice("rr", "table-scan"))
    plan = all_combinations(tmp_path, BASE, policies, (1, 4), 3)
    assert len(plan.runs) == 12
    assert len({run.name for run in plan.runs}) == 12
    assert [run.seed for run in plan.runs[:3]] == [1, 2, 3]
    assert plan.runs[-1].name == "rr-table-scan-4cpu-seed3"


def test_boot_arguments_say_nothing_of_the_host(tmp_path: Path) -> None:
    (run,) = all_combinations(tmp_path, BASE, (PolicyChoice("rr", "table-scan"),), (2,), 1).runs
    assert run.machine.arguments(run) == (
        'policy=rr:table-scan tick=1ms seed=1 limit=1s trace=trace.bin run="mixed"'
    )


@pytest.mark.usefixtures("unmeasured")
def test_runs_leave_complete_folders(tmp_path: Path) -> None:
    plan = plan_in(tmp_path / "out", 1, 2, repeats=2)
    finished = carry_out(plan, ScriptMachine('pwd; echo "$1" >trace.bin'))
    assert [finished_run.run.name for finished_run in finished] == [run.name for run in plan.runs]
    for finished_run in finished:
        assert sorted(path.name for path in finished_run.folder.iterdir()) == [
            "console.log",
            LIST_NAME,
            "manifest.json",
            "trace.bin",
        ]
        manifest = json.loads((finished_run.folder / "manifest.json").read_text())
        assert manifest["status"] == "success"
        assert manifest["commit"] == "abc"
        assert manifest["cpus"] == finished_run.run.cpus
        assert manifest["seed"] == finished_run.run.seed
        assert len(manifest["kernel_sha256"]) == 64
        assert (finished_run.folder / "trace.bin").read_text() == f"{finished_run.run.cpus}\n"
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.usefixtures("unmeasured")
def test_no_more_run_side_by_side_than_the_host_has_cpus(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.mkdir()
    script = f"mkdir {count}/$$; ls {count} | wc -l; sleep 0.3; rmdir {count}/$$"
    finished = carry_out(plan_in(tmp_path / "out", *range(1, 7)), ScriptMachine(script), slots=2)
    most = max(int((finished_run.folder / "console.log").read_text()) for finished_run in finished)
    assert most == 2


FAILURES = [
    (
        "printf 'boot\\n\\npanic: CPU 0: lost\\n  0x1 f+0x2\\n'; echo t >trace.bin; exit 101",
        "panic",
    ),
    ("echo t >trace.bin; exit 102", "limit"),
    ("echo 'init: no such program'; exit 1", "failed"),
    ("exit 77", "failed"),
    ("kill -SEGV $$", "killed"),
    ("echo waiting; sleep 60", "hung"),
]


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(("script", "status"), FAILURES)
def test_failed_run_is_stored_with_its_cause(tmp_path: Path, script: str, status: str) -> None:
    seconds = 0.5 if status == "hung" else 60
    (finished_run,) = carry_out(plan_in(tmp_path / "out", 1), ScriptMachine(script, seconds))
    assert finished_run.outcome.status == status
    assert json.loads((finished_run.folder / "manifest.json").read_text())["status"] == status
    assert (finished_run.folder / "trace.bin").exists() == ("trace.bin" in script)
    if status == "panic":
        assert "panic: CPU 0: lost\n      0x1 f+0x2" in finished_run.outcome.message
        assert "boot" not in finished_run.outcome.message
    if "no such program" in script:
        assert "init: no such program" in finished_run.outcome.message


def test_a_success_without_a_sound_trace_is_a_failure(tmp_path: Path) -> None:
    pytest.importorskip("schedlab.metrics")
    (finished_run,) = carry_out(
        plan_in(tmp_path / "out", 1), ScriptMachine("echo rubbish >trace.bin")
    )
    assert finished_run.outcome.status == "unmeasured"
    assert finished_run.metrics is None


def test_folder_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "set" / "run"
    with pytest.raises(KeyboardInterrupt):
        fill_half(path)
    assert list(tmp_path.iterdir()) == []


def fill_half(path: Path) -> None:
    with create_run_folder(path) as folder:
        (folder / "half").touch()
        assert not path.exists()
        raise KeyboardInterrupt


# The target of a user's Ctrl-C: a separate process, whose machines have children.
CONDUCTOR = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
import test_run as t
t.worker.evaluate = lambda folder, outcome, *, store: (None, outcome)
out = Path({out!r})
script = 'test $1 = 1 && exit 0; (trap "" TERM INT; echo $$ >>{pids}; sleep 300 & sleep 300)'
try:
    t.carry_out(t.plan_in(out, 1, 2, 3, 4), t.ScriptMachine(script))
except t.running.Interrupted as interruption:
    print([each.run.cpus for each in interruption.finished])
    raise SystemExit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_and_keeps_what_is_finished(
    tmp_path: Path, number: signal.Signals
) -> None:
    out, pids = tmp_path / "out", tmp_path / "pids"
    script = CONDUCTOR.format(tests=str(Path(__file__).parent), out=str(out), pids=pids)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as conductor:
        for _ in range(1200):
            if pids.exists() and len(pids.read_text().splitlines()) == 2:
                break
            time.sleep(0.05)
        groups = [int(line) for line in pids.read_text().splitlines()]
        conductor.send_signal(number)
        output, _ = conductor.communicate(timeout=60)
    assert conductor.returncode == 130
    assert output == "[1]\n"
    assert [path.name for path in out.iterdir()] == ["rr-1cpu-seed1"]
    assert len(groups) == 2
    for _ in range(200):  # killed processes may take a moment to disappear
        if not any(map(members_of, groups)):
            break
        time.sleep(0.05)
    assert [members_of(group) for group in groups] == [[], []]


@pytest.mark.usefixtures("unmeasured")
def test_signal_handlers_are_restored_after_runs(tmp_path: Path) -> None:
    """A report follows, in a temporary directory. Formerly ending it at once left the
    directory behind.
    """
    caught: list[int] = []
    previous_handler = signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
    try:
        carry_out(plan_in(tmp_path / "out", 1), ScriptMachine(":"))
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
    assert caught == [signal.SIGTERM]


def members_of(group: int) -> list[int]:
    """Returns the live processes of a group."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] not in "ZX":
                    members.append(int(entry.name))
    return members


def test_run_is_located_by_its_folder_or_its_parent(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
        (tmp_path / name / "trace.bin").touch()
        if name == "a":
            assert find_run(tmp_path) == tmp_path / "a"
    assert find_run(tmp_path / "b") == tmp_path / "b"
    with pytest.raises(WrongUsage, match="contains 2 runs"):
        find_run(tmp_path)
    with pytest.raises(WrongUsage, match="contains no run"):
        find_run(empty(tmp_path))


def empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_times_of_earlier_runs_are_remembered(tmp_path: Path) -> None:
    durations = Durations(tmp_path / "new" / "durations.json")
    assert durations.of(BASE) is None
    durations.learn(BASE, 4.0)
    durations.save()
    again = Durations(tmp_path / "new" / "durations.json")
    assert again.of(BASE) == 4.0
    (tmp_path / "new" / "durations.json").write_text("[rubbish")
    assert Durations(tmp_path / "new" / "durations.json").of(BASE) is None


def test_the_board_estimates_what_is_left(tmp_path: Path) -> None:
    durations = Durations(tmp_path / "durations.json")
    board = ProgressBoard(plan_in(tmp_path, 1, 2, 3, 4).runs, 2, durations)
    assert board.remaining_s() is None
    for run in board.runs:
        durations.learn(run, 10.0)
    assert board.remaining_s() == pytest.approx(20.0)
    board.started(board.runs[0], tmp_path / "none")
    board.ended(board.runs[0], Outcome("panic"), 1.0)
    assert board.remaining_s() == pytest.approx(15.0)


def test_active_run_is_one_line_of_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "message_console", lambda: console)
    board = ProgressBoard(plan_in(tmp_path, 1, 2).runs, 2, Durations(tmp_path / "durations.json"))
    for run in board.runs:
        named = replace(
            run, label="a workload whose name is longer than there is room beside its bar"
        )
        board.started(named, tmp_path / "none")
    console.print(board.picture())
    assert isinstance(console.file, io.StringIO)
    first, second, progress_line = console.file.getvalue().splitlines()
    assert first.startswith("a workload whose name") and first.rstrip().endswith("guest 0.00 s")
    assert second.startswith("a workload whose name") and progress_line.startswith("0 of 2 runs")


def test_lines_in_a_file_show_the_remaining_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    durations = Durations(tmp_path / "durations.json")
    board = ProgressBoard(plan_in(tmp_path, 1, 2).runs, 1, durations)
    for run in board.runs:
        durations.learn(run, 10.0)
        board.started(run, tmp_path / "none")
        board.ended(run, Outcome("panic"), 1.0)
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(": panic, about 10 s left")
    assert second.endswith(": panic")


def test_a_busier_host_than_before_is_taken_into_account(tmp_path: Path) -> None:
    """All durations were learned at 100 s; now they are three times as long. Durations
    learned since the start need no correction.
    """
    durations = Durations(tmp_path / "durations.json")
    board = ProgressBoard(plan_in(tmp_path, 1, 2, 3, 4, 5).runs, 1, durations)
    first, second, third, *others = board.runs
    for run in board.runs:
        durations.learn(run, 100.0)
    for run in (first, second):
        board.learn(run, 300.0)
    board.done = 2
    assert board.estimate(third) == pytest.approx(300.0, rel=0.02)
    assert board.remaining_s() == pytest.approx(900.0, rel=0.02)
    board.learn(first, 300.0)  # another seed
    assert board.estimate(first) == 300.0
    assert board.estimate(others[0]) == pytest.approx(300.0, rel=0.02)


def test_guest_clock_is_read_from_a_partial_trace(tmp_path: Path) -> None:
    path = tmp_path / "rr-1cpu-seed1"
    assert guest_seconds(path) == 0
    with create_run_folder(path) as folder:
        trace = folder / "trace.bin"
        trace.write_bytes(bytes(64))
        assert guest_seconds(path) == 0
        record = (1_500_000_000).to_bytes(8, "little") + bytes(24)
        trace.write_bytes(bytes(64) + bytes(32) + record + b"half a record")
        assert guest_seconds(path) == 1.5


GOOD_SPIKE = """
case $* in
*--dump-dts*) echo '/dts-v1/; riscv,isa = "rv64imac_zicsr_zicntr_sstc"' ;;
*) echo 'Spike RISC-V ISA Simulator 1.1.1-dev --isa=<name> --initrd=<path> --bootargs=<a>' ;;
esac
"""


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (GOOD_SPIKE, ""),
        ("echo 'a test runner'", "is not the RISC-V simulator Spike"),
        ("exit 1", "is not the RISC-V simulator Spike"),
        (GOOD_SPIKE.replace("--initrd=<path>", ""), "is a Spike without the option --initrd"),
        (GOOD_SPIKE.replace("_sstc", ""), f"does not know the instruction set {INSTRUCTION_SET}"),
    ],
)
def test_a_spike_that_does_not_serve_is_named(program: Programs, script: str, problem: str) -> None:
    message = spike_problem(str(program("spike", script)))
    assert problem in message
    assert bool(problem) == bool(message)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("QEMU emulator version 7.2.22 (Debian)", ""),
        ("QEMU emulator version 10.0.2", ""),
        ("QEMU emulator version 7.1.0", "is QEMU 7.1.0"),
        ("", "prints no version"),
    ],
)
def test_a_qemu_that_does_not_serve_is_named(
    program: Programs, monkeypatch: pytest.MonkeyPatch, answer: str, problem: str
) -> None:
    qemu = program("qemu-system-riscv64", f"echo '{answer}'")
    monkeypatch.setenv("PATH", f"{qemu.parent}:{os.environ['PATH']}")
    find_qemu.cache_clear()
    try:
        if problem:
            with pytest.raises(MachineUnfit, match=problem):
                find_qemu()
        else:
            assert find_qemu().path == str(qemu)
    finally:
        find_qemu.cache_clear()


def test_machines_get_no_absolute_path_but_kernel_and_disk(
    program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in (("spike", GOOD_SPIKE), ("qemu-system-riscv64", "echo version 8.2")):
        path = program(name, script)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    monkeypatch.setenv(SPIKE_VARIABLE, "spike")
    boot = Boot(Path("/k/kernel.elf"), Path("/k/a,b.img"), 3, 512, 'run="mixed"')
    for name in ("spike", "qemu"):
        kernel_machine(name)
        for finder in ("schedlab.machines.spike", "schedlab.machines.qemu"):
            find = getattr(sys.modules[finder], f"find_{finder.rpartition('.')[2]}")
            find.cache_clear()
        command = kernel_machine(name).command(boot)
        assert [word for word in command[1:] if "/" in word and "/k/" not in word] == []
        assert any('run="mixed"' in word for word in command)
        find.cache_clear()
    assert "file=/k/a,,b.img" in " ".join(command)
