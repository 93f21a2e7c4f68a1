# SPDX-License-Identifier: MIT
"""Starts a guest under KVM, and once more without it if that one shows no sign of life.

    python second_start.py CHOICE, which is JSON: the fields of `Choice`

A process between schedlab and QEMU, so that no part that starts a guest, waits for it or ends it need
know of two starts: what it starts has its place, its pipes and its descriptors, and its end is as if it
were QEMU's. It needs nothing but Python.
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
    """Two ways to start the same guest, from within the same folder."""

    first: list[str]
    second: list[str]
    sign: str
    """The file that the first one's guest writes as soon as it lives."""
    seconds: float
    """Seconds of the host within which the guest has to write that file."""
    mark: str
    """The file that then tells why there was a second one: one line."""
    tie: list[str] = field(default_factory=list)
    """The words that end each of the two with the process that makes the choice
    (schedlab.base.host.tied)."""

    def command(self) -> list[str]:
        """The command that makes the choice."""
        return [sys.executable, "-IS", __file__, json.dumps(asdict(self))]

    def tied(self, address: list[str]) -> list[str]:
        """One of the ways, to be started by this process."""
        return [*self.tie, str(os.getpid()), *address] if self.tie else address


def run(choice: Choice) -> int:
    """Returns the exit status of the start that became the guest, negative for a signal."""
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
    """Waits for the sign, as long as one may come."""
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
    """Asks a process to end, then ends it: if it is asked, QEMU leaves a terminal as it was."""
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
    """Ends as the guest did, also by a signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)
    status = run(Choice(**json.loads(sys.argv[1])))
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no other way anyhow
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
