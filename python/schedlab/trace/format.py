# SPDX-License-Identifier: MIT
"""Defines the trace format in Python: constants from abi/, and some that follow from them.

docs/trace-format.md explains the format.
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

# --- generated from the headers in abi/ by ./schedlab dev docs trace-format

MAGIC = b"SCHEDLAB"
VERSION = 1

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("record_bytes", "<u4"),
        ("cpus", "<u4"),
        ("tick_ns", "<u8"),
        ("cycles_per_second", "<u8"),
        ("seed", "<u8"),
        ("reserved", "V16"),
    ]
)
RECORD = np.dtype(
    [
        ("time", "<u8"),
        ("sequence", "<u4"),
        ("process", "<u4"),
        ("kind", "<u2"),
        ("cpu", "<u2"),
        ("first", "<u4"),
        ("second", "<u8"),
    ]
)


class Kind(IntEnum):
    """Kinds of records (enum trace_kind)."""

    START = 1
    END = 2
    LOST = 3
    FORK = 4
    EXEC = 5
    TEXT = 6
    EXIT = 7
    WAKEUP = 8
    BLOCK = 9
    SWITCH = 10
    YIELD = 11
    PREEMPT = 12
    MIGRATE = 13
    POLICY = 14
    TUNABLE = 15
    ATTRIBUTE = 16
    SCHEDULER_ENTER = 17
    SCHEDULER_EXIT = 18
    DECISION = 19
    MARK = 20
    FOUND = 21
    QUEUED = 22
    TASK_GROUP = 23
    SAID = 24
    AFFINITY = 25
    DISPATCH = 26
    KICK = 27


class LossKind(IntEnum):
    """Kinds of LOST records, in their `first` (enum trace_loss)."""

    OF_RECORDS = 0
    MENDED = 1
    OF_WAKEUPS = 2
    UNSEEN = 3
    SEEN = 4


class ProcessState(IntEnum):
    """States of a process (enum process_state)."""

    NEW = 0
    RUNNABLE = 1
    RUNNING = 2
    BLOCKED = 3
    ZOMBIE = 4


class BlockReason(IntEnum):
    """Why a process is blocked (enum block_reason)."""

    NONE = 0
    SLEEP = 1
    CHILD = 2
    PIPE = 3
    CONSOLE = 4
    DISK = 5
    LOCK = 6
    JOURNAL = 7
    EXIT = 8
    OTHER = 9


class PreemptReason(IntEnum):
    """Why a process lost its CPU (enum preempt_reason)."""

    SLICE = 1
    WAKEUP = 2
    POLICY = 3


class AttributeKind(IntEnum):
    """Attributes that users set (enum attribute_kind)."""

    PRIORITY = 1
    TICKETS = 2
    WEIGHT = 3
    NICE = 4
    SLICE = 5
    RUNTIME = 6
    DEADLINE = 7
    PERIOD = 8
    TASKGROUP = 9


class GroupField(IntEnum):
    """Fields of a task group (enum group_field)."""

    PARENT = 1
    WEIGHT = 2
    QUOTA = 3
    PERIOD = 4


class DispatchCallback(IntEnum):
    """The callback that put a process into a dispatch queue, or kicked a CPU (enum dispatch_callback)."""

    SELECT_CPU = 1
    ENQUEUE = 2
    DISPATCH = 3
    OTHER = 4
    KERNEL = 5


class KickFlag(IntEnum):
    """Flags of a kick (enum kick_flag)."""

    IDLE = 1
    PREEMPT = 2
    WAIT = 4


class MarkKind(IntEnum):
    """Kinds of marks that programs write (enum mark_kind)."""

    BEGIN = 1
    END = 2
    GROUP = 3
    NOTE = 4
    NAME = 5
    VALUE = 6
    JOB = 7


# --- end of the generated part

TEXT_BYTES_PER_RECORD = 12
"""Bytes of text in a TEXT record: eight in `second`, followed by four in `first`."""
TEXT_RECORDS_MAX = 21
"""Maximum number of records of one text (252 bytes), including the record that it belongs to."""


TEXT_OWNERS = (Kind.EXEC, Kind.POLICY, Kind.TUNABLE, Kind.FOUND, Kind.SAID)
"""Kinds of records with a text."""
TEXT_FOLLOWS = (Kind.TUNABLE, Kind.FOUND, Kind.SAID)
"""Kinds of records whose own fields hold numbers, so that the text begins in the next TEXT record."""


SHARES_EQUAL = 0
"""The policy shares by no attribute (enum share_attribute of policies/policy.h)."""
SHARES_BY_CURRENCIES = 100
"""Groups share by weights, and processes within a group by tickets; not an attribute."""
SHARE_ATTRIBUTES = (
    SHARES_EQUAL,
    AttributeKind.TICKETS,
    AttributeKind.WEIGHT,
    AttributeKind.NICE,
    AttributeKind.TASKGROUP,
    SHARES_BY_CURRENCIES,
)
"""Attributes that a policy can share the CPU by, as stored in `process` of POLICY and TUNABLE."""


@lru_cache(maxsize=4096)
def mark_text(value: int) -> str:
    """Returns the characters in the value of a GROUP or NAME: up to eight, the first in the lowest byte."""
    return value.to_bytes(8, "little").partition(b"\0")[0].decode("utf-8", "replace")


def signed(value: int) -> int:
    """Converts an unsigned 64-bit field to C's int64_t, the type of values and tunables."""
    return value - (1 << 64) if value >> 63 else value


def annotation_text(words: str, first: int, second: int) -> str:
    """Returns the text of a SAID record, with numbers inserted for {}: first `second`, then `first`."""
    for number in (signed(second), first - (1 << 32) if first >> 31 else first):
        words = words.replace("{}", str(number), 1)
    return words


def is_kind(numbers: npt.NDArray[np.integer], *which: int) -> npt.NDArray[np.bool_]:
    """Returns which numbers equal one of `which`.

    Several times faster than numpy's isin, and ten times faster than comparing with an IntEnum,
    which numpy treats as a 64-bit number.
    """
    matches: npt.NDArray[np.bool_] = numbers == int(which[0])
    for number in which[1:]:
        matches |= numbers == int(number)
    return matches
