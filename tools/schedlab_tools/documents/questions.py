# SPDX-License-Identifier: MIT
"""Generates the gallery's pages of questions, from bench/questions/results.csv."""

from collections.abc import Iterator, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.numbers import three_digits
from schedlab.paths import ROOT
from schedlab_tools.documents.linux_agreement import CHOSEN, ROUGHLY, TRUSTED
from schedlab_tools.documents.marked_parts import with_marked, wrapped, write
from schedlab_tools.linux_agreement import (
    HALVES,
    METRICS,
    SIMULATOR,
    cells,
    judge,
    read_data,
    read_variants,
    read_workloads,
)
from schedlab_tools.questions import (
    GROUPLESS,
    QUESTIONS,
    SEEDS,
    Measure,
    Question,
    Row,
    read_results,
    values_of,
)

FOLDER = ROOT / "docs" / "gallery"
INDEX = FOLDER / "README.md"
PART = "questions"
STAND_IN = "eevdf:linux-7-3"

_ROW_HEIGHT = 22


def page_of(question: Question) -> Path:
    """Returns the file of a question's page."""
    return FOLDER / f"question-{question.name}.md"


def picture_of(question: Question) -> Path:
    """Returns the file of its picture."""
    return FOLDER / f"question-{question.name}.svg"


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    return (INDEX, *map(page_of, QUESTIONS), *map(picture_of, QUESTIONS))


def make() -> None:
    """Writes pages, pictures and the index."""
    rows = read_results()
    for question in QUESTIONS:
        write(page_of(question), page(question, rows))
        write(picture_of(question), picture(question, rows))
    write(INDEX, with_marked(INDEX.read_text("utf-8"), PART, index(rows)))


def index(rows: Sequence[Row]) -> str:
    """Returns the table of the index."""
    lines = [
        f"| [{question.title}]({page_of(question).name}) | {' '.join(_answers(question, rows))} |"
        for question in QUESTIONS
    ]
    return "\n".join(["", "| question | answer |", "|---|---|", *lines, ""])


def page(question: Question, rows: Sequence[Row]) -> str:
    """Returns a question's page."""
    blocks = [
        f"# {question.title}",
        wrapped(" ".join(_answers(question, rows))),
        wrapped(question.about),
        f"![the results]({picture_of(question).name})",
        _table(question, rows),
        wrapped(
            f"Means over {SEEDS} seeds, which move the start within a tick and draw the random times. The brackets"
            " have 95 % intervals (Student's t). An interval without width means that no seed changes the value.",
        ),
        "## Repeat it",
        _commands(question),
        "## How far to trust it",
        *(wrapped(sentence) for sentence in _trust(question, rows)),
    ]
    return "\n\n".join(blocks) + "\n"


# --- answers


def _estimate(
    question: Question, measure: Measure, policy: str, rows: Sequence[Row]
) -> Estimate | None:
    values = values_of(rows, question, measure, policy)
    return estimate(values, (0, inf)) if values else None


def _measured(question: Question, measure: Measure, rows: Sequence[Row]) -> dict[str, Estimate]:
    estimates = {policy: _estimate(question, measure, policy, rows) for policy in question.policies}
    return {policy: value for policy, value in estimates.items() if value}


def _answers(question: Question, rows: Sequence[Row]) -> Iterator[str]:
    """Yields a sentence per measure."""
    for measure in question.measures:
        estimates = _measured(question, measure, rows)
        if measure.expected is None:
            in_order = sorted(estimates, key=lambda policy: estimates[policy].mean)
            least, most = in_order[0], in_order[-1]
            yield (
                f"{measure.title[0].upper()}{measure.title[1:]}: from {_value(measure, estimates[least].mean)}"
                f" (`{least}`) to {_value(measure, estimates[most].mean)} (`{most}`)."
            )
            continue
        met = [policy for policy, value in estimates.items() if measure.is_met(value.mean)]
        title = f"{measure.title[0].upper()}{measure.title[1:]}"
        if len(met) == len(estimates):
            yield f"{title} is {_expected(measure)} under all policies."
        elif met:
            yield f"{title} is {_expected(measure)} under {_listed(met)} only."
        else:
            yield f"{title} is {_expected(measure)} under no policy."


def _expected(measure: Measure) -> str:
    return f"{'at most ' * measure.at_most}{measure.expected:g} {measure.unit}"


def _listed(policies: Sequence[str]) -> str:
    names = [f"`{policy}`" for policy in policies]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _value(measure: Measure, value: float) -> str:
    return f"{three_digits(value)} {measure.unit}"


