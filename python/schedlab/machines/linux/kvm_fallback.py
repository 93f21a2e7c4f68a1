# SPDX-License-Identifier: MIT
"""Starts a guest with KVM; if the guest shows no sign of life, starts it again without KVM.

Usage: python kvm_fallback.py CHOICE. CHOICE is a JSON object with the fields of `FallbackChoice`. This
process runs between schedlab and QEMU, so that other modules need not handle two starts. QEMU
inherits its folder, pipes and descriptors. This process ends with QEMU's status. It imports only
Python's standard library.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

_CHECK_INTERVAL_S = 0.05
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class FallbackChoice:
    """The commands that start the same guest with and without KVM, in the same folder."""

    first: list[str]
    """The command with KVM."""
    second: list[str]
    """The command without KVM, for a host where KVM does not work."""
    sign: str
    """Name of the file that the guest writes when it is alive, in the first start."""
    seconds: float
    """Host seconds that the guest has to write that file."""
    mark: str
    """Name of the file that receives the reason for the second start, as one line."""
    tie: list[str] = field(default_factory=list)
    """Command prefix that makes both commands end with this process (schedlab.base.host.isolated)."""

    def command(self) -> list[str]:
        """Returns the command that runs this module."""
        return [sys.executable, "-IS", __file__, json.dumps(asdict(self))]

    def tied(self, address: list[str]) -> list[str]:
        """Returns a command that ends when this process ends."""
        return [*self.tie, str(os.getpid()), *address] if self.tie else address


def run(choice: FallbackChoice) -> int:
    """Starts the guest; returns the exit status of the start that succeeded, negative for a signal."""
    for name in (choice.sign, choice.mark):
        Path(name).unlink(missing_ok=True)
    with subprocess.Popen(choice.tied(choice.first), close_fds=False) as process:
        try:
            if wait_for_sign_of_life(process, choice):
                return process.wait()
            why = describe_silence(process.poll(), choice.seconds)
        finally:
            end_process(process)
    message = f"{why}; it was started again without KVM (SCHEDLAB_NO_KVM=1 does so at once)"
    Path(choice.mark).write_text(message + "\n")
    print(f"schedlab: {message}", file=sys.stderr, flush=True)
    with subprocess.Popen(choice.tied(choice.second), close_fds=False) as process:
        try:
            return process.wait()
        finally:
            end_process(process)


def wait_for_sign_of_life(process: subprocess.Popen[bytes], choice: FallbackChoice) -> bool:
    """Waits for the sign of life until the process ends or the time limit is reached."""
    deadline_s = time.monotonic() + choice.seconds
    sign = Path(choice.sign)
    while not (sign.exists() and sign.stat().st_size):
        if process.poll() is not None or time.monotonic() > deadline_s:
            return sign.exists() and bool(sign.stat().st_size)
        time.sleep(_CHECK_INTERVAL_S)
    return True


def describe_silence(status: int | None, seconds: float) -> str:
    if status is None:
        return f"under KVM, the guest said nothing within {seconds:g} s"
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"under KVM, the guest's QEMU ended {how} before the guest said anything"


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends a process by SIGTERM, so that QEMU can restore the terminal, and then by SIGKILL."""
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
        return
    process.kill()


def exit_on_signal(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Runs the guest, and ends with its exit status or by the same signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, exit_on_signal)
    status = run(FallbackChoice(**json.loads(sys.argv[1])))
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
