# SPDX-License-Identifier: MIT
"""Parses the texts of sched_status and sched_tunables (docs/system-calls.md).

Both kernels write them with policies/support/scheduler_text.h. Blanks separate columns; only a
tunable's meaning contains blanks. A name may have any other character, even characters that Python
counts as white space or line ends. So only line feeds end lines, and only blanks end columns.
"""

import re
from functools import lru_cache

from schedlab.monitor.system import Refused, Status, StatusRow, TunableState

_POLICY_PREFIX = "Policy: "
_CHANGED_PREFIX = "Changed: "
_LEGEND_PREFIXES = ("Scheduler status", "PRIORITY: ", "TIMESLICE: ", "Group ")
"""Beginnings of explanatory lines, which the parser skips."""
_STATUS_COLUMNS = ["NAME", "PID", "STATE", "PRIORITY", "TIMESLICE", "TICKETS"]
_TUNABLES_COLUMNS = ["NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT", "MEANING"]
_BLANKS = re.compile(" +")
_ROW_PATTERN = re.compile(
    r" *([^ ]+) +(-?[0-9]{1,10}) +([^ ]+) +(-?[0-9]{1,20}) +([^ ]+) +(-?[0-9]{1,20}) *"
)
_MILLISECONDS = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?")
_OTHER_ERROR = -1


_FIX = "; run the kernel or server that came with this schedlab"


def parse_status(text: str) -> Status:
    """Parses sched_status. Raises Refused if the text is incomplete or malformed.

    Takes 10 ms for 4,096 rows.
    """
    head, table = _split_table(text, _STATUS_COLUMNS, "sched_status")
    policy = next(
        (line.removeprefix(_POLICY_PREFIX) for line in head if line.startswith(_POLICY_PREFIX)), ""
    )
    if not policy:
        raise Refused(f"sched_status: names no policy, only {_shorten(text)}{_FIX}")
    known_prefixes = (*_LEGEND_PREFIXES, _POLICY_PREFIX, _CHANGED_PREFIX)
    remarks = [line for line in head if line and not line.startswith(known_prefixes)]
    remarks += [line for line in table if _is_remark(line)]
    rows = tuple(_parse_status_row(line) for line in table if not _is_remark(line))
    return Status(policy, _changed_tunables(head), rows, "; ".join(remarks))


def parse_tunables(text: str) -> tuple[TunableState, ...]:
    """Parses sched_tunables. Raises Refused if the text is incomplete or malformed."""
    _, table = _split_table(text, _TUNABLES_COLUMNS, "sched_tunables")
    return tuple(_parse_tunable(line) for line in table)


def _split_table(text: str, columns: list[str], file: str) -> tuple[list[str], list[str]]:
    """Splits a text into the lines before the table's headings, and the table's rows."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _split_columns(line) == columns:
            return lines[:number], [line for line in lines[number + 1 :] if line.strip(" ")]
    raise Refused(f"{file}: it has no table, only {_shorten(text)}{_FIX}")


def _split_columns(line: str, most: int = 0) -> list[str]:
    """Splits a line at blanks into at most `most` columns (0: any number); the last has the rest."""
    return _BLANKS.split(line.strip(" "), maxsplit=max(most - 1, 0))


def _changed_tunables(head: list[str]) -> dict[str, int]:
    """Parses the line `Changed: slice=4 boost=0`."""
    changed = next(
        (line.removeprefix(_CHANGED_PREFIX) for line in head if line.startswith(_CHANGED_PREFIX)),
        "",
    )
    pairs = [word.partition("=") for word in _split_columns(changed) if word]
    return {name: _parse_number(value, changed) for name, _, value in pairs}


def _is_remark(line: str) -> bool:
    """Returns whether a line is a note in brackets, which Linux prints instead of rows."""
    return (
        line.startswith("(")
        and line.endswith(")")
        and len(_split_columns(line)) != len(_STATUS_COLUMNS)
    )


def _parse_status_row(line: str) -> StatusRow:
    match = _ROW_PATTERN.fullmatch(line)
    slice_ns = _parse_slice_ns(match[5]) if match else _OTHER_ERROR
    if not match or slice_ns == _OTHER_ERROR:
        raise Refused(f"sched_status: cannot parse the line {_shorten(line)}{_FIX}")
    return StatusRow(match[1], int(match[2]), match[3], int(match[4]), slice_ns, int(match[6]))


@lru_cache(1000)
def _parse_slice_ns(text: str) -> int | None:
    """Parses milliseconds with up to three decimals; `-` means no limit, `?` unknown."""
    if text in ("-", "?"):
        return None
    match = _MILLISECONDS.fullmatch(text)
    if not match:
        return _OTHER_ERROR
    return int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))


def _parse_tunable(line: str) -> TunableState:
    words = _split_columns(line, len(_TUNABLES_COLUMNS))
    if len(words) < len(_TUNABLES_COLUMNS):
        raise Refused(f"sched_tunables: cannot parse the line {_shorten(line)}{_FIX}")
    name, meaning = words[0], words[-1]
    value, minimum, maximum, default = (_parse_number(word, line) for word in words[1:-1])
    return TunableState(name, value, minimum, maximum, default, meaning)


def _parse_number(text: str, line: str) -> int:
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise Refused(f"expected a number instead of {_shorten(text)} in {_shorten(line)}{_FIX}")
    return int(text)


def _shorten(text: str) -> str:
    """Returns the beginning of a text, for an error message."""
    return repr(text if len(text) <= 80 else f"{text[:80]}…")
