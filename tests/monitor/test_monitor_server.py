# SPDX-License-Identifier: MIT
"""Tests the page's server: access, content, and that no client delays another."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from monitor_stand_ins import StandIn, choices, recorded, setup, until
from schedlab.errors import WrongUsage
from schedlab.monitor.server import Server
from schedlab.monitor.session import Session
from schedlab.monitor.system import Records, Setup
from schedlab.trace.format import RECORD, Kind


@asynccontextmanager
async def served(*setups: Setup, **options: Any) -> AsyncIterator[Server]:
    session = Session(setups or [setup()], choices(), make=StandIn, **options)
    server = Server(session)
    running = asyncio.ensure_future(session.run())
    try:
        yield server
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await server.close()
        await session.close()


def opened(payload: bytes) -> dict[str, Any]:
    """Returns records, preceded by the header if a trace begins."""
    begins = bool(payload[1])
    header, records = (payload[8:72], payload[72:]) if begins else (b"", payload[8:])
    kind = "begin" if begins else "records"
    rows = np.frombuffer(records, RECORD)
    return {"type": kind, "system": chr(payload[0]), "header": header, "records": rows}


class Client:
    """The socket side of a page."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self.connection = connection
        self.messages: list[dict[str, Any]] = []
        self.number = 0

    async def next(self, kind: str) -> dict[str, Any]:
        """Returns the next message of a kind; the others are kept."""
        while True:
            received = await asyncio.wait_for(self.connection.read_message(), 20)
            assert received is not None, "the socket was closed"
            message = opened(received) if isinstance(received, bytes) else json.loads(received)
            self.messages.append(message)
            if message["type"] == kind:
                return message

    async def records(self, count: int) -> Records:
        """Returns the first records of system a's trace. Fails if they take over a minute, also
        while other messages arrive.
        """
        return await asyncio.wait_for(self._records(count), 60)

    async def _records(self, count: int) -> Records:
        while (
            parts := [message["records"] for message in self.messages if "records" in message]
        ) == [] or (sum(map(len, parts)) < count):
            await self.next("records")
        return np.concatenate(parts)[:count]

    async def ask(self, do: str, **message: Any) -> dict[str, Any]:
        self.number += 1
        question = {"id": self.number, "do": do, **message}
        await self.connection.write_message(json.dumps(question))
        answer = await self.next("answer")
        assert answer["id"] == self.number
        return answer


async def connected(server: Server, **headers: str) -> Client:
    address = f"ws://127.0.0.1:{server.port}/socket?token={server.token}"
    return Client(await websocket_connect(HTTPRequest(address, headers=headers)))


async def fetched(server: Server, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = HTTPRequest(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    answer = await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)
    return answer.code, dict(answer.headers.get_all()), answer.body


def test_a_page_is_greeted_and_shown_what_happens() -> None:
    async def watch() -> None:
        async with served(setup("rr"), setup("lottery")) as server:
            client = await connected(server)
            hello = await client.next("hello")
            assert [system["system"] for system in hello["systems"]] == ["a", "b"]
            assert {policy["name"] for policy in hello["policies"]} == {"rr", "lottery"}
            assert {"name": "two-hogs", "title": "two CPU-bound processes", "kind": "simple"} in (
                hello["palette"]
            )
            assert hello["cpus_max"] == {"sim": 1024}
            await until(lambda: all(system.tape for system in server.session.systems.values()))
            states = [await client.next("state") for _ in range(6)]
            assert {state["system"] for state in states} == {"a", "b"}
            assert states[-1]["own"] == [1]
            assert (await client.next("state"))["life"] == "running"
            answer = await client.ask("tunables", system="b")
            assert (answer["ok"], answer["result"][0]["name"]) == (True, "slice")
            answer = await client.ask("policy", policy="rrr")
            assert not answer["ok"]
            assert "did you mean 'rr'" in answer["error"]

    asyncio.run(watch())


@pytest.mark.parametrize("path", ["/socket", "/socket?token=", "/socket?token=wrong"])
def test_nobody_without_the_token_is_heard(path: str) -> None:
    async def knock() -> None:
        async with served() as server:
            with pytest.raises(HTTPClientError) as refused:
                await websocket_connect(f"ws://127.0.0.1:{server.port}{path}")
            assert refused.value.code == 403
            assert not server.clients

    asyncio.run(knock())


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "elsewhere.example"},
        {"Host": "localhost.elsewhere.example"},
        {"Host": "["},
        {"Host": "127.0.0.1"},
    ],
)
def test_a_page_from_elsewhere_is_not_heard(headers: dict[str, str]) -> None:
    async def knock() -> None:
        async with served() as server:
            with pytest.raises(HTTPClientError) as refused:
                await connected(server, **headers)
            assert refused.value.code == 403

    asyncio.run(knock())


