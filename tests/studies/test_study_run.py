# SPDX-License-Identifier: MIT
"""The studies reproduced: what is run, how it goes on where it was, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conftest import Command
from kept_runs import MANIFEST
from schedlab.base.files.placing import write_list
from schedlab.base.toolchain.build import PARTS
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.commands import run as cli_run
from schedlab.commands import study as study_run
from schedlab.commands.cli import cli
from schedlab.commands.deciding import Budget
from schedlab.commands.study import Request, at_hand, reproduce
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.machines.base import Release
from schedlab.machines.linux.machine import Linux
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT
from schedlab.report.output import MARK
from schedlab.runs import collection, perform, results, worker
from schedlab.runs.collection import Collection
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab.runs.progress import Board, Durations
from schedlab.runs.request import Request as WorkloadRequest
from schedlab.studies import experiments, planning
from schedlab.studies.experiment import Depth, Experiment, Part, Share
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.linux_experiments import SYSBENCH
from schedlab.studies.planning import plan
from script_machine import ScriptMachine

# --- what is run


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_every_run_of_a_plan_has_a_name_of_its_own(tmp_path: Path, depth: Depth) -> None:
    runs = plan(tmp_path, depth).runs
    assert len({run.name for run in runs}) == len(runs) > 800
    assert max(len(run.name) for run in runs) < 200
    assert {run.machine for run in runs} == {"spike"}
    for run in runs:
        assert "/" not in run.name


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_every_policy_of_a_plan_is_there_and_knows_its_settings(
    tmp_path: Path, depth: Depth
) -> None:
    wanted = plan(tmp_path, depth)
    wanted.check()
    check_policies(read_catalogue(), wanted)


def test_each_policy_is_asked_for_its_own_settings_only(tmp_path: Path) -> None:
    """Priorities know aging_interval, round-robin does not: in one plan both are right."""
    runs = plan(tmp_path, "quick", (2,)).runs
    (with_settings, *_) = (run for run in runs if run.settings)
    (without, *_) = (run for run in runs if not run.settings)
    catalogue = read_catalogue()
    check_policies(catalogue, Plan(tmp_path, (without, with_settings)))
    wrong = replace(without, settings=with_settings.settings)
    with pytest.raises(WrongUsage, match="no tunable of rr:table-scan is called 'aging_interval'"):
        check_policies(catalogue, Plan(tmp_path, (with_settings, wrong)))


@cache
def planned(depth: Depth) -> dict[tuple[str, str], list[RunSpec]]:
    """All runs of a depth, by label and policy: to plan them takes long enough to do it once."""
    found = defaultdict(list)
    for run in plan(Path("/nowhere"), depth).runs:
        found[run.label, str(run.policy)].append(run)
    return dict(found)


def test_pages_and_help_tell_how_many_runs_there_are() -> None:
    """README.md, docs/studies.md and `./schedlab run --help`."""
    counts = {}
    for depth in ("quick", "full"):
        plans = study_run.plans_of(("spike",), Request((), depth), Path("/nowhere"))
        counts[depth] = f"{sum(len(each.runs) for each in plans.values()):,}"
    boots = sum(
        len(plan(Path("/nowhere"), "full", machine=m).runs) for m in ("linux", "linux-free")
    )
    readme, page = (ROOT / name for name in ("README.md", "docs/studies.md"))
    assert f"{counts['quick']} runs, and one report" in readme.read_text()
    assert f"{counts['full']} runs, and {boots} boots of Linux" in readme.read_text()
    assert f"Now they are {counts['quick']} and {counts['full']}" in page.read_text()
    assert f"the {boots} boots of study 5" in page.read_text()
    assert (
        f"boots Linux {boots} times" in (ROOT / "python/schedlab/commands/reproduce.py").read_text()
    )


def cells(depth: Depth, label: str, policy: str) -> dict[int, int]:
    """CPUs to seeds, under a policy as it is, or with whatever is set where that is all there is."""
    runs = planned(depth).get((label, policy), [])
    plain = [run for run in runs if not run.settings]
    return dict(Counter(run.cpus for run in plain or runs))


ON_ALL_CPUS = [
    *((f"s1-timing-{test}", "rr:table-scan") for test in experiments.TIMING_TESTS),
    *((f"s1-priority-{test}", "priority:passes") for test in experiments.TIMING_TESTS),
    *((f"s1-lottery-original-{test}", "lottery:thesis") for test in experiments.LOTTERY_TESTS),
]


@pytest.mark.parametrize(("label", "policy"), ON_ALL_CPUS)
def test_study_1_ran_each_test_five_times_on_one_to_five_cpus(label: str, policy: str) -> None:
    """The quick plan has all of its cells, with fewer seeds, except those that take a minute."""
    assert cells("full", label, policy) == dict.fromkeys(range(1, 6), 5)
    slow = label == "s1-lottery-original-switch"
    assert set(cells("quick", label, policy)) == ({1, 2} if slow else set(range(1, 6)))


@pytest.mark.parametrize("test", ["cpu", "io", "mixed"])
@pytest.mark.parametrize("policy", ["rr:table-scan", "lottery:equal-lfsr", "mlfq:four-quanta"])
def test_study_3_ran_ten_times_on_three_cpus(test: str, policy: str) -> None:
    assert cells("full", f"s3-{test}", policy) == {3: 10}
    assert set(cells("quick", f"s3-{test}", policy)) == {3}


@pytest.mark.parametrize("policy", ["rr:table-scan", "mlfq:allotment-boost"])
def test_study_4_ran_all_sizes_on_one_cpu(policy: str) -> None:
    for size in range(2, 41, 2):
        assert set(cells("full", f"s4-mixed-{size}", policy)) == {1}
        assert EXPERIMENTS[f"s4-mixed-{size}"].command == f"study4 mixed -c {size}"
    sizes = [size for size in range(2, 41, 2) if cells("quick", f"s4-mixed-{size}", policy)]
    assert sizes[0] == 2
    assert sizes[-1] == 40


def test_study_5_ran_three_times() -> None:
    for policy in ("rr", "wrr:linux", "lottery:linux"):
        assert cells("quick", "s5-cpubench", policy) == {1: 3}
        assert cells("full", "s5-cpubench", policy)[1] >= 3


@pytest.mark.parametrize("depth", ["quick", "full"])
@pytest.mark.parametrize("study", range(1, 6))
def test_all_policies_run_a_part_of_each_suite_with_several_seeds(depth: Depth, study: int) -> None:
    """Study 2 is a variant of study 1, and has only its own."""
    if study == 2:
        return
    compared = [
        label
        for label, each in EXPERIMENTS.items()
        if each.study == study and all(cells(depth, label, p) for p in experiments.OTHERS)
    ]
    assert compared
    for label in compared:
        shared = [cells(depth, label, policy) for policy in experiments.OTHERS]
        on = set.intersection(*map(set, shared))
        assert on, label
        assert all(seeds[cpus] >= 3 for seeds in shared for cpus in on), label


def test_the_work_follows_the_tick() -> None:
    timing = EXPERIMENTS["s1-timing-mixed"]
    assert timing.command_at(1_000_000) == "timingtests mixed"
    assert timing.command_at(10_000_000) == "timingtests mixed -w 1000000"
    original = EXPERIMENTS["s1-lottery-original-low"]
    assert original.command_at(1_000_000) == "lotterytest low -o 1 -t 50 -y 8300"
    assert original.command_at(1_000_000, cpus=4) == "lotterytest low -o 1 -t 50 -y 8300"
    assert EXPERIMENTS["s5-cpubench"].command_at(10_000_000) == "cpubench"
    ticks = {run.label: run.tick_ns for run in plan(Path("/nowhere"), "quick", (1,)).runs}
    assert ticks["s1-timing-mixed"] == 1_000_000
    assert ticks["s1-lottery-original-low"] == 10_000_000


@pytest.mark.parametrize("machine", ["spike", "sim"])
def test_the_work_of_table_6_follows_the_number_of_cpus(machine: str) -> None:
    """Processes that end after a number of bursts: the longer these are, the fewer end in time."""
    found = {
        run.cpus: dict(run.changes).get("tasks.A+B.run", "83")
        if machine == "sim"
        else str(int(run.workload.split("-y ")[1]) // 100)
        for run in plan(Path("/nowhere"), "full", (1,), machine=machine).runs
        if run.label == "s1-lottery-original-starve"
    }
    assert found == {1: "83", 2: "100", 3: "150", 4: "250", 5: "250"}


def test_ticks_and_seeds_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="--tick 1000001ns"):
        plan(tmp_path, "quick", tick_ns=1_000_001)
    with pytest.raises(WrongUsage, match="--seed 9223372036854775807"):
        plan(tmp_path, "quick", seed=2**63 - 1)


def test_settings_are_in_the_names_of_runs(tmp_path: Path) -> None:
    base = plan(tmp_path, "quick", (2,)).runs[0]
    some = replace(base, settings=(("slice", 5),))
    many = replace(base, settings=tuple((f"tunable_{n}", n) for n in range(30)))
    other = replace(base, settings=tuple((f"tunable_{n}", n + 1) for n in range(30)))
    names = [each.name for each in (base, some, many, other)]
    assert len(set(names)) == 4
    assert "-slice=5-" in some.name
    assert max(map(len, names)) < 200


# --- small runs, with a stand-in for the machine

TINY = (
    Experiment(
        "tiny-cpu",
        1,
        "tiny",
        "cpu-bound -n 2 -i 20000",
        ("rr:table-scan",),
        quick=(Part(("rr:table-scan", "priority aging_interval=0"), Share((1, 2), 1)),),
        full=(Part(("rr",), Share((1,), 1)),),
        scaled=False,
    ),
    Experiment(
        "tiny-mixed",
        4,
        "tiny",
        "study4 mixed -c 2 -i 2",
        ("mlfq",),
        quick=(Part(("mlfq",), Share((1,), 2)),),
        full=(),
    ),
)
"""Six quick runs."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Collection, Path]]:
    """Experiments that take a moment, and a report that is only noted."""
    monkeypatch.setattr(planning, "EXPERIMENTS", {each.name: each for each in TINY})
    monkeypatch.setattr(study_run, "plan_of_proposals", lambda folder, *_: Plan(folder, ()))
    reports: list[tuple[Collection, Path]] = []

    def write_report(runs: Collection, out: Path) -> Path:
        reports.append((runs, out))
        out.mkdir(exist_ok=True)
        (out / "index.html").write_text(f"{len(runs)} runs")
        (out / MARK).write_text(json.dumps({"findings": ["**Turnaround:** `rr` is best."]}))
        write_list(out)
        return out / "index.html"

    monkeypatch.setattr(study_run, "make_report", write_report)
    return reports


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that is a shell script, which notes each start in the file that is given.

    It fails as long as there is a file `fail-N` beside that, N the number of CPUs.
    """
    started = tmp_path / "started"
    started.touch()
    script = f'echo "$1" >>"{started}"; echo >trace.bin; test ! -e "{tmp_path}/fail-$1"'
    monkeypatch.setattr(perform, "machine_named", lambda name: ScriptMachine(script))
    monkeypatch.setattr(worker, "evaluate", lambda folder, outcome, *, kept: (None, outcome))
    monkeypatch.setattr(perform, "Board", board_without_memory(tmp_path))
    return started


def board_without_memory(folder: Path) -> Callable[..., Board]:
    return lambda runs, slots, whole: Board(
        runs, slots, Durations(folder / "durations.json"), whole
    )


def starts(started: Path) -> int:
    """How many since the last call."""
    count = len(started.read_text().splitlines())
    started.write_text("")
    return count


QUICK = Request((), "quick")


def test_what_is_finished_is_not_run_again(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path
) -> None:
    out = tmp_path / "out"
    first = reproduce(QUICK, out)
    assert first.succeeded
    assert starts(machine) == 6
    traces = {run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in first.runs}
    again = reproduce(QUICK, out)
    assert starts(machine) == 0
    assert [run.folder for run in again.runs] == [run.folder for run in first.runs]
    assert {f: (f / "trace.bin").stat().st_mtime_ns for f in traces} == traces
    assert [(len(runs), place) for runs, place in tiny] == [(6, out / "report")] * 2


def test_what_failed_is_run_again_and_replaced(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "fail-2").touch()
    first = reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 6
    assert not first.succeeded
    assert Counter(run.status for run in first.runs) == {"success": 4, "failed": 2}
    assert len(tiny[0][0]) == 6, "the report has the failed ones, too"
    told = capsys.readouterr().err
    assert "tiny-cpu, priority aging_interval=0, 2 CPUs, seed 1: the workload failed" in told
    (tmp_path / "fail-2").unlink()
    second = reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 2
    assert second.succeeded
    assert "2 runs, in" in capsys.readouterr().err
    assert len(list((tmp_path / "out").glob("*/manifest.json"))) == 6


def test_of_another_study_only_the_others_are_run(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path
) -> None:
    reproduce(Request((4,), "quick"), tmp_path / "out")
    assert starts(machine) == 2
    reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 4
    assert [len(runs) for runs, _ in tiny] == [2, 6]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("kernel", "made with other kernel: "),
        ("disk", "made with other disk image: "),
        ("tick", "made with other boot arguments: "),
        ("memory", "made with other memory: 512, now 64"),
        ("version", "made with other machine's version: 1, now 2"),
    ],
)
def test_runs_of_another_make_are_refused(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, changed: str, named: str
) -> None:
    reproduce(Request((4,), "quick"), tmp_path / "out")
    starts(machine)
    request = QUICK
    if changed in ("kernel", "disk"):
        other = tmp_path / "other"
        other.write_text("other")
        monkeypatch.setitem(PARTS, changed, other)
    elif changed == "version":
        release = Release("/bin/sh", "2", "test")
        monkeypatch.setattr(ScriptMachine, "release", lambda self: release)
    elif changed == "tick":
        request = replace(QUICK, tick_ns=2_000_000)
    else:
        request = replace(QUICK, memory_mib=64)
    with pytest.raises(WrongUsage, match="name another folder") as refused:
        reproduce(request, tmp_path / "out")
    assert named in str(refused.value)
    assert "tiny-mixed-mlfq-1cpu-seed1" in str(refused.value)
    assert starts(machine) == 0


@pytest.mark.usefixtures("tiny")
def test_a_place_for_the_report_that_is_taken_is_refused_before_the_work(
    tmp_path: Path, machine: Path
) -> None:
    (tmp_path / "out" / "report").mkdir(parents=True)
    (tmp_path / "out" / "report" / "mine").touch()
    with pytest.raises(WrongUsage, match="would be replaced, but"):
        reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 0


@pytest.mark.usefixtures("tiny")
def test_a_folder_of_something_else_is_refused(tmp_path: Path, machine: Path) -> None:
    (tmp_path / "out" / "tiny-mixed-mlfq-1cpu-seed1").mkdir(parents=True)
    with pytest.raises(WrongUsage, match="tiny-mixed-mlfq-1cpu-seed1 in it is no run"):
        reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 0


def test_a_failed_run_gives_way_and_a_good_one_does_not(tmp_path: Path) -> None:
    for status in ("failed", "success"):
        with results.new_folder(tmp_path / "run") as folder:
            results.write_json(folder / results.MANIFEST, {**MANIFEST, "status": status})
    with pytest.raises(OSError, match="not empty"), results.new_folder(tmp_path / "run") as folder:
        results.write_json(folder / results.MANIFEST, {**MANIFEST, "status": "success"})
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_interruption_says_how_to_go_on(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The first run on two CPUs is interrupted."""
    script = f'echo >trace.bin; test "$1" = 1 || {{ kill -INT {os.getpid()}; sleep 60; }}'
    monkeypatch.setattr(perform, "machine_named", lambda name: ScriptMachine(script))
    monkeypatch.setattr(perform, "host_processors", lambda: 1)
    out = tmp_path / "a folder"
    request = Request((1, 4), "quick", seed=7, memory_mib=64)
    with pytest.raises(SystemExit) as ended:
        reproduce(request, out)
    assert ended.value.code == 128 + signal.SIGINT
    assert tiny == []
    told = capsys.readouterr().err
    finished = len(list(out.glob("*/manifest.json")))
    assert 1 <= finished < 6
    assert f"interrupted; {finished} of 6 runs are finished" in told
    command = f"./schedlab reproduce study-1 study-4 --quick --seed 7 --memory 64 --out '{out}'"
    assert command in told


