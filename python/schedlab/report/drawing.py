# SPDX-License-Identifier: MIT
"""Draws chart specifications as pictures of a given width.

A process that only draws imports only this module, which takes a tenth of the
time of a whole report's imports.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.base.host.addresses import import_chart_library

WIDTH = 720
"""The width of a chart's plot on paper, in pixels. On pages, templates/charts.js adapts it."""
_PNG_SCALE = 2.0
_RELEASE_PATTERN = re.compile(r"/v(\d+\.\d+)[.\d]*\.json$")
"""The Vega-Lite release in the schema's address, as vl-convert names it: 6.4."""
_SIZE_PATTERN = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def render_svg(specification: Mapping[str, Any]) -> str:
    """Returns the picture as SVG."""
    release = _RELEASE_PATTERN.search(specification["$schema"])
    assert release, "Altair says for which release it writes"
    return str(import_chart_library().vegalite_to_svg(dict(specification), vl_version=release[1]))


def draw_files(work: tuple[Mapping[str, Any], str]) -> None:
    """Draws one specification into STEM.svg and STEM.png."""
    specification, stem = work
    picture = render_svg(specification)
    Path(f"{stem}.svg").write_text(picture)
    Path(f"{stem}.png").write_bytes(import_chart_library().svg_to_png(picture, scale=_PNG_SCALE))


def render_at_width(specification: Mapping[str, Any], width: float) -> str:
    """Returns the picture, `width` pixels wide in all, with narrower or wider plots.

    Plots side by side keep their width.
    """
    fitted = _fit_legends(dict(specification), width)
    change = width - picture_size(render_svg(fitted))[0]
    return render_svg(_widen_plots(fitted, change, width / 3))


def _fit_legends(part: Any, width: float) -> Any:
    """Returns the specification with legends of as many columns as fit `width`.

    Legends are laid out for plots of WIDTH. In a narrow picture, a wide legend
    would leave no space for the plot.
    """
    if isinstance(part, list):
        return [_fit_legends(item, width) for item in part]
    if not isinstance(part, dict):
        return part
    changed = {
        name: item if name == "datasets" else _fit_legends(item, width)
        for name, item in part.items()
    }
    legend = changed.get("legend")
    if isinstance(legend, dict) and "columns" in legend:
        fit = max(int(legend["columns"] * width / WIDTH), 1)
        changed["legend"] = {**legend, "columns": fit}
    return changed


def _widen_plots(
    specification: Mapping[str, Any], change: float, width_min: float
) -> dict[str, Any]:
    """Returns the specification with all stacked plots widened by
    `change` pixels, to at least `width_min`.
    """
    changed = dict(specification)
    if "vconcat" in specification:
        changed["vconcat"] = [
            _widen_plots(item, change, width_min) for item in specification["vconcat"]
        ]
    current_width = specification.get("width")
    if isinstance(current_width, int | float):
        changed["width"] = max(current_width + change, width_min)
    return changed


def picture_size(picture: str) -> tuple[float, float]:
    """Returns width and height in pixels."""
    match = _SIZE_PATTERN.search(picture)
    assert match, "Vega gives each picture a size"
    return float(match[1]), float(match[2])


def scale_picture(picture: str, width: float) -> str:
    """Returns the picture scaled to a width in points. Its `viewBox` does not change."""
    old_width, old_height = picture_size(picture)
    height = old_height * width / old_width
    return _SIZE_PATTERN.sub(f'width="{width:.2f}" height="{height:.2f}"', picture, count=1)
