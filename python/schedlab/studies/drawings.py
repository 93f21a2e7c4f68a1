# SPDX-License-Identifier: MIT
"""What the studies' figures draw, and where the numbers behind them are."""

from __future__ import annotations

from dataclasses import dataclass

from schedlab.studies.figures import Figure, Source, all_published


@dataclass(frozen=True)
class Series:
    """One line of a figure."""

    place: str
    row: str
    """Empty: all rows, which are then the figure's horizontal axis."""
    column: str
    """Empty: all columns, which are."""
    source: Source = "study"


@dataclass(frozen=True)
class Drawing:
    """A figure that shows results. Those that explain an algorithm or show a window are left out."""

    study: int
    number: int
    shows: str
    quantity: str
    across: str
    series: tuple[Series, ...] = ()
    """Empty: the numbers were never printed."""

    def points(self, series: Series) -> list[Figure]:
        """Its numbers, from left to right."""
        return [
            each
            for each in all_published()
            if (each.study, each.place, each.quantity, each.source)
            == (self.study, series.place, self.quantity, series.source)
            and each.kind == "measurement"
            and series.row in ("", each.row)
            and series.column in ("", each.column)
        ]


DRAWINGS = (
    Drawing(
        1,
        1,
        "completion time under round-robin and priorities",
        "completion",
        "CPUs",
        (
            Series("table 1", "I/O-bound", ""),
            Series("table 2", "I/O-bound", ""),
            Series("table 1", "Starvation Check", ""),
            Series("table 2", "Starvation Check", ""),
        ),
    ),
    Drawing(
        1,
        2,
        "context switches under round-robin and priorities",
        "context switches",
        "CPUs",
        (
            Series("table 1", "I/O-bound", ""),
            Series("table 2", "I/O-bound", ""),
            Series("table 1", "Mixed Load", ""),
            Series("table 2", "Mixed Load", ""),
        ),
    ),
    Drawing(
        1,
        3,
        "shares under the lottery",
        "share",
        "CPUs",
        (
            Series("table 3", "A (30 tickets)", ""),
            Series("table 6", "A+B (50+50)", ""),
            Series("table 6", "E+F+G+H (1+1+1+1)", ""),
        ),
    ),
    Drawing(
        3,
        3,
        "turnaround of the IO-bound workload",
        "mean turnaround",
        "scheduler",
        (Series("table 1", "", "IO-bound"),),
    ),
    Drawing(3, 4, "response times of the mixed workload, box plots", "response", "scheduler"),
    Drawing(3, 5, "response times of the CPU-bound workload, box plots", "response", "scheduler"),
    Drawing(4, 7, "who runs at each tick, and his level, under MLFQ", "priority", "ticks"),
    Drawing(4, 8, "who runs at each tick, under round-robin", "process", "ticks"),
    Drawing(
        4,
        9,
        "the mixed benchmark under round-robin",
        "mean turnaround",
        "CPU-bound processes",
        (
            Series("section 4.2", "", "RR interactive", "authors"),
            Series("section 4.2", "", "RR CPU-bound", "authors"),
        ),
    ),
    Drawing(
        4,
        10,
        "the mixed benchmark under MLFQ",
        "mean turnaround",
        "CPU-bound processes",
        (
            Series("section 4.2", "", "MLFQ interactive", "authors"),
            Series("section 4.2", "", "MLFQ CPU-bound", "authors"),
        ),
    ),
)
