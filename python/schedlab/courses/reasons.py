# SPDX-License-Identifier: MIT
"""The words that say why a submission lost points; the playground has the same words (reasons.json)."""

import json
from collections.abc import Mapping
from pathlib import Path

REASONS: Mapping[str, str] = json.loads(Path(__file__).with_name("reasons.json").read_text())


def reason(name: str, **values: object) -> str:
    """Returns a text of reasons.json with these values."""
    return REASONS[name].format(**values)
