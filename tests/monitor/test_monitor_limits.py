# SPDX-License-Identifier: MIT
"""Tests that other users of this host can neither exhaust the monitor server's memory, nor get its
token, nor write to its terminal.

The server is a separate process, with a stand-in for a machine.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tornado.httpclient import HTTPClientError
from tornado.websocket import WebSocketClientConnection, websocket_connect

from schedlab.monitor import commands, limits
from schedlab.runs.parts import build_parts

MIB = 1 << 20
PROGRAM = """
import asyncio
import sys

from monitor_stand_ins import StandIn, choices, setup
from schedlab.monitor.conduct import PageOptions, page_front_end, run_session
from schedlab.monitor.session import Session
from schedlab.monitor.system import Status, StatusRow

class Long(StandIn):
    async def read_status(self):
        await asyncio.sleep(float(sys.argv[1]))
        row = StatusRow("a name of some length", 1, "blocked", 5, None, 1)
        return Status("rr", {}, (row,) * 500, "")

run_session(lambda: Session([setup()], choices(), make=Long), page_front_end(PageOptions("127.0.0.1", 0, False)))
"""


class Monitor:
    """A running monitor."""

    def __init__(self, late_s: float = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(late_s)],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            cwd=Path(__file__).parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()
        parts = urlsplit(self.url)
        self.host, self.port, self.query = parts.netloc, parts.port or 0, parts.query

    def memory(self) -> int:
        """Returns its memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s*(\d+) kB", status)
        assert match
        return int(match[1]) * 1024

    def unread(self) -> int:
        """Returns the bytes of its answers that the kernel keeps until they are read."""
        unread_bytes = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == self.port:
                unread_bytes += int(fields[4].partition(":")[0], 16)
        return unread_bytes

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def say(self, request: bytes, timeout_s: float = 1) -> bytes:
        """Returns its answer until it closes the connection, or stays silent for this long."""
        with self.connect() as link:
            link.settimeout(timeout_s)
            answer = b""
            with suppress(OSError):
                link.sendall(request)
                while piece := link.recv(MIB):
                    answer += piece
            return answer

    def answers(self) -> bool:
        request = f"GET / HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n\r\n"
        return self.say(request.encode(), 30).startswith(b"HTTP/1.1 200 OK")

    def end(self) -> str:
        """Ends the monitor and returns its terminal output."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


@pytest.fixture(scope="module")
def monitor() -> Iterator[Monitor]:
    build_parts(["simulator"])
    made = Monitor()
    assert made.answers()
    yield made
    output = made.end()
    assert output.splitlines()[1:] == [], output


def pour(link: socket.socket, piece: bytes, most: int) -> int:
    """Sends until refused; returns the number of bytes sent."""
    sent = 0
    with suppress(OSError):
        while sent < most:
            sent += link.send(piece)
    return sent


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        ("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99000000\r\n\r\n", b"x" * MIB),
        (
            "POST /socket HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"100000\r\n" + b"x" * MIB + b"\r\n",
        ),
        ("GET / HTTP/1.1\r\n", b"X-Long: " + b"x" * 4000 + b"\r\n"),
    ],
    ids=("body", "chunks", "headers"),
)
def test_neither_bodies_nor_long_headers_are_taken(
    monitor: Monitor, head: str, piece: bytes
) -> None:
    before = monitor.memory()
    links = [monitor.connect() for _ in range(10)]
    for link in links:
        link.sendall(head.replace("HOST", monitor.host).encode())
        assert pour(link, piece, 20 * MIB) < 16 * MIB, "it was read"
    assert monitor.memory() - before < 8 * MIB
    for link in links:
        link.close()
    assert monitor.answers()


def test_silent_connections_are_dropped(monitor: Monitor) -> None:
    before = monitor.memory()
    links = [monitor.connect() for _ in range(300)]
    assert monitor.answers()
    descriptors = len(os.listdir(f"/proc/{monitor.process.pid}/fd"))
    assert descriptors < limits._CONNECTIONS_MAX + 40
    assert monitor.memory() - before < 16 * MIB
    for link in links:
        link.close()


def test_who_asks_and_does_not_read_takes_no_memory(monitor: Monitor) -> None:
    request = f"GET /vega.js HTTP/1.1\r\nHost: {monitor.host}\r\n".encode()
    response = monitor.say(request + b"Connection: close\r\n\r\n", 60)
    assert len(response) > MIB // 2
    before = monitor.memory()
    links = []
    for _ in range(100):
        link = socket.socket()
        link.settimeout(60)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(("127.0.0.1", monitor.port))
        link.sendall((request + b"\r\n") * 5)
        links.append(link)
    for link in links:
        assert link.recv(1, socket.MSG_PEEK), "an answer has begun"
    assert monitor.memory() - before < 40 * MIB
    assert monitor.unread() < 40 * MIB
    for link in links:
        link.close()
    assert monitor.answers()


NONSENSE = [
    b"\r\n\r\n",
    b"\0" * 100 + b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nHost: other\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nContent-Length: \xc2\xb2\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nCookie: \xff\xfe; a=\x01\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nRange: bytes=99999999999999999999-\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nRange: bytes=9-1,\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nIf-Modified-Since: never \xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: %b\r\nIf-Modified-Since: Mon, 99 Feb 99999 00:00:00\r\n\r\n",
    b'GET / HTTP/1.1\r\nHost: %b\r\nIf-None-Match: "\xff\r\n\r\n',
    b"GET /%%00 HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /app.js%%00 HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /%%ff%%fe HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /report/%%00/%%00 HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /" + b"../" * 100 + b"etc/passwd HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET //[ HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET http://[/ HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /drawing HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"HEAD /vega.js HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"PUT /socket HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /socket?token=%%ff%%fe HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /socket?token=%%00 HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /socket?token=a&token=\xc3\xa9 HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /socket?" + b"a=1&" * 3000 + b" HTTP/1.1\r\nHost: %b\r\n\r\n",
    b"GET /socket?token=x HTTP/1.1\r\nHost: %b\r\nOrigin: http://[\r\n\r\n",
    b"GET /socket?token=x HTTP/1.1\r\nHost: %b\r\nOrigin: \xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff:1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:99999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:\xc2\xb2\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500,
]


def test_nonsense_is_answered_in_words_and_leaves_no_trace_on_the_terminal(
    monitor: Monitor,
) -> None:
    """The fixture checks at the end that the terminal stayed silent."""
    for request in NONSENSE:
        answer = monitor.say(request.replace(b"%b", monitor.host.encode()).replace(b"%%", b"%"))
        assert b"Traceback" not in answer
        assert not answer.startswith(b"HTTP/1.1 5"), (request, answer)
    assert monitor.answers()


# --- pages that have the token


@asynccontextmanager
async def opened(monitor: Monitor) -> AsyncIterator[WebSocketClientConnection]:
    """Returns a page's socket."""
    link = await websocket_connect(f"ws://{monitor.host}/socket?{monitor.query}")
    try:
        yield link
    finally:
        link.close()
        await asyncio.sleep(0.05)


