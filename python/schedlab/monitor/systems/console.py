# SPDX-License-Identifier: MIT
"""Splits the schedlab kernel's console into answers of its program `steer` and the log.

Both share one stream of characters. The characters of a single write are contiguous, but an
unfinished line of another program may precede an answer on the same line. The kernel does not echo
input (boot argument console-echo=0).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from schedlab.base.display.names import visible

LINE_MAX = 2000
"""Characters of a log line; longer lines are cut."""
LOG_MAX = 2000
"""Log lines kept until they are read; the oldest are dropped beyond this."""
_PARTIAL_MAX = 1 << 16
"""Bytes of an unfinished line; answers are shorter."""
_TAIL_BYTES = 1 << 16

_MARK = b"@@ "
_ANSWER = re.compile(
    rb"@@ (\d{1,9}) (?:"
    rb"\|(?P<line>.*)"
    rb"|ok(?: (?P<value>-?\d{1,18}))?"
    rb"|error (?P<error>\d{1,9})(?: (?P<words>.*))?"
    rb"|ready (?P<pid>\d{1,9}) (?P<cost>\d{1,18})"
    rb")",
    re.DOTALL,
)
_CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), 127) if code != ord("\t")}


@dataclass(frozen=True)
class Line:
    """`@@ 7 |TEXT`: a line of the requested text."""

    number: int
    text: str


@dataclass(frozen=True)
class Done:
    """`@@ 7 ok`, or `@@ 7 ok VALUE`."""

    number: int
    value: int | None


@dataclass(frozen=True)
class Failed:
    """`@@ 7 error NUMBER WORDS`."""

    number: int
    error: int
    words: str


@dataclass(frozen=True)
class Ready:
    """`@@ 0 ready PID PICOSECONDS`: `steer` accepts commands."""

    pid: int
    record_cost_ps: int


Answer = Line | Done | Failed | Ready


class Console:
    """Parses bytes as they arrive, returns answers and keeps the log."""

    def __init__(self) -> None:
        self._partial = b""
        """The last line, which is still unfinished."""
        self._partial_line = b""
        """The unfinished line that preceded an answer."""
        self._before = b""
        """Both unfinished parts at the last call of take_log()."""
        self._log: deque[str] = deque(maxlen=LOG_MAX)
        self._dropped = 0
        self._tail = b""

    def feed(self, data: bytes) -> list[Answer]:
        """Returns the answers that these bytes complete, in order."""
        data = data.replace(b"\r", b"")
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        *lines, self._partial = (self._partial + data).split(b"\n")
        answers = [answer for line in lines if (answer := self._line(line)) is not None]
        if len(self._partial) + len(self._partial_line) > _PARTIAL_MAX:
            self._end_line()
        return answers

    def take_log(self) -> list[str]:
        """Returns new log lines, including an unfinished line that did not grow since the last call."""
        now = self._partial_line + self._partial
        if now and now == self._before and _MARK not in now:
            self._end_line()
        self._before = self._partial_line + self._partial
        lines = list(self._log)
        if self._dropped:
            lines.insert(0, f"({self._dropped} lines omitted: too many at once)")
        self._log.clear()
        self._dropped = 0
        return lines

    def close(self) -> None:
        """Ends an unfinished line. Called when the stream is closed."""
        if self._partial_line or self._partial:
            self._end_line()

    @property
    def tail(self) -> str:
        """The last output, without answers."""
        lines = self._tail.split(b"\n")
        return "\n".join(_readable(line) for line in lines if _MARK not in line)

    def _line(self, line: bytes) -> Answer | None:
        place = line.find(_MARK)
        while place >= 0:
            match = _ANSWER.fullmatch(line, place)
            if match:
                self._partial_line += line[:place]
                return _answer(match)
            place = line.find(_MARK, place + 1)
        self._add(self._partial_line + line)
        return None

    def _end_line(self) -> None:
        self._add(self._partial_line + self._partial)
        self._partial = b""

    def _add(self, line: bytes) -> None:
        """Adds a line to the log."""
        self._partial_line = b""
        if len(self._log) == self._log.maxlen:
            self._dropped += 1
        self._log.append(_readable(line)[:LINE_MAX])


def _answer(match: re.Match[bytes]) -> Answer:
    number = int(match[1])
    if match["line"] is not None:
        return Line(number, match["line"].decode(errors="replace"))
    if match["error"] is not None:
        return Failed(number, int(match["error"]), (match["words"] or b"").decode(errors="replace"))
    if match["pid"] is not None:
        return Ready(int(match["pid"]), int(match["cost"]))
    return Done(number, int(match["value"]) if match["value"] is not None else None)


def _readable(line: bytes) -> str:
    """Replaces control characters, because pages and terminals show text only."""
    return visible(line.decode(errors="replace").translate(_CONTROLS))
