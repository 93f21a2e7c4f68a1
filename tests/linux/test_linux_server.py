# SPDX-License-Identifier: MIT
"""Tests the policy server on a real kernel, in one guest: features, refusals and recovery."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab import __version__, trace
from schedlab.machines.linux.guest import GuestJob, boot
from schedlab.machines.linux.package import make_package
from schedlab.machines.linux.parts import build_linux
from schedlab.paths import BUILD_FOLDER
from schedlab.trace import Kind
from schedlab.workload.shapes.model import Shape

pytestmark = [
    pytest.mark.linux,
    pytest.mark.xdist_group("linux_server"),  # one boot for all
]

PLACE = BUILD_FOLDER / "linux-tests"
SHAPE = Shape((0, 1), (0, 1), (0, 1), (0, 0), distances=((10, 21), (21, 10)))
FAIR, OURS = "disabled", "enabled"
"""The kernel's sched_ext state."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the script from one guest."""
    build_linux("linux-tests")
    package, again = (make_package(tmp_path_factory.mktemp("package")) for _ in range(2))
    for name in ("debian", "tarball"):
        assert getattr(package, name).read_bytes() == getattr(again, name).read_bytes()
    job = GuestJob(
        files={
            "package.deb": package.debian,
            "schedlab-linux": PLACE / "schedlab-linux",
            **{f"bpf/{path.name}": path for path in PLACE.glob("bpf/*.bpf.o")},
        },
        script=(ROOT / "tests" / "linux" / "server.sh").read_text(),
        cpus=2,
        shape=SHAPE,
        repeatable=False,  # QEMU before 8.1 may stop CPUs while it counts instructions
        programs=(),
        limit_s=480,
    )
    outcome = boot(job, tmp_path_factory.mktemp("guest"))
    assert outcome.finished, outcome.message
    return outcome.results


def status(left: Path, step: str) -> int:
    (status_text,) = re.findall(r"^status: (\d+)$", (left / step).read_text(), re.MULTILINE)
    return int(status_text)


def sleeper_of(left: Path) -> str:
    """Returns the PID of the thread whose attributes were set."""
    return (left / "sleeper").read_text().strip()


def test_a_dry_run_changes_nothing(left: Path) -> None:
    assert status(left, "dry-run") == 0
    output = (left / "dry-run").read_text()
    assert "would switch all threads of the fair class to the policy rr" in output
    assert "nothing was changed" in output
    assert (left / "untouched").read_text() == ""


@pytest.mark.parametrize(
    ("step", "messages"),
    [
        ("without-root", ["only root may do this"]),
        ("no-sched-ext", ["CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"]),
        ("busy-folder", ["/job: not an empty folder", "name another one with --control"]),
        (
            "no-objects",
            ["/nowhere/observer.bpf.o: No such file", "name their folder with --objects"],
        ),
    ],
)
def test_an_unfit_machine_is_refused(left: Path, step: str, messages: list[str]) -> None:
    assert status(left, step) == 2
    output = (left / step).read_text()
    assert all(message in output for message in messages)


LIMITS = ["cpu.max 10000 100000 of /tenth", "nice 7 of sleep (", "--ignore-limits"]
"""Limits that the script uses, and the option that ignores them."""


@pytest.mark.parametrize(
    ("step", "refused"), [("limits", 2), ("limits-dry-run", 2), ("limits-later", 1)]
)
def test_no_policy_takes_over_while_limits_are_in_use(left: Path, step: str, refused: int) -> None:
    assert status(left, step) == refused
    output = (left / step).read_text()
    assert all(words in output for words in LIMITS), output


def test_fair_class_stays_while_limits_are_in_use(left: Path) -> None:
    assert status(left, "limits-fair") == status(left, "limits-fair-stop") == 0
    state, _, name, *_ = (left / "limits-kept").read_text().splitlines()
    assert (state, name) == (FAIR, "Policy: fair")
    assert (left / "limits-left").read_text() == ""


