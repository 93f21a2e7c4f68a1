# SPDX-License-Identifier: MIT
"""Makes Vega-Lite specifications of charts for pages, light or dark, and for paper."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import altair as alt

from schedlab.base.display.names import map_texts, visible_in_chart
from schedlab.report.charts import theme
from schedlab.report.model import HREF, Chart

VEGA_LITE = ".".join(re.findall(r"\d+", alt.SCHEMA_VERSION)[:2])
"""The release that Altair writes for, as vl-convert names it: 6.4."""

_LAYOUT_CONFIG = {"axis": {"maxExtent": 400, "labelSeparation": 4}}
"""Vega limits an axis's title to a distance of 200 pixels, which overlaps longer
labels, and lets numbers touch.
"""


def page_specification(chart: Chart, resolve: Callable[[str], str] = str) -> dict[str, Any]:
    """Returns the specification for a page: transparent, in the colours of the page.

    templates/charts.js adapts its width. `resolve` returns the address of a mark's target.
    """
    specification = _specification(chart, theme.page_config(), resolve)
    specification["background"] = None
    return specification


def paper_specification(chart: Chart) -> dict[str, Any]:
    """Returns the specification for paper: black on white, without links."""
    specification = _specification(chart, theme.paper_config(), None)
    specification["background"] = "white"
    return specification


def _specification(
    chart: Chart, config: Mapping[str, Any], resolve: Callable[[str], str] | None
) -> dict[str, Any]:
    """Returns the specification of a chart with this configuration.

    `resolve` None: without links.
    """
    plain = map_texts(chart.plain, visible_in_chart)
    specification = merge_specifications(_LAYOUT_CONFIG, config)
    linked = {name: _resolve_links(item, resolve) for name, item in plain.items()}
    return {**linked, "config": merge_specifications(specification, plain.get("config", {}))}


def _resolve_links(part: Any, resolve: Callable[[str], str] | None) -> Any:
    """Returns a chart's specification with every link replaced by the address from `resolve`.

    If `resolve` is None, links are removed.

    """
    if isinstance(part, list):
        return [_resolve_links(item, resolve) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        name: resolve(item)
        if resolve and isinstance(item, str) and name == HREF
        else _resolve_links(item, resolve)
        for name, item in part.items()
        if resolve or name != HREF
    }


def merge_specifications(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two specifications recursively. Values of `over` take precedence."""
    result = dict(base)
    for name, value in over.items():
        base_value = result.get(name)
        are_mappings = isinstance(value, Mapping) and isinstance(base_value, Mapping)
        result[name] = merge_specifications(base_value, value) if are_mappings else value  # type: ignore[arg-type]
    return result
