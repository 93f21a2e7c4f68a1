# SPDX-License-Identifier: MIT
"""Runs programs for benchmarks, and prints results."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.display.terminal import result_console
from schedlab.commands.options import echo_json
from schedlab.errors import SchedlabError
from schedlab_tools.targets import JudgedRow

if TYPE_CHECKING:
    from rich.table import Table


def finish(
    as_json: bool,
    values: Mapping[str, object] | list[dict[str, Any]],
    shown: Iterable[Table | str],
    rows: Iterable[JudgedRow],
) -> None:
    """Prints `values` as JSON, or the texts and tables in `shown`. Exits with status 1 if a target was missed."""
    if as_json:
        echo_json(values)
    else:
        for shown_row in shown:
            result_console().print(shown_row)
    if any(row.verdict not in ("", "met") for row in rows):
        raise SystemExit(1)


def output_of(command: Sequence[str | Path], status: int = 0) -> str:
    """Returns the output of a program, which must exit with this status."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != status:
        raise SchedlabError(f"{command[0]} failed:\n{result.stderr.strip()}")
    return result.stdout
