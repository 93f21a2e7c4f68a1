# SPDX-License-Identifier: MIT
"""Starts a guest under KVM, and again without KVM if it shows no sign of life.

Usage: python kvm_fallback.py CHOICE, where CHOICE is a JSON object with the fields of `Choice`.

This process stands between schedlab and QEMU, so that other modules need not know about two starts.
QEMU inherits its folder, pipes and descriptors, and it ends with QEMU's status. It imports only the
standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Choice:
    """Two commands that start the same guest in the same folder."""

    first: list[str]
    second: list[str]
    sign: str
    """The file that a live guest writes in the first start."""
    seconds: float
    """Host seconds that the guest has to write that file."""
    mark: str
    """The file that then holds the reason for the second start, in one line."""
    tie: list[str] = field(default_factory=list)
    """Prefix that ends both commands together with this process (schedlab.base.host.parent_death)."""

    def command(self) -> list[str]:
        """Returns the command that runs this module."""
        return [sys.executable, "-IS", __file__, json.dumps(asdict(self))]

    def tied(self, address: list[str]) -> list[str]:
        """Returns a command tied to this process."""
        return [*self.tie, str(os.getpid()), *address] if self.tie else address


def run(choice: Choice) -> int:
    """Returns the exit status of the start that ran the guest, negative for a signal."""
    for name in (choice.sign, choice.mark):
        Path(name).unlink(missing_ok=True)
    with subprocess.Popen(choice.tied(choice.first), close_fds=False) as process:
        try:
            if lives(process, choice):
                return process.wait()
            why = silence(process.poll(), choice.seconds)
        finally:
            end(process)
    message = f"{why}; it was started again without KVM (SCHEDLAB_NO_KVM=1 does so at once)"
    Path(choice.mark).write_text(message + "\n")
    print(f"schedlab: {message}", file=sys.stderr, flush=True)
    with subprocess.Popen(choice.tied(choice.second), close_fds=False) as process:
        try:
            return process.wait()
        finally:
            end(process)


def lives(process: subprocess.Popen[bytes], choice: Choice) -> bool:
    """Waits for the sign of life until the process ends or the time limit is reached."""
    limit = time.monotonic() + choice.seconds
    sign = Path(choice.sign)
    while not (sign.exists() and sign.stat().st_size):
        if process.poll() is not None or time.monotonic() > limit:
            return sign.exists() and bool(sign.stat().st_size)
        time.sleep(_LOOK_SECONDS)
    return True


def silence(status: int | None, seconds: float) -> str:
    if status is None:
        return f"under KVM, the guest said nothing within {seconds:g} s"
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"under KVM, the guest's QEMU ended {how} before the guest said anything"


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process by SIGTERM, so that QEMU can restore the terminal, and then by SIGKILL."""
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
        return
    process.kill()


def unwind(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Ends with the guest's exit status or signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)
    status = run(Choice(**json.loads(sys.argv[1])))
    if status < 0:
        with contextlib.suppress(OSError):  # the default action of SIGKILL cannot be set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
