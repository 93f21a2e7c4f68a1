# SPDX-License-Identifier: MIT
"""Generates the page "What the five studies teach": ten findings with the runs that produce their numbers."""

import io
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from schedlab.analysis.comparison.measures import make_measure
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.numbers import (
    SHARE,
    Quantity,
    number_as_text,
    percent,
    with_fitting_unit,
)
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT, STUDIES_FOLDER
from schedlab.report.charts.dots import dots
from schedlab.report.charts.lines import lines
from schedlab.report.drawing import render_svg
from schedlab.report.model import Chart
from schedlab.report.specifications import paper_specification
from schedlab.report.wording import policy_label
from schedlab.runs.collection import read_collection
from schedlab.studies.study import read_yaml
from schedlab_tools.documents.marked_parts import markdown_templates, printed_output, wrapped, write

SOURCE, RESULTS_FILE = STUDIES_FOLDER / "lessons.yaml", STUDIES_FOLDER / "lessons.csv"
PAGE = ROOT / "docs" / "what-the-studies-teach.md"
PICTURES = ROOT / "docs" / "what-the-studies-teach"
_TEMPLATE = "lessons.md"
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
    """One finding of lessons.yaml, with its numbers and its chart."""

    number: int
    entry: Mapping[str, Any]
    """Its entry of lessons.yaml."""

    @property
    def picture(self) -> Path:
        """The file of its chart."""
        return PICTURES / f"{self.number}.svg"

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The groups and columns that its numbers and its chart need."""
        places = [*self.entry["numbers"].values(), self.entry["picture"]]
        return sorted({(place.get("group", ""), place["column"]) for place in places})

    def rows(self, data: pl.DataFrame) -> pl.DataFrame:
        """Returns the lesson's part of the data."""
        return data.filter(pl.col("lesson") == self.number)


def lessons() -> list[Lesson]:
    """Returns all lessons, in their order. Raises FileRefused."""
    return [Lesson(number, entry) for number, entry in enumerate(read_yaml(SOURCE), 1)]


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    return (RESULTS_FILE, PAGE, *(lesson.picture for lesson in lessons()))


def make() -> None:
    """Measures all lessons, and writes the data, the page and the charts."""
    measured = pl.concat(map(measure, lessons()))
    write(RESULTS_FILE, measured.write_csv())
    PICTURES.mkdir(exist_ok=True)
    write(PAGE, page(measured))
    for lesson in lessons():
        write(lesson.picture, picture(lesson, measured))


def load_data() -> pl.DataFrame:
    """Returns the data as stored in the repository."""
    return pl.read_csv(io.BytesIO(RESULTS_FILE.read_bytes()))


def measure(lesson: Lesson) -> pl.DataFrame:
    """Returns the measurements of the lesson's command: a value for each policy, CPUs, group,
    column and seed.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch) / "runs"
        arguments = shlex.split(lesson.entry["command"])[1:]
        printed_output("schedlab", *arguments, "--quiet", "--out", str(folder))
        collection = read_collection([folder])
        frames = []
        for group, column in lesson.columns:
            rows = collection.groups if group else collection.summary
            rows = rows.filter(pl.col("group") == group) if group else rows
            frames.append(
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
    return pl.concat(frames).select(*_KEYS, "value").sort(*_KEYS)


def page(data: pl.DataFrame) -> str:
    """Returns the page's text, made from the data."""
    templates = markdown_templates()
    templates.globals["abs"] = abs
    entries = [_entry(templates, lesson, data) for lesson in lessons()]
    return templates.get_template(_TEMPLATE).render(lessons=entries)


def picture(lesson: Lesson, data: pl.DataFrame) -> str:
    """Returns the lesson's chart as SVG."""
    return render_svg(paper_specification(_chart(lesson, data))) + "\n"


def _entry(
    templates: jinja2.Environment, lesson: Lesson, data: pl.DataFrame
) -> dict[str, str | int]:
    """Returns the fields of a lesson in the page's template.

    Raises SchedlabError if a condition of the lesson does not hold.
    """
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
        "sentence": wrapped(sentence),
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
        measure = make_measure("", "", place["column"], None, "")
        yield name, Number(estimate(rows["value"].to_list(), measure.within), measure.quantity)


def _chart(lesson: Lesson, data: pl.DataFrame) -> Chart:
    drawing = lesson.entry["picture"]
    rows = lesson.rows(data).filter(
        pl.col("group").fill_null("") == drawing.get("group", ""),
        pl.col("column") == drawing["column"],
    )
    largest = float(rows["value"].max())  # type: ignore[arg-type]
    unit = with_fitting_unit(make_measure("", "", drawing["column"], None, "").quantity, largest)
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
