# SPDX-License-Identifier: MIT
"""Returns the labels of policies that readers see, from policies/labels.yaml."""

from __future__ import annotations

from functools import cache

from schedlab.paths import ROOT
from schedlab.studies.study import read_yaml

LABELS_FILE = ROOT / "policies" / "labels.yaml"


def policy_label(title: str) -> str:
    """Returns the label of a policy's title, such as `mlfq:four-quanta slice=2,boost=0`.

    A title without a label takes the label of its preset or policy, with the rest in brackets.
    """
    labels = _read_labels()
    choice, _, settings = title.partition(" ")
    name, _, preset = choice.partition(":")
    if title in labels:
        return labels[title]
    if name not in labels:
        return title
    details = [] if choice in labels else [preset]
    details += [setting.replace("=", " ") for setting in settings.split(",") if setting]
    base_label = labels.get(choice, labels[name])
    return f"{base_label} ({', '.join(details)})" if details else base_label


@cache
def _read_labels() -> dict[str, str]:
    labels: dict[str, str] = read_yaml(LABELS_FILE)
    return labels
