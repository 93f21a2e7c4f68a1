# SPDX-License-Identifier: MIT
"""Specifications of charts as pictures: as wide as they are, or as is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from schedlab.report.specifications import VEGA_LITE

_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def svg(specification: Mapping[str, Any]) -> str:
    """Returns the picture as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(specification), vl_version=VEGA_LITE))


def narrowed(specification: Mapping[str, Any], wanted: float) -> str:
    """Returns the picture with a plot so narrow, or so wide, that all of it is `wanted` pixels wide; of a chart
    of several plots, as wide as it is."""
    picture = svg(specification)
    own = specification.get("width")
    if not isinstance(own, int | float):
        return picture
    plot = max(own + wanted - size(picture)[0], wanted / 3)
    return svg({**specification, "width": plot})


def size(picture: str) -> tuple[float, float]:
    """Returns width and height, in pixels."""
    found = _SIZE.search(picture)
    assert found, "Vega gives each picture a size"
    return float(found[1]), float(found[2])


def sized(picture: str, width: float) -> str:
    """Returns the picture so many points wide: its `viewBox` is what it was."""
    old_width, old_height = size(picture)
    height = old_height * width / old_width
    return _SIZE.sub(f'width="{width:.2f}" height="{height:.2f}"', picture, count=1)
