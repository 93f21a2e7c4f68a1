# SPDX-License-Identifier: MIT
"""Defines which policies the documents show (shown.yaml)."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def shown() -> dict[str, Any]:
    """Returns the content of each picture, by the name of its generator."""
    read: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shown.yaml").read_text("utf-8"))
    return read