async def answer_to(link: WebSocketClientConnection, message: str | bytes) -> dict[str, Any] | str:
    """Returns the answer, or the reason why the socket was closed."""
    await link.write_message(message, binary=isinstance(message, bytes))
    while True:
        text = await asyncio.wait_for(link.read_message(), 20)
        if text is None:
            return link.close_reason or "closed"
        if isinstance(text, bytes):
            continue  # records
        reply: dict[str, Any] = json.loads(text)
        if reply["type"] == "answer":
            return reply


VALUES: list[Any] = [
    *(None, True, -1, 7.5, 1e300, 2**63 - 1, 2**63, -(2**63), [], ["a"], ["two-hogs", 7]),
    *("", "a", "*", "rr", "mlfq:none", "lottery,rr", "priority", "\0", "é" * 900),
]
KEYS = (
    *("system", "policy", "name", "value", "kind", "pid", "group", "workload", "time_ns"),
    *("cpus", "seed", "tick_ns", "workloads", "speed", "seconds", "on", "label", "pids", "back"),
)
COMMANDS = [
    command
    for command in (*commands._SYSTEM_COMMANDS, *commands._SESSION_COMMANDS)
    if command != "restart"
]


def test_wrong_messages_are_answered_in_words(monitor: Monitor) -> None:
    """Each command receives each value in each parameter; no answer is the name of an exception."""

    async def ask() -> None:
        async with opened(monitor) as link:
            for do in (*COMMANDS, *VALUES):
                for value in VALUES:
                    fields = {key: value for key in KEYS if key not in ("on", "system")}
                    if do == "attribute":
                        fields["kind"] = "priority"
                    if do == "record":
                        fields["on"] = False
                    message = json.dumps({"id": 1, "do": do, **fields}, ensure_ascii=False)
                    answer = await answer_to(link, message)
                    assert isinstance(answer, dict), (message, answer)
                    error_text = answer.get("error", "")
                    assert not re.match(r"\w*(Error|Exception|Warning)\b", error_text), (
                        message,
                        error_text,
                    )
            for key, value in itertools.product(("system", "on"), VALUES):
                answer = await answer_to(link, json.dumps({"id": 1, "do": "status", key: value}))
                assert isinstance(answer, dict)
                assert not re.match(r"\w*Error", answer.get("error", ""))

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("message", "expected_message"),
    [
        ("[" * 60000, "expected a JSON object"),
        (
            '{"id": 1, "do": ' + "[" * 900 + "]" * 900 + "}",
            "do: expected a number, a text or a list",
        ),
        ('{"id": ' + "[" * 300 + "]" * 300 + ', "do": "x"}', "id: expected a whole number"),
        ('{"id": 1, "do": "' + "x" * 2000 + '"}', "at most 1000 characters"),
        ('{"id": 1, "do": "\\ud800"}', "expected a JSON object"),
        (b"\xff\xfe", "expected a JSON object"),
    ],
    ids=itertools.count(),
)
def test_what_is_no_question_ends_the_socket_with_words(
    monitor: Monitor, message: str | bytes, expected_message: str
) -> None:
    async def ask() -> None:
        async with opened(monitor) as link:
            answer = await answer_to(link, message)
        assert isinstance(answer, str)
        assert expected_message in answer

    asyncio.run(ask())


