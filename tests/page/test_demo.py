# SPDX-License-Identifier: MIT
"""Tests `./schedlab demo` on a host with only Python."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from conftest import ROOT
from schedlab.monitor.demo import __main__ as demo
from schedlab.monitor.demo.__main__ import PAGE_FILE

COMMAND = [str(ROOT / "schedlab"), "demo"]


def bare(folder: Path) -> dict[str, str]:
    """Returns an environment without a home, whose PATH has only the system's programs."""
    return {"PATH": "/usr/bin:/bin", "BROWSER": "/bin/true", "XDG_CACHE_HOME": str(folder / "none")}


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Returns the command, and the address that it prints."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=bare(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout
        address = process.stdout.readline().strip()
        assert process.stdout.readline() == "Press Ctrl-C to end it.\n"
        yield process, address
    finally:
        process.kill()
        process.wait()


def answer(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.request(method, path, headers=headers)
    got = connection.getresponse()
    return got.status, got.read()


def test_it_serves_the_page_and_installs_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as (_, address):
        assert urlsplit(address).hostname == "127.0.0.1"
        status, page = answer(address, "/")
        assert (status, page.replace(b' data-editor="/edit"', b"")) == (200, PAGE_FILE.read_bytes())
        assert answer(address, "/schedlab") == (404, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--no-browser") as (process, _):
        process.send_signal(number)
        assert process.stdout
        assert process.stdout.read() == ""
        assert process.wait(10) == (0 if number is signal.SIGINT else 128 + number)


@contextmanager
def served(folder: Path, script: str, installs: bool) -> Iterator[tuple[demo._Demo, str]]:
    """Returns the demo and its address, with a stand-in for the launcher."""
    launcher = folder / "launcher"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    shown = demo._Demo(b"<html lang=en>", launcher, installs)
    server = demo._open_server(0)
    server.RequestHandlerClass = partial(demo._PageHandler, shown)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield shown, f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        shown.end()
        server.shutdown()
        thread.join()
        server.server_close()


def progress_at(address: str, awaited: str) -> dict[str, object]:
    """Returns the bar's text once it contains this."""
    for _ in range(200):
        progress: dict[str, object] = json.loads(answer(address, "/progress")[1])
        if awaited in str(progress["line"]) or progress["status"] is not None:
            return progress
        time.sleep(0.05)
    raise AssertionError(f"it never said {awaited}")


def test_the_demo_builds_the_playground_when_its_own_page_asks(tmp_path: Path) -> None:
    script = 'echo "$@" >>"${0%/*}/words"; echo fetching >&2; echo http://127.0.0.1:1/; sleep 1000'
    with served(tmp_path, script, installs=False) as (shown, address):
        own = address.rstrip("/")
        assert answer(address, "/") == (200, b'<html data-editor="/edit" lang=en>')
        assert answer(address, "/edit")[0] == 200
        assert answer(address, "/progress")[0] == 404
        renamed = f"example.org:{urlsplit(address).port}"  # a name that leads to this machine
        for origin, host in (("http://example.org", renamed), (f"http://{renamed}", renamed)):
            assert answer(address, "/edit", "POST", Origin=origin, Host=host)[0] == 404
        assert answer(address, "/edit", "POST", Origin="null")[0] == 404
        assert shown.command is None
        for _ in range(2):  # it is started once
            assert answer(address, "/edit", "POST", Origin=own)[0] == 200
        progress = progress_at(address, "fetching")
        for _ in range(200):
            if progress["result"]:
                break
            progress = json.loads(answer(address, "/progress")[1])
            time.sleep(0.05)
        assert progress == {"line": "fetching", "status": None, "result": "http://127.0.0.1:1/"}
    assert shown.command
    assert shown.command.progress()["status"] == -signal.SIGINT
    assert (tmp_path / "words").read_text() == "page --serve --no-browser\n"
