# SPDX-License-Identifier: MIT
"""`./schedlab run --again`: runs are carried out from what they keep, and what differs is told with its cause."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Command

pytestmark = pytest.mark.xdist_group("run again")  # what they share is made once

FILE = {"tasks": {"a": {"loop": 20, "run": 900, "sleep": {"from": "1ms", "to": "3ms"}}}}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, schedlab: Command) -> Path:
    """Four runs of a file that is gone since; two of the seeds are alike in all but that."""
    folder = tmp_path_factory.mktemp("kept")
    file = folder / "own.json"
    file.write_text(json.dumps(FILE))
    out = folder / "runs"
    what = ("--workload", str(file), "--with", "tasks.a.instance=3", "--delay", "fork=38us")
    how = ("--policy", "rr,lottery", "--runs", "2", "--seed", "5", "--cpus", "2", "--tick", "2ms")
    done = schedlab("run", "--machine", "sim", *what, *how, "--out", str(out))
    assert done.returncode == 0, done.stderr
    file.unlink()
    return out


@pytest.fixture
def copy(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "copy"))


def change(run: Path, **members: Any) -> None:
    place = run / "manifest.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **members}))


def test_runs_come_out_the_same(schedlab: Command, kept: Path, tmp_path: Path) -> None:
    done = schedlab("run", "--again", str(kept), "--out", str(tmp_path / "again"))
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "4 of 4 runs came out the same, byte for byte.",
    )
    assert sorted(p.name for p in (tmp_path / "again").iterdir()) == sorted(
        p.name for p in kept.iterdir()
    )
    for again in (tmp_path / "again").iterdir():
        manifest, before = (
            json.loads((run / "manifest.json").read_text()) for run in (again, kept / again.name)
        )
        assert (manifest["workload"], manifest["with"]) == (before["workload"], before["with"])


def test_one_run_is_named_by_its_own_folder(schedlab: Command, kept: Path, tmp_path: Path) -> None:
    run = sorted(kept.iterdir())[0]
    done = schedlab("run", "--again", str(run), "--out", str(tmp_path / "again"), "--json")
    (told,) = json.loads(done.stdout)["runs"]
    assert told["same"] and told["repeatable"] and told["differences"] == {}
    assert told["folder"] == str(run)


def test_a_trace_that_is_another_is_told_and_why(
    schedlab: Command, copy: Path, tmp_path: Path
) -> None:
    one, other, *_ = sorted(copy.iterdir())
    for run in (one, other):
        trace = run / "trace.bin"
        trace.write_bytes(trace.read_bytes() + b"x")
    change(other, simulator_sha256="0" * 64)
    done = schedlab("run", "--again", str(copy), "--out", str(tmp_path / "again"))
    assert done.returncode == 1
    assert "2 of 4 runs came out the same" in done.stdout
    told = {line.split()[1]: line for line in done.stderr.splitlines() if "otherwise" in line}
    assert "although it is made of the same parts" in told[one.name]
    assert "made of other parts: simulator 000000000000, now " in told[other.name]


def test_what_no_option_names_is_left_out(schedlab: Command, copy: Path, tmp_path: Path) -> None:
    one, other, third, fourth = sorted(copy.iterdir())
    change(one, branch="x")
    change(other, costs="mine.json (0123)")
    done = schedlab("run", "--again", str(copy), "--out", str(tmp_path / "again"))
    assert "2 of 2 runs came out the same" in done.stdout
    assert f"{one.name} is left out" in done.stderr
    for run in (third, fourth):
        change(run, branch="x")
    done = schedlab("run", "--again", str(copy), "--out", str(tmp_path / "none"))
    assert done.returncode == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"policy": "no-such"}, "no-such"),
        ({"tick_ns": 1}, "only 100us to 1s are possible"),
        ({"cpus": 60000}, "--cpus"),
        ({"machine": "spike", "memory_mib": 1}, "--memory"),
        ({"tunables": {"no-such": 1}}, "no-such"),
        ({"workload": "--help"}, None),
    ],
)
def test_what_a_manifest_says_is_checked_as_the_command_line_is(
    schedlab: Command, copy: Path, tmp_path: Path, members: dict[str, Any], words: str | None
) -> None:
    run = sorted(copy.iterdir())[0]
    change(run, **members)
    out = tmp_path / "again"
    done = schedlab("run", "--again", str(run), "--out", str(out))
    if words is None:  # the run's own copy of its file is run, whatever its name was
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert not out.exists()


def test_it_stands_alone(schedlab: Command, kept: Path, tmp_path: Path) -> None:
    for words in (("--seed", "2"), ("--policy", "rr"), ("--quick",), ("study-1",)):
        done = schedlab("run", *words, "--again", str(kept), "--out", str(tmp_path / "again"))
        assert done.returncode == 2
        assert "--again and" in done.stderr
    done = schedlab("run", "--again", str(tmp_path))
    assert (done.returncode, "holds no run" in done.stderr) == (2, True)
