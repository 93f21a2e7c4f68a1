# SPDX-License-Identifier: MIT
"""Feeds the monitor's server with messages and complete connections, as a page or an attacker
could."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from monitor_stand_ins import StandIn, Watching, choices, setup, until
from schedlab import paths
from schedlab.errors import SchedlabError
from schedlab.monitor import files as serving
from schedlab.monitor import worker
from schedlab.monitor.commands import perform_command
from schedlab.monitor.limits import read_message
from schedlab.monitor.page_socket import encode_message
from schedlab.monitor.server import Server
from schedlab.monitor.session import Session
from schedlab.runs.parts import build_parts

MESSAGES: tuple[dict[str, Any], ...] = (
    {"do": "policy", "system": "a", "policy": "lottery:thesis"},
    {"do": "tunable", "name": "slice", "value": 7},
    {"do": "tunables", "system": "b"},
    {"do": "status", "system": "*"},
    {"do": "attribute", "kind": "tickets", "pid": 3, "value": 9},
    {"do": "attribute", "kind": "priority", "pids": [3, 4], "value": 1},
    {"do": "start", "workload": "two-hogs"},
    {"do": "kill", "pid": 3},
    {"do": "record", "on": True, "label": "mine"},
    {"do": "perfetto"},
    {"do": "record", "on": False},
    {"do": "report"},
    {"do": "window", "seconds": 2.5},
    {"do": "pace", "speed": 0.5},
    {"do": "resume"},
    {"do": "pause"},
    {"do": "restart", "cpus": 3, "seed": 2, "tick_ns": 1_000_000, "workloads": ["hog"], "policy": "rr"},
)  # fmt: skip
_SPEED = 1e-4
"""Speed of the model: almost 0, even on a busy host."""
_WORK_BEGIN_NS = 50_000_000
"""A time after the last process starts and before the first one ends."""
TOKEN = "the-token"
_PATIENCE_S = 0.2
"""Patience with a connection if the server expects more bytes."""


class Wrong(Exception):
    """Raised for output that the server must never produce."""


# --- messages


def lines(folder: Path) -> None:
    """Writes one line per message: an example of each that docs/monitor.md lists."""
    build_parts(["simulator"])
    numbered = ({"id": number, **message} for number, message in enumerate(MESSAGES))
    (folder / "messages").write_text("".join(f"{json.dumps(message)}\n" for message in numbered))


def ask(folder: Path, file: Path) -> list[str]:
    """Sends each line as a message, and returns the refusals; a refusal does not end the
    session."""
    with (
        mock.patch.object(paths, "RUNS_FOLDER", folder / "imported"),
        mock.patch.object(worker, "_call_in_process", _work),
    ):
        return asyncio.run(_ask(file.read_bytes().splitlines()))


async def _work(function: object, *_: object, **request: object) -> object:
    """Skips measuring and drawing, which take seconds and read nothing of a message."""
    return "x" if function is worker.report_folders else {"status": "success", "message": ""}


async def _ask(messages: list[bytes]) -> list[str]:
    refusals: list[str] = []
    async with _session() as session:
        for raw_message in messages:
            try:
                message = read_message(raw_message)
                encode_message(
                    {"id": message.get("id"), "result": await perform_command(session, message)}
                )
            except (SchedlabError, OSError) as error:
                encode_message({"error": str(error)})
                refusals.append(f"{raw_message!r}: {error}")
            encode_message(session.hello())
    return refusals


@asynccontextmanager
async def _session() -> AsyncIterator[Session]:
    session = Session([setup("rr"), setup("lottery")], choices(), make=StandIn, speed=_SPEED)
    Watching(session)
    driving = asyncio.ensure_future(session.run())
    try:
        systems = session.systems.values()
        await until(lambda: all(system.is_ready for system in systems))
        for system in systems:
            await system.played.advance(_WORK_BEGIN_NS, 1)
        await until(
            lambda: all(system.tape and 4 in system.tape.state.processes for system in systems)
        )
        yield session
    finally:
        driving.cancel()
        with suppress(asyncio.CancelledError):
            await driving
        await session.close()


# --- complete connections


def connection(folder: Path) -> None:
    """Writes the bytes of a page's connection: the opening request, then framed and masked
    messages."""
    build_parts(["simulator"])
    request = (
        f"GET /socket?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
        "Origin: http://127.0.0.1:PORT\r\n\r\n"
    )
    frames = b"".join(
        _frame(json.dumps({"id": 1, "do": command}).encode()) for command in ("status", "tunables")
    )
    (folder / "connection").write_bytes(
        request.encode() + frames + _frame(b"ping", 9) + _frame(b"\x03\xe8", 8)
    )


def _frame(data: bytes, kind: int = 1) -> bytes:
    mask = b"\x05\x0a\x50\xa0"
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    return bytes((0x80 | kind, 0x80 | len(data))) + mask + masked


def connect(_: Path, file: Path) -> None:
    """Raises Wrong for an answer with status 5xx, a traceback, or any output on the terminal."""
    with _heard() as log_messages:
        answer = asyncio.run(_connect(file.read_bytes()))
    if log_messages or b"Traceback" in answer or answer.startswith(b"HTTP/1.1 5"):
        raise Wrong(log_messages or answer[:200])


async def _connect(data: bytes) -> bytes:
    async with _session() as session:
        server = Server(session)
        server.token = TOKEN
        try:
            return await _exchange(server.port, data.replace(b"PORT", str(server.port).encode()))
        finally:
            await server.close()


async def _exchange(port: int, data: bytes) -> bytes:
    """Returns all answers until the server closes, answers both messages, or takes too long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = bytearray()

    async def hear() -> None:
        while answer.count(b'"type":"answer"') < 2 and (piece := await reader.read(1 << 16)):
            answer.extend(piece)

    with suppress(OSError, asyncio.TimeoutError):
        writer.write(data)
        await asyncio.wait_for(hear(), _PATIENCE_S)
    writer.close()
    return bytes(answer)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collects what the server and its libraries would print on the terminal."""
    log_messages: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log_messages.append(record.getMessage())

    ear = Ear(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("tornado", "asyncio")]
    for logger in loggers:
        logger.addHandler(ear)
    try:
        with mock.patch.object(serving, "say", log_messages.append):
            yield log_messages
    finally:
        for logger in loggers:
            logger.removeHandler(ear)
