# SPDX-License-Identifier: MIT
"""Specifications of charts as pictures: as wide as they are, or as is wanted.

A process that only draws imports no more than this, which takes it a tenth of the time that all of a report does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.base.host.addresses import chart_library

WIDTH = 720
"""The width of a chart's view on paper, in pixels. A page makes it fit its place
(templates/charts.js)."""
_PNG_SCALE = 2.0
_RELEASE = re.compile(r"/v(\d+\.\d+)[.\d]*\.json$")
"""Of Vega-Lite, in the address of the schema that Altair writes for, as vl-convert names it: 6.4."""
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def svg(specification: Mapping[str, Any]) -> str:
    """Returns the picture as SVG."""
    release = _RELEASE.search(specification["$schema"])
    assert release, "Altair says for which release it writes"
    return str(chart_library().vegalite_to_svg(dict(specification), vl_version=release[1]))


def draw(work: tuple[Mapping[str, Any], str]) -> None:
    """Draws one specification into STEM.svg and STEM.png."""
    specification, stem = work
    picture = svg(specification)
    Path(f"{stem}.svg").write_text(picture)
    Path(f"{stem}.png").write_bytes(chart_library().svg_to_png(picture, scale=_PNG_SCALE))


def narrowed(specification: Mapping[str, Any], width: float) -> str:
    """Returns the picture with plots so narrow, or so wide, that all of it is `width` pixels wide; of plots side
    by side, as wide as it is."""
    fewer = _with_legends_for(dict(specification), width)
    change = width - size(svg(fewer))[0]
    return svg(_widened(fewer, change, width / 3))


def _with_legends_for(part: Any, width: float) -> Any:
    """Returns the specification with as many names side by side in its legends as there is room for: they are
    written for plots of WIDTH, and a wide legend would leave narrow ones no room."""
    if isinstance(part, list):
        return [_with_legends_for(item, width) for item in part]
    if not isinstance(part, dict):
        return part
    changed = {
        name: item if name == "datasets" else _with_legends_for(item, width)
        for name, item in part.items()
    }
    legend = changed.get("legend")
    if isinstance(legend, dict) and "columns" in legend:
        fit = max(int(legend["columns"] * width / WIDTH), 1)
        changed["legend"] = {**legend, "columns": fit}
    return changed


def _widened(specification: Mapping[str, Any], change: float, least: float) -> dict[str, Any]:
    """Returns it with each of its plots, which stand one below the other, so much wider."""
    changed = dict(specification)
    if "vconcat" in specification:
        changed["vconcat"] = [_widened(item, change, least) for item in specification["vconcat"]]
    current_width = specification.get("width")
    if isinstance(current_width, int | float):
        changed["width"] = max(current_width + change, least)
    return changed


def size(picture: str) -> tuple[float, float]:
    """Returns width and height, in pixels."""
    match = _SIZE.search(picture)
    assert match, "Vega gives each picture a size"
    return float(match[1]), float(match[2])


def sized(picture: str, width: float) -> str:
    """Returns the picture so many points wide: its `viewBox` is what it was."""
    old_width, old_height = size(picture)
    height = old_height * width / old_width
    return _SIZE.sub(f'width="{width:.2f}" height="{height:.2f}"', picture, count=1)