def _table(question: Question, rows: Sequence[Row]) -> str:
    """Returns the results as a Markdown table: a row per policy, a column per measure."""
    head = ["policy"]
    for measure in question.measures:
        expected = "" if measure.expected is None else f" (expected: {_expected(measure)})"
        head.append(measure.title + expected)
    lines = []
    for policy in question.policies:
        values = [_estimate(question, measure, policy, rows) for measure in question.measures]
        texts = [
            f"{_value(measure, value.mean)} ({three_digits(value.low)} to {three_digits(value.high)})"
            if value
            else "–"
            for measure, value in zip(question.measures, values, strict=True)
        ]
        lines.append((f"`{policy}`", *texts))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def _commands(question: Question) -> str:
    policies = ",".join(question.policies)
    workloads = dict.fromkeys(
        (measure.path, measure.cpus, measure.tick_ns) for measure in question.measures
    )
    runs = [
        f"    ./schedlab run --machine sim --policy {policies} --workload {path.relative_to(ROOT)}"
        f" --cpus {cpus} --tick {tick_ns // 1_000_000}ms --runs {SEEDS}"
        for path, cpus, tick_ns in workloads
    ]
    bench = f"    ./schedlab dev bench questions --question {question.name}    # all of it, and the starts"
    return "\n".join([*runs, bench])


# --- trust


def _trust(question: Question, rows: Sequence[Row]) -> Iterator[str]:
    """Yields sentences: for the built-in policies by the agreement with Linux, and for compiled schedulers."""
    stand_in = (
        f" `{STAND_IN}` represents Linux's fair class, and [the agreement with Linux](../linux-agreement.md)"
        " says how well."
    )
    yield "All policies ran in the simulator." + stand_in * (STAND_IN in question.policies)
    metrics = list(
        dict.fromkeys(filter(None, (measure.agreement for measure in question.measures)))
    )
    for metric in metrics:
        yield _agreement(metric)
    if not metrics:
        yield "None of this page's figures is compared with Linux: their trust is unknown."
    elif any(measure.cpus > 1 for measure in question.measures):
        yield "On several CPUs, latencies are not compared with Linux: their trust is unknown."
    if set(GROUPLESS) - set(question.policies):
        yield (
            "Linux's fair class honours both settings. `eevdf` and `cfs` model no groups, so they are"
            " left out."
        )
    for policy in question.policies:
        origins = {
            (row["object_sha256"], row["date"])
            for row in rows
            if row["policy"] == policy and row["question"] == question.name and row["object_sha256"]
        }
        for digest, date in sorted(origins):
            yield (
                f"`{policy}` ran unmodified in the simulator on {date}: object `{digest[:16]}`. Its behaviour there"
                " [is not compared](../sched-ext.md) with a kernel, and its results are not repeated by tests."
            )


@cache
def _agreement(metric: str) -> str:
    """Returns how many held-out results of a metric on one CPU agree, with the chosen settings."""
    chosen = next(variant.variant for variant in read_variants() if variant.half == "all")
    verdicts = [
        judge(cell)
        for cell in cells(read_data(), read_workloads(), SIMULATOR, chosen)
        if cell.metric == metric and cell.cpus == 1 and cell.workload.half == HALVES[1]
    ]
    agree = len(verdicts) - verdicts.count("off")
    near = agree / len(verdicts)
    trust = "yes" if near >= TRUSTED else "roughly" if near >= ROUGHLY else "no"
    return (
        f"{METRICS[metric].title.capitalize()} on one CPU: {trust}. {agree} of {len(verdicts)} held-out results agree"
        f" with the {CHOSEN} and the guest's costs."
    )


# --- the picture


def picture(question: Question, rows: Sequence[Row]) -> str:
    """Returns an SVG with a point and an interval per policy, a plot per measure."""
    import altair as alt
    import vl_convert

    plots = [_plot(question, measure, rows) for measure in question.measures]
    chart = alt.vconcat(*plots, spacing=24).configure_view(stroke=None)
    return str(vl_convert.vegalite_to_svg(chart.to_dict())) + "\n"


def _plot(question: Question, measure: Measure, rows: Sequence[Row]) -> Any:
    import altair as alt
    import polars as pl

    points = [
        {"policy": policy, "mean": value.mean, "low": value.low, "high": value.high}
        for policy, value in _measured(question, measure, rows).items()
    ]
    title = f"{measure.title} ({measure.unit})"
    base = alt.Chart(pl.DataFrame(points))
    y = alt.Y("policy:N", title=None, sort=list(question.policies))
    layers = [
        base.mark_rule(strokeWidth=2, color="#476582").encode(
            alt.X("low:Q", title=title).scale(zero=True), alt.X2("high:Q"), y
        ),
        base.mark_point(filled=True, size=70, opacity=1, color="#1f4e79").encode(
            alt.X("mean:Q", title=title), y
        ),
    ]
    if measure.expected is not None:
        expected = alt.Chart(pl.DataFrame({"expected": [measure.expected]}))
        layers.insert(
            0, expected.mark_rule(strokeDash=[4, 3], color="#b5541c").encode(alt.X("expected:Q"))
        )
    return alt.layer(*layers).properties(width=520, height=_ROW_HEIGHT * len(points))
