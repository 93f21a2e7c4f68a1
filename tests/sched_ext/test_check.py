# SPDX-License-Identifier: MIT
"""Tests `./schedlab scx check`: each known mistake is found and explained, and right schedulers have none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conftest import ROOT
from schedlab.commands.scx import scx
from scx_objects import SCHEDULERS, compiled, write_object

FAULTY = ROOT / "tests" / "sched_ext" / "faulty"
PLACE = r"is runnable and has not run for 2\.\d{3} s; it is in DSQ 0x%s, where enqueue\(\) put it"
KNOWN = {
    ("mistaken", 1, "late"): ("stall", r"early@\d\[\d+\] " + PLACE % r"\d"),
    ("mistaken", 2, "pinned"): (
        "stall",
        r"first@9\[\d+\] " + PLACE % "[1-3]" + "; it may run on CPU 0 only",
    ),
    ("mistaken", 3, "affinity"): ("stall", r"wanderer@\d\[\d+\] " + PLACE % r"\d"),
    ("mistaken", 5, "affinity-of-others"): (
        "error",
        r"mistaken: SCX_DSQ_LOCAL\[_ON\] target CPU \d not allowed for \w+\[\d+\]",
    ),
    ("mistaken", 6, "hotplug"): ("stall", r"\w+(@\d)?\[\d+\] " + PLACE % "1"),
    ("mistaken", 4, "weights"): (
        "weights",
        r"tasks with 3\.81 times the weight get [01](\.\d+)? times the CPU time",
    ),
    ("quotas", 1, "quotas"): ("quotas", r"the group low uses [\d.]+ CPUs; its quotas allow 0\.2"),
    ("quotas", 2, "quotas"): ("stall", r"low(@\d)?\[\d+\] " + PLACE % "3ec"),
}
"""The scheduler, its mistake and the workload: the kind of the finding, and its text."""
SMALL = {
    7: (
        "division",
        r"program faulty_enqueue, instruction \d+ \(faulty\.bpf\.c:\d+\): divides by 0",
    ),
    8: ("load", r"program faulty_enqueue, .*: loads from an invalid address"),
    9: ("setting", r"enqueue\(\) dispatches a task without a time slice"),
    3: ("error", r"faulty: program faulty_enqueue, .*: store to invalid address"),
}


def check(*words: object) -> Result:
    return CliRunner().invoke(scx, ["check", "--seeds", "1", "--quiet", *map(str, words)])


def faulty(folder: Path, name: str) -> Path:
    """Writes the object of one of our schedulers with mistakes."""
    path = folder / f"{name}.bpf.o"
    path.write_bytes(compiled(FAULTY / f"{name}.bpf.c"))
    return path


@pytest.mark.parametrize(("name", "mistake", "workload"), KNOWN)
def test_known_mistakes_are_reported(
    tmp_path: Path, name: str, mistake: int, workload: str
) -> None:
    kind, text = KNOWN[name, mistake, workload]
    arguments = ("--workload", workload, "--cpus", 4, "--set", f"mistake={mistake}", "--json")
    done = check(faulty(tmp_path, name), *arguments)
    assert done.exit_code == 1, done.output
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["kind"] == kind
    assert re.search(text, finding["text"]), finding["text"]


@pytest.mark.parametrize("name", ["mistaken", "quotas", *SCHEDULERS])
def test_right_schedulers_have_no_findings(tmp_path: Path, name: str) -> None:
    path = write_object(name, tmp_path) if name in SCHEDULERS else faulty(tmp_path, name)
    settings = ("--set", "cpu_count=3") if name == "central" else ()
    done = check(path, "--cpus", 3, *settings)
    assert done.exit_code == 0, done.output
    assert f"0 findings in {10 if name == 'mistaken' else 9} runs." in done.output


def test_only_changes_by_others_find_a_stale_cpu(tmp_path: Path) -> None:
    """A task that changes its own CPU set runs, so the scheduler has no entry of it."""
    arguments = ("--workload", "affinity", "--cpus", 4, "--set", "mistake=5")
    done = check(faulty(tmp_path, "mistaken"), *arguments)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("fault", SMALL)
def test_what_the_kernel_tolerates_is_reported(tmp_path: Path, fault: int) -> None:
    kind, text = SMALL[fault]
    arguments = ("--workload", "forks", "--cpus", 2, "--set", f"fault={fault}", "--json")
    done = check(faulty(tmp_path, "faulty"), *arguments)
    assert done.exit_code == 1, done.output
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["kind"] == kind
    assert re.match(text, finding["text"]), finding["text"]


def test_a_slice_that_is_longer_than_the_schedulers_is_no_debt(tmp_path: Path) -> None:
    """The kernel's slice of a task that stays alone made a virtual time wrap below zero."""
    for name in ("vtime", "groups"):
        path = write_object(name, tmp_path)
        done = check(path, "--workload", "late", "--cpus", 4, "--set", "slice_ns=5000000")
        assert done.exit_code == 0, done.output


def test_a_finding_says_how_to_repeat_it(tmp_path: Path) -> None:
    path = faulty(tmp_path, "mistaken")
    done = check(path, "--workload", "weights", "--set", "mistake=4")
    assert "weights, 1 CPU, seed 1; 1 run of this workload" in done.output
    assert f"--policy scx:{path} --set scx.ops.timeout_ms=2000 --set scx.mistake=4" in done.output
    assert "It does not read group weights, quotas" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.bpf.o",), "missing.bpf.o"),
        (("a b.o",), "is not of the form"),
        (("OBJECT", "--workload", "x"), "workload"),
        (("OBJECT", "--set", "no_such=1"), "no_such"),
    ],
)
def test_bad_input_has_status_2(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    path = str(write_object("fifo", tmp_path))
    done = check(*(path if word == "OBJECT" else word for word in words))
    assert done.exit_code == 2 or getattr(done.exception, "exit_status", 0) == 2
    assert message in done.output + str(done.exception)
