# SPDX-License-Identifier: MIT
"""Tests unmodified programs of courses: which number means which call, and errors in the table."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from built_once import build_once
from guest_machine import run_guest, sound_trace
from schedlab.base.toolchain.build import DISK_IMAGE
from schedlab.machines.outcome import PANIC
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.trace import Kind

MS = 1_000_000

NAMES = (
    "settickets",
    "getpinfo_pstat",
    "set_priority",
    "get_priority",
    "set_priority_own",
    "set_priority_swap",
    "ps",
    "waitx",
    "waitx_times",
    "gettickets",
    "getppid",
    "process_count",
    "yield",
    "printtime",
    "getpinfo_rows",
    "last_scheduled",
)
COURSE_CALLS = ",".join(f"{number}:{name}" for number, name in enumerate(NAMES, 22))
ARGUMENTS = f"calls={COURSE_CALLS} call-priorities=20..0"


@pytest.mark.spike
@pytest.mark.parametrize(("cpus", "policy"), [(1, "lottery"), (4, "priority")])
def test_a_program_of_a_course_runs_as_built(tmp_path: Path, cpus: int, policy: str) -> None:
    arguments = f"tick=1ms policy={policy} {ARGUMENTS}"
    guest = run_guest(tmp_path, "xv6-course", cpus=cpus, arguments=arguments)
    assert guest.status == 0, guest.console
    assert "\nok xv6-course" in guest.console
    assert "\nPID PARENT STATE CPU NAME\n" in guest.console


@pytest.mark.spike
def test_study_4s_printtime_prints_when_its_callers_end(tmp_path: Path) -> None:
    """Section 4.2: the tick at exit() minus the tick at the fork, for the callers of printtime
    only."""
    guest = run_guest(tmp_path, "xv6-course", arguments=f"tick=1ms {ARGUMENTS}", traced=True)
    assert guest.status == 0, guest.console
    printed = re.findall(r"^xv6-course, PID (\d+): (\d+) ticks$", guest.console, re.MULTILINE)
    events = sound_trace(guest.trace).events
    lived = {
        pid: exit_ns // MS - fork_ns // MS
        for pid, fork_ns, exit_ns in events.filter(pl.col("kind") == Kind.FORK)
        .join(events.filter(pl.col("kind") == Kind.EXIT), left_on="first", right_on="process")
        .select("first", "time_ns", "time_ns_right")
        .iter_rows()
    }
    assert len(printed) == 2
    assert {int(pid): int(ticks) for pid, ticks in printed} == {
        int(pid): lived[int(pid)] for pid, _ in printed
    }
    assert [int(ticks) for _, ticks in printed] == pytest.approx([7, 11], abs=1)


@pytest.mark.spike
def test_halt_ends_the_machine(tmp_path: Path) -> None:
    """`halt` has no argument; as `settickets`, the 0 in a0 would be invalid."""
    guest = run_guest(tmp_path, "xv6-course", arguments="tick=1ms calls=22:halt")
    assert guest.status == 0
    assert "FAILED" not in guest.console


@pytest.mark.spike
@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("calls=22", "boot argument calls: '22' is not NUMBER:NAME"),
        ("calls=64:settickets", "boot argument calls: 64 is not within 22 and 63"),
        ("calls=22:sell", "boot argument calls: there is no call 'sell'"),
        ("calls=22:ps,22:yield", "boot argument calls: 22 is given twice"),
        ("call-priorities=0..9000000", "boot argument call-priorities: it is not HIGHEST..LOWEST"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, table: str, reason: str) -> None:
    guest = run_guest(tmp_path, "true", arguments=f"tick=1ms {table}")
    assert guest.status == PANIC
    assert reason in guest.console


@pytest.mark.spike
def test_boot_takes_a_disk_and_a_table(tmp_path: Path) -> None:
    """Follows docs/course-programs.md: a disk with one more file, and `boot` with a table."""
    build_once("kernel", "image", "host-tools")
    program = tmp_path / "lab"
    program.write_bytes((BUILD_FOLDER / "raw" / "xv6-course").read_bytes())
    disk = tmp_path / "lab.img"
    subprocess.run(
        [BUILD_FOLDER / "mkfs", disk, "--add", DISK_IMAGE, program], check=True, timeout=60
    )
    before = disk.read_bytes()
    boot = [str(ROOT / "schedlab"), "boot", "--machine", "spike", "--tick", "1ms"]
    result = subprocess.run(
        [*boot, "--disk", str(disk), "--arguments", ARGUMENTS],
        input="lab\npoweroff 7\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 7, result.stdout + result.stderr
    assert "ok xv6-course" in result.stdout
    assert disk.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--disk", "/nowhere.img"], "/nowhere.img"),
        (["--arguments", "x" * 2000], "--arguments"),
        (["--arguments", "policy=lottery"], "--policy"),
        (["--arguments", "tick"], "--tick"),
        (["--arguments", 'run="true'], "--arguments"),
    ],
)
def test_boot_refuses_what_it_cannot_pass_on(arguments: list[str], named: str) -> None:
    result = subprocess.run(
        [ROOT / "schedlab", "boot", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert named in result.stderr
    assert "Traceback" not in result.stderr
