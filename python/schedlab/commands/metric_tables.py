# SPDX-License-Identifier: MIT
"""Tables of metrics on the terminal: no figure in them is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab.display.terminal import print_whole, results, whole_width

if TYPE_CHECKING:
    from schedlab.metrics import Metrics


def print_metrics(columns: Sequence[tuple[str, Metrics]]) -> None:
    """Prints runs side by side: where the terminal is too narrow for all of them, in several tables, one below
    the other. A file gets one, as wide as it is.

    `columns`: the headings, and what was measured.
    """
    from schedlab import metrics

    width = results().width if results().is_terminal else None
    for some in _that_fit(columns, width):
        for table in metrics.tables(some):
            print_whole(table)


def _that_fit(
    columns: Sequence[tuple[str, Metrics]], width: int | None
) -> list[list[tuple[str, Metrics]]]:
    """Returns the columns in groups, as many in each as there can be in all of them, and one at least."""
    from schedlab import metrics

    for size in range(len(columns), 0, -1):
        groups = [list(columns[at : at + size]) for at in range(0, len(columns), size)]
        tables = (table for group in groups for table in metrics.tables(group))
        if width is None or size == 1 or all(whole_width(each) <= width for each in tables):
            return groups
    return []
