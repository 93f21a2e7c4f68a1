# SPDX-License-Identifier: MIT
"""Charts of runs (docs/charts.md).

A chart consists of an Altair chart, its data, and a description.
"""

from altair.utils.schemapi import disable_debug_mode

from schedlab.report.charts.boxes import boxes
from schedlab.report.charts.causes import causes
from schedlab.report.charts.dots import dots
from schedlab.report.charts.ecdf import ecdf, latencies, latencies_in_panels
from schedlab.report.charts.gantt import gantt
from schedlab.report.charts.heat import heat
from schedlab.report.charts.lags import lag_over_time
from schedlab.report.charts.lanes import lanes, readable_length_ns
from schedlab.report.charts.levels import levels
from schedlab.report.charts.lines import lines
from schedlab.report.charts.parts import draw_if_possible
from schedlab.report.charts.schedules import schedules
from schedlab.report.charts.shares import shares_over_time
from schedlab.report.charts.states import one_wait, states
from schedlab.report.charts.theme import (
    page_config,
    paper_config,
)

# Altair validates each part of a chart when the part is made, which takes most of the time. Tests
# validate whole charts instead.
disable_debug_mode()

__all__ = [
    "boxes",
    "causes",
    "dots",
    "draw_if_possible",
    "ecdf",
    "gantt",
    "heat",
    "lag_over_time",
    "lanes",
    "latencies",
    "latencies_in_panels",
    "levels",
    "lines",
    "one_wait",
    "page_config",
    "paper_config",
    "readable_length_ns",
    "schedules",
    "shares_over_time",
    "states",
]
