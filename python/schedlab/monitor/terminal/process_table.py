# SPDX-License-Identifier: MIT
"""The process table. It draws only visible lines, so 4,096 processes cost no more time than 40 processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from schedlab.base.display.numbers import duration, percent
from schedlab.monitor.frames import ProcessColumns
from schedlab.trace.format import BlockReason

Columns = dict[str, Any]
_STATES = ("runnable", "running", "blocked")


@dataclass(frozen=True)
class Column:
    """A column of the process table; `width` in characters."""

    title: str
    key: str
    """Key of the ProcessColumns entry that this column shows and sorts by."""
    width: int
    format_cell: Callable[[Columns, int], str]
    """Returns the cell's text, from all columns and a row's index."""
    is_left_aligned: bool = False


def _state_text(number: int, reason: int) -> str:
    """Returns the state's name, or the reason of a blocked process."""
    if number == 2 and 0 < reason < len(BlockReason):
        return BlockReason(reason).name.lower()
    return _STATES[number] if 0 <= number < len(_STATES) else "?"


def _show_number(key: str) -> Callable[[Columns, int], str]:
    return lambda columns, row: f"{int(columns[key][row]):,}"


def _show_time(key: str) -> Callable[[Columns, int], str]:
    return lambda columns, row: duration(_known_value(columns[key][row]))


def _show_fraction(key: str) -> Callable[[Columns, int], str]:
    return lambda columns, row: percent(_known_value(columns[key][row]))


def _known_value(value: float) -> float | None:
    """Returns the value, or None for negative values, which mean "unknown" in frames."""
    return None if value < 0 else float(value)


def _show_if_known(key: str) -> Callable[[Columns, int], str]:
    return lambda columns, row: str(columns[key][row]) if columns[key][row] >= 0 else "–"


COLUMNS = (
    Column("PID", "pid", 6, _show_number("pid")),
    Column(
        "NAME", "name", 15, lambda columns, row: str(columns["name"][row]), is_left_aligned=True
    ),
    Column(
        "GROUP", "group", 8, lambda columns, row: str(columns["group"][row]), is_left_aligned=True
    ),
    Column(
        "STATE",
        "state",
        8,
        lambda columns, row: _state_text(int(columns["state"][row]), int(columns["reason"][row])),
        is_left_aligned=True,
    ),
    Column("CPU", "cpu", 3, _show_if_known("cpu")),
    Column("PRIO", "priority", 4, _show_number("priority")),
    Column("LEVEL", "level", 5, _show_if_known("level")),
    Column("SLICE", "slice_left_ns", 8, _show_time("slice_left_ns")),
    Column("TICKETS", "tickets", 9, _show_number("tickets")),
    Column("WEIGHT", "weight", 6, _show_number("weight")),
    Column("SHARE", "share", 7, _show_fraction("share")),
    Column("IDEAL", "ideal", 7, _show_fraction("ideal")),
    Column("WAITS", "wait_now_ns", 8, _show_time("wait_now_ns")),
    Column("WAITED", "waiting_ns", 8, _show_time("waiting_ns")),
    Column("RAN", "run_ns", 8, _show_time("run_ns")),
    Column("PICKED", "selections", 9, _show_number("selections")),
)

_HEAD_STYLE = Style(bold=True, reverse=True)
_SELECTED_STYLE = Style(reverse=True)
_STATE_STYLES = (Style(color="yellow"), Style(color="green", bold=True), Style(dim=True))


