# SPDX-License-Identifier: MIT
"""Goals × policies in one picture: where a policy is surely the best, where it may be, and what would decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.names import json_text, visible_in_chart
from schedlab.report.charts.parts import chart_of
from schedlab.report.charts.theme import BLUE, SMALL_TEXT_SIZE, WIDTH
from schedlab.report.findings import contenders, contests, goals, score, undecided
from schedlab.report.model import Chart

_ROW = 36
_BAR = 0.86
"""Of the width of a column."""
_GAP, _RIGHT = 0.15, 2.4
"""Columns: before what stands at the right, and all of that."""
_COLUMN = 75
"""Pixels: of the whole width for each policy, where a page is so narrow that it must be scrolled."""
_THICK = 11
"""Pixels."""
_LEVEL = 8
"""More names than that have no room beside each other."""
_SLANTED: dict[str, Any] = {"labelAngle": -30, "labelOverlap": False, "labelAlign": "left"}
_HATCH = 0.035
"""Columns from one line of a hatch to the next."""


def strip(found: Sequence[Suite]) -> Chart | None:
    """Returns goals × policies, or None if nothing can be told: how often each policy may be the best, and how often
    it alone is."""
    contest = contests(found)
    measures = goals(contest)
    if not measures:
        return None
    names = contenders(contest)
    rows = [
        {
            "goal": measure.title,
            "policy": name,
            "place": place,
            "suites": one.suites,
            "alone": one.wins,
            "may_be_best": one.possible,
            "out": one.out,
            "open": _needs(contest, measure)[0],
            "seeds_needed": _needs(contest, measure)[1],
        }
        for measure in measures
        for place, name in enumerate(names)
        for one in (score(contest, name, measure),)
        if one.suites
    ]
    data = pl.DataFrame(rows)
    return Chart(
        "goals",
        "Which policy for what",
        _drawn(data, names, [each.title for each in measures]),
        data.drop("place"),
        "Each bar is as long as the part of all tests in which the policy may be the best: full where it"
        " alone is left, hatched where others are, too; empty where another policy is better by more than"
        " chance. At the right: tests with several left, and with about how many seeds half of those would"
        " have one whose policies are more than 1 % apart, if seeds stay as scattered as they are."
        " [All policies compared](#comparison) has each test.",
        " ".join(
            f"{row['goal']}: {row['policy']} may be the best in {row['may_be_best']} of {row['suites']}."
            for row in rows
        ),
    )


def _needs(contest: Sequence[Suite], measure: Measure) -> tuple[str, str]:
    """Two short lines: how many contests are open, and what would decide them."""
    needed = undecided(contest, measure)
    known = [each for each in needed if each is not None]
    near = len(needed) - len(known)
    if not needed:
        return "all decided", ""
    half = math.ceil(len(known) / 2)
    seeds = f"{sorted(known)[half - 1]:,} seeds tell {half} of {len(known)}" if known else ""
    return f"{len(needed)} open, {near} by less than 1 %", seeds


def _drawn(data: pl.DataFrame, names: Sequence[str], titles: Sequence[str]) -> Any:
    y = alt.Y(
        "goal:N",
        title=None,
        sort=list(titles),
        scale=alt.Scale(domain=list(titles), paddingInner=0.35),
        axis=alt.Axis(ticks=False, domain=False, labelLimit=220),
    )
    layers = [*_bars(data, names, y), *_words(data, len(names), y)]
    return alt.layer(*layers).properties(
        width=WIDTH, height=_ROW * len(titles), usermeta={"narrowest": _COLUMN * len(names)}
    )


def _bars(data: pl.DataFrame, names: Sequence[str], y: alt.Y) -> list[Any]:
    """Draws a bar and its number for each policy and goal."""
    bars = data.select(
        "goal",
        "policy",
        "suites",
        "alone",
        "may_be_best",
        begin="place",
        sure=pl.col("place") + _BAR * pl.col("alone") / pl.col("suites"),
        end=pl.col("place") + _BAR * pl.col("may_be_best") / pl.col("suites"),
        whole=pl.col("place") + _BAR,
    )
    x = _columns(names)
    tooltip = [
        alt.Tooltip("policy:N"),
        alt.Tooltip("goal:N"),
        alt.Tooltip("may_be_best:Q", title="may be the best in"),
        alt.Tooltip("alone:Q", title="alone in"),
        alt.Tooltip("suites:Q", title="of tests"),
    ]
    base = chart_of(bars).encode(y, tooltip=tooltip)
    looks: dict[str, Any] = {"size": _THICK, "yOffset": -_THICK // 2, "color": BLUE}
    numbers = (
        base.mark_text(align="left", dx=1, dy=9, fontSize=SMALL_TEXT_SIZE)
        .encode(x, text=alt.Text("words:N"))
        .transform_calculate(words="datum.may_be_best + ' of ' + datum.suites")
    )
    return [
        base.mark_bar(**looks, fillOpacity=0.08).encode(x, alt.X2("whole:Q")),
        base.mark_bar(**looks, fillOpacity=0.18).encode(x, alt.X2("end:Q")),
        *_hatches(bars, y, looks),
        base.mark_bar(**looks).encode(x, alt.X2("sure:Q")),
        numbers,
    ]


def _columns(names: Sequence[str]) -> alt.X:
    """An axis with a column for each policy, and room at the right."""
    labels = json_text([visible_in_chart(name) for name in names])
    return alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, len(names) + _RIGHT], nice=False),
        axis=alt.Axis(
            orient="top",
            values=[place + _BAR / 2 for place in range(len(names))],
            labelExpr=f"{labels}[floor(datum.value)]",
            grid=False,
            ticks=False,
            domain=False,
            **(_SLANTED if len(names) > _LEVEL else {}),
        ),
    )


def _hatches(bars: pl.DataFrame, y: alt.Y, looks: dict[str, Any]) -> list[Any]:
    lines = [
        {"goal": row["goal"], "at": at}
        for row in bars.iter_rows(named=True)
        for at in np.arange(row["sure"] + _HATCH / 2, row["end"], _HATCH)
    ]
    if not lines:
        return []
    ticks = chart_of(pl.DataFrame(lines)).mark_tick(**looks, thickness=1.5, aria=False)
    return [ticks.encode(alt.X("at:Q"), y)]


def _words(data: pl.DataFrame, columns: int, y: alt.Y) -> list[Any]:
    """Writes at the right what would decide a goal."""
    told = data.group_by("goal", maintain_order=True).first()
    told = told.select("goal", "open", "seeds_needed", at=pl.lit(columns + _GAP))
    right = chart_of(told).encode(alt.X("at:Q"), y)
    return [
        right.mark_text(align="left", fontSize=SMALL_TEXT_SIZE, dy=dy).encode(
            text=alt.Text(f"{name}:N")
        )
        for name, dy in (("open", -5), ("seeds_needed", 9))
    ]
