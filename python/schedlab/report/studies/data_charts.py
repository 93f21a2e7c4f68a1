# SPDX-License-Identifier: MIT
"""Charts that tables.yaml of a study describes: lines and dots, of numbers; and pictures of one trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from schedlab.report.charts import dots, drawn, gantt, levels, lines, shares_over_time
from schedlab.report.model import Chart
from schedlab.report.studies.described import Described, Values, listed

_PICTURES: Mapping[str, Any] = {"gantt": gantt, "shares": shares_over_time, "levels": levels}


class DescribedChart(Described):
    """Makes one chart."""

    def charts(self) -> list[Chart]:
        """None if nothing of it was run. Raises what `described.refusing` makes FileRefused of."""
        kind = self.said["chart"]
        return (
            self._lines()
            if kind == "lines"
            else self._dots()
            if kind == "dots"
            else self._picture()
        )

    def _options(self) -> Values:
        return {name: self.value(each, {}) for name, each in self.said.get("options", {}).items()}

    def _picture(self) -> list[Chart]:
        shown = self.value(self.said.get("where", "true"), {})
        trace = self.value(self.said["trace"], {}) if shown else None
        if trace is None:
            return []
        make = _PICTURES[self.said["chart"]]
        named = {"title": self.title, "caption": self.caption}
        return drawn(make, self.name, trace, **named, **self._options())

    def _dots(self) -> list[Chart]:
        rows = [(self.filled(self.said["row"], own), own) for own in self.each_of(self.said, {})]
        measured = [
            {"row": name, "value": number}
            for name, own in rows
            for found in (self.value(self.said["here"], own),)
            for number in found.runs or found.values
        ]
        if not any(each["value"] is not None for each in measured):
            return []
        printed = [
            {"row": name, "value": float(number)}
            for name, own in rows
            if (number := self.value(self.said["study"], own)) is not None
        ]
        schema = {"row": pl.String, "value": pl.Float64}
        return [
            dots(
                self.name,
                pl.DataFrame(measured, schema=schema),
                title=self.title,
                caption=self.caption,
                category="row",
                value="value",
                x_title=self.said["x title"],
                category_order=list(dict.fromkeys(name for name, _ in rows)),
                published=pl.DataFrame(printed, schema=schema),
            )
        ]

    def _lines(self) -> list[Chart]:
        x = self.said["x"]
        series = [
            (self.filled(each["name"], own), each, {**own, **point})
            for each in listed(self.said["series"])
            for own in self.each_of(each, {})
            for point in self.each_of(x, own)
        ]
        found = [self.value(said["here"], values) for _, said, values in series]
        told = {
            name
            for (name, _, _), here in zip(series, found, strict=True)
            if here.failed or any(number is not None for number in here.runs)
        }
        measured = [
            {"series": name, "x": self.value(x["is"], values), "y": number}
            for (name, _, values), here in zip(series, found, strict=True)
            if name in told  # what no run can tell is no failure
            for number in here.runs
        ]
        if not measured:
            return []
        printed = [
            {"series": name, "x": self.value(x["is"], values), "y": figure.value}
            for name, said, values in series
            if name in told and (figure := self.value(said.get("study", "none"), values))
        ]
        ideal = [
            {"x": self.value(x["is"], point), "y": self.value(self.said["ideal"], point)}
            for point in self.each_of(x, {})
            if "ideal" in self.said
        ]
        schema = {"series": pl.String, "x": pl.Int64, "y": pl.Float64}
        return [
            lines(
                self.name,
                pl.DataFrame(measured, schema=schema),
                title=self.title,
                caption=self.caption,
                x="x",
                y="y",
                x_title=x["title"],
                y_title=self.said["y title"],
                series="series",
                ideal=pl.DataFrame(ideal) if ideal else None,
                published=pl.DataFrame(printed, schema=schema) if printed else None,
                **self._options(),
            )
        ]
