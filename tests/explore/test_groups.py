# SPDX-License-Identifier: MIT
"""Tests that a wrong policy breaks the group invariant of `explore/laws/hsfq.h`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.errors import RuleBroken
from schedlab.machines import exploration
from schedlab.machines.exploration import Limits


def test_the_group_that_has_had_the_least_is_served_first(tmp_path: Path) -> None:
    """The changed policy runs group 1 before all tasks that are in no group."""
    source = (ROOT / "policies" / "hsfq.c").read_text()
    law = (ROOT / "explore" / "laws" / "hsfq.h").read_text()
    right = "hsfq_survey(queue);\n    task_t *task = hsfq_first(queue);\n"
    wrong = "if (hsfq_group_of(queue, 1)->queued)\n        task = hsfq_group_of(queue, 1)->tasks.first;\n"
    assert right in source
    file = tmp_path / "Of.groups.c"
    file.write_text(
        source.replace(right, f"{right}    {wrong}", 1)
        .replace("policy_hsfq", "policy_partial")
        .replace('"hsfq"', '"partial"')
    )
    (tmp_path / "Of.groups.law.h").write_text(law)
    with pytest.raises(RuleBroken) as error:
        exploration.explore(file, "partial", limits=Limits(tasks=3, depth=8, memory_mib=256))
    message = str(error.value)
    assert re.search(r"of group 1, although pid \d of group 0 has had less for its weight", message)
    assert "no shorter sequence of operations breaks a rule than 7:" in message
