# SPDX-License-Identifier: MIT
"""Tests published sched_ext schedulers (`scx:NAME`): the list, and runs with a stand-in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from linux_stand_ins import SERVER, run_script
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.linux.elf import LOADER_NAME
from schedlab.machines.linux.installed_schedulers import files_for_guest, find_scheduler_program
from schedlab.machines.linux.kernel import Kernel
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab.sched_ext.extraction import installed_schedulers
from test_linux_machine import RUN

SIMPLE = PolicyChoice("scx", "simple")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a stand-in for a scheduler."""
    folder = tmp_path / "installed"
    folder.mkdir()
    path = folder / "scx_simple"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    (folder / "scx_text").write_text("no program")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return path


def test_programs_on_the_path_are_present(program: Path) -> None:
    assert "simple" in installed_schedulers()
    assert "text" not in installed_schedulers()
    assert find_scheduler_program(SIMPLE) == program


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (PolicyChoice("scx", "nosuch"), "scx_nosuch is not installed .* scx-scheds .* scx_nosuch`"),
        (PolicyChoice("scx"), "is missing; name an installed one: .*scx:simple"),
    ],
)
def test_uninstalled_schedulers_are_refused_with_the_fix(
    program: Path, policy: PolicyChoice, message: str
) -> None:
    run = replace(RUN, policy=policy, settings=())
    with pytest.raises(WrongUsage, match=message):
        check_policies({}, Plan(program, (run,)))


def test_the_kernel_refuses_it_and_it_has_no_tunables(program: Path) -> None:
    run = replace(RUN, policy=SIMPLE, settings=())
    check_policies({}, Plan(program, (run,)))
    with pytest.raises(WrongUsage, match="only the simulator and Linux have this policy"):
        check_policies({}, Plan(program, (replace(run, machine=machine_named("spike")),)))
    with pytest.raises(WrongUsage, match="scx_simple has no tunables"):
        check_policies({}, Plan(program, (replace(run, settings=(("slice", 1),)),)))


def test_a_guest_gets_it_with_the_libraries_of_this_host(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("CONFIG_HZ=250\n")
    kernel = Kernel(tmp_path, "7.3.4", tmp_path / "config")
    files = files_for_guest(Path("/bin/true"), kernel)
    assert files["scheduler/program"] == Path("/bin/true")
    assert files["scheduler/config"] == b"CONFIG_HZ=250\n"
    assert {f"scheduler/lib/{LOADER_NAME}", "scheduler/lib/libc.so.6"} < files.keys()
    start = files["scheduler/start"]
    assert isinstance(start, bytes)
    assert b"/boot/config-7.3.4" in start
    assert b'--library-path "$here/lib" "$here/program"' in start


# --- the script, with stand-ins for the server and a scheduler

SCHEDULER = """#!/bin/sh
trap 'echo asked to end; echo fair >state; exit' TERM
echo "loaded"
case "$0" in
*fails) exit 1 ;;
*leaves) echo scx:it >state; sleep 0.5; echo fair >state; exit ;;
esac
echo scx:it >state
while :; do sleep 0.05; done
"""


def scripted(
    folder: Path, scheduler: str, command: str, server: str = SERVER
) -> tuple[int, list[str]]:
    """Runs run.sh; the file `state` contains the server's statement about the policy."""
    (folder / "state").write_text("fair\n")
    programs = {"schedlab-linux": server, scheduler: SCHEDULER, "sed": "#!/bin/sh\ncat state\n"}
    path = str(folder / "bin" / scheduler)
    return run_script(folder, command, programs, "fair", SCHEDULER=path)


def test_the_workload_runs_while_the_scheduler_rules(tmp_path: Path) -> None:
    status, log = scripted(tmp_path, "rules", "cat state")
    assert status == 0
    assert (tmp_path / "result" / "output").read_text() == "scx:it\n"
    assert (tmp_path / "result" / "server").read_text() == "loaded\nasked to end\n"
    assert (tmp_path / "state").read_text() == "fair\n"
    assert len(log) == 2


@pytest.mark.parametrize(("scheduler", "status"), [("fails", 103), ("leaves", 104)])
def test_a_scheduler_that_ends_by_itself_fails_the_run(
    tmp_path: Path, scheduler: str, status: int
) -> None:
    exit_status, log = scripted(tmp_path, scheduler, "sleep 1")
    assert exit_status == status
    assert "loaded\n" in (tmp_path / "result" / "server").read_text()
    assert len(log) == 2