def test_limits_are_ignored_on_request(left: Path) -> None:
    """The ignored limits are named, including after a later switch."""
    assert status(left, "limits-ignored") == 0
    output = (left / "limits-ignored").read_text()
    assert all(words in output for words in ("ignored: ", *LIMITS)), output
    for step in ("again", "later", "stop"):
        assert status(left, f"limits-ignored-{step}") == 0
    for step in ("begun", "kept"):
        state, _, name, *_ = (left / f"limits-ignored-{step}").read_text().splitlines()
        assert (state, name) == (OURS, "Policy: rr")


def test_the_policy_is_in_force_when_the_server_is_ready(left: Path) -> None:
    assert status(left, "serve") == 0
    assert (left / "begun").read_text().splitlines()[:3] == [OURS, "Scheduler status", "Policy: rr"]


def test_one_server_serves(left: Path) -> None:
    assert status(left, "second") == 2
    output = (left / "second").read_text()
    assert "another schedlab-linux is already serving" in output
    assert "another scheduler is loaded" in output


def test_texts_equal_the_kernel_texts(left: Path) -> None:
    lines = (left / "sched_status").read_text().splitlines()
    assert lines[:6] == [
        "Scheduler status",
        "Policy: rr",
        "Changed: slice=3",
        "PRIORITY: 0, the highest, to 10",
        "TIMESLICE: milliseconds; -: no limit; ?: not seen by this policy yet",
        "",
    ]
    assert lines[6].split() == ["NAME", "PID", "STATE", "PRIORITY", "TIMESLICE", "TICKETS"]
    rows = [line.split() for line in lines[7:]]
    assert all(len(row) == 6 for row in rows)
    sleeper = next(row for row in rows if row[1] == sleeper_of(left))
    assert (sleeper[0], sleeper[2], sleeper[3], sleeper[5]) == ("sleep", "blocked", "9", "17")
    assert rows[0][:2] == ["init", "1"]
    assert not any(row[0].startswith(("kworker", "rcu")) for row in rows)

    tunables = (left / "sched_tunables").read_text().splitlines()
    assert tunables[0].split() == ["NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT", "MEANING"]
    assert tunables[1].split()[:5] == ["slice", "3", "1", "1000", "1"]
    policies = (left / "sched_policies").read_text().splitlines()
    assert policies[0].split() == ["NUMBER", "NAME", "MEANING"]
    assert policies[1].split()[:2] == ["0", "rr"]
    assert policies[-1].split()[:2] == ["-", "fair"]


def test_json_agrees(left: Path) -> None:
    shown = json.loads((left / "status.json").read_text())
    assert (shown["policy"], shown["changed"], shown["fair_since"]) == ("rr", {"slice": 3}, None)
    (sleeper,) = [task for task in shown["tasks"] if task["pid"] == int(sleeper_of(left))]
    assert (sleeper["priority"], sleeper["tickets"], sleeper["state"]) == (9, 17, "blocked")
    (tunable, *_) = json.loads((left / "tunables.json").read_text())
    assert (tunable["name"], tunable["value"], tunable["default"]) == ("slice", 3, 1)
    policies = json.loads((left / "policies.json").read_text())
    assert [policy["name"] for policy in policies][:2] == ["rr", "rr:table-scan"]
    assert policies[-1]["name"] == "fair"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("two-lines", ""),
        ("no-policy", "Invalid argument"),
        ("no-process", "No such process"),
        ("no-range", "out of range"),
        ("no-tunable", "Invalid argument"),
        ("not-written", "not permitted"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(left: Path, step: str, message: str) -> None:
    assert status(left, step) != 0
    assert message in (left / step).read_text()


def test_a_write_does_not_make_the_text_about_all_threads(left: Path) -> None:
    """A workload that sets attributes of 300 processes kept the server busy for seconds."""
    writes, reads = map(int, (left / "costs").read_text().split())
    assert 2 * writes < reads


def test_the_fair_class_by_name_and_attributes_that_stay(left: Path) -> None:
    assert status(left, "fair") == 0
    assert (left / "in-fair").read_text().splitlines()[:3] == [
        FAIR,
        "Scheduler status",
        "Policy: fair",
    ]
    rows = [line.split() for line in (left / "kept").read_text().splitlines()]
    (sleeper,) = [row for row in rows if row[1:2] == [sleeper_of(left)]]
    assert sleeper[2:] == ["blocked", "9", "?", "17"]


def test_verifier_refuses_with_a_reason(left: Path) -> None:
    assert status(left, "rejected") == 1
    output = (left / "rejected").read_text()
    assert "rejected by the kernel's verifier its program host_tick" in output
    assert "task->run_time = 1" in output
    assert len(output.splitlines()) < 40
    assert "Policy: fair" in (left / "after-rejected").read_text()


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("complains", "is not to its liking"),
        (
            "never-picks",
            "broke a rule: its pick() returned null while tasks are queued that may run",
        ),
        ("starves", "runnable task stall"),
    ],
)
def test_failing_policy_yields_to_the_fair_class(left: Path, policy: str, why: str) -> None:
    state, _, name, since, *_ = (left / f"after-{policy}").read_text().splitlines()
    assert (state, name) == (FAIR, "Policy: fair")
    assert since.startswith(f"Fair class since: the kernel ended {policy}: ")
    assert why in since


