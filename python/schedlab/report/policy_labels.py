# SPDX-License-Identifier: MIT
"""Gives the names that readers call policies by: policies/labels.yaml has them."""

from __future__ import annotations

from functools import cache

from schedlab.paths import ROOT
from schedlab.studies.pack import read_yaml

LABELS = ROOT / "policies" / "labels.yaml"


def policy_label(title: str) -> str:
    """Returns what readers call a policy of this title, such as `mlfq:four-quanta slice=2,boost=0`.

    A title that has no label takes that of its preset or policy, with the rest in brackets.
    """
    labels = _labels()
    choice, _, settings = title.partition(" ")
    name, _, preset = choice.partition(":")
    if title in labels:
        return labels[title]
    if name not in labels:
        return title
    rest = [] if choice in labels else [preset]
    rest += [setting.replace("=", " ") for setting in settings.split(",") if setting]
    known = labels.get(choice, labels[name])
    return f"{known} ({', '.join(rest)})" if rest else known


@cache
def _labels() -> dict[str, str]:
    labels: dict[str, str] = read_yaml(LABELS)
    return labels
