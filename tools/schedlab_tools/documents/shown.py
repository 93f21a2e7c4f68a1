# SPDX-License-Identifier: MIT
"""Which policies the documents show (shown.yaml)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def shown() -> dict[str, Any]:
    """Returns what each picture is made of, by the name of what makes it."""
    read: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shown.yaml").read_text("utf-8"))
    return read