def test_a_server_that_is_killed_leaves_the_machine_in_the_fair_class(left: Path) -> None:
    assert status(left, "again") == 0
    assert (left / "after-kill").read_text().splitlines()[0] == FAIR
    assert (left / "alive").read_text() == "alive\n"
    assert status(left, "nobody") == 2
    assert "no server" in (left / "nobody").read_text()
    assert status(left, "serve-again") == 0
    assert (left / "begun-again").read_text().splitlines()[0] == OURS


def test_a_trial_ends_by_itself(left: Path) -> None:
    assert status(left, "trial") == 0
    output = (left / "trial").read_text()
    assert output.index("serving at") < output.index("the time of --for is over")
    assert int((left / "trial-seconds").read_text()) >= 2
    assert (left / "after-trial").read_text().splitlines()[0] == FAIR
    assert status(left, "trial-unread") == 2
    assert "--for 5x: not a time from 1s" in (left / "trial-unread").read_text()


def test_an_end_undoes_all(left: Path) -> None:
    assert status(left, "stop") == 0
    assert (left / "ended").read_text().splitlines()[0] == FAIR
    assert (left / "left").read_text() == ""


def in_force(left: Path, step: str) -> list[str]:
    """Returns the kernel's sched_ext state and the policy's name."""
    state, _, name, *_ = (left / step).read_text().splitlines()
    return [state, name]


def test_installing_the_package_starts_nothing(left: Path) -> None:
    assert "status: 1" not in (left / "install").read_text()
    assert (left / "installed").read_text() == f"{FAIR}\n"
    assert f"schedlab-linux {__version__}\n" in (left / "version").read_text()


def test_an_installed_program_is_started_switched_and_restored(left: Path) -> None:
    for step in ("start", "restore"):
        assert status(left, step) == 0
    assert (left / "switch").read_text().count("status: 0") == 2
    assert in_force(left, "started") == in_force(left, "restored") == [FAIR, "Policy: fair"]
    assert in_force(left, "switched") == [OURS, "Policy: rr"]


def test_upgrade_restores_the_previous_policy(left: Path) -> None:
    for step in ("upgrade-before", "upgrade-unpack", "upgrade"):
        assert status(left, step) == 0
    assert in_force(left, "upgraded") == [OURS, "Policy: rr"]


def test_a_wrong_configuration_is_named_in_a_line(left: Path) -> None:
    assert status(left, "wrong-configuration") == 2
    message, _ = (left / "wrong-configuration").read_text().splitlines()
    assert message.startswith("schedlab-linux: /etc/schedlab-linux.conf: nosuch: no such policy")