@pytest.mark.parametrize("late_s", [0, pytest.param(0.1, marks=pytest.mark.long)])
def test_a_page_that_asks_and_does_not_read_is_heard_no_further(late_s: float) -> None:
    """The page asks for the system's state, a long answer, and reads none of it. If the
    system answers slowly, most questions exceed the limit, and their answers are short.
    """
    monitor = Monitor(late_s)

    async def ask() -> None:
        async with opened(monitor) as link:
            await answer_to(link, '{"id": 1, "do": "status"}')
            before = monitor.memory()
            raw = link.protocol.stream.socket  # type: ignore[union-attr]
            frames = (b"\x81\x9b" + bytes(4) + b'{"id": 2, "do": "status"}  ') * 100
            raw.setblocking(False)
            limit = time.monotonic() + 4
            sent = 0
            while time.monotonic() < limit:
                try:
                    sent += raw.send(frames[sent % len(frames) :])
                except BlockingIOError:
                    time.sleep(0.1)
            assert monitor.memory() - before < 120 * MIB, sent

    asyncio.run(ask())
    assert monitor.answers()
    assert monitor.end().splitlines()[1:] == []


def test_pages_have_a_limit(monitor: Monitor) -> None:
    async def come() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(limits.CLIENTS_MAX + 1):
                await stack.enter_async_context(opened(monitor))

    with pytest.raises(HTTPClientError, match="503"):
        asyncio.run(come())


# --- how a browser gets the token


BROWSER = """#!/bin/sh
tr '\\0' '\\n' </proc/$$/cmdline >"{place}/words.new"
mv "{place}/words.new" "{place}/words"
"""


def test_the_token_is_on_no_command_line(tmp_path: Path) -> None:
    """The browser stand-in records its arguments."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(place=tmp_path))
    browser.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    # This line runs after conftest, which gives all tests a known environment.
    named = f"import conftest, os\nos.environ['BROWSER'] = {f'{browser} %s'!r}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", named + PROGRAM.replace("False", "True")],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(sys.path),
            "HOME": str(home),
        },
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        token = url.partition("token=")[2]
        assert len(token) > 20
        limit = time.monotonic() + 60
        while not (tmp_path / "words").exists():
            assert time.monotonic() < limit
            time.sleep(0.05)
        words = (tmp_path / "words").read_text()
        assert token not in words
        address = words.split()[-1]
        file = Path(unquote(urlsplit(address).path))
        assert address.startswith("file:///")
        assert url in file.read_text()
        assert file.is_relative_to(home), "a browser in a snap could not read it"
        assert not any(part.startswith(".") for part in file.relative_to(home).parts)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

        async def come() -> None:
            query = urlsplit(url)
            link = await websocket_connect(f"ws://{query.netloc}/socket?{query.query}")
            while file.parent.exists():
                await asyncio.sleep(0.05)
            link.close()

        asyncio.run(asyncio.wait_for(come(), 30))
    finally:
        process.terminate()
        process.communicate(timeout=60)
