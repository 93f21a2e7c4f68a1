# SPDX-License-Identifier: MIT
"""Pauses and resumes QEMU, together with the guest's clock."""

import asyncio
import logging
import socket
from contextlib import suppress

from qemu.qmp import QMPClient, QMPError

from schedlab.monitor.system import Refused

_ANSWER_SECONDS = 10.0
_GREETINGS_BYTES = 4096
_FAILURES = (QMPError, OSError, EOFError, TimeoutError, asyncio.TimeoutError)
logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL + 1)  # callers report its exceptions


class QemuControl:
    """QEMU's machine protocol (QMP) over a socket pair that no other process can open."""

    def __init__(self) -> None:
        self._monitor_socket, self.qemu_socket = socket.socketpair()
        """QEMU inherits `qemu_socket`."""
        self._client = QMPClient("schedlab")

    async def connect(self) -> None:
        """Connects once the guest runs. Raises Refused if QEMU does not answer."""
        self.qemu_socket.close()
        self._drop_earlier_greetings()
        try:
            await asyncio.wait_for(self._client.connect(self._monitor_socket), _ANSWER_SECONDS)
        except _FAILURES as error:
            raise Refused(
                f"QEMU does not answer: {error or f'no answer within {_ANSWER_SECONDS:g} s'}",
                fix="restart this system; if that fails, update QEMU",
            ) from None

    def _drop_earlier_greetings(self) -> None:
        """Drops all greetings except the last; earlier ones come from a QEMU that exited before a restart."""
        with suppress(BlockingIOError):
            greeting = self._monitor_socket.recv(
                _GREETINGS_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT
            )
            earlier_bytes = greeting.rstrip().rfind(b"\n") + 1
            self._monitor_socket.recv(earlier_bytes, socket.MSG_DONTWAIT)

    async def pause(self) -> None:
        """Raises Refused if QEMU does not pause."""
        await self._execute("stop")

    async def resume(self) -> None:
        await self._execute("cont")

    async def close(self) -> None:
        """Closes the connection in any state."""
        with suppress(QMPError, OSError, EOFError):
            await self._client.disconnect()
        self._monitor_socket.close()
        self.qemu_socket.close()

    async def _execute(self, command: str) -> None:
        try:
            await asyncio.wait_for(self._client.execute(command), _ANSWER_SECONDS)
        except _FAILURES as error:
            raise Refused(
                f"QEMU did not perform `{command}`: {error or 'it did not answer'}",
                fix="restart this system in the monitor",
            ) from None
