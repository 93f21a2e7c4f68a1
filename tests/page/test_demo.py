# SPDX-License-Identifier: MIT
"""`./schedlab demo`, where there is a Python and nothing else."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conftest import ROOT
from schedlab.demo.__main__ import PAGE

COMMAND = [str(ROOT / "schedlab"), "demo"]


def bare(folder: Path) -> dict[str, str]:
    """An environment without a home, and with no program but those of the system."""
    return {"PATH": "/usr/bin:/bin", "BROWSER": "/bin/true", "XDG_CACHE_HOME": str(folder / "none")}


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    demo = subprocess.Popen(
        [*COMMAND, *words],
        env=bare(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert demo.stdout
        address = demo.stdout.readline().strip()
        assert demo.stdout.readline() == "Ctrl-C ends it.\n"
        yield demo, address
    finally:
        demo.kill()
        demo.wait()


def answer(address: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.request("GET", path)
    got = connection.getresponse()
    return got.status, got.read()


def test_it_serves_the_page_and_installs_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as (_, address):
        assert urlsplit(address).hostname == "127.0.0.1"
        assert answer(address, "/") == (200, PAGE.read_bytes())
        assert answer(address, "/schedlab") == (404, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--no-browser") as (demo, _):
        demo.send_signal(number)
        assert demo.stdout
        assert demo.stdout.read() == ""
        assert demo.wait(10) == (0 if number is signal.SIGINT else 128 + number)


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, "--no-browser") as (_, address):
        port = str(urlsplit(address).port)
        done = subprocess.run(
            [*COMMAND, "--no-browser", "--port", port],
            env=bare(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"schedlab: --port {port}: ")
    assert "choose another" in done.stderr
