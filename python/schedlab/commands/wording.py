# SPDX-License-Identifier: MIT
"""Replaces the library's parameters by the command line's options in messages."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from schedlab.units import format_time

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_NAMES_EQUAL_TO_OPTIONS = (
    "allow_files", "arguments", "artifact", "as_workload", "at", "best", "certificate", "chart",
    "classroom", "costs", "cpus", "disk", "effects", "from_traces", "gate", "gradescope",
    "ignore_limits", "jobs", "keep", "keep_traces", "kernel", "lesson", "listen", "load",
    "machine", "map", "out", "policy", "port", "record", "root", "scheduler", "search", "shape",
    "workload",
)  # fmt: skip
OPTIONS = {
    **{name: "--" + name.replace("_", "-") for name in _NAMES_EQUAL_TO_OPTIONS},
    "attributes": "--attribute",
    "changes": "--with",
    "delays": "--delay",
    "everything": "--all",
    "experiments": "--experiment",
    "figures": "--figure",
    "first_seed": "--seed",
    "memory_mib": "--memory",
    "metrics": "--metric",
    "seeds": "--runs",
    "settings": "--set",
    "tick_ns": "--tick",
    "tool": "--with",
    "trusted": "--trust",
}
"""Option by parameter of a message.

Asking all commands would import them all, so a test checks this table.
"""

_PARAMETER = re.compile(r"`([a-z_]+)=([^`]*)`")
_PLACEHOLDER = re.compile(r"[A-Z]+")


def with_options(text: str) -> str:
    """Replaces parameters by options: `cpus=5` becomes --cpus 5 (see schedlab.errors.format_parameter)."""
    return _PARAMETER.sub(_option_text, text)


def parts_with_options(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yields texts and captions of tables with options; other parts are unchanged."""
    from rich.table import Table
    from rich.text import Text

    def text_with_options(part: Text) -> Text:
        """Returns the text with options."""
        words = with_options(part.plain)
        return part if words == part.plain else Text(words, part.style)

    for part in parts:
        if isinstance(part, Table) and isinstance(part.caption, Text):
            part.caption = text_with_options(part.caption)
        yield text_with_options(part) if isinstance(part, Text) else part


def _option_text(match: re.Match[str]) -> str:
    name, literal = match.groups()
    option = OPTIONS.get(name)
    if option is None:
        return match[0]
    if not literal:
        return option
    if _PLACEHOLDER.fullmatch(literal):
        return f"{option} {literal}"
    try:
        value = literal_eval(literal)
    except (ValueError, SyntaxError):
        return match[0]
    if value is True:
        return option
    if isinstance(value, dict):
        return " ".join(
            f"{option} {_quote(f'{key}={setting_value}')}" for key, setting_value in value.items()
        )
    is_time = name.endswith("_ns") and isinstance(value, int)
    return f"{option} {format_time(value) if is_time else _quote(value)}"


def _quote(value: Any) -> str:
    """Quotes a value for a shell.

    Control characters are shown as text, so a terminal does not interpret them.
    """
    text = str(value)
    return shlex.quote(text) if text.isprintable() else repr(text)
