# SPDX-License-Identifier: MIT
"""Study 4's published output, tick by tick and process by process."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl

from schedlab.report.studies.authors_output import alike, printed_ticks
from schedlab.studies.pack import study_numbered

STUDY = study_numbered(4)


def test_the_printed_ticks_begin_with_the_first_process_traced() -> None:
    """In figure 7 the parent has tick 0, and then each two ticks on the highest level."""
    ticks = printed_ticks(STUDY, "MLFQ")
    assert ticks["tick"].to_list()[:5] == [0, 1, 2, 3, 4]
    assert ticks["process"].to_list()[:5] == [0, 0, 1, 1, 2]
    assert set(ticks["level"].to_list()[:24]) == {3}
    assert ticks["process"].value_counts().sort("process")["count"].to_list() == [342, 344, 344]


def test_ticks_are_compared_by_process_and_level() -> None:
    theirs = pl.DataFrame({"tick": [0, 1, 3], "process": [0, 1, 2], "level": [3, 3, 2]})
    ours = pl.DataFrame({"tick": [7, 8, 9, 10], "pid": [30, 31, 31, 32], "level": [3, 2, 3, 2]})
    assert alike(theirs, ours) == SimpleNamespace(same=2, of=3, levels=True)
    unsaid = ours.with_columns(level=pl.lit(None, pl.Int64))
    assert alike(theirs, unsaid) == SimpleNamespace(same=3, of=3, levels=False)
