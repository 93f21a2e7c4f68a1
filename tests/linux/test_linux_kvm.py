# SPDX-License-Identifier: MIT
"""Tests whether KVM is used, with a stand-in for QEMU, and the program of the trial guest."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import ROOT, Programs
from linux_guests import forget_host
from linux_stand_ins import stand_in_packages
from processes import children_of, is_running, wait_until
from schedlab.base.toolchain.tools import require_compiler
from schedlab.machines.linux import guest, kvm
from schedlab.machines.linux.guest import GuestJob

STAND_IN = """
case "$*" in
*--version*) echo "QEMU emulator version 7.2.22 (stands in)"; exit 0 ;;
*debugcon*) : a trial ;;
*"accel kvm"*) : a guest under KVM ;;
*) echo emulated; [ -z "$HANGS" ] || exec sleep 1000; exit 5 ;;
esac
"""
ANSWERS = 'case "$*" in *debugcon*) echo "a guest runs"; exit 33 ;; esac\n'
HANGS = "echo $$ >>pids; sleep 1000 & echo $! >>pids; wait"
STUCK = 'echo "KVM internal error. Suberror: 1" >&2; sleep 1000'


@pytest.fixture
def qemu(
    tmp_path: Path, program: Programs, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Makes a stand-in for QEMU with a given behaviour under KVM."""
    stub_packages = stand_in_packages(tmp_path / "tree")
    monkeypatch.setattr(guest, "packages", lambda: stub_packages)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv(kvm.NO_KVM_VARIABLE, raising=False)
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / "bin")  # a readable and writable path
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(kvm, "PROBE_SECONDS", 1.0)
    monkeypatch.setattr(guest, "SILENT_SECONDS", 1.0)
    monkeypatch.chdir(tmp_path)

    def make(body: str) -> None:
        program(guest.QEMU_PROGRAM, STAND_IN + body)
        forget_host()

    yield make
    forget_host()  # other tests use the real host


# --- the trial


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (ANSWERS, ""),
        (HANGS, "nothing within 1 s"),
        (STUCK, "stand still (KVM internal error. Suberror: 1)"),
        ("kill -SEGV $$", "SIGSEGV"),
        ("exit 33", "status 33"),  # a guest's status, but no message from it
        ("echo a guest runs; exit 1", "status 1"),
    ],
)
def test_a_guest_has_to_answer_before_others_run_under_kvm(
    qemu: Callable[[str], None], body: str, problem: str
) -> None:
    qemu(body)
    assert problem in guest.kvm_problem() and bool(problem) == bool(guest.kvm_problem())
    expected = guest.FREE_RUNNING if problem else guest.KVM
    assert guest.choose_mode(GuestJob(repeatable=False)) == expected
    assert guest.choose_mode(GuestJob(repeatable=False, kvm=False)) == guest.FREE_RUNNING
    assert guest.choose_mode(GuestJob(repeatable=True)) == guest.REPEATABLE


def test_the_bytes_that_a_guest_tries_are_those_of_their_source(tmp_path: Path) -> None:
    tools = require_compiler()
    source, made = ROOT / "python/schedlab/machines/linux/alive.S", tmp_path / "alive"
    part = tmp_path / "alive.o"
    subprocess.run([*tools.clang, "--target=x86_64-none-elf", "-c", source, "-o", part], check=True)
    placed = ["--oformat=binary", "--image-base=0", "-Ttext=0", "--entry=0"]
    subprocess.run([*tools.linker, *placed, part, "-o", made], check=True)
    assert made.read_bytes() == kvm.build_bios()


@pytest.mark.linux
def test_what_a_guest_tries_succeeds_on_a_processor_that_does_as_it_should(
    tmp_path: Path,
) -> None:
    """The trial program also runs on emulated processors, with and without BMI2."""
    image = tmp_path / "alive"
    image.write_bytes(kvm.build_bios())
    for cpu in ("max", "qemu64"):
        words = [guest.find_qemu().path, *guest.BOARD_OPTIONS, *kvm.guest_options(image)]
        words[words.index("kvm")] = "tcg,thread=single"
        words[words.index("host")] = cpu
        result = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert (result.stdout, result.returncode) == (kvm.ANSWER, kvm.ANSWER_STATUS), result.stderr


# --- the second start

LIVES = "echo alive >alive; exit 7"


@pytest.mark.parametrize(
    ("body", "status", "mode", "expected_message"),
    [
        (LIVES, 7, guest.KVM, ""),
        (HANGS, 5, guest.FREE_RUNNING, "nothing within 1 s"),
        ("kill -SEGV $$", 5, guest.FREE_RUNNING, "ended by SIGSEGV before"),
        ("echo alive >alive; kill -SEGV $$", -signal.SIGSEGV, guest.KVM, ""),
    ],
)
def test_silent_guest_under_kvm_restarts_without_kvm(
    qemu: Callable[[str], None],
    tmp_path: Path,
    body: str,
    status: int,
    mode: str,
    expected_message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message appears once on the console and once for the user."""
    qemu(ANSWERS + body)
    outcome = guest.boot(GuestJob(repeatable=False), tmp_path / "boot")
    assert (outcome.status, outcome.mode) == (status, mode)
    assert ("emulated" in outcome.console) is bool(expected_message)
    stderr = " ".join(capsys.readouterr().err.split())
    for place in (outcome.console, stderr):
        assert place.count("started again without KVM") == bool(expected_message)
        assert expected_message in place
    left = {path.name for path in (tmp_path / "boot").iterdir()}
    assert left - {"pids"} == {"console.log", "results"}
    assert bool(guest.kvm_problem()) is bool(expected_message)  # later guests do not wait again


@pytest.mark.parametrize("body", [HANGS, f"echo alive >alive; {HANGS}", "exit 1"])
def test_a_guest_that_is_ended_leaves_neither_start_behind(
    qemu: Callable[[str], None], tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of schedlab knows one process and sends SIGTERM only to it."""
    monkeypatch.setenv("HANGS", "1")
    qemu(ANSWERS + body)
    (tmp_path / "b").touch()
    prepared = guest.assemble(GuestJob(repeatable=False), tmp_path, tmp_path / "k", tmp_path / "b")
    process = subprocess.Popen(
        [*prepared.command], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout
        if body == "exit 1":
            assert process.stdout.readline() == b"emulated\n"
        else:
            wait_until((tmp_path / "pids").exists)
        (child,) = children_of(process.pid)
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
        wait_until(lambda: not is_running(child))
    finally:
        os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
