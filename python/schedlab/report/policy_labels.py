# SPDX-License-Identifier: MIT
"""Returns the labels of policies that readers see, from policies/labels.yaml."""

from __future__ import annotations

from functools import cache

from schedlab.paths import ROOT
from schedlab.studies.study import read_yaml

LABELS = ROOT / "policies" / "labels.yaml"


def policy_label(title: str) -> str:
    """Returns the label of a policy's title, such as `mlfq:four-quanta slice=2,boost=0`.

    A title without a label takes the label of its preset or policy, with the rest in brackets.
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
