# SPDX-License-Identifier: MIT
"""Tests that the commands of docs/what-the-studies-teach.md give the numbers on the page."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from schedlab.errors import SchedlabError
from schedlab_tools.documents import lessons


def test_ten_findings_cover_five_studies() -> None:
    ten = lessons.lessons()
    assert len(ten) == 10
    assert {lesson.entry["study"] for lesson in ten} == {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize("lesson", lessons.lessons(), ids=lambda lesson: lesson.entry["title"])
def test_the_command_gives_the_numbers(lesson: lessons.Lesson) -> None:
    """If this fails, run `./schedlab dev docs lessons` and review the changes."""
    data = lesson.rows(lessons.load_data()).with_columns(group=pl.col("group").fill_null(""))
    assert_frame_equal(lessons.measure(lesson), data)


def test_a_sentence_that_does_not_hold_is_refused() -> None:
    data = lessons.load_data()
    with pytest.raises(SchedlabError, match="does not hold"):
        lessons.page(data.with_columns(value=pl.lit(1.0)))
