# SPDX-License-Identifier: MIT
"""Boots a Linux guest twice with equal results, once despite late QEMU threads, and once to its
limit."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from linux_guests import need_guests
from schedlab.base.toolchain.tools import require_compiler
from schedlab.machines.linux import guest
from schedlab.machines.linux.guest import GuestJob, GuestOutcome, boot
from schedlab.machines.outcome import LIMIT

pytestmark = [pytest.mark.linux, pytest.mark.xdist_group("linux_boot")]

# Everything that could differ: random numbers, clocks, counters, threads on two CPUs. CPUs halt
# 2,000 times; each halt could reorder QEMU's threads.
SCRIPT = """
echo "said on the console, seed $schedlab_seed"
cat file folder/file
cd /result
sysbench cpu --events=40 --threads=3 run >sysbench
hackbench --groups 1 --loops 5 >hackbench
mkfifo /run/silent
exec 3<>/run/silent
for round in $(seq 2000); do read -t 0.001 line <&3; done
cat /proc/timer_list >timers
cat /proc/stat /proc/schedstat /proc/uptime /proc/interrupts >counters
cat /proc/sys/kernel/random/uuid /proc/self/maps >random
date >date
mkdir facts
uname -r >facts/release
cat /sys/kernel/sched_ext/state >facts/sched_ext
nproc >facts/cpus
id -u >facts/user
chrt --pid 1 >facts/first
chrt --pid $$ >facts/script
stress-ng --version >facts/stress-ng
command -v rt-app >facts/rt-app
ls /sys/kernel/btf/vmlinux /dev/fuse >facts/files
exit 5
"""


def late_threads(folder: Path) -> Path:
    """Compiles the library that makes QEMU's threads late."""
    library = folder / "late_threads.so"
    source = Path(__file__).with_name("late_threads.c")
    flags = ("-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([*require_compiler().host, *flags, str(source), "-o", str(library)], check=True)
    return library


SAME = GuestJob(
    {"file": b"a file, ", "folder/file": b"another\n"}, SCRIPT, cpus=2, seed=7, memory_mib=512
)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestOutcome]:
    """A repeatable guest. Guests that are booted later keep their temporary files, too."""
    need_guests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest, "remove_temporary_files", lambda _: None)
        yield boot(SAME, tmp_path_factory.mktemp("boot"))


def text_of(outcome: GuestOutcome, name: str) -> str:
    return (outcome.results / name).read_text()


def test_a_script_has_what_it_needs(first: GuestOutcome) -> None:
    outcome = first
    assert (outcome.status, outcome.message, outcome.mode) == (5, "", "repeatable")
    assert outcome.console.startswith("said on the console, seed 7\na file, another\n")
    assert "events per second" in text_of(outcome, "sysbench")
    assert "Time:" in text_of(outcome, "hackbench")
    assert text_of(outcome, "facts/cpus") == "2\n"
    assert text_of(outcome, "facts/user") == "0\n"
    assert text_of(outcome, "facts/sched_ext") == "disabled\n"
    assert "SCHED_FIFO" in text_of(outcome, "facts/first")
    assert "SCHED_OTHER" in text_of(outcome, "facts/script")
    assert "stress-ng" in text_of(outcome, "facts/stress-ng")
    assert text_of(outcome, "facts/rt-app") == "/usr/bin/rt-app\n"
    assert text_of(outcome, "facts/files").split() == ["/dev/fuse", "/sys/kernel/btf/vmlinux"]


@pytest.mark.long
def test_late_threads_of_qemu_change_no_byte_of_a_repeatable_guest(
    first: GuestOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preload = guest.preload_prefix
    late = late_threads(tmp_path)

    def preload_late(folder: Path) -> list[str]:
        (folder / late.name).symlink_to(late)
        return [
            word.replace("LD_PRELOAD=", f"LD_PRELOAD=./{late.name}:") for word in preload(folder)
        ]

    monkeypatch.setattr(guest, "preload_prefix", preload_late)
    second = boot(SAME, tmp_path / "boot")
    first_files, second_files = (
        {path.name: path.read_bytes() for path in outcome.results.rglob("*") if path.is_file()}
        for outcome in (first, second)
    )
    assert first_files == second_files
    assert first.console == second.console
    assert {"sysbench", "hackbench", "timers", "counters", "random", "date"} < first_files.keys()


@pytest.mark.long
@pytest.mark.usefixtures("first")
def test_a_script_without_an_end_is_ended_and_leaves_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest also has the port for a sign of life, like a guest under KVM."""
    shown = guest.device_options
    monkeypatch.setattr(
        guest,
        "device_options",
        lambda mode, wiring: shown(guest.KVM if mode == guest.FREE_RUNNING else mode, wiring),
    )
    # On a busy host, 2 s of guest time can pass before the first line of the script. Sleeping takes
    # no CPU time.
    endless = "echo part >/result/part; sleep 1000 & sleep 1000"
    free = GuestJob({}, endless, cpus=2, repeatable=False, limit_s=20, memory_mib=512, programs=())
    outcome = boot(free, tmp_path / "boot")
    assert outcome.status == LIMIT, outcome.message
    assert "reached its time limit" in outcome.message
    assert outcome.mode in ("free-running", "KVM")
    assert (outcome.results.parent / "alive").read_text() == "alive\n"
    assert text_of(outcome, "part") == "part\n"
