# SPDX-License-Identifier: MIT
"""The simulator as a machine of `./schedlab run`: the same folder as of a kernel's run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import ROOT, Command
from schedlab import trace
from schedlab.base.files.placing import LIST
from schedlab.base.files.whole import file_hash
from schedlab.errors import WrongUsage
from schedlab.machines.outcome import outcome_of
from schedlab.workload import workload_files
from schedlab.workload.loading import make_disk
from schedlab.workload.text import text_of
from simulator_command import built, simulate

FILES = ROOT / "workloads" / "files"


def written(folder: Path, content: object) -> str:
    """A workload file with this content."""
    path = folder / "w.json"
    path.write_text(json.dumps(content))
    return str(path)


def run(schedlab: Command, out: Path, workload: str, *options: str) -> list[dict[str, Any]]:
    """Runs on the simulator; gives what the command says of each run."""
    words = ("run", "--machine", "sim", "--workload", workload, "--out", str(out), "--json")
    done = schedlab(*words, *options)
    assert done.returncode == 0, done.stderr
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return runs


def groups(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The metrics of each group."""
    rows = pl.read_parquet(Path(run["folder"]) / "metrics" / "groups.parquet").to_dicts()
    return {row["group"]: row for row in rows}


def test_a_run_leaves_a_folder_that_every_command_takes(schedlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tasks = {"cpu": {"instance": 3, "loop": 1, "run": 20_000}}
    workload = written(tmp_path, {"tasks": tasks})
    options = ("--policy", "rr,rr:table-scan", "--cpus", "1", "--set", "slice=4", "--seed", "7")
    runs = run(schedlab, out, workload, *options)
    assert [each["manifest"]["policy"] for each in runs] == ["rr", "rr:table-scan"]
    for each in runs:
        folder = Path(each["folder"])
        names = {path.name for path in folder.iterdir()}
        assert names == {
            *("console.log", "manifest.json", "metrics", "trace.bin", "workload.txt"),
            *("workload.json", LIST),
        }
        manifest = each["manifest"]
        assert manifest["status"] == "success"
        assert manifest["machine"] == "sim"
        assert manifest["repeatable"] is True
        assert manifest["tunables"] == {"slice": 4}
        assert manifest["seed"] == 7
        assert manifest["simulator_sha256"] == file_hash(built("sim/schedlab-sim"))
        assert manifest["workload_sha256"] == file_hash(Path(workload))
        assert "kernel_sha256" not in manifest
        cpu = groups(each)["cpu"]
        assert cpu["processes"] == cpu["finished"] == 3
        assert cpu["running_ns"] == pytest.approx(60e6, rel=0.02)
        # In turns of 4 ms, the first of three has done its 20 ms when the others have done 16 each.
        assert 52e6 <= cpu["turnaround_mean_ns"] <= 61e6
        assert cpu["turnaround_max_ns"] == pytest.approx(60e6, rel=0.02)
        trace.validate(trace.read(folder / "trace.bin"))
    assert schedlab("trace", runs[0]["folder"]).returncode == 0
    assert schedlab("compare", runs[0]["folder"], runs[1]["folder"]).returncode == 0
    assert schedlab("report", str(out)).returncode == 0


@pytest.mark.spike
def test_the_kernel_runs_the_same_file(schedlab: Command, tmp_path: Path) -> None:
    """With the same seed, values and label: its folder stands beside the simulator's."""
    gaps = {"distribution": "exponential", "mean": 3000}
    task = {"instance": 5, "arrivals": gaps, "loop": 2, "run": 4000, "sleep": "2ticks"}
    workload = written(tmp_path, {"tasks": {"cpu": {**task, "tickets": 5}}})
    options = ("--policy", "rr,lottery", "--cpus", "1", "--seed", "4", "--json")
    found: dict[str, list[dict[str, Any]]] = {}
    for machine in ("sim", "spike"):
        words = (
            "run",
            "--machine",
            machine,
            "--workload",
            workload,
            "--out",
            str(tmp_path / machine),
        )
        done = schedlab(*words, *options, "--with", "tasks.cpu.instance=8")
        assert done.returncode == 0, done.stderr
        found[machine] = json.loads(done.stdout)["runs"]
    for here, there in zip(*found.values(), strict=True):
        one, other = Path(here["folder"]), Path(there["folder"])
        assert one.name == other.name
        assert (one / "workload.txt").read_text() == (other / "workload.txt").read_text()
        assert sorted(path.name for path in other.iterdir()) == sorted(
            path.name for path in one.iterdir()
        )
        manifest = there["manifest"]
        assert manifest["workload_sha256"] == file_hash(Path(workload))
        assert manifest["workload"] == here["manifest"]["workload"]
        assert manifest["with"] == {"tasks.cpu.instance": "8"}
        assert manifest["boot_arguments"].endswith('run="play /workload"')
        assert {"kernel_sha256", "disk_sha256"} <= manifest.keys()
        assert not {"simulator_sha256", "mkfs_sha256", "costs"} & manifest.keys()
        assert groups(there)["cpu"]["finished"] == 8
    done = schedlab("compare", str(tmp_path / "spike"), str(tmp_path / "sim"))
    assert done.returncode == 0
    assert "spike → sim" in " ".join(done.stdout.split())  # a title has as many lines as it needs


@pytest.mark.qemu
def test_qemu_runs_it_too(schedlab: Command, tmp_path: Path) -> None:
    """Its processes compute there, too; for how long is not to be relied on."""
    workload = written(tmp_path, {"tasks": {"cpu": {"instance": 2, "loop": 1, "run": 100_000}}})
    words = ("run", "--machine", "qemu", "--workload", workload, "--cpus", "2", "--json")
    done = schedlab(*words, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    (each,) = json.loads(done.stdout)["runs"]
    assert groups(each)["cpu"]["finished"] == 2
    assert groups(each)["cpu"]["running_ns"] > 0


def test_a_disk_that_is_too_small_is_told(tmp_path: Path) -> None:
    """Before anything is booted."""
    (tmp_path / "w.txt").write_text("program root\n" + "  run 1ms\n" * 200_000)
    mkfs, disk = built("mkfs"), tmp_path / "disk.img"
    subprocess.run([mkfs, tmp_path / "small.img", "300"], check=True)
    tools = {"simulator": built("sim/schedlab-sim"), "mkfs": mkfs}
    with pytest.raises(WrongUsage, match="the disk is too small; --machine sim does without"):
        make_disk(tmp_path / "small.img", tmp_path / "w.txt", 1_000_000, tools, tmp_path)
    assert not disk.exists()


def test_a_run_can_be_repeated_by_hand(schedlab: Command, tmp_path: Path) -> None:
    (each,) = run(
        schedlab,
        tmp_path / "out",
        str(FILES / "timing-cpu-heavy.json"),
        "--cpus",
        "2",
        "--policy",
        "mlfq",
    )
    folder = Path(each["folder"])
    before = (folder / "trace.bin").read_bytes()
    (folder / "trace.bin").unlink()
    command = [str(built("sim/schedlab-sim")), *each["manifest"]["boot_arguments"].split()]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, timeout=60, check=True)
    assert (folder / "trace.bin").read_bytes() == before


def test_the_seed_decides_what_is_random_and_nothing_else_does(
    schedlab: Command, tmp_path: Path
) -> None:
    gaps = {"distribution": "exponential", "mean": 3000}
    tasks = {"cpu": {"instance": 20, "loop": 1, "arrivals": gaps, "run": 2000}}
    workload = written(tmp_path, {"tasks": tasks})
    options = ("--cpus", "1", "--runs", "2")
    first, again = (
        [
            (Path(each["folder"]) / "trace.bin").read_bytes()
            for each in run(schedlab, tmp_path / name, workload, *options)
        ]
        for name in ("first", "again")
    )
    assert first == again
    assert first[0] != first[1]
    texts = [(tmp_path / f"first/rr-1cpu-seed{i}/workload.txt").read_text() for i in (1, 2)]
    assert texts[0] != texts[1]


IDEAL = {
    "lottery-low": {"A": 30 / 60, "B": 20 / 60, "C": 10 / 60},
    "lottery-basic": {"A+B": 60 / 130, "C+D": 40 / 130, "E+F": 20 / 130, "G+H": 10 / 130},
}


@pytest.mark.parametrize("name", IDEAL)
def test_lottery_gives_the_ideal_shares(schedlab: Command, tmp_path: Path, name: str) -> None:
    """Each of 10,000 draws of a run is independent; of the mean of all, 4 standard deviations."""
    count, draws = 3, 10_000
    longer = [f"--with=tasks.{group}.run2.until={110 + draws}ticks" for group in IDEAL[name]]
    longer.append(f"--with=starter.phases.measure.window={draws}ticks")
    options = ("--policy", "lottery", "--cpus", "1", "--runs", str(count), *longer)
    runs = run(schedlab, tmp_path / "out", str(FILES / f"{name}.json"), *options)
    shares = [groups(each) for each in runs]
    for group, ideal in IDEAL[name].items():
        share = sum(each[group]["share"] for each in shares) / count
        bound = 4 * (ideal * (1 - ideal) / (count * draws)) ** 0.5
        assert share == pytest.approx(ideal, abs=bound)
        assert all(each[group]["ideal_share"] == pytest.approx(ideal) for each in shares)


def test_many_cpus_and_a_process_that_is_late(schedlab: Command, tmp_path: Path) -> None:
    tasks = {
        "cpu": {"instance": 1024, "loop": 1, "run": 10_000},
        "late": {"loop": 1, "delay": 5000, "priority": 0, "run": 1000},
    }
    (each,) = run(
        schedlab, tmp_path / "out", written(tmp_path, {"tasks": tasks}), "--cpus", "1024",
        "--policy", "priority",
    )  # fmt: skip
    found = groups(each)
    assert found["cpu"]["finished"] == 1024
    assert found["late"]["turnaround_max_ns"] == pytest.approx(1e6, rel=0.1)


def test_a_periodic_task_keeps_its_period(schedlab: Command, tmp_path: Path) -> None:
    timer = {"ref": "unique", "period": 10_000}
    tasks = {"tick": {"loop": 50, "run": 1000, "timer": timer}}
    (each,) = run(schedlab, tmp_path / "out", written(tmp_path, {"tasks": tasks}), "--cpus", "1")
    # Without drift, except for the fork's and the last steps' own time.
    assert groups(each)["tick"]["turnaround_max_ns"] == pytest.approx(500e6, abs=100e3)


BEAT = {"ref": "beat", "period": 400}
ALL_EVENTS = {
    "tasks": {
        "periodic": {
            "instance": 2,
            "loop": 5,
            "weight": 7,
            "run": 1000,
            "timer1": {"ref": "unique", "period": 5000},
            "timer2": {"ref": "unique-2", "period": 9000, "mode": "absolute"},
        },
        "waiter": {
            "instance": 3,
            "phases": {
                "one": {"loop": 4, "lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m"},
                "two": {"tickets": 9, "suspend": "", "run": "3ticks", "yield": ""},
            },
            "loop": 1,
        },
        "waker": {
            "loop": 400,
            "lock": "m",
            "signal": "c",
            "unlock": "m",
            "run": 100,
            "broad": "c",
            "sleep": 300,
            "resume": "waiter",
            "fork": "child",
        },
        "child": {"instance": 0, "priority": 2, "loop": 1, "runtime": 10.5},
        "pair": {"instance": 2, "loop": 2, "run": 100, "sync": {"ref": "d", "mutex": "n"}},
        "meeting": {"instance": 3, "loop": 5, "run": 700, "barrier": "e", "timer": BEAT},
        "meets": {"loop": 5, "sleep": 900, "barrier": "e"},
        "freer": {"delay": 50_000, "loop": 3, "broad": "d", "sleep": 9000},
    }
}


@pytest.mark.parametrize("policy", ["rr", "lottery", "priority", "mlfq"])
@pytest.mark.parametrize("cpus", ["1", "5"])
def test_all_events_are_what_the_simulator_reads(tmp_path: Path, policy: str, cpus: str) -> None:
    file = workload_files.read(Path(written(tmp_path, ALL_EVENTS)))
    options = ("--policy", policy, "--cpus", cpus, "--trace", str(tmp_path / "trace.bin"))
    program = "sim-safe/schedlab-sim"
    done = simulate(tmp_path, text_of(file, 1, 1_000_000), *options, program=program)
    assert done.returncode == 0, done.stderr
    # init, root, 2 + 3 + 1 + 2 + 3 + 1 + 1 tasks, and a child for each round of the waker
    assert "\nforks 415\n" in done.stdout
    trace.validate(trace.read(tmp_path / "trace.bin"))


def test_failures_are_told(schedlab: Command, tmp_path: Path) -> None:
    words = ("run", "--machine", "sim", "--cpus", "1", "--workload")
    endless = written(tmp_path, {"tasks": {"a": {"run": 1000}}})
    done = schedlab(*words, endless, "--out", str(tmp_path / "o1"), "--limit", "20ms")
    assert done.returncode == 1
    assert "reached its time limit" in done.stderr
    stuck = written(tmp_path, {"tasks": {"a": {"loop": 1, "suspend": ""}}})
    done = schedlab(*words, stuck, "--out", str(tmp_path / "o2"))
    assert done.returncode == 1
    assert "nothing is left that could wake one" in done.stderr
    manifests = [
        json.loads(path.read_text()) for path in sorted(tmp_path.glob("o*/*/manifest.json"))
    ]
    assert [manifest["status"] for manifest in manifests] == ["limit", "failed"]


def test_statuses_of_the_simulator_are_outcomes() -> None:
    found = [outcome_of(status, "", limit_status=3).status for status in (0, 1, 2, 3, -9)]
    assert found == ["success", "failed", "failed", "limit", "killed"]
    assert outcome_of(3, "").status == "failed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workload", "no.json"), ["no.json: it cannot be read"]),
        (("--workload", "mixed", "--with", "tasks.cpu.instance=2"), ["is no workload file"]),
        (("--workload", "FILE", "--memory", "32"), ["may need 41 MiB: say --memory 41"]),
        (
            ("--workload", "FILE", "--machine", "qemu", "--with", "tasks.cpu.instance=70000"),
            ["it has 70002 processes", "--machine sim has more"],
        ),
        (("--machine", "sim", "--workload", "no.json"), ["no.json: it cannot be read"]),
        (
            ("--machine", "sim", "--workload", "FILE", "--memory", "64"),
            ["--memory", "leave it out"],
        ),
        (("--workload", "mixed", "--cpus", "1025"), ["1 to 1024"]),
        (("--machine", "sim", "--workload", "FILE", "--policy", "none"), ["none"]),
    ],
    ids=str,
)
def test_wrong_usage_names_the_cure(
    schedlab: Command, tmp_path: Path, options: tuple[str, ...], words: list[str]
) -> None:
    out = tmp_path / "out"
    file = str(FILES / "study4-mixed.json")
    done = schedlab(
        "run", "--out", str(out), *(file if word == "FILE" else word for word in options)
    )
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert not out.exists()
