# SPDX-License-Identifier: MIT
"""Tests how a guest ends, with a stand-in for QEMU; nothing is booted."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, Programs
from linux_guests import forget_host
from linux_stand_ins import stand_in_packages
from processes import is_running, wait_until
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.machines.linux import guest
from schedlab.machines.linux.guest import GuestJob, GuestOutcome, boot

VERSION = 'case "$1" in --version) echo "QEMU emulator version 7.2.22 (stands in)"; exit 0 ;; esac'


@pytest.fixture
def qemu(tmp_path: Path, program: Programs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    """Makes the stand-in, which starts in the folder of the boot."""
    stub_packages = stand_in_packages(tmp_path / "tree")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(guest, "packages", lambda: stub_packages)
    forget_host()

    def make(name: str, body: str) -> Path:
        return program(name, f"{VERSION}\n{body}")

    yield make
    forget_host()  # other tests use the real host


def packed(folder: Path, *members: tuple[str, bytes], cut: int = 0) -> Path:
    """Returns an archive as a guest writes it, without its last `cut` bytes."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if name.endswith("/"):
                entry.type = tarfile.DIRTYPE
            tar.addfile(entry, io.BytesIO(content))
    path = folder / "handed over"
    path.write_bytes(made.getvalue()[: len(made.getvalue()) - cut])
    return path


def boot_with(qemu: Programs, folder: Path, body: str, job: GuestJob | None = None) -> GuestOutcome:
    qemu(guest.QEMU_PROGRAM, body)
    return boot(job or GuestJob(), folder / "boot")


def test_guest_ends_normally(qemu: Programs, tmp_path: Path) -> None:
    handed = packed(
        tmp_path, ("result/", b""), ("result/a/b", b"text"), ("result/c", b""), ("status", b"7\n")
    )
    body = f'echo hello; echo "$*" >../arguments; cp "{handed}" results.tar'
    outcome = boot_with(qemu, tmp_path, body, GuestJob(cpus=3, seed=9))
    assert (outcome.status, outcome.message, outcome.finished) == (7, "", True)
    assert outcome.mode == "repeatable"
    assert outcome.console == "hello\n"
    assert (outcome.results / "a" / "b").read_bytes() == b"text"
    left = sorted(path.name for path in (tmp_path / "boot").iterdir())
    assert left == ["console.log", "results"]
    arguments = (tmp_path / "arguments").read_text()
    assert "-smp 3 " in arguments
    assert "-seed 9 " in arguments
    assert "schedlab_seed=9" in arguments


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("echo '[1.0] Kernel panic - not syncing: X'; exit 0", 101, "panicked:\n .*not syncing: X"),
        ("echo half; kill -KILL $$", -9, "QEMU was ended by SIGKILL; its console ends:\n *half"),
        ("exit 0", 1, "without handing over its results .*console is empty"),
    ],
)
def test_a_guest_that_fails(
    qemu: Programs, tmp_path: Path, body: str, status: int, words: str
) -> None:
    outcome = boot_with(qemu, tmp_path, body)
    assert outcome.status == status
    assert not outcome.finished
    assert re.search(words, outcome.message)
    assert list(outcome.results.iterdir()) == []


def test_output_before_a_guest_failure_is_stored(qemu: Programs, tmp_path: Path) -> None:
    handed = packed(
        tmp_path, ("result/first", b"whole"), ("result/second", b"x" * 20_000), cut=15_000
    )
    outcome = boot_with(qemu, tmp_path, f'cp "{handed}" results.tar; kill -SEGV $$')
    assert outcome.status == -signal.SIGSEGV
    assert (outcome.results / "first").read_bytes() == b"whole"


def test_a_guest_that_hangs_is_ended(
    qemu: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "_BOOT_SECONDS_MAX", 0.5)
    monkeypatch.setattr(guest, "_HOST_SECONDS_PER_GUEST_SECOND_MAX", 0)
    body = "echo $$ >pid; echo stuck; trap '' TERM; while :; do sleep 1; done"
    outcome = boot_with(qemu, tmp_path, body)
    assert "did not end within" in outcome.message
    assert "stuck" in outcome.message
    assert not is_running(int((tmp_path / "boot" / "pid").read_text()))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(
            signal.SIGKILL,
            marks=pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv is here"),
        ),
    ],
)
def test_a_signal_ends_the_guest_with_schedlab(
    qemu: Programs, tmp_path: Path, number: signal.Signals
) -> None:
    qemu(guest.QEMU_PROGRAM, "echo $$ >pid; echo so far; exec sleep 60")
    code = f"""
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(__file__).parent)!r})
from linux_stand_ins import stand_in_packages
from schedlab.base.host.isolated import exit_on_signals
from schedlab.machines.linux import guest
exit_on_signals()
guest.packages = lambda: stand_in_packages(Path({str(tmp_path / "tree")!r}))
guest.boot(guest.GuestJob(), Path({str(tmp_path / "boot")!r}))
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/python"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL
    ) as start:
        pid_file = tmp_path / "boot" / "pid"
        wait_until(lambda: pid_file.exists() and pid_file.read_text().strip())
        start.send_signal(number)
        assert start.wait(timeout=60) != 0
    pid = int(pid_file.read_text())
    wait_until(lambda: not is_running(pid))
    assert (tmp_path / "boot" / "console.log").read_text() == "so far\n"


def test_nothing_that_a_guest_hands_over_leaves_its_folder(qemu: Programs, tmp_path: Path) -> None:
    handed = packed(
        tmp_path,
        ("result/../../escaped", b"x"),
        ("/escaped", b"x"),
        ("result/ok", b"y"),
        ("other/file", b"z"),
        ("status", b"0"),
    )
    outcome = boot_with(qemu, tmp_path, f'cp "{handed}" results.tar')
    assert outcome.status == 0
    assert [path.name for path in outcome.results.rglob("*")] == ["ok"]
    assert not list(tmp_path.rglob("escaped"))


# --- the host -------------------------------------------------------------------------------------


def test_a_host_without_a_qemu_that_serves(
    qemu: Programs, program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(guest.QEMU_PROGRAM, "echo QEMU emulator version 6.2.0")
    with pytest.raises(MachineUnfit, match=r"7\.2 or newer"):
        guest.find_qemu()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WrongUsage, match=guest.QEMU_PROGRAM):
        guest.find_qemu()


@pytest.mark.parametrize(
    "job",
    [
        GuestJob(cpus=0),
        GuestJob(cpus=65),
        GuestJob(memory_mib=10),
        GuestJob(limit_s=0),
        GuestJob(programs=["sysbench", "nothing"]),
    ],
)
def test_what_no_guest_can_be(job: GuestJob, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage):
        boot(job, tmp_path)