def test_a_report_that_is_interrupted_can_be_gone_on_with(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tiny: list[tuple[Collection, Path]],
) -> None:  # fmt: skip
    def interrupted(runs: Collection, out: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(study_run, "make_report", interrupted)
    with pytest.raises(SystemExit) as ended:
        reproduce(QUICK, tmp_path / "out")
    assert ended.value.code == 128 + signal.SIGINT
    assert "6 of 6 runs are finished" in capsys.readouterr().err
    assert starts(machine) == 6


def test_few_lines_for_many_runs_but_one_for_each_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = plan(tmp_path, "quick").runs[:200]
    board = Board(many, 2, Durations(tmp_path / "durations.json"))
    for number, run in enumerate(many):
        board.started(run, tmp_path / "none")
        board.ended(run, Outcome("panic" if number == 3 else "success"), 1.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert ": panic, about " in lines[0]
    assert lines[1].startswith("[10/200]")
    assert "about" in lines[1]
    assert lines[-1].startswith("[200/200]")


# --- the command line


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the command would do: `study` or `workload`, and with what."""
    calls: dict[str, dict[str, Any]] = {}

    def reproduce(request: Request, out: Path | None) -> None:
        calls["study"] = vars(request)
        raise SystemExit(0)

    def run_workload(
        request: WorkloadRequest, as_json: bool, budget: Budget | None, dry_run: bool
    ) -> None:
        calls["workload"] = vars(request)

    monkeypatch.setattr(study_run, "reproduce", reproduce)
    monkeypatch.setattr(cli_run, "run_workload", run_workload)
    return calls


@pytest.mark.parametrize(
    ("arguments", "studies", "depth"),
    [
        ("run", (), "quick"),
        ("run study", (), "quick"),
        ("reproduce --quick", (), "quick"),
        ("reproduce --full --seed 3", (), "full"),
        ("reproduce study-4 study-1", (1, 4), "quick"),
        ("run --json --tick 10ms", (), "quick"),
    ],
)
def test_without_what_is_run_the_studies_are(
    called: dict[str, dict[str, Any]], arguments: str, studies: tuple[int, ...], depth: str
) -> None:
    done = CliRunner().invoke(cli, arguments.split())
    assert done.exit_code == 0, done.output
    assert list(called) == ["study"]
    assert (called["study"]["studies"], called["study"]["depth"]) == (studies, depth)
    assert called["study"]["seed"] == (3 if "--seed" in arguments else 1)
    assert called["study"]["tick_ns"] == (10_000_000 if "--tick" in arguments else 1_000_000)


@pytest.mark.parametrize(
    "arguments",
    ["--cpus 2", "--policy mlfq", "--runs 2", "--machine qemu", "--limit 3s", "--set slice=2"],
)
def test_an_option_of_a_workload_means_a_workload(
    called: dict[str, dict[str, Any]], arguments: str
) -> None:
    done = CliRunner().invoke(cli_run.run, arguments.split())
    assert done.exit_code == 0, done.output
    assert list(called) == ["workload"]
    assert called["workload"]["workload"] == "mixed -n 24 -g 80"


MIXED = [
    ("--cpus 2", "No such option '--cpus'"),
    ("study-3 --workload mixed --runs 2", "No such option '--workload'"),
    ("--quick --full", "choose one of them"),
    ("study-7", "'study-7' is not one of"),
    ("surplus", "'surplus' is not one of"),
    ("--tick 100001ns", "steps of 10 ns"),
    (f"--seed {2**63 - 1}", "several seeds"),
]


@pytest.mark.parametrize(("arguments", "message"), MIXED)
def test_what_does_not_go_together_is_refused(
    schedlab: Command, tmp_path: Path, arguments: str, message: str
) -> None:
    done = schedlab("reproduce", *arguments.split(), "--out", str(tmp_path / "out"))
    assert done.returncode == 2, done.stderr
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("failing", [False, True])
def test_the_last_line_says_where_the_report_is(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path, failing: bool
) -> None:
    if failing:
        (tmp_path / "fail-1").touch()
    out = tmp_path / "out"
    done = CliRunner().invoke(cli, ["reproduce", "study-4", "--out", str(out)])
    assert done.exit_code == (1 if failing else 0), done.output
    lines = done.stdout.splitlines()
    assert lines[-2:] == ["- Turnaround: rr is best.", f"Report: {out}/report/index.html"]
    assert ("./schedlab monitor" in done.stderr) == (not failing)
    done = CliRunner().invoke(cli, ["reproduce", "study-4", "--json", "--out", str(out)])
    content = json.loads(done.stdout)
    assert content["report"] == f"{out}/report/index.html"
    assert content["folder"] == str(out)
    assert [each["status"] for each in content["runs"]] == ["failed" if failing else "success"] * 2
    assert content["runs"][0]["folder"] == str(out / "tiny-mixed-mlfq-1cpu-seed1")


# --- one small study on the real machine


@pytest.mark.spike
def test_a_study_on_spike(tmp_path: Path, tiny: list[tuple[Collection, Path]]) -> None:
    """Its runs have metrics and told values, and the same again when some are lost."""
    out = tmp_path / "out"
    done = reproduce(QUICK, out)
    assert done.succeeded
    assert done.report.read_text() == "6 runs"
    runs = done.runs
    assert runs.one("tiny-cpu", "rr:table-scan", 2) is not None
    (strict,) = runs.select(experiment="tiny-cpu", policy="priority", cpus=2)
    assert strict.setup.policy_title == "priority aging_interval=0"
    assert runs.summary["completion_ns"].null_count() == 0
    told = runs.values.filter(runs.values["name"] == "finished")
    assert Counter(told["experiment"]) == {"tiny-mixed": 2 * 4}
    lost = done.runs.runs[0].folder
    before = (lost / "trace.bin").read_bytes()
    shutil.rmtree(lost)
    assert reproduce(QUICK, out).succeeded
    assert (lost / "trace.bin").read_bytes() == before
    assert len(collection.read([out])) == 6


# --- study 5, on Linux too


def test_study_5_is_run_on_linux_too_where_it_is_named_or_all_is_wanted() -> None:
    both = ("spike", "linux", "linux-free")
    assert Request((5,), "quick").machines == both
    assert Request((), "full").machines == both
    assert Request((1, 4), "full").machines == ("spike",)
    assert Request((5,), "quick", machine="spike").machines == ("spike",)
    assert Request((5,), "quick", machine="linux").machines == ("linux", "linux-free")


def test_experiments_are_run_on_their_machine_and_no_other(tmp_path: Path) -> None:
    for machine in ("spike", "sim", "linux", "linux-free"):
        runs = plan(tmp_path, "full", (5,), memory_mib=512, machine=machine).runs
        assert runs
        own = {EXPERIMENTS[run.label].machine for run in runs}
        assert own == ({machine} if machine.startswith("linux") else {None})
        assert {run.machine for run in runs} == {machine}
    on_linux = plan(tmp_path, "quick", (5,), tick_ns=2_000_000, machine="linux").runs
    assert {run.tick_ns for run in on_linux} == {4_000_000}
    assert not plan(tmp_path, "full", (1, 2, 3, 4), machine="linux").runs


def test_linux_is_left_out_loudly_where_it_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But not where it alone is asked for: that is an error."""

    def unfit(self: object) -> None:
        raise MachineUnfit("qemu-system-x86_64 is not on the PATH")

    monkeypatch.setattr(Linux, "release", unfit)
    assert at_hand(Request((5,), "quick")) == ["spike"]
    assert "is NOT RUN: qemu-system-x86_64 is not on the PATH" in capsys.readouterr().err
    assert at_hand(Request((5,), "quick", machine="linux")) == ["linux", "linux-free"]


def test_the_default_has_study_5s_own_tables_on_linux_if_the_guest_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = Release("/bin/qemu", "10.0", "test")
    monkeypatch.setattr(Linux, "release", lambda self: release)
    monkeypatch.setattr(study_run, "kept", lambda: None)
    assert at_hand(QUICK) == ["spike"]
    assert "`./schedlab reproduce study-5` does that" in capsys.readouterr().err
    monkeypatch.setattr(study_run, "kept", lambda: "packages")
    assert at_hand(QUICK) == ["spike", "linux"]
    assert {run.label for run in study_run.plan_on("linux", QUICK, tmp_path).runs} == {SYSBENCH}
    everything = study_run.plan_on("linux", Request((5,), "quick"), tmp_path)
    assert len({run.label for run in everything.runs}) > 1


def test_a_study_that_is_not_on_linux_is_refused_there(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="nothing of it is run there; study-5 is"):
        reproduce(Request((1,), "quick", machine="linux"), tmp_path / "out")


def test_the_command_that_goes_on_is_what_was_asked_for() -> None:
    asked = Request((5,), "quick", machine="linux", tick_ns=4_000_000)
    assert (
        asked.command(Path("/x")) == "./schedlab reproduce study-5 --quick --machine linux --out /x"
    )
    assert asked.folder_name == "study-5-linux-quick"
    both = Request((5,), "full").command(Path("/x"))
    assert both == "./schedlab reproduce study-5 --full --out /x"
