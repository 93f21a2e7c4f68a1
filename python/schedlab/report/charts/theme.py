# SPDX-License-Identifier: MIT
"""Defines the look of all charts: colours, dashes, shapes and fonts, for pages and paper.

A chart does not set colours of text, axes or reference lines. It gives them a style (`IDEAL`,
`FAINT`…), and the writer's configuration defines it. On a page, these parts have the colour of the
surrounding text (`currentColor`, which follows a dark theme); on paper, they are black.

Colours with a meaning are the same on pages and paper, and are distinct on either background.
templates/theme.css defines them, for the monitor, too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.policies import known_policies
from schedlab.report.drawing import WIDTH as WIDTH

ChartConfig = dict[str, Any]

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
TEXT_SIZE = 12
SMALL_TEXT_SIZE = 11
"""Smallest font size of charts."""

IDEAL = "schedlab-ideal"
"""Style: ideal values."""
FAINT = "schedlab-faint"
"""Style: context of lower importance."""
ANNOTATION = "schedlab-annotation"
"""Style: words and lines that explain a moment."""

_CSS_COLOUR = re.compile(r"--(series|policy|own-policy)-(\w[\w-]*): (#[0-9a-f]{6});")
_COLOURS = tuple(
    match.groups()
    for match in _CSS_COLOUR.finditer(
        (Path(__file__).parents[1] / "templates" / "theme.css").read_text()
    )
)
SLATE, *_PALETTE = (colour for kind, _, colour in _COLOURS if kind == "series")
PALETTE = tuple(_PALETTE)
"""Colours of series that are not policies. Slate is for all others."""
POLICY_COLOURS = {name: colour for kind, name, colour in _COLOURS if kind == "policy"}
"""Colours of the built-in policies and Linux's fair class."""
_FIRST_POLICY_OF_COLOUR = {colour: name for name, colour in reversed(POLICY_COLOURS.items())}
USER_POLICY_COLOURS = tuple(colour for kind, _, colour in _COLOURS if kind == "own-policy")
"""Colours of user policies in order.

User policies have separate colours, so that their names do not change other colours.
"""
BLUE, SALMON, TEAL, PURPLE, OLIVE, RUST, ORCHID = PALETTE

DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0), (8, 3), (8, 3, 2, 3), (4, 2), (12, 4), (8, 3, 2, 3, 2, 3), (16, 3, 4, 3), (3, 5),
)  # fmt: skip
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "arrow", "wedge", "cross",
)  # fmt: skip
SECOND_DASHES: tuple[tuple[int, ...], ...] = ((1, 2), (6, 2, 1, 2), (5, 1), (2, 6), (10, 2, 2, 2))
SECOND_SHAPES = ("cross", "triangle-right", "triangle-left", "wedge", "arrow")
"""Shapes of a policy with the same colour as an earlier one."""
PUBLISHED_DASH = (2, 3)


@dataclass(frozen=True)
class Look:
    """The look of a series: a colour, and a dash and a shape that distinguish it without colour."""

    colour: str
    dash: tuple[int, ...]
    shape: str


MUTED_LOOK = Look(SLATE, (1, 0), "circle")


def policy_look(policy: str) -> Look:
    """Returns a policy's look. Dash and shape distinguish presets and changed tunables.

    `policy` is as in `Setup.policy_title`: "lottery", "lottery:thesis", "priority slice=2".
    """
    choice, _, settings = policy.partition(" ")
    name, _, preset = choice.partition(":")
    policy_known = known_policies().get(name)
    preset_names = tuple(policy_known.presets) if policy_known else ()
    look_index = (
        preset_names.index(preset) + 1
        if preset in preset_names
        else len(preset_names) + 1
        if preset
        else 0
    )
    look_index += 1 if settings else 0
    colour = _policy_colour(name)
    is_second_of_colour = name in POLICY_COLOURS and name != _FIRST_POLICY_OF_COLOUR[colour]
    dashes, shapes = (SECOND_DASHES, SECOND_SHAPES) if is_second_of_colour else (DASHES, SHAPES)
    return Look(
        colour, dashes[min(look_index, len(dashes) - 1)], shapes[min(look_index, len(shapes) - 1)]
    )


def _policy_colour(name: str) -> str:
    """Returns the colour of a policy; a user's policies take the colours of USER_POLICY_COLOURS in
    turn.
    """
    if name in POLICY_COLOURS:
        return POLICY_COLOURS[name]
    uncoloured = [name for name in known_policies() if name not in POLICY_COLOURS]
    return USER_POLICY_COLOURS[
        uncoloured.index(name) % len(USER_POLICY_COLOURS) if name in uncoloured else 0
    ]


def series_looks(series: Sequence[str], *, policies: bool = True) -> list[Look]:
    """Returns the look of each series: policies as in `policy_look`, others by their order."""
    if policies:
        return [policy_look(name) for name in series]
    return [
        Look(
            PALETTE[index % len(PALETTE)],
            DASHES[index // len(PALETTE) % len(DASHES)],
            SHAPES[index % len(SHAPES)],
        )
        for index in range(len(series))
    ]


def page_config() -> ChartConfig:
    """Returns a Vega-Lite `config` for a page: transparent, in the colour of the page's text.

    It needs the SVG renderer: canvas does not support `currentColor`.
    """
    return _chart_config(background="transparent", ink="currentColor", paper=None)


def paper_config() -> ChartConfig:
    """Returns a Vega-Lite `config` for files: black on white."""
    return _chart_config(background="white", ink="#111111", paper="white")


def _chart_config(background: str, ink: str, paper: str | None) -> ChartConfig:
    """Returns a Vega-Lite `config`.

    `ink`: the colour of texts and lines. `paper`: the colour behind marks, or None.
    """
    text = {"font": FONT, "fontSize": TEXT_SIZE, "color": ink}
    labels = {
        "labelColor": ink,
        "labelFont": FONT,
        "labelFontSize": TEXT_SIZE,
        "titleColor": ink,
        "titleFont": FONT,
        "titleFontSize": TEXT_SIZE,
        "titleFontWeight": "normal",
    }
    axis = {
        "domainColor": ink,
        "domainOpacity": 0.5,
        "tickColor": ink,
        "tickOpacity": 0.5,
        "tickSize": 4,
        "gridColor": ink,
        "gridOpacity": 0.12,
        "labelPadding": 4,
        "titlePadding": 8,
        "labelLimit": 260,
        "titleLimit": 600,
    }
    return {
        "background": background,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**labels, **axis},
        "axisX": {"titleAlign": "right", "titleAnchor": "end"},
        "legend": {
            **labels,
            "orient": "top",
            "direction": "horizontal",
            "titleOrient": "left",
            "titleLimit": 300,
            "labelLimit": 260,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
            "columnPadding": 14,
        },
        "header": {**labels, "labelFontWeight": "bold", "labelLimit": 400},
        "title": {**text, "anchor": "start"},
        "text": text,
        "range": {"category": list(PALETTE)},
        "style": {
            IDEAL: {"color": ink, "strokeWidth": 1.25, "opacity": 0.9},
            FAINT: {"color": ink, "opacity": 0.3},
            ANNOTATION: {
                "color": ink,
                "opacity": 0.8,
                "font": FONT,
                "fontSize": SMALL_TEXT_SIZE,
            },
            "group-title": {"fill": ink},
        },
        **({"padding": 8} if paper else {"padding": 2}),
    }
