# SPDX-License-Identifier: MIT
"""Tests that waiting for a machine works on any host, and that no process remains."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from processes import is_running, wait_until
from schedlab.base.host.supervision import supervise


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Returns a process with more open files than select() supports, on a host without
    pidfd_open().
    """

    def missing(_pid: int) -> int:
        raise OSError("no such call")

    monkeypatch.setattr(os, "pidfd_open", missing)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with ExitStack() as files:
            for _ in range(min(1100, hard - 100)):
                files.enter_context(open(os.devnull))
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("script", "seconds", "status"),
    [("exit 3", 60.0, 3), ("sleep 600 & echo $! > child; wait", 0.5, None)],
)
@pytest.mark.usefixtures("crowded")
def test_it_is_awaited_and_ended(
    tmp_path: Path, script: str, seconds: float, status: int | None
) -> None:
    before = threading.active_count()
    exit_status = supervise(["/bin/sh", "-c", script], tmp_path, tmp_path / "console", seconds)
    assert exit_status == status
    if status is None:
        child = int((tmp_path / "child").read_text())
        wait_until(lambda: not is_running(child))  # on a busy host it takes a moment to end
    assert threading.active_count() <= before + 1  # the process that waited may still be ending
