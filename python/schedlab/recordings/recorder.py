# SPDX-License-Identifier: MIT
"""Records the scheduling of this machine while a command runs, with perf or the kernel's own tracefs.

Only the recorder has root rights, by sudo. The command runs as the caller.
"""

import gzip
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from schedlab.errors import MachineUnfit, SchedlabError, WrongUsage, format_parameter
from schedlab.recordings.convert import POLICY, TICK_NS
from schedlab.recordings.reader import PERF

EVENTS = (
    *("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"),
    *("sched_process_fork", "sched_migrate_task"),
)
_START_LIMIT_S, _END_LIMIT_S = 20, 60
"""Longest time (s) that a recorder takes to start, and to write what it has."""
_BUFFER = "8M"
"""Memory of perf's buffer per CPU."""
_TRACEFS = Path(__file__).with_name("tracefs.sh")
_SCX_NAME = Path("/sys/kernel/sched_ext/root/ops")


def find_tool(name: str | None) -> str:
    """Returns the recorder to use: perf if it is installed, else tracefs."""
    if name == "perf" and not PERF.find():
        raise MachineUnfit(
            "perf is not installed",
            what=format_parameter("tool", name),
            fix="install it, or leave out `tool=` to record with tracefs",
        )
    return name or ("perf" if PERF.find() else "tracefs")


def privileged() -> list[str]:
    """Returns the prefix that gives a command root rights; asks for the password if needed.

    Raises MachineUnfit if there is no way to get them.
    """
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        raise MachineUnfit(
            "recording a whole machine needs root rights, and there is no sudo",
            fix="run this command as root",
        )
    if subprocess.run(["sudo", "--validate"], check=False).returncode:
        raise MachineUnfit(
            "sudo gave no root rights",
            fix="run this command as root, or as a user who may use sudo",
        )
    return ["sudo", "--non-interactive", "--"]


@contextmanager
def recording(tool: str, folder: Path, prefix: Sequence[str]) -> Iterator[Path]:
    """Records into a file of `folder` within the block, and returns the file.

    Raises SchedlabError if the recorder does not start, or does not end in order.
    """
    with _perf(folder, prefix) if tool == "perf" else _tracefs(folder, prefix) as file:
        yield file


@contextmanager
def _perf(folder: Path, prefix: Sequence[str]) -> Iterator[Path]:
    """Records with perf within the block, and yields the path of the recording."""
    file = folder / PERF.file
    pipes = [folder / name for name in (".control", ".answers")]
    for pipe in pipes:
        os.mkfifo(pipe, 0o600)
    command = [
        *(*prefix, PERF.find() or "perf", "record", "--quiet", "--all-cpus", "--delay=-1"),
        *("--mmap-pages", _BUFFER, "--output", str(file)),
        *("--event", ",".join(f"sched:{event}" for event in EVENTS)),
        f"--control=fifo:{pipes[0]},{pipes[1]}",
    ]
    try:
        # Opened for both directions: it does not wait for the other side, which may have failed.
        with (
            _start_recorder(command, stdout=subprocess.DEVNULL) as process,
            pipes[0].open("r+b", buffering=0) as control,
            pipes[1].open("r+b", buffering=0) as answers,
        ):
            control.write(b"enable\n")
            _await_answer(process, answers)
            yield file
            control.write(b"stop\n")
            _await_end(process)
    finally:
        for pipe in pipes:
            pipe.unlink(missing_ok=True)
        if prefix and file.exists():
            owner = f"{os.getuid()}:{os.getgid()}"
            subprocess.run([*prefix, "chown", owner, str(file)], check=False)


@contextmanager
def _tracefs(folder: Path, prefix: Sequence[str]) -> Iterator[Path]:
    """Records with the kernel's tracefs within the block, and yields the path of the recording."""
    file = folder / "trace.txt"
    with file.open("wb") as output:
        command = [*prefix, "sh", str(_TRACEFS), f"schedlab-{os.getpid()}", *EVENTS]
        with _start_recorder(command, stdout=output, stdin=subprocess.PIPE) as process:
            assert process.stderr and process.stdin
            _await_answer(process, process.stderr)
            yield file
            process.stdin.close()
            _await_end(process)


@contextmanager
def _start_recorder(
    command: Sequence[str], **streams: int | IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a recorder; kills it if the block fails."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, **streams)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        if process.poll() is None:
            if process.stdin:
                process.stdin.close()  # the script of tracefs then ends in order
            else:
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_START_LIMIT_S)
            process.kill()
        process.wait()


def _await_answer(process: subprocess.Popen[bytes], answers: IO[bytes]) -> None:
    """Waits until the recorder says that it records."""
    os.set_blocking(answers.fileno(), False)
    deadline = time.monotonic() + _START_LIMIT_S
    while not (answer := answers.read(64)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise _recorder_error(process)
        time.sleep(0.01)
    os.set_blocking(answers.fileno(), True)
    if b"ready" not in answer and b"ack" not in answer:
        raise _recorder_error(process, answer)


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Waits until the recorder has written everything. Ctrl-C also ends perf, in order."""
    try:
        status = process.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        status = None
    if status not in (0, -signal.SIGINT, 128 + signal.SIGINT):
        raise _recorder_error(process)


def _recorder_error(process: subprocess.Popen[bytes], read: bytes = b"") -> SchedlabError:
    """Returns the error of a recorder that did not start or end in order."""
    process.kill()
    assert process.stderr
    os.set_blocking(process.stderr.fileno(), True)
    lines = (read + process.stderr.read()).decode(errors="replace").strip().splitlines()
    return MachineUnfit(
        f"the recorder failed: {lines[-1] if lines else 'it gave no reason'}",
        fix="a container or a locked kernel may forbid tracing: record on the machine itself",
    )


def run_command(command: Sequence[str]) -> int:
    """Runs a command as the caller and returns its exit status.

    Under sudo, the caller is the user who called sudo. Ctrl-C ends the command only.
    """
    user = os.environ.get("SUDO_UID") if os.geteuid() == 0 else None
    group = os.environ.get("SUDO_GID")
    identity = (
        {"user": int(user), "group": int(group), "extra_groups": []} if user and group else {}
    )
    try:
        process = subprocess.Popen(command, **identity)  # type: ignore[call-overload]
    except OSError as error:
        raise WrongUsage(
            f"cannot be started: {error.strerror}",
            what=shlex.join(command),
            fix="name an installed program, or the path of an executable file",
        ) from None
    while True:
        try:
            return int(process.wait())
        except KeyboardInterrupt:
            continue  # the command has received it, too


def tick_ns() -> int:
    """Returns the tick (ns) of this machine's kernel, or the usual one if its configuration is unknown."""
    for file in (Path(f"/boot/config-{platform.release()}"), Path("/proc/config.gz")):
        with suppress(OSError):
            content = file.read_bytes()
            text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
            if match := re.search(r"^CONFIG_HZ=(\d+)$", text, re.MULTILINE):
                return 1_000_000_000 // int(match[1])
    return TICK_NS


def policy_name() -> str:
    """Returns the name of the loaded sched_ext scheduler, or of Linux's default class."""
    try:
        return _SCX_NAME.read_text().strip() or POLICY
    except OSError:
        return POLICY
