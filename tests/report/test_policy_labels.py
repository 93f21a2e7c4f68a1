# SPDX-License-Identifier: MIT
"""Tests the policies' names for readers."""

from __future__ import annotations

import pytest

from schedlab.base.toolchain.policies import known_policies
from schedlab.report.policy_labels import LABELS_FILE, policy_label
from schedlab.studies.study import read_yaml


def test_policies_have_labels_and_labels_have_policies() -> None:
    known = known_policies()
    labelled = {title.partition(" ")[0].partition(":")[::2] for title in read_yaml(LABELS_FILE)}
    assert {name for name, _ in labelled} == set(known)
    assert all(preset in known[name].presets for name, preset in labelled if preset)


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("mlfq", "MLFQ"),
        ("lottery slice=10,compensation=1", "uncompensated lottery with slices of 10 ticks"),
        ("mlfq:four-quanta boost=0", "study 3's MLFQ (boost 0)"),
        ("cfs:mine", "CFS (mine)"),
        ("cfs:mine nice=1,scaling=0", "CFS (mine, nice 1, scaling 0)"),
        ("my-own", "my-own"),
    ],
)
def test_labels(title: str, label: str) -> None:
    assert policy_label(title) == label
