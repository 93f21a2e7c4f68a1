# SPDX-License-Identifier: MIT
"""How all charts look: colours, dashes, shapes, fonts; on a page of any colour, and on paper.

A chart names no colour of text, axes or reference lines. It gives them a style (`IDEAL`, `FAINT`
…), and the configuration that the writer chooses says what that is: the colour of the text around
it on a page (`currentColor`, which follows a dark theme), black on paper. Colours that carry a
meaning are the same in both, and can be told from either background: templates/theme.css has them,
for the monitor, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.policies import known_policies
from schedlab.report.drawing import WIDTH as WIDTH

Spec = dict[str, Any]

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
TEXT_SIZE = 12
SMALL_TEXT_SIZE = 11
"""The smallest there is."""

IDEAL = "schedlab-ideal"
"""Style: the line of what should be."""
FAINT = "schedlab-faint"
"""Style: what is there, and is not what one looks for."""
ANNOTATION = "schedlab-annotation"
"""Style: words and lines that explain a moment."""

_IN_CSS = re.compile(r"--(series|policy|own-policy)-(\w[\w-]*): (#[0-9a-f]{6});")
_COLOURS = tuple(
    match.groups()
    for match in _IN_CSS.finditer(
        (Path(__file__).parents[1] / "templates" / "theme.css").read_text()
    )
)
SLATE, *_PALETTE = (colour for kind, _, colour in _COLOURS if kind == "series")
PALETTE = tuple(_PALETTE)
"""For series that are no policies; slate is for all others."""
POLICY_COLOURS = {name: colour for kind, name, colour in _COLOURS if kind == "policy"}
"""Of the policies that come with schedlab, and of Linux's own class."""
_FIRST_OF = {colour: name for name, colour in reversed(POLICY_COLOURS.items())}
USER_POLICY_COLOURS = tuple(colour for kind, _, colour in _COLOURS if kind == "own-policy")
"""Of those that a user has added, in their order. They take no colour from the others, whatever their names are."""
BLUE, SALMON, TEAL, PURPLE, OLIVE, RUST, ORCHID = PALETTE

DASHES: tuple[tuple[int, ...], ...] = (
    (1, 0), (8, 3), (8, 3, 2, 3), (4, 2), (12, 4), (8, 3, 2, 3, 2, 3), (16, 3, 4, 3), (3, 5),
)  # fmt: skip
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "arrow", "wedge", "cross",
)  # fmt: skip
SECOND_DASHES: tuple[tuple[int, ...], ...] = ((1, 2), (6, 2, 1, 2), (5, 1), (2, 6), (10, 2, 2, 2))
SECOND_SHAPES = ("cross", "triangle-right", "triangle-left", "wedge", "arrow")
"""Of a policy that shares its colour with one before it."""
PUBLISHED_DASH = (2, 3)


@dataclass(frozen=True)
class Look:
    """The look of a series: a colour, and what distinguishes it without one."""

    colour: str
    dash: tuple[int, ...]
    shape: str


MUTED = Look(SLATE, (1, 0), "circle")


def policy_look(policy: str) -> Look:
    """The colour is the policy's; the preset, or what was set, is told by dash and shape.

    `policy` is as in `Setup.policy_title`: "lottery", "lottery:thesis", "priority slice=2".
    """
    choice, _, settings = policy.partition(" ")
    name, _, preset = choice.partition(":")
    policy_known = known_policies().get(name)
    known = tuple(policy_known.presets) if policy_known else ()
    place = known.index(preset) + 1 if preset in known else len(known) + 1 if preset else 0
    place += 1 if settings else 0
    colour = _policy_colour(name)
    second = name in POLICY_COLOURS and name != _FIRST_OF[colour]
    dashes, shapes = (SECOND_DASHES, SECOND_SHAPES) if second else (DASHES, SHAPES)
    return Look(colour, dashes[min(place, len(dashes) - 1)], shapes[min(place, len(shapes) - 1)])


def _policy_colour(name: str) -> str:
    if name in POLICY_COLOURS:
        return POLICY_COLOURS[name]
    uncoloured = [name for name in known_policies() if name not in POLICY_COLOURS]
    return USER_POLICY_COLOURS[
        uncoloured.index(name) % len(USER_POLICY_COLOURS) if name in uncoloured else 0
    ]


def looks(series: Sequence[str], *, policies: bool = True) -> list[Look]:
    """Returns how each series looks: policies as `policy_look` has it, others by their order."""
    if policies:
        return [policy_look(name) for name in series]
    return [
        Look(
            PALETTE[place % len(PALETTE)],
            DASHES[place // len(PALETTE) % len(DASHES)],
            SHAPES[place % len(SHAPES)],
        )
        for place in range(len(series))
    ]


def page_config() -> Spec:
    """A Vega-Lite `config` for a page: no background, all else in the colour of its text.

    It needs the SVG renderer: a canvas does not know `currentColor`.
    """
    return _config(background="transparent", ink="currentColor", paper=None)


def paper_config() -> Spec:
    """A Vega-Lite `config` for files: black on white."""
    return _config(background="white", ink="#111111", paper="white")


def _config(background: str, ink: str, paper: str | None) -> Spec:
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
