# SPDX-License-Identifier: MIT
"""The studies in the simulator: the same runs as on the kernel, and what their pages say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schedlab.commands import study as study_run
from schedlab.commands.cli import cli
from schedlab.commands.study import Request, reproduce
from schedlab.machines.spec import RunSpec
from schedlab.report.model import Page, Section, Text
from schedlab.report.studies import simulated
from schedlab.runs.collection import Collection, Kept
from schedlab.studies import experiments, planning
from schedlab.studies.experiment import Depth
from schedlab.studies.files import FILES, WITHOUT, Described
from schedlab.studies.planning import plan


def who(run: RunSpec) -> tuple[object, ...]:
    """All but the machine and what it is told."""
    setup = (run.label, run.policy, run.settings, run.cpus, run.delays)
    return (run.name, *setup, run.seed, run.tick_ns)


def described(run: RunSpec) -> str:
    """The experiment that its file is of."""
    return experiments.EXPERIMENTS[run.label].repeats or run.label


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_what_is_run_is_what_the_kernel_runs(tmp_path: Path, depth: Depth) -> None:
    kernel = [run for run in plan(tmp_path, depth).runs if described(run) not in WITHOUT]
    simulator = plan(tmp_path, depth, memory_mib=0, machine="sim")
    simulator.check()
    alone = [run for run in simulator.runs if experiments.EXPERIMENTS[run.label].machine == "sim"]
    assert {run.tick_ns for run in alone} == {10_000_000}
    assert [who(run) for run in simulator.runs if run not in alone] == [who(run) for run in kernel]
    assert {run.machine for run in simulator.runs} == {"sim"}
    for run in simulator.runs:
        assert run.file
        file = FILES[described(run)]
        assert run.changes == run.file.changes == file.changed(depth, run.cpus)
        assert run.workload == file.workload


def test_quick_changes_go_before_the_files_own() -> None:
    file = Described("x", (("a", "1"), ("b", "2")), quick=(("b", "3"),))
    assert file.changed() == (("a", "1"), ("b", "2"))
    assert file.changed("quick") == (("a", "1"), ("b", "3"))


def test_a_study_is_run_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: experiments.EXPERIMENTS[name] for name in ("s4-mixed-2", "s4-sleeper")}
    monkeypatch.setattr(planning, "EXPERIMENTS", small)
    monkeypatch.setattr(study_run, "make_report", lambda runs, out: out / "index.html")
    request = Request((4,), "quick", memory_mib=0, machine="sim")
    done = reproduce(request, tmp_path / "out")
    assert done.succeeded
    assert len(done.runs) == 8
    traces = {run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in done.runs}
    again = reproduce(request, tmp_path / "out")
    assert {
        run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in again.runs
    } == traces
    (mixed, *_) = (run for run in done.runs if run.setup.experiment == "s4-mixed-2")
    assert mixed.manifest["with"] == {"tasks.cpu.instance": "2"}
    assert mixed.metrics().groups.filter(group="cpu")["processes"].to_list() == [2]


def test_the_command_that_goes_on_names_the_machine() -> None:
    request = Request((4,), "quick", memory_mib=0, machine="sim")
    command = request.command(Path("/x"))
    assert command == "./schedlab reproduce study-4 --quick --machine sim --out /x"
    assert request.folder_name == "study-4-sim-quick"
    assert Request((4,), "quick").folder_name == "study-4-quick"


def test_a_study_is_refused_where_runs_differ(tmp_path: Path) -> None:
    given = ["reproduce", "study-4", "--machine", "qemu", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, given)
    assert "--machine qemu: its runs are not repeatable" in str(result.exception)


def test_a_study_takes_no_other_option_of_a_workload() -> None:
    given = ["reproduce", "study-4", "--machine", "sim", "--with", "tasks.cpu.instance=3"]
    result = CliRunner().invoke(cli, given)
    assert "No such option '--with'" in result.output


# --- what pages say


def kept(experiment: str, machine: str) -> Kept:
    manifest: dict[str, Any] = {
        "label": experiment,
        "workload": "w",
        "policy": "rr",
        "tunables": {},
        "cpus": 1,
        "tick_ns": 1_000_000,
        "machine": machine,
    }
    return Kept(Path(experiment), manifest)


def noticed(study: int, *runs: Kept) -> str:
    """What follows the page's first section; "": nothing."""
    page = Page("study", "Study", "Lead.", (Section("First", ()),))
    sections = simulated.with_notice(page, Collection(runs), study).sections
    assert sections[0].title == "First"
    if len(sections) == 1:
        return ""
    assert sections[1].title == simulated.TITLE
    (text,) = sections[1].blocks
    assert isinstance(text, Text)
    return text.markdown


def test_a_page_of_the_kernels_runs_is_as_it_was() -> None:
    assert noticed(1, kept("s1-timing-mixed", "spike")) == ""
    assert noticed(1, kept("s1-timing-mixed", "spike"), kept("s2-timing-mixed", "sim")) == ""


def test_a_page_of_simulated_runs_says_so_and_what_is_missing() -> None:
    said = noticed(1, kept("s1-timing-mixed", "sim"))
    assert said.startswith("- All runs of this page are those of the **simulator**")
    assert "the ticks of Mixed Load" in said
    linux = noticed(5, kept("s5-cpubench", "sim"))
    assert "events a second" in linux
    assert linux.count("not run: It is run on Linux") == 1, "one reason is one line"


def test_a_page_of_both_says_how_many() -> None:
    said = noticed(4, kept("s4-trace", "spike"), kept("s4-mixed-2", "sim"))
    assert said.startswith("- 1 of the 2 runs of this page")
    assert "`s4-mixed-2`: To write a line is what it is" in said
    many = noticed(4, *(kept(f"s4-mixed-{size}", "sim") for size in range(2, 20, 2)))
    assert "`s4-mixed-2` and 8 others like it: To write a line" in many
