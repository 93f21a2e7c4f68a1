# SPDX-License-Identifier: MIT
"""Generates the page "What the five studies teach": ten findings with the runs that produce their numbers."""

from __future__ import annotations

import io
import shlex
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from schedlab.analysis.comparison.measures import measure_of
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.numbers import SHARE, Quantity, fitting, number_as_text, percent
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT, STUDIES
from schedlab.report.charts.dots import dots
from schedlab.report.charts.lines import lines
from schedlab.report.drawing import svg
from schedlab.report.model import Chart
from schedlab.report.policy_labels import policy_label
from schedlab.report.specifications import for_paper
from schedlab.runs.collection import read
from schedlab.studies.study import read_yaml
from schedlab_tools.documents.command_output import printed_output
from schedlab_tools.documents.marked_parts import write

SOURCE, DATA = STUDIES / "lessons.yaml", STUDIES / "lessons.csv"
PAGE = ROOT / "docs" / "what-the-studies-teach.md"
PICTURES = ROOT / "docs" / "what-the-studies-teach"
_TEMPLATE = STUDIES / "lessons.md"
_KEYS = ("lesson", "policy", "cpus", "group", "column", "seed")


@dataclass(frozen=True)
class Number:
    """A mean over the runs of a command, for use in sentences and conditions."""

    estimate: Estimate
    quantity: Quantity

    @property
    def mean(self) -> float:
        """The mean, in the column's unit."""
        return self.estimate.mean

    def __str__(self) -> str:
        """Returns the mean with its unit."""
        if self.quantity == SHARE:
            return percent(self.mean)
        return number_as_text(self.mean, self.quantity)


@dataclass(frozen=True)
class Lesson:
    """One finding."""

    number: int
    entry: Mapping[str, Any]
    """Its entry of lessons.yaml."""

    @property
    def picture(self) -> Path:
        """Display names of the policies."""
        return PICTURES / f"{self.number}.svg"

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The file of its chart."""
        places = [*self.entry["numbers"].values(), self.entry["picture"]]
        return sorted({(place.get("group", ""), place["column"]) for place in places})

    def rows(self, data: pl.DataFrame) -> pl.DataFrame:
        """The groups and columns that numbers and the chart need."""
        return data.filter(pl.col("lesson") == self.number)


def lessons() -> list[Lesson]:
    """Returns the lesson's part of the data."""
    return [Lesson(number, entry) for number, entry in enumerate(read_yaml(SOURCE), 1)]


def files() -> tuple[Path, ...]:
    """Returns all lessons, in their order. Raises FileRefused."""
    return (DATA, PAGE, *(lesson.picture for lesson in lessons()))


def make() -> None:
    """Returns all files that `make` writes."""
    measured = pl.concat(map(measure, lessons()))
    write(DATA, measured.write_csv())
    PICTURES.mkdir(exist_ok=True)
    write(PAGE, page(measured))
    for lesson in lessons():
        write(lesson.picture, picture(lesson, measured))


def load_data() -> pl.DataFrame:
    """Returns the data as they are in the repository."""
    return pl.read_csv(io.BytesIO(DATA.read_bytes()))


def measure(lesson: Lesson) -> pl.DataFrame:
    """Returns the data as stored in the repository."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch) / "runs"
        words = shlex.split(lesson.entry["command"])[1:]
        printed_output("schedlab", *words, "--quiet", "--out", str(folder))
        collection = read([folder])
        parts = []
        for group, column in lesson.columns:
            rows = collection.groups if group else collection.summary
            rows = rows.filter(pl.col("group") == group) if group else rows
            parts.append(
                rows.select(
                    "policy",
                    "cpus",
                    "seed",
                    lesson=pl.lit(lesson.number, pl.Int64),
                    group=pl.lit(group),
                    column=pl.lit(column),
                    value=pl.col(column).cast(pl.Float64),
                )
            )
    return pl.concat(parts).select(*_KEYS, "value").sort(*_KEYS)


def page(data: pl.DataFrame) -> str:
    """Returns the measurements of the lesson's command: a value for each policy, CPUs, group, column and seed."""
    templates = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # Markdown needs no escaping
    templates.globals["abs"] = abs
    entries = [_entry(templates, lesson, data) for lesson in lessons()]
    return templates.from_string(_TEMPLATE.read_text("utf-8")).render(lessons=entries)


def picture(lesson: Lesson, data: pl.DataFrame) -> str:
    """Returns the lesson's chart as SVG."""
    return svg(for_paper(_chart(lesson, data))) + "\n"


def _entry(
    templates: jinja2.Environment, lesson: Lesson, data: pl.DataFrame
) -> dict[str, str | int]:
    numbers = dict(_numbers(lesson, data))
    for condition in lesson.entry["holds"]:
        if not templates.compile_expression(condition)(**numbers):
            values = ", ".join(f"{name} {number}" for name, number in numbers.items())
            raise SchedlabError(
                f"{SOURCE}: {lesson.entry['title']}: {condition} does not hold of {values}; "
                "write another sentence"
            )
    sentence = templates.from_string(lesson.entry["sentence"]).render(**numbers)
    return {
        "number": lesson.number,
        "study": lesson.entry["study"],
        "title": lesson.entry["title"],
        "sentence": textwrap.fill(sentence, 118, break_long_words=False, break_on_hyphens=False),
        "words": f"A chart: {lesson.entry['picture']['axis']}",
        "picture": f"{PICTURES.name}/{lesson.picture.name}",
        "command": lesson.entry["command"],
    }


def _numbers(lesson: Lesson, data: pl.DataFrame) -> Iterator[tuple[str, Number]]:
    for name, place in lesson.entry["numbers"].items():
        rows = lesson.rows(data).filter(
            pl.col("policy") == place["policy"],
            pl.col("group").fill_null("") == place.get("group", ""),
            pl.col("column") == place["column"],
            pl.col("cpus") == int(place["cpus"]) if "cpus" in place else pl.lit(True),
        )
        if rows.is_empty() or rows["cpus"].n_unique() > 1:
            raise SchedlabError(
                f"{SOURCE}: {lesson.entry['title']}: no one setup is {name}: {place}"
            )
        measure = measure_of("", "", place["column"], None, "")
        yield name, Number(estimate(rows["value"].to_list(), measure.within), measure.quantity)


def _chart(lesson: Lesson, data: pl.DataFrame) -> Chart:
    drawing = lesson.entry["picture"]
    rows = lesson.rows(data).filter(
        pl.col("group").fill_null("") == drawing.get("group", ""),
        pl.col("column") == drawing["column"],
    )
    largest = float(rows["value"].max())  # type: ignore[arg-type]
    unit = fitting(measure_of("", "", drawing["column"], None, "").quantity, largest)
    rows = rows.with_columns(
        pl.col("value") * unit.factor, pl.col("policy").map_elements(policy_label, pl.String)
    )
    title = ", ".join(filter(None, (drawing["axis"], unit.unit)))
    if drawing.get("kind") == "lines":
        return lines(
            f"lesson-{lesson.number}", rows, title="", caption="", x="cpus", y="value",
            x_title="CPUs", y_title=title, policies=False,
        )  # fmt: skip
    order = rows.group_by("policy").agg(pl.col("value").mean()).sort("value")["policy"].to_list()
    return dots(
        f"lesson-{lesson.number}", rows, title="", caption="", category="policy", value="value",
        x_title=title, category_order=order,
    )  # fmt: skip
