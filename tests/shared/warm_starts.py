# SPDX-License-Identifier: MIT
"""Runs schedlab commands in forks of a process that has already imported their modules.

Starting Python and importing takes longer than most commands' work. Each command is still a
separate process, with the environment, directory and initial module state of a fresh start.
`tests/commands/test_first_commands.py` starts commands as the launcher does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LATER_IMPORTS = ("scipy.stats",)
"""Third-party modules that commands import late."""
LEFT_OUT = ("__main__", "benchmarks", "documents", "soak", "sweep")
"""Parts of names of modules that few commands need, or that compute during import."""
POOL = "polars-0"
"""A thread of polars's pool, started by its first computation."""
REQUEST_BYTES = 1 << 20
DIED = "the process that commands are forked from has ended"


class WarmStarts:
    """Runs commands. Each waiting thread has a process to fork from; these processes end with
    this one.
    """

    def __init__(self) -> None:
        self.cpu_s = 0.0
        """CPU seconds of all commands, including the imports before them."""
        self._idle: list[socket.socket] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def _connected(self) -> socket.socket:
        if self._idle:
            return self._idle.pop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._processes.append(process)
        return ours

    def run(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs `./schedlab WORDS` like subprocess.run(), and raises its errors."""
        request = {"words": words, "cwd": str(cwd or Path.cwd()), "environment": dict(environment)}
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
            connection = self._connected()
            try:
                connection.settimeout(None)
                outputs = (out.fileno(), err.fileno())
                socket.send_fds(connection, [json.dumps(request).encode()], outputs)
                pid = int(_answer(connection))
                status, taken_s = _wait(connection, pid, words, timeout)
            finally:
                self._idle.append(connection)
            self.cpu_s += taken_s
            streams = []
            for file in (out, err):
                file.seek(0)
                streams.append(file.read().decode())
        return subprocess.CompletedProcess(list(words), status, *streams)


def _wait(
    connection: socket.socket, pid: int, words: Sequence[str], timeout: float
) -> tuple[int, float]:
    """Returns a command's exit status, as subprocess defines it, and its CPU seconds."""
    try:
        connection.settimeout(timeout)
        status, taken_s = json.loads(_answer(connection))
    except BaseException as error:
        os.kill(pid, signal.SIGKILL)
        connection.settimeout(None)
        _answer(connection)
        if isinstance(error, TimeoutError):
            raise subprocess.TimeoutExpired(words, timeout) from None
        raise
    return status, taken_s


def _answer(connection: socket.socket) -> bytes:
    answer = connection.recv(REQUEST_BYTES)
    if not answer:
        raise RuntimeError(DIED)
    return answer


warm_starts = WarmStarts()
"""The instance of this process."""


# ---- in the process that forks commands


def import_all() -> None:
    """Imports the modules of all commands. A fork has no other threads: a command would wait
    forever for the threads of a pool.
    """
    import schedlab

    for module in pkgutil.walk_packages(schedlab.__path__, "schedlab."):
        if not any(part in module.name for part in LEFT_OUT):
            importlib.import_module(module.name)
    for name in LATER_IMPORTS:
        importlib.import_module(name)
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert POOL not in threads, f"a module computes when it is imported: {LEFT_OUT} has to name it"
    gc.freeze()


def serve(connection: socket.socket) -> None:
    """Forks a command for each request. Returns only in the forked processes."""
    before_s = time.process_time()
    while True:
        data, outputs, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 2)
        if not data:
            sys.exit()
        pid = os.fork()
        if not pid:
            connection.close()
            become(json.loads(data), outputs)
            return
        for output in outputs:
            os.close(output)
        connection.send(str(pid).encode())
        _, status, usage = os.wait4(pid, 0)
        server_s = time.process_time()
        taken_s = usage.ru_utime + usage.ru_stime + server_s - before_s
        before_s = server_s
        connection.send(json.dumps((os.waitstatus_to_exitcode(status), taken_s)).encode())


def become(request: Mapping[str, Any], outputs: Sequence[int]) -> None:
    """Gives this process the state of a freshly started one."""
    for output, place in zip(outputs, (1, 2), strict=True):
        os.dup2(output, place)
        os.close(output)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = ["schedlab", *request["words"]]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the suite, which ends this process
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "sim" / "python"), str(ROOT / "tools")]
    from start import leave_the_callers_settings

    leave_the_callers_settings()
    import_all()
    serve(socket.socket(fileno=int(sys.argv[1])))
    leave_the_callers_settings()
    runpy.run_module("schedlab", run_name="__main__", alter_sys=True)
