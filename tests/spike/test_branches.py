# SPDX-License-Identifier: MIT
"""Tests the driver of Spike's library: a machine that forks at a moment, and its branches."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from built_once import build_once
from schedlab import trace
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import Boot
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import REFUSED as REFUSED_STATUS
from schedlab.machines.outcome import interpret_exit
from schedlab.machines.spike import (
    BRANCH_COMMANDS,
    BRANCH_STATUS,
    branching_command,
    build_driver,
    driver_command,
)
from schedlab.trace import AttributeKind, Kind, Trace

pytestmark = pytest.mark.spike

AT = 100_000_000


def command(cpus: int, words: str) -> list[str]:
    build_once("kernel", "image")
    boot = Boot(
        KERNEL_PROGRAM, DISK_IMAGE, cpus, 512, f"tick=1ms limit=100s trace={TRACE_FILE} {words}"
    )
    return driver_command(str(build_driver()), boot)


def run(words: list[str], folder: Path) -> tuple[int, str]:
    """Returns the status and the output."""
    folder.mkdir(exist_ok=True)
    with (folder / CONSOLE_FILE).open("wb") as console:
        result = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    return result.returncode, result.stderr


def make_folders(path: Path, branch_texts: dict[str, str]) -> list[str]:
    for name, text in branch_texts.items():
        (path / name).mkdir(parents=True)
        (path / name / BRANCH_COMMANDS).write_text(text)
    return list(branch_texts)


def branch(
    path: Path, words: list[str], branch_texts: dict[str, str], at: int = AT, jobs: int = 2
) -> str:
    """Returns the output."""
    status, output = run(branching_command(words, at, make_folders(path, branch_texts), jobs), path)
    assert status == 0, output
    return output


def left_in(folder: Path) -> tuple[bytes, bytes]:
    return (folder / CONSOLE_FILE).read_bytes(), (folder / TRACE_FILE).read_bytes()


def status_of(folder: Path) -> int:
    return int((folder / BRANCH_STATUS).read_text())


def events(folder: Path) -> Trace:
    run_trace = trace.read(folder / TRACE_FILE)
    trace.validate(run_trace)
    return run_trace


def after(run_trace: Trace, kind: Kind) -> pl.DataFrame:
    """Returns the records of a kind after the moment."""
    return run_trace.events.filter((pl.col("kind") == kind) & (pl.col("time_ns") >= AT))


SETUPS = [
    (1, 'policy=mlfq run="mixed"', [], 1),
    (4, 'policy=lottery run="mixed"', ["--turn=700"], AT + 123),
    (4, 'policy=rr run="io-bound -n 4"', ["--interleave=5"], AT),
    (2, "policy=rr run=test-shell", [], AT // 10),
]


@pytest.mark.parametrize(("cpus", "words", "more", "at"), SETUPS)
def test_a_branch_in_which_nothing_changes_is_the_unforked_run(
    tmp_path: Path, cpus: int, words: str, more: list[str], at: int
) -> None:
    command_line = command(cpus, words)
    command_line = [command_line[0], *more, *command_line[1:]]
    assert run(command_line, tmp_path / "run")[0] == 0
    output = branch(tmp_path / "forked", command_line, {"one": "", "other": ""}, at)
    assert output == ""
    for name in ("one", "other"):
        folder = tmp_path / "forked" / name
        assert status_of(folder) == 0
        assert left_in(folder) == left_in(tmp_path / "run")


def test_branches_share_their_past_and_no_more(tmp_path: Path) -> None:
    branch_texts = {
        "policy": "sched_status mlfq\n",
        "tunable": "sched_tunables slice=3\n",
        "several": "sched_status stride\nsched_tunables slice 2",
    }
    assert branch(tmp_path, command(2, 'policy=rr run="mixed"'), {"same": "", **branch_texts}) == ""
    traces = {name: events(tmp_path / name) for name in ("same", *branch_texts)}
    pasts = {
        name: branch_trace.events.filter(pl.col("time_ns") < AT).to_dicts()
        for name, branch_trace in traces.items()
    }
    assert len(pasts["same"]) > 100
    assert all(past == pasts["same"] for past in pasts.values())
    for name in branch_texts:
        assert not traces[name].events.equals(traces["same"].events)
    assert after(traces["same"], Kind.POLICY).is_empty()

    def switched(name: str) -> list[str]:
        kinds = pl.col("kind").is_in([Kind.POLICY, Kind.TUNABLE]) & (pl.col("time_ns") >= AT)
        rows = traces[name].events.with_row_index("row").filter(kinds)["row"].to_list()
        texts = traces[name].texts.rows()
        return [text for row, text in texts if row in rows]

    assert switched("policy") == ["mlfq"]
    assert switched("tunable") == ["slice"]
    assert switched("several") == ["stride", "slice"]
    assert after(traces["tunable"], Kind.TUNABLE)["second"].to_list() == [3]
    policy_change_ns = after(traces["policy"], Kind.POLICY)["time_ns"].item()
    assert AT <= policy_change_ns < AT + 1_000_000, "before the next tick"


def test_a_seed_is_that_of_the_policy(tmp_path: Path) -> None:
    branch_texts = {"same": "", "one": "sched_status seed 1", "seven": "sched_status seed 7"}
    branch(tmp_path, command(1, 'policy=lottery set=slice=3 run="mixed"'), branch_texts)
    traces = {name: events(tmp_path / name) for name in branch_texts}
    assert not traces["one"].events.equals(traces["seven"].events)
    for name in ("one", "seven"):
        assert after(traces[name], Kind.POLICY).height == 1
        assert after(traces[name], Kind.TUNABLE)["second"].to_list() == [3]


def test_an_attribute_is_set(tmp_path: Path) -> None:
    command_line = command(1, 'policy=lottery run="cpu-bound -n 4"')
    run(command_line, tmp_path / "run")
    pid = int(events(tmp_path / "run").events.filter(pl.col("kind") == Kind.FORK)["first"][-1])
    branch(tmp_path, command_line, {"rich": f"sched_status {pid} tickets 100\n"})
    (change,) = after(events(tmp_path / "rich"), Kind.ATTRIBUTE).to_dicts()
    assert (change["process"], change["first"], change["second"]) == (
        pid,
        AttributeKind.TICKETS,
        100,
    )


REFUSED = {
    "policy": ("sched_status nonsense", 160),
    "process": ("sched_status 9999 tickets 5", 3),
    "file": ("sched_policies rr", 22),
    "nothing": ("sched_status", 22),
    "name": ("nothing rr", 2),
    "second": ("sched_status mlfq\nsched_tunables x=1\n", 161),
}
"""A branch's command, and the kernel's error."""


def test_what_is_refused_ends_the_branch(tmp_path: Path) -> None:
    branch_texts = {name: text for name, (text, _) in REFUSED.items()}
    output = branch(tmp_path, command(4, "policy=rr run=mixed"), {**branch_texts, "same": ""})
    assert sorted(output.splitlines()) == sorted(
        f"schedlab-spike: branch {name} ended with status {REFUSED_STATUS}" for name in REFUSED
    )
    assert status_of(tmp_path / "same") == 0
    for name, (_, error) in REFUSED.items():
        assert status_of(tmp_path / name) == REFUSED_STATUS
        outcome = interpret_exit(REFUSED_STATUS, (tmp_path / name / CONSOLE_FILE).read_text())
        assert outcome.status == "refused"
        assert f"error {error}" in outcome.message


def test_a_kernel_that_cannot_obey_yet_is_no_success(tmp_path: Path) -> None:
    command_line = command(1, "policy=rr run=true")
    branch(tmp_path, command_line, {"early": "sched_status mlfq"}, at=0)
    assert status_of(tmp_path / "early") == REFUSED_STATUS
    console = (tmp_path / "early" / CONSOLE_FILE).read_text()
    assert "the kernel did not accept a command" in console


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--branch-at=1"], 2),
        (["--branch=there"], 2),
        (["--branch-at=x", "--branch=there"], 2),
        (["--branch-at=1", "--branch=none"], 1),
        (["--branch-at=1", "--branch=used"], 1),
        (["--branch-at=1", "--branch=long"], 1),
        (["--jobs=0"], 2),
    ],
)
def test_wrong_words_are_refused_before_the_machine_begins(
    tmp_path: Path, words: list[str], status: int
) -> None:
    make_folders(tmp_path, {"there": "", "used": "", "long": "x" * 1024})
    (tmp_path / "used" / CONSOLE_FILE).touch()
    command_line = command(1, "policy=rr run=true")
    exit_status, output = run([command_line[0], *words, *command_line[1:]], tmp_path)
    assert exit_status == status
    assert output
    assert not (tmp_path / CONSOLE_FILE).read_bytes()


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not come")


def has_started(folder: Path) -> bool:
    console = folder / CONSOLE_FILE
    return console.exists() and console.stat().st_size > 0


def alive(pid: int) -> bool:
    """Returns True if the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_branches_end_with_the_machine(tmp_path: Path, number: int) -> None:
    folders = make_folders(tmp_path, {"one": "", "other": "", "third": ""})
    command_line = command(1, 'limit=86400s run="cpu-bound -n 2 -i 1000000000000"')
    with (tmp_path / CONSOLE_FILE).open("wb") as console:
        machine = subprocess.Popen(
            branching_command(command_line, 20_000_000, folders, 2),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
    wait_for(lambda: all(has_started(tmp_path / name) for name in ("one", "other")))
    children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()
    assert len(children) == 2, "as many as --jobs says"
    os.kill(machine.pid, number)
    assert machine.wait(20) == -number
    wait_for(lambda: not any(alive(int(pid)) for pid in children))