def test_a_removal_ends_the_server_and_leaves_nothing(left: Path) -> None:
    assert status(left, "remove") == status(left, "remove-files") == 0
    state, *rest = (left / "removed").read_text().splitlines()
    assert state == FAIR
    assert not [line for line in rest if "No such file" not in line and line != "/run:"]


def test_a_server_ends_with_the_process_that_it_is_tied_to(left: Path) -> None:
    assert status(left, "lifeline") == 0
    assert in_force(left, "with-lifeline") == [FAIR, "Policy: fair"]
    assert status(left, "after-lifeline") == 2
    assert "no server" in (left / "after-lifeline").read_text()


def configured(folder: Path, text: str) -> tuple[int, list[str]]:
    """Returns the program's status and output on this host for a configuration with this text."""
    path = folder / "it.conf"
    path.write_text(text)
    result = subprocess.run(
        [PLACE / "schedlab-linux", "serve", "--config", path, "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stderr.replace(str(path), "FILE").splitlines()


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n polcy = rr", "FILE, line 2: polcy: unknown setting"),
        ("policy rr", "FILE, line 1: invalid line; write NAME = VALUE"),
        ("policy = nosuch", "FILE: nosuch: no such policy"),
        ("# a comment\nload-limit = x # s", "FILE, line 2: --load-limit x: not a whole number"),
        ("ignore-limits = maybe", "FILE, line 1: ignore-limits: 'maybe' is not yes or no"),
    ],
)
def test_what_is_wrong_in_a_configuration_is_named(tmp_path: Path, text: str, message: str) -> None:
    status, (error_line,) = configured(tmp_path, text)
    assert status == 2
    assert error_line.startswith(f"schedlab-linux: {message}")


def test_policy_reads_the_shape_from_the_kernel(left: Path) -> None:
    """The shape equals QEMU's shape argument."""
    assert status(left, "surveyed") == 0
    recording = trace.read(left / "surveyed.bin")
    rows = recording.rows(Kind.SAID).tolist()
    texts = dict(recording.texts.select("row", "text").iter_rows())
    columns = recording.events[rows].select("cpu", "second", "first").iter_rows()
    annotations = {
        (cpu, texts[row], *rest) for row, (cpu, *rest) in zip(rows, columns, strict=True)
    }
    expected = set()
    for cpu in range(SHAPE.cpus):
        numbers = 1 << 48 | cpu << 32 | 1024 << 16 | 1024
        expected.add((cpu, "CPU: {}, sibling {}", numbers, cpu))
        for other in range(SHAPE.cpus):
            shared = 3 if other == cpu else 0
            distance = SHAPE.distances[cpu][other]
            expected.add((cpu, "beside it: {}, distance {}", other << 2 | shared, distance))
    assert annotations == expected


def test_a_turn_ends_on_the_cpu_that_the_policy_names(left: Path) -> None:
    """Nothing else moves a thread that only computes."""
    assert status(left, "moved") == 0
    pid = int((left / "mover").read_text())
    moves = trace.read(left / "moved.bin").events.filter(kind=Kind.MIGRATE, process=pid)
    assert len(moves) >= 10
    assert (moves["first"] != moves["second"]).all()
    assert moves["first"].to_list()[1:] == moves["second"].to_list()[:-1]


@pytest.mark.parametrize(
    ("step", "message", "least", "most"),
    [
        (
            "trace-limit",
            "the trace reached its limit and ends; raise --trace-limit",
            32768,
            65536,
        ),
        ("trace-disk", "the trace's disk is nearly full and the trace ends", 32768, 65536),
    ],
)
def test_full_disk_ends_the_server_with_a_complete_trace(
    left: Path, step: str, message: str, least: int, most: int
) -> None:
    """Limit and reserve are 1 MiB, which is 32,768 records."""
    assert status(left, step) == 1
    assert message in (left / step).read_text()
    assert (left / f"after-{step}").read_text().strip() == FAIR
    recording = trace.read(left / f"{step}.bin")
    trace.validate(recording)
    assert least <= recording.events.height < most
    assert recording.lost == 0
