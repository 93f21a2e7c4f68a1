# SPDX-License-Identifier: MIT
"""Tables of metrics on the terminal: no figure in them is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab.display.terminal import new_table, print_whole, results, whole_width

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.metrics import Metrics
    from schedlab.outputs import Figures


def print_metrics(columns: Sequence[tuple[str, Metrics]]) -> None:
    """Prints runs side by side: where the terminal is too narrow for all of them, in several tables, one below
    the other. A file gets one, as wide as it is.

    `columns`: the headings, and what was measured.
    """
    for table in _that_fit(columns):
        print_whole(table)


def print_figures(columns: Sequence[tuple[str, Figures]]) -> None:
    """Prints what benchmarks said of themselves, a row for each figure; nothing without any."""
    from schedlab.metrics.tables import three_digits

    if not columns:
        return
    table = new_table("Printed by the workload", "figure", *(f">{head}" for head, _ in columns))
    for name in dict.fromkeys(name for _, own in columns for name in own):
        cells = (three_digits(own[name]) if name in own else "–" for _, own in columns)
        table.add_row(name, *cells)
    print_whole(table)


def _that_fit(columns: Sequence[tuple[str, Metrics]]) -> list[Table]:
    """Returns tables of as many columns as there can be in all of them, and one at least."""
    from schedlab import metrics

    whole = metrics.tables(list(columns))
    if not results().is_terminal or _all_fit(whole):
        return whole
    for size in range(len(columns), 0, -1):
        groups = (list(columns[at : at + size]) for at in range(0, len(columns), size))
        narrow = [table for group in groups for table in metrics.tables(group, narrow=True)]
        if size == 1 or _all_fit(narrow):
            return narrow
    return []


def _all_fit(found: Sequence[Table]) -> bool:
    return all(whole_width(each) <= results().width for each in found)
