# SPDX-License-Identifier: MIT
"""Tests that a process tied to another ends with it, whenever the other ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Programs
from processes import is_running, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv is here")

STARTS = """
import os, subprocess, sys
from schedlab.base.host.isolated import complete_prefix
subprocess.Popen([*complete_prefix(), "sh", "-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 60"])
{then}
"""


def started_process(then: str, folder: Path, path: str = "") -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"],
    }
    return subprocess.Popen(
        [sys.executable, "-c", STARTS.format(then=then)], cwd=folder, env=environment, text=True
    )


def test_it_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    with started_process("import time; time.sleep(60)", tmp_path) as process:
        file = tmp_path / "pid"
        wait_until(file.exists)
        assert is_running(int(file.read_text()))
        process.kill()
    wait_until(lambda: not is_running(int(file.read_text())))


def test_it_does_not_begin_if_that_one_has_ended_already(program: Programs, tmp_path: Path) -> None:
    """On a busy host any time may elapse between the fork and the tie."""
    late = program(
        "setpriv",
        "echo $$ >late.new; mv late.new late\n"
        "until [ -e begun ]; do sleep 0.02; done\n"
        'while kill -0 "$(cat begun)" 2>/dev/null; do sleep 0.02; done\n'
        f'exec {shutil.which("setpriv")} "$@"',
    )
    then = 'file = open("begun.new", "w"); print(os.getpid(), file=file); file.close(); os.rename("begun.new", "begun")'
    started_process(f"{then}; os._exit(0)", tmp_path, str(late.parent)).wait()
    wait_until((tmp_path / "late").exists)
    pid = int((tmp_path / "late").read_text())
    wait_until(lambda: not is_running(pid) or (tmp_path / "pid").exists())
    assert not (tmp_path / "pid").exists()
