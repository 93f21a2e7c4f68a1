# SPDX-License-Identifier: MIT
"""Makes Vega-Lite specifications of charts for pages, light or dark, and for paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import altair as alt

from schedlab.base.display.names import all_visible, visible_in_chart
from schedlab.report.charts import theme
from schedlab.report.model import HREF, Chart

VEGA_LITE = ".".join(re.findall(r"\d+", alt.SCHEMA_VERSION)[:2])
"""The release that Altair writes for, as vl-convert names it: 6.4."""

_LAYOUT = {"axis": {"maxExtent": 400, "labelSeparation": 4}}
"""Vega limits an axis's title to a distance of 200 pixels, which overlaps longer
labels, and lets numbers touch.
"""


def for_page(chart: Chart, resolve: Callable[[str], str] = str) -> dict[str, Any]:
    """Returns the specification for a page: transparent, in the colours of the page.

    templates/charts.js adapts its width. `resolve` returns the address of a mark's target.
    """
    specification = _specification(chart, theme.page_config(), resolve)
    specification["background"] = None
    return specification


def for_paper(chart: Chart) -> dict[str, Any]:
    """Returns the specification for paper: black on white, without links."""
    specification = _specification(chart, theme.paper_config(), None)
    specification["background"] = "white"
    return specification


def _specification(
    chart: Chart, config: Mapping[str, Any], resolve: Callable[[str], str] | None
) -> dict[str, Any]:
    plain = all_visible(chart.plain, visible_in_chart)
    specification = merged(_LAYOUT, config)
    linked = {name: _with_links(item, resolve) for name, item in plain.items()}
    return {**linked, "config": merged(specification, plain.get("config", {}))}


def _with_links(part: Any, resolve: Callable[[str], str] | None) -> Any:
    """Returns the specification with the addresses of its marks' targets;
    `resolve` None: without links.
    """
    if isinstance(part, list):
        return [_with_links(item, resolve) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        name: resolve(item)
        if resolve and isinstance(item, str) and name == HREF
        else _with_links(item, resolve)
        for name, item in part.items()
        if resolve or name != HREF
    }


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two specifications recursively. Values of `over` take precedence."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[name] = merged(below, value) if both else value  # type: ignore[arg-type]
    return result
