# SPDX-License-Identifier: MIT
"""Tests whether guests can use the host's CPUs (KVM), by running a small guest.

It is not enough to open /dev/kvm and to start QEMU. If the host is itself a virtual machine, its
guests may hang at their first instructions, without an error.
"""

import os
import platform
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NO_KVM_VARIABLE = "SCHEDLAB_NO_KVM"
"""Environment variable that disables KVM, unless it is 0 or empty."""
DEVICE = Path("/dev/kvm")
PROBE_SECONDS = 5.0
"""Seconds for the probe guest, which normally takes 0.1 s."""
ANSWER = b"a guest runs\n"
ANSWER_STATUS = 0x10 << 1 | 1
"""QEMU's exit status after a guest wrote 0x10 to its isa-debug-exit device."""
_STUCK = b"KVM internal error"
"""Part of QEMU's message about a guest that it has stopped."""
_GRACE_SECONDS = 2.0

_GUEST_CODE = bytes.fromhex(
    """
    fa31c08ed866c706 00100320000066c7 0600200330000066 c706003083000000
    66c7061820033000 0066c706b83f8300 e0fe2e660f011628 0166b8200000000f
    22e066b800100000 0f22d866b9800000 c00f320d00010f30 66b8010000800f22
    c066ea69000f0008 0066b810008ed88e d0bc008000000f01 1c2540010f00b807
    00000031c90fa20f bae3087314b90300 0000b805000000c4 e271f7d083fa2875
    58bb0000e0fec783 f0000000ff010000 c783500300000007 0000b011e620b000
    e621b004e621b001 e621b0fee621b030 e643b0a9e640b004 e64031edfbf485ed
    74fb488d35180000 00b90d000000bae9 000000f36eb010e6 f4faf4ebfcffc548
    cf61206775657374 2072756e730a6690 0000000000000000 ffff0000009baf00
    ffff00000093cf00 170010010f006690 fd000800008e0f00 0000000000000000
    0f0030010f
    """
)
"""The machine code of alive.S without its last jump. A test assembles alive.S and compares."""
_BIOS_BYTES = 0x10000
_RESET_JUMP = bytes.fromhex("ea000000f0")
"""A jump to the beginning of the image, located at the address where a processor starts."""

_given_up: list[str] = []


def build_bios() -> bytes:
    """Returns the image that replaces the guest's BIOS; alive.S describes it."""
    return (_GUEST_CODE.ljust(_BIOS_BYTES - 16, b"\0") + _RESET_JUMP).ljust(_BIOS_BYTES, b"\0")


def is_switched_off() -> bool:
    return os.environ.get(NO_KVM_VARIABLE, "") not in ("", "0")


def switch_off() -> None:
    """Disables KVM for this process and its child processes."""
    os.environ[NO_KVM_VARIABLE] = "1"


def give_up(why: str) -> None:
    """Disables KVM for this process, because a guest failed although the test passed.

    An empty `why` enables KVM again.
    """
    _given_up[:] = [why] if why else []


def reason_given_up() -> str:
    """Returns why KVM was disabled after a failure; "" if it was not."""
    return _given_up[0] if _given_up else ""


def find_problem(command: Sequence[str]) -> str:
    """Returns why guests cannot use KVM here; "" if they can. `command` is QEMU with its board."""
    if platform.machine() != "x86_64":
        return f"the host's CPU is {platform.machine()}, not x86_64"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        exists = DEVICE.exists()
        return f"{DEVICE} is not to be opened by this user" if exists else f"there is no {DEVICE}"
    with tempfile.TemporaryDirectory(prefix="schedlab-kvm-") as folder:
        image = Path(folder) / "alive"
        image.write_bytes(build_bios())
        return _find_problem_uncached([*command, *guest_options(image)])


def guest_options(image: Path) -> list[str]:
    """Returns QEMU's options for a machine that can only send ANSWER and exit."""
    return [
        *("-accel", "kvm", "-cpu", "host", "-m", "16M", "-display", "none"),
        *("-bios", str(image), "-debugcon", "stdio"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
    ]


def _find_problem_uncached(command: list[str]) -> str:
    try:
        with _start_qemu(command) as process:
            output, in_time = _listen(process)
            status = _wait(process) if in_time else None
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    if ANSWER in output and status == ANSWER_STATUS:
        return ""
    first = _first_line(output.replace(ANSWER, b""))
    if _STUCK in output:
        return f"guests under it stand still ({first})"
    if not in_time or status is None:
        return f"a guest under it said nothing within {PROBE_SECONDS:g} s"
    if status < 0:
        return f"QEMU crashes with it ({signal.Signals(-status).name})"
    return f"QEMU fails with it: {first or f'status {status}'}"


@contextmanager
def _start_qemu(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Starts QEMU with its output and errors in one pipe, and kills its process group afterwards."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        _wait(process)


def _listen(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """Returns the output until QEMU ends or is stuck, and False if it was stuck or too slow."""
    assert process.stdout
    output = b""
    deadline_s = time.monotonic() + PROBE_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline_s - time.monotonic())):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            output += piece
            if not piece:
                return output, True
            if _STUCK in output and b"\n" in output.partition(_STUCK)[2]:
                return output, False
    return output, False


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Returns the exit status, or None if the host's kernel does not end the process after SIGKILL."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_GRACE_SECONDS)
    return None


def _first_line(output: bytes) -> str:
    return output.decode(errors="replace").strip().partition("\n")[0]
