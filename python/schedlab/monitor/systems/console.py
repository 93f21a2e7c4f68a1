# SPDX-License-Identifier: MIT
"""Separates a guest's console output into answers of the program `steer` and log lines.

Both share one stream of characters. The characters of a single write are contiguous, but an
unfinished line of another program may precede an answer on the same line. The kernel does not echo
input (boot argument console-echo=0).
"""

import re
from collections import deque
from dataclasses import dataclass

from schedlab.base.display.names import visible

LINE_CHARACTERS_MAX = 2000
"""Characters of a log line; longer lines are cut."""
LOG_LINES_MAX = 2000
"""Log lines kept until they are read; the oldest are dropped beyond this."""
_PARTIAL_BYTES_MAX = 1 << 16
"""Maximum bytes of an unfinished line that may become an answer; answers are shorter."""
_TAIL_BYTES = 1 << 16
"""Bytes kept of the console's newest output."""

_ANSWER_MARK = b"@@ "
_ANSWER_PATTERN = re.compile(
    rb"@@ (\d{1,9}) (?:"
    rb"\|(?P<line>.*)"
    rb"|ok(?: (?P<value>-?\d{1,18}))?"
    rb"|error (?P<error>\d{1,9})(?: (?P<words>.*))?"
    rb"|ready (?P<pid>\d{1,9}) (?P<cost>\d{1,18})"
    rb")",
    re.DOTALL,
)
_CONTROL_CHARACTERS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), 127) if code != ord("\t")
}


@dataclass(frozen=True)
class TextLine:
    """`@@ 7 |TEXT`: one line of the text that command 7 requested."""

    number: int
    text: str


@dataclass(frozen=True)
class CommandDone:
    """`@@ 7 ok` or `@@ 7 ok VALUE`: command 7 succeeded."""

    number: int
    value: int | None


@dataclass(frozen=True)
class CommandFailed:
    """`@@ 7 error NUMBER WORDS`: command 7 failed with this error number."""

    number: int
    error: int
    words: str


@dataclass(frozen=True)
class SteerReady:
    """`@@ 0 ready PID PICOSECONDS`: `steer` (with this PID) accepts commands.

    The time is the CPU time that the guest spends on writing one trace record.
    """

    pid: int
    record_cost_ps: int


Answer = TextLine | CommandDone | CommandFailed | SteerReady


class Console:
    """Parses bytes as they arrive, returns answers and keeps the log."""

    def __init__(self) -> None:
        self._partial = b""
        """The last line, which is still unfinished."""
        self._partial_line = b""
        """The unfinished line that preceded an answer."""
        self._partial_before = b""
        """Both unfinished parts at the last call of take_log()."""
        self._log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self._dropped = 0
        self._last_output = b""

    def feed(self, data: bytes) -> list[Answer]:
        """Adds output, and returns the answers that it completes, in order."""
        data = data.replace(b"\r", b"")
        self._last_output = (self._last_output + data)[-_TAIL_BYTES:]
        *lines, self._partial = (self._partial + data).split(b"\n")
        answers = [answer for line in lines if (answer := self._parse_line(line)) is not None]
        if len(self._partial) + len(self._partial_line) > _PARTIAL_BYTES_MAX:
            self._end_line()
        return answers

    def take_log(self) -> list[str]:
        """Returns new log lines.

        An unfinished line is included if nothing was added to it since the last call.
        """
        now = self._partial_line + self._partial
        if now and now == self._partial_before and _ANSWER_MARK not in now:
            self._end_line()
        self._partial_before = self._partial_line + self._partial
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
        lines = self._last_output.split(b"\n")
        return "\n".join(_readable(line) for line in lines if _ANSWER_MARK not in line)

    def _parse_line(self, line: bytes) -> Answer | None:
        position = line.find(_ANSWER_MARK)
        while position >= 0:
            match = _ANSWER_PATTERN.fullmatch(line, position)
            if match:
                self._partial_line += line[:position]
                return _parse_answer(match)
            position = line.find(_ANSWER_MARK, position + 1)
        self._add_to_log(self._partial_line + line)
        return None

    def _end_line(self) -> None:
        self._add_to_log(self._partial_line + self._partial)
        self._partial = b""

    def _add_to_log(self, line: bytes) -> None:
        self._partial_line = b""
        if len(self._log) == self._log.maxlen:
            self._dropped += 1
        self._log.append(_readable(line)[:LINE_CHARACTERS_MAX])


def _parse_answer(match: re.Match[bytes]) -> Answer:
    number = int(match[1])
    if match["line"] is not None:
        return TextLine(number, match["line"].decode(errors="replace"))
    if match["error"] is not None:
        return CommandFailed(
            number, int(match["error"]), (match["words"] or b"").decode(errors="replace")
        )
    if match["pid"] is not None:
        return SteerReady(int(match["pid"]), int(match["cost"]))
    return CommandDone(number, int(match["value"]) if match["value"] is not None else None)


def _readable(line: bytes) -> str:
    """Replaces control characters, because pages and terminals show text only."""
    return visible(line.decode(errors="replace").translate(_CONTROL_CHARACTERS))
