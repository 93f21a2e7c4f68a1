# SPDX-License-Identifier: MIT
"""Tests `./schedlab verify`: runs repeat from their folders, and differences have a cause."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Command
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.consent import Consent, require_consent
from schedlab.errors import WrongUsage
from schedlab.machines import HOST, MACHINES, machine_named
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT

pytestmark = pytest.mark.xdist_group("run again")  # shared runs are made once

FILE = {"tasks": {"a": {"loop": 20, "run": 900, "sleep": {"from": "1ms", "to": "3ms"}}}}


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory: pytest.TempPathFactory, schedlab: Command) -> Path:
    """Four runs of a deleted workload file: two policies with two seeds each."""
    folder = tmp_path_factory.mktemp("kept")
    file = folder / "o'brien.json"
    file.write_text(json.dumps(FILE))
    out = folder / "runs"
    what = ("--workload", str(file), "--with", "tasks.a.instance=3", "--delay", "fork=38us")
    how = ("--policy", "rr,lottery", "--runs", "2", "--seed", "5", "--cpus", "2", "--tick", "2ms")
    result = schedlab("run", "--machine", "sim", *what, *how, "--out", str(out))
    assert result.returncode == 0, result.stderr
    file.unlink()
    return out


@pytest.fixture
def copy(runs_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs_folder, tmp_path / "copy"))


def change(run: Path, **members: Any) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_runs_come_out_the_same(schedlab: Command, runs_folder: Path, tmp_path: Path) -> None:
    result = schedlab("verify", str(runs_folder), "--out", str(tmp_path / "again"))
    assert (result.returncode, result.stdout.splitlines()[0]) == (
        0,
        "4 of 4 runs are the same, byte for byte.",
    )
    assert sorted(p.name for p in (tmp_path / "again").iterdir()) == sorted(
        p.name for p in runs_folder.iterdir()
    )
    for again in (tmp_path / "again").iterdir():
        manifest, before = (
            json.loads((run / "manifest.json").read_text())
            for run in (again, runs_folder / again.name)
        )
        assert (manifest["workload"], manifest["with"]) == (before["workload"], before["with"])


def test_no_run_is_written_over(schedlab: Command, runs_folder: Path, tmp_path: Path) -> None:
    run, out = sorted(runs_folder.iterdir())[0], tmp_path / "again"
    (out / run.name).mkdir(parents=True)
    (out / run.name / "mine").write_text("mine")
    result = schedlab("verify", str(run), "--out", str(out))
    assert result.returncode == 2
    assert [path.name for path in (out / run.name).iterdir()] == ["mine"]


def test_different_trace_is_reported_with_the_reason(
    schedlab: Command, copy: Path, tmp_path: Path
) -> None:
    one, other, *_ = sorted(copy.iterdir())
    for run in (one, other):
        trace = run / "trace.bin"
        trace.write_bytes(trace.read_bytes() + b"x")
    change(other, simulator_sha256="0" * 64, compiler="clang 19.1.7, named by the user")
    result = schedlab("verify", str(copy), "--out", str(tmp_path / "again"))
    assert result.returncode == 1
    assert "2 of 4 runs are the same" in result.stdout
    message_by_run = {
        line.split()[1]: line for line in result.stderr.splitlines() if " differs: " in line
    }
    assert "although its components are the same" in message_by_run[one.name]
    assert (
        "components changed: compiler clang 19.1.7, named by the user, now clang "
        in message_by_run[other.name]
    )
    assert "; simulator 000000000000, now " in message_by_run[other.name]


def test_unsupported_runs_are_left_out(schedlab: Command, copy: Path, tmp_path: Path) -> None:
    one, other, third, fourth = sorted(copy.iterdir())
    change(one, machine="perf")
    change(other, recorded_from_ns=7)
    result = schedlab("verify", str(copy), "--out", str(tmp_path / "again"))
    assert "2 of 2 runs are the same" in result.stdout
    assert f"{one.name} is skipped" in result.stderr
    assert f"{other.name} is skipped" in result.stderr
    for run in (third, fourth):
        change(run, machine="perf")
    result = schedlab("verify", str(copy), "--out", str(tmp_path / "none"))
    assert result.returncode == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"policy": "no-such"}, "no-such"),
        ({"tick_ns": 1}, "choose 100us to 1s"),
        ({"cpus": 60000}, "--cpus"),
        ({"machine": "spike", "memory_mib": 1}, "--memory"),
        ({"tunables": {"no-such": 1}}, "no-such"),
        ({"workload": "--help"}, None),
    ],
)
def test_manifest_is_checked_like_the_command_line(
    schedlab: Command, copy: Path, tmp_path: Path, members: dict[str, Any], words: str | None
) -> None:
    run = sorted(copy.iterdir())[0]
    change(run, **members)
    out = tmp_path / "again"
    result = schedlab("verify", str(run), "--out", str(out))
    if words is None:  # the run's copy of its file is used, regardless of the file's name
        assert result.returncode == 0, result.stderr
        return
    assert result.returncode == 2, result.stderr
    assert words in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    "label",
    ["/absolute", "../../../EVIL", "..", ".unfinished-x", "two\nlines", "\u00fc" * 300],
    ids=range(6),
)
def test_a_label_leads_nowhere_but_below_out(
    schedlab: Command, copy: Path, tmp_path: Path, label: str
) -> None:
    run = sorted(copy.iterdir())[0]
    change(run, label=f"{tmp_path}{label}" if label == "/absolute" else label)
    before = {*tmp_path.rglob("*")}
    out = tmp_path / "deep" / "er" / "again"
    result = schedlab("verify", str(run), "--out", str(out))
    assert result.returncode == 0, result.stderr
    (again,) = out.iterdir()
    assert not again.name.startswith(".")
    new = {*tmp_path.rglob("*")} - before
    assert {path for path in new if out not in path.parents} == {out, *out.parents} & new


@pytest.mark.parametrize("key", ["workload", "shape"])
def test_a_manifest_does_not_choose_which_files_are_read(
    schedlab: Command, copy: Path, tmp_path: Path, key: str
) -> None:
    run = sorted(copy.iterdir())[0]
    source = {"shape": "shapes/fast-and-slow.json"}
    other = tmp_path / "private.json"
    shutil.copy(ROOT / source[key] if key in source else run / "workload.json", other)
    if key == "workload":
        (run / "workload.json").unlink()
    change(run, **{key: str(other)}, **({"cpus": 8} if key == "shape" else {}))
    result = schedlab("verify", str(run), "--out", str(tmp_path / "again"))
    assert result.returncode == 2
    assert f"{key}: the copy of '{other}'" in result.stderr
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("consent", [(), ("--trust",), ("--yes",)])
def test_no_command_of_a_manifest_runs_on_this_machine_unasked(
    schedlab: Command, copy: Path, tmp_path: Path, consent: tuple[str, ...]
) -> None:
    """Standard input of these tests is not a terminal."""
    run = sorted(copy.iterdir())[0]
    (run / "workload.json").unlink()
    command = f"sh -c 'touch {tmp_path}/EVIL'"
    change(run, machine="host", workload=command, **{"with": {}}, delays=None, costs=None)
    result = schedlab("verify", str(run), *consent, "--out", str(tmp_path / "again"))
    assert result.returncode == 2
    assert command in result.stderr
    assert ("--yes" if "--trust" in consent else "--trust") in result.stderr
    assert not (tmp_path / "EVIL").exists()
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("consent", "terminal", "answer", "runs"),
    [
        (Consent(), True, True, False),
        (Consent(yes=True), True, True, False),
        (Consent(trust=True), False, True, False),
        (Consent(trust=True), True, False, False),
        (Consent(trust=True), True, True, True),
        (Consent(trust=True, yes=True), False, False, True),
    ],
)
def test_consent_is_an_option_and_an_answer(
    monkeypatch: pytest.MonkeyPatch, consent: Consent, terminal: bool, answer: bool, runs: bool
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setattr("click.confirm", lambda *_, **__: answer)
    policy = PolicyChoice("rr")
    on = {
        name: RunSpec("reboot", policy, (), 1, machine_named(name), 1, 10**6, 10**9, 512)
        for name in MACHINES
    }
    with nullcontext() if runs else pytest.raises(WrongUsage):
        require_consent("x", on.values(), consent)
    del on[HOST]
    require_consent("x", on.values(), Consent())


def test_one_of_two_runs_that_fails_decides_the_status(schedlab: Command, tmp_path: Path) -> None:
    """The run on one CPU reaches its limit, and the run on two CPUs does not."""
    file = tmp_path / "two.json"
    file.write_text(json.dumps({"tasks": {"a": {"instance": 2, "loop": 1, "run": 20_000}}}))
    how = ("--machine", "sim", "--policy", "rr", "--cpus", "1,2", "--limit", "30ms")
    out = tmp_path / "runs"
    result = schedlab("run", "--workload", str(file), *how, "--out", str(out))
    statuses = [
        json.loads((out / f"rr-{cpus}cpu-seed1" / "manifest.json").read_text())["status"]
        for cpus in (1, 2)
    ]
    assert statuses == ["limit", "success"]
    assert result.returncode == 1


def test_costs_are_those_that_the_simulator_had_whatever_their_name(
    schedlab: Command, copy: Path, tmp_path: Path
) -> None:
    run = sorted(copy.iterdir())[0]
    other = tmp_path / "private.json"
    other.write_text('{"format": 1, "costs": {"fork": {"ns": 5000000}}}')
    change(run, costs=str(other))
    result = schedlab("verify", str(run), "--out", str(tmp_path / "again"))
    assert result.returncode == 0, result.stderr
