# SPDX-License-Identifier: MIT
"""Parses the texts of sched_status and sched_tunables (docs/system-calls.md).

Both kernels share the C code that writes them (policies/support/scheduler_text.h). Blanks separate
columns; only a tunable's meaning contains blanks. A name may have any other characters, including
some that Python counts as white space or line ends. So only line feeds end lines, and only blanks
end columns.
"""

from __future__ import annotations

import re
from functools import lru_cache

from schedlab.monitor.system import Refused, Status, StatusRow, TunableNow

_POLICY = "Policy: "
_CHANGED = "Changed: "
_LEGENDS = ("Scheduler status", "PRIORITY: ", "TIMESLICE: ", "Group ")
"""Lines of the head that programs ignore."""
_STATUS_COLUMNS = ["NAME", "PID", "STATE", "PRIORITY", "TIMESLICE", "TICKETS"]
_TUNABLES_COLUMNS = ["NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT", "MEANING"]
_BLANKS = re.compile(" +")
_ROW = re.compile(
    r" *([^ ]+) +(-?[0-9]{1,10}) +([^ ]+) +(-?[0-9]{1,20}) +([^ ]+) +(-?[0-9]{1,20}) *"
)
_MILLISECONDS = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?")
_WRONG = -1


def parse_status(text: str) -> Status:
    """Parses sched_status. Raises Refused if the text is incomplete or malformed.

    Takes 10 ms for 4,096 rows.
    """
    head, table = _split(text, _STATUS_COLUMNS, "sched_status")
    policy = next((line.removeprefix(_POLICY) for line in head if line.startswith(_POLICY)), "")
    if not policy:
        raise Refused(f"sched_status: names no policy, only {_shown(text)}")
    known = (*_LEGENDS, _POLICY, _CHANGED)
    remarks = [line for line in head if line and not line.startswith(known)]
    remarks += [line for line in table if _is_remark(line)]
    rows = tuple(_status_row(line) for line in table if not _is_remark(line))
    return Status(policy, _changes(head), rows, "; ".join(remarks))


def parse_tunables(text: str) -> tuple[TunableNow, ...]:
    """Parses sched_tunables. Raises Refused if the text is incomplete or malformed."""
    _, table = _split(text, _TUNABLES_COLUMNS, "sched_tunables")
    return tuple(_tunable(line) for line in table)


def _split(text: str, columns: list[str], file: str) -> tuple[list[str], list[str]]:
    """Returns the lines before the table's headings, and the lines of the table."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _words(line) == columns:
            return lines[:number], [line for line in lines[number + 1 :] if line.strip(" ")]
    raise Refused(f"{file}: cannot be parsed: it has no table, only {_shown(text)}")


def _words(line: str, most: int = 0) -> list[str]:
    """Returns the columns of a line; the last of `most` columns holds the rest of the line."""
    return _BLANKS.split(line.strip(" "), maxsplit=max(most - 1, 0))


def _changes(head: list[str]) -> dict[str, int]:
    """Parses the line `Changed: slice=4 boost=0`."""
    changed = next((line.removeprefix(_CHANGED) for line in head if line.startswith(_CHANGED)), "")
    pairs = [word.partition("=") for word in _words(changed) if word]
    return {name: _number(value, changed) for name, _, value in pairs}


def _is_remark(line: str) -> bool:
    """Returns whether a line is a note in brackets, which Linux prints instead of rows."""
    return line.startswith("(") and line.endswith(")") and len(_words(line)) != len(_STATUS_COLUMNS)


def _status_row(line: str) -> StatusRow:
    match = _ROW.fullmatch(line)
    slice_ns = _slice(match[5]) if match else _WRONG
    if not match or slice_ns == _WRONG:
        raise Refused(f"sched_status: cannot parse the line {_shown(line)}")
    return StatusRow(match[1], int(match[2]), match[3], int(match[4]), slice_ns, int(match[6]))


@lru_cache(1000)
def _slice(text: str) -> int | None:
    """Parses milliseconds with up to three decimals; `-` means no limit, `?` unknown."""
    if text in ("-", "?"):
        return None
    match = _MILLISECONDS.fullmatch(text)
    if not match:
        return _WRONG
    return int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))


def _tunable(line: str) -> TunableNow:
    words = _words(line, len(_TUNABLES_COLUMNS))
    if len(words) < len(_TUNABLES_COLUMNS):
        raise Refused(f"sched_tunables: cannot parse the line {_shown(line)}")
    name, meaning = words[0], words[-1]
    value, minimum, maximum, default = (_number(word, line) for word in words[1:-1])
    return TunableNow(name, value, minimum, maximum, default, meaning)


def _number(text: str, line: str) -> int:
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise Refused(f"expected a number instead of {_shown(text)} in {_shown(line)}")
    return int(text)


def _shown(text: str) -> str:
    """Shortens a long text for an error."""
    return repr(text if len(text) <= 80 else f"{text[:80]}…")