def test_files_are_served_with_what_keeps_others_out() -> None:
    async def look() -> None:
        async with served() as server:
            code, headers, body = await fetched(server, "/?token=whatever")
            assert code == 200
            assert b"<html" in body
            assert server.token.encode() not in body
            policy = headers["Content-Security-Policy"]
            assert "script-src 'self' 'wasm-unsafe-eval';" in policy
            assert "worker-src 'self';" in policy
            assert "default-src 'none'" in policy
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "Access-Control-Allow-Origin" not in headers
            for path in ("/../server.py", "/%2e%2e/server.py", "/report/x/y", "/perfetto/x/y"):
                assert (await fetched(server, path))[0] in (403, 404)
            code, _, body = await fetched(server, "/", Host="elsewhere.example")
            assert code == 403 and b"use the address that the monitor printed" in body

    asyncio.run(look())


def test_published_file_is_served_at_its_address(tmp_path: Path) -> None:
    async def look() -> None:
        async with served() as server:
            (tmp_path / "report").mkdir()
            (tmp_path / "secret").write_text("secret")
            page = tmp_path / "report" / "index.html"
            page.write_text("a page")
            (page.parent / "other.html").write_text("another")
            address = server.publish(page)
            assert (await fetched(server, address))[2] == b"a page"
            folder = address.rpartition("/")[0]
            assert (await fetched(server, f"{folder}/other.html"))[2] == b"another"
            assert (await fetched(server, f"{folder}/..%2fsecret"))[0] == 403
            assert (await fetched(server, "/report/guessed/index.html"))[0] == 403
            trace = tmp_path / "a-1.perfetto-trace"
            trace.write_bytes(b"trace")
            address = server.publish(trace)
            code, headers, body = await fetched(server, address)
            assert (code, body) == (200, b"trace")
            assert headers["Content-Disposition"] == 'attachment; filename="a-1.perfetto-trace"'
            assert (await fetched(server, address.replace("a-1", "secret")))[0] == 403

    asyncio.run(look())


def test_slow_page_restarts_and_is_informed() -> None:
    """It receives the state at the first kept record, and does not delay other pages."""

    async def watch() -> None:
        async with served(setup("rr"), speed=0.1) as server:
            watched = server.session.systems["a"]
            client = await connected(server)
            await client.records(10)
            (server_client,) = server.clients
            sent: list[bytes] = []
            go_on = asyncio.Event()

            async def slowly(data: bytes, binary: bool = False) -> None:
                sent.append(data)
                await asyncio.wait_for(go_on.wait(), 60)

            server_client.write_message = slowly  # type: ignore[method-assign, assignment]
            await until(lambda: sent)
            assert watched.tape
            recent = watched.tape.recent
            other = await connected(server)
            await other.records(10)  # from the beginning, since all records are still kept
            assert recent.begin == 0
            recent._records_max, recent._part_records = 1000, 100
            watched.played.speed = 5  # so that the records arrive in several parts
            _, records = recorded()
            assert (await other.records(len(records))).tolist() == records.tolist()
            assert recent.begin > 1000
            assert len(sent) == 1
            go_on.set()
            last = records[-1].tobytes()
            await until(lambda: any(payload.endswith(last) for payload in sent))
            messages = [json.loads(payload) for payload in sent if payload.startswith(b"{")]
            assert {"type": "missed", "system": "a", "frames": 1} in messages
            packets = [opened(payload) for payload in sent if not payload.startswith(b"{")]
            begins = [index for index, packet in enumerate(packets) if packet["type"] == "begin"]
            opening = packets[begins[-1]]["records"]
            assert (opening["kind"] == Kind.FOUND).any()
            rest = np.concatenate([packet["records"] for packet in packets[begins[-1] + 1 :]])
            assert rest.tolist() == records[-len(rest) :].tolist()
            assert 0 < len(rest) < len(records)

    asyncio.run(watch())


def test_a_port_that_is_taken_is_wrong_usage() -> None:
    async def listen() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            session = Session([setup()], choices(), make=StandIn)
            with pytest.raises(WrongUsage, match=r"leave out .port="):
                Server(session, port=taken.getsockname()[1])
            await session.close()

    asyncio.run(listen())


PROGRAM = """
import asyncio
from monitor_stand_ins import StandIn, choices, setup
from schedlab.monitor.conduct import PageOptions, page_front_end, run_session
from schedlab.monitor.session import Session
class Printing(StandIn):
    async def end(self):
        await super().end()
        print("ended", flush=True)
run_session(lambda: Session([setup()], choices(), make=Printing), page_front_end(PageOptions("127.0.0.1", 0, False)))
print("whole", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_in_order(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    assert "/?token=" in url
    process.send_signal(number)
    stdout, words = process.communicate(timeout=60)
    assert stdout.splitlines()[0] == "ended"
    assert "Traceback" not in words
    assert process.returncode == (0 if number == signal.SIGINT else 128 + number)
    assert ("whole" in stdout) == (number == signal.SIGINT)