class ProcessTable(ScrollView, can_focus=True):
    """Shows processes, sorted by one column and filtered by a text in their name, group or PID."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "move(-1)", "up"),
        ("down", "move(1)", "down"),
        ("pageup", "page(-1)", "page up"),
        ("pagedown", "page(1)", "page down"),
        ("home", "move(-1000000)", "first"),
        ("end", "move(1000000)", "last"),
        ("less_than_sign", "sort(-1)", "sort by the column before"),
        ("greater_than_sign", "sort(1)", "sort by the next column"),
        ("o", "reverse", "other order"),
    ]

    class Selected(Message):
        """Posted when another process is chosen."""

        def __init__(self, pid: int) -> None:
            self.pid = pid
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self.columns: Columns = {}
        self.order: np.ndarray[Any, np.dtype[np.int64]] = np.empty(0, np.int64)
        self.sort_by = 0
        self.descending = False
        self.filter = ""
        self.shows_monitor = False
        self.chosen_pid = 0
        """PID."""

    def show(self, columns: ProcessColumns) -> None:
        """Shows the current processes."""
        self.columns = dict(columns)
        self.rearrange()

    def rearrange(self) -> None:
        """Sorts and filters the rows."""
        rows = self._filtered_rows()
        values = self.columns.get(COLUMNS[self.sort_by].key, ())
        keys = np.asarray([values[row] for row in rows.tolist()])
        order = np.argsort(keys, kind="stable") if len(keys) else np.empty(0, np.int64)
        self.order = rows[order[::-1] if self.descending else order]
        self.virtual_size = Size(sum(column.width + 1 for column in COLUMNS), len(self.order) + 1)
        self.refresh()

    def _filtered_rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        if not self.columns:
            return np.empty(0, np.int64)
        rows = [
            row
            for row in range(len(self.columns["pid"]))
            if (self.shows_monitor or not self.columns["own"][row]) and self._matches_filter(row)
        ]
        return np.asarray(rows, np.int64)

    def _matches_filter(self, row: int) -> bool:
        texts = (self.columns[key][row] for key in ("name", "group", "pid"))
        return any(self.filter in str(text) for text in texts)

    def pids(self) -> list[int]:
        """Returns the PIDs in the order shown."""
        return [int(self.columns["pid"][row]) for row in self.order.tolist()]

    def value_of(self, pid: int, key: str) -> Any:
        """Returns a process's value in the column `key`, or None if the process is not in the table."""
        for row in self.order.tolist():
            if int(self.columns["pid"][row]) == pid:
                return self.columns[key][row]
        return None

    # --- drawing

    def render_line(self, y: int) -> Strip:
        """Draws line `y`. The titles (line 0) do not scroll vertically."""
        scroll_x, scroll_y = self.scroll_offset
        row_index = y - 1 + scroll_y
        if y == 0:
            strip = self._draw_head()
        elif row_index < len(self.order):
            strip = self._draw_row(int(self.order[row_index]))
        else:
            strip = Strip([])
        return strip.crop_extend(scroll_x, scroll_x + self.size.width, self.rich_style)

    def _draw_head(self) -> Strip:
        arrow = "▼" if self.descending else "▲"
        titles = [
            f"{column.title}{arrow if number == self.sort_by else ''}"
            for number, column in enumerate(COLUMNS)
        ]
        return Strip([Segment(_join_cells(titles), _HEAD_STYLE)])

    def _draw_row(self, row: int) -> Strip:
        text = _join_cells([column.format_cell(self.columns, row) for column in COLUMNS])
        number = int(self.columns["state"][row])
        style = _STATE_STYLES[number] if 0 <= number < len(_STATE_STYLES) else Style.null()
        if int(self.columns["pid"][row]) == self.chosen_pid:
            style += _SELECTED_STYLE
        return Strip([Segment(text, style)])

    # --- keys

    def _selected_line(self) -> int:
        pids = self.pids()
        return pids.index(self.chosen_pid) if self.chosen_pid in pids else -1

    def choose(self, line: int) -> None:
        """Selects the process in a line."""
        if not len(self.order):
            return
        line = min(max(line, 0), len(self.order) - 1)
        self.chosen_pid = int(self.columns["pid"][self.order[line]])
        self.scroll_to_region(Region(self.scroll_offset.x, line, 1, 2), animate=False)
        self.refresh()
        self.post_message(self.Selected(self.chosen_pid))

    def action_move(self, by: int) -> None:
        self.choose(max(self._selected_line(), 0 if by > 1 else -1) + by)

    def action_page(self, by: int) -> None:
        self.choose(max(self._selected_line(), 0) + by * max(self.size.height - 2, 1))

    def action_sort(self, by: int) -> None:
        self.sort_by = (self.sort_by + by) % len(COLUMNS)
        self.rearrange()

    def action_reverse(self) -> None:
        self.descending = not self.descending
        self.rearrange()

    def on_click(self, event: Click) -> None:
        if event.y > 0:
            self.choose(event.y - 1 + self.scroll_offset.y)
            return
        edge = -self.scroll_offset.x
        for number, column in enumerate(COLUMNS):
            edge += column.width + 1
            if event.x < edge:
                self.descending = number == self.sort_by and not self.descending
                self.sort_by = number
                self.rearrange()
                return


def _join_cells(texts: Sequence[str]) -> str:
    """Joins the cells of a row to a line, each padded to its column's width."""
    cells = []
    for column, text in zip(COLUMNS, texts, strict=True):
        cell = Text(text, end="")
        cell.truncate(column.width, overflow="ellipsis", pad=column.is_left_aligned)
        cells.append(cell.plain if column.is_left_aligned else cell.plain.rjust(column.width))
    return " ".join(cells) + " "
