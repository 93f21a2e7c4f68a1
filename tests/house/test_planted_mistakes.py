# SPDX-License-Identifier: MIT
"""Tests that the list of planted mistakes names lines and tests that exist."""

from __future__ import annotations

import re
import shlex

import pytest

from schedlab.paths import ROOT
from schedlab_tools.planted_mistakes import LINE_REMOVED, Mistake, find_line, read_list


@pytest.mark.parametrize("mistake", read_list(), ids=lambda mistake: mistake.number)
def test_a_mistake_names_a_line_and_tests(mistake: Mistake) -> None:
    """Its line stands in one file, unless the code is gone, and its tests can start."""
    if mistake.verdict == LINE_REMOVED:
        return
    find_line(mistake)
    for word in (word for arguments in mistake.tests for word in shlex.split(arguments)):
        name, _, test = word.partition("::")
        if name.startswith("tests/"):
            place = ROOT / name
            assert place.exists(), word
            function = re.escape(test.partition("[")[0])
            assert not test or re.search(rf"def {function}\b", place.read_text()), word


def test_a_line_that_no_file_has_is_detected() -> None:
    with pytest.raises(LookupError, match="0 files"):
        find_line(Mistake("x", "python/schedlab/units.py", "no such line " + "stands here", 1, ""))
