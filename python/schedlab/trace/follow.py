# SPDX-License-Identifier: MIT
"""Reads a trace while it is being written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import RECORD
from schedlab.trace.model import Header

Records = npt.NDArray[np.void]
"""Of dtype RECORD."""

POLL_RECORDS = 262_144
"""At most so many are read at once (8 MiB)."""


class Follower:
    """Gives a growing trace's records in the order of their sequence, each once.

    What has a gap before it is held back until the gap is filled: a CPU's block that is not full
    has not been written yet. The file may not be there yet, nor its header be whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def header(self) -> Header | None:
        """None: it has not come yet. TraceError: this is no trace."""
        raise NotImplementedError

    @property
    def ended(self) -> bool:
        """All CPUs have said END, and all has been given."""
        raise NotImplementedError

    @property
    def missing(self) -> int:
        """Sequence numbers that were given up: they are not in the file."""
        raise NotImplementedError

    @property
    def unread_bytes(self) -> int:
        """What is in the file and was not read yet."""
        raise NotImplementedError

    def poll(self, most: int = POLL_RECORDS) -> Records:
        """What has come since the last call, and has no gap before it. Reads at most `most` records.

        Raises TraceError if the file is no trace, OSError if it cannot be read.
        """
        return np.empty(0, RECORD)

    def finish(self) -> Records:
        """All that is left, with its gaps: nothing more will be written."""
        return np.empty(0, RECORD)

    def punch(self) -> bool:
        """Gives the disk blocks of what was read back to the file system; the file keeps its size.

        False: this file system cannot.
        """
        return False

    def close(self) -> None:
        """Closes the file. Twice is once."""
