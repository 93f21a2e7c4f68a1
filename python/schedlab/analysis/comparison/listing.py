# SPDX-License-Identifier: MIT
"""Prints a comparison in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from schedlab.analysis.comparison.compare import (
    Comparison,
    MatchedConfiguration,
    MetricChange,
    Verdict,
)
from schedlab.analysis.comparison.formatting import change_as_text, estimate_as_text
from schedlab.analysis.comparison.measures import (
    GROUP_MEASURES,
    MEASURES,
    MEASURES_BY_NAME,
    Measure,
    reported_value_measure,
)
from schedlab.analysis.comparison.setups import DIMENSIONS, ComparedProperty, configuration_key
from schedlab.analysis.comparison.statistics import T_TEST_COUNT_MAX
from schedlab.base.display.numbers import number_as_text, percent, percent_change
from schedlab.base.display.terminal import full_width, new_table, result_console
from schedlab.metrics.tails import processes_needed

if TYPE_CHECKING:
    from schedlab.runs.collection import ConfigurationRuns

_VERDICT_TEXTS: dict[Verdict, tuple[str, str]] = {
    "same": ("the same", "dim"),
    "better": ("better", "green"),
    "worse": ("worse", "red"),
    "changed": ("changed", "bold"),
    "slight": ("{}, below the threshold", "dim"),
    "chance": ("not significant", "dim"),
    "perhaps": ("perhaps {}", ""),
    "one seed": ("{} with this seed", ""),
    "not repeatable": ("one run each", "yellow"),
}
_VALUES_MAX = 6
_INTERVAL = re.compile(r" (\[.*\]|\(1 seed\))")
"""Matches the interval of a number."""
_TITLES = {measure.name: measure.title for measure in (*MEASURES, *GROUP_MEASURES)}


def comparison_listing(comparison: Comparison, show_all: bool) -> Iterator[RenderableType]:
    """Yields the differences, configurations without a partner, and each matched configuration.
    `show_all`: also unchanged metrics.
    """
    yield facts_table(comparison.facts)
    yield common_facts_text(comparison.facts)
    yield from _explanations(comparison)
    identical_matches = [match for match in comparison.matches if match.is_identical]
    for same_match in identical_matches[: None if show_all else _VALUES_MAX]:
        yield Text(
            f"{match_title(same_match, comparison.across)}: the same, byte for byte{_excluded_seeds_text(same_match)}"
        )
    if len(identical_matches) > _VALUES_MAX and not show_all:
        yield Text(
            f"… and {len(identical_matches) - _VALUES_MAX} more configurations: the same, byte for byte"
        )
    for same_match in comparison.matches:
        if same_match.failed_runs:
            yield failure_text(same_match, comparison.across)
        elif not same_match.is_identical:
            yield from match_table(same_match, comparison.across, show_all)
            yield from seeds_needed_text(same_match, comparison.threshold)
            yield from one_sided_metrics_text(same_match)
            yield from missing_metrics_text(same_match, comparison.requested_metrics)
    yield from _notes(comparison)


def facts_table(facts: Sequence[ComparedProperty]) -> Table:
    """Returns a table of what differs between the sides."""
    table = new_table("What differs", "", "before", "after", fold=True)
    for fact in facts:
        if fact.differs:
            table.add_row(fact.name, abbreviated_list(fact.before), abbreviated_list(fact.after))
    if not table.rows:
        table.add_row("nothing", "", "")
    return table


def common_facts_text(facts: Sequence[ComparedProperty]) -> Text:
    """Returns what is the same on both sides, as text."""
    texts = [f"{fact.name} {abbreviated_list(fact.before)}" for fact in facts if not fact.differs]
    return Text(f"The same: {'; '.join(texts)}.", "dim")


def abbreviated_list(
    values: Sequence[str], values_max: int = _VALUES_MAX, separator: str = ", "
) -> str:
    """Joins the values; of more than `values_max` values, the first and the number of all."""
    if len(values) <= values_max:
        return separator.join(values)
    return f"{separator.join(values[: values_max - 1])} … ({len(values)})"


def _explanations(comparison: Comparison) -> Iterator[Text]:
    """Yields the explanations of terms that the tables use."""
    if len(comparison.across) > 1:
        differing_text = ", ".join(comparison.across)
        yield Text(
            f"Several properties differ at once ({differing_text}), so none of them alone explains a change.",
            "yellow",
        )
    for side, unmatched in (
        ("before", comparison.unmatched_before),
        ("after", comparison.unmatched_after),
    ):
        if unmatched:
            unmatched_text = abbreviated_list(
                [_setup_name(setup, DIMENSIONS) for setup in unmatched], separator="; "
            )
            yield Text(f"Without a partner, {side}: {unmatched_text}", "yellow")


def _setup_name(setup: ConfigurationRuns, dimensions: Sequence[str]) -> str:
    """Returns the values of these dimensions as text; tunables only if there are any."""
    facts = dict(zip(DIMENSIONS, configuration_key(setup), strict=True))
    name_parts = []
    for name in dimensions:
        value = facts[name]
        if name == "CPUs":
            name_parts.append(f"{value} CPU{'' if value == '1' else 's'}")
        elif name == "tick":
            name_parts.append(f"tick {value}")
        elif name != "tunables" or value != "none":
            name_parts.append(value)
    return ", ".join(name_parts)


def match_title(match: MatchedConfiguration, across: Sequence[str]) -> str:
    """Returns a title such as `s3-mixed, 3 CPUs: rr → mlfq`."""
    common = [name for name in DIMENSIONS if name not in across and name not in ("tick", "machine")]
    common_name = _setup_name(match.before, common)
    if not across:
        return common_name
    sides = (_setup_name(setup, across) or "no tunables" for setup in (match.before, match.after))
    return f"{common_name}: {' → '.join(sides)}"


def failure_text(match: MatchedConfiguration, across: Sequence[str]) -> Text:
    """Returns why configurations are not compared. A mean over successful runs only would mislead."""
    text = Text(f"{match_title(match, across)}: not compared, because runs failed", "red")
    for run in match.failed_runs:
        side = "before" if run in match.before.runs else "after"
        reason = str(run.manifest.get("message") or run.status).splitlines()[0]
        text.append(f"\n  {side}, seed {run.seed}: {run.status}: {reason} ({run.folder})")
    return text


def match_table(
    match: MatchedConfiguration, across: Sequence[str], show_all: bool
) -> Iterator[RenderableType]:
    """Yields the table of changed metrics; with `show_all`, of all metrics."""
    hidden_verdicts = ("same", "chance", "slight")
    rows = [row for row in match.rows if show_all or row.verdict not in hidden_verdicts]
    hidden_count = len(match.rows) - len(rows)
    heading = Text(f"{match_title(match, across)} ({_seeds_text(match)})")
    table = _wide_table(heading, rows)
    if result_console().is_terminal and full_width(table) > result_console().width:
        table = _narrow_table(heading, rows)
    if hidden_count:
        table.caption = Text(f"{_hidden_rows_text(match.rows)} (`everything=` shows them)", "dim")
    yield table


def _wide_table(heading: Text, rows: Sequence[MetricChange]) -> Table:
    figures = (">before", ">after", ">difference", ">relative", ">p-value")
    table = new_table(heading, "group", "metric", *figures, "")
    for number, row in enumerate(rows):
        first = number == 0 or rows[number - 1].group != row.group
        last = number + 1 == len(rows) or rows[number + 1].group != row.group
        table.add_row(*_row_cells(row, first), end_section=last)
    return table


def _narrow_table(heading: Text, rows: Sequence[MetricChange]) -> Table:
    """Returns a table with two lines per row, below its group, without the intervals of means."""
    columns = (">before", ">after,\nrelative", ">difference,\ninterval", "verdict,\np-value")
    table = new_table(heading, "metric", *columns)
    for number, row in enumerate(rows):
        group, metric, before, after, difference, relative, p_value, verdict = _row_cells(row, True)
        if number == 0 or rows[number - 1].group != row.group:
            table.add_row(group)
        table.add_row(
            metric,
            _INTERVAL.sub("", str(before)),
            f"{_INTERVAL.sub('', str(after))}\n{relative}",
            _interval_on_next_line(str(difference)),
            Text.assemble(verdict, f"\n{p_value}" if p_value else ""),
        )
    for column in table.columns[1:4]:
        column.no_wrap = True
    return table


def _interval_on_next_line(number: str) -> str:
    interval = _INTERVAL.search(number)
    return f"{_INTERVAL.sub('', number)}\n{interval[1]}" if interval else number


def seeds_needed_text(match: MatchedConfiguration, matters: float) -> Iterator[Text]:
    """Yields how many seeds would probably detect a change at the threshold, for open metrics of the workload."""
    seeds_needed = [
        (row.seeds_needed, row.measure.title)
        for row in match.rows
        if row.group is None and row.seeds_needed and row.seeds_needed > row.difference.count
    ]
    if seeds_needed:
        shown = [f"{count:,} ({metric})" for count, metric in sorted(seeds_needed)]
        threshold_text = f"{matters:.3%}".rstrip("0%").rstrip(".")
        yield Text(
            f"Seeds that would probably show a change of {threshold_text} %: {abbreviated_list(shown)}",
            "dim",
        )


def one_sided_metrics_text(match: MatchedConfiguration) -> Iterator[Text]:
    """Yields the metrics that all runs of only one side have."""
    for side, parts in (("before", match.only_before), ("after", match.only_after)):
        if parts:
            names = "; ".join(_part_name(*part) for part in parts)
            yield Text(
                f"Not compared, because only one side has it in all runs ({side}): {names}",
                "yellow",
            )


def missing_metrics_text(match: MatchedConfiguration, metrics: Sequence[str]) -> Iterator[Text]:
    """Yields the requested metrics that neither side has."""
    present_metrics = {row.measure.name for row in match.rows}
    present_metrics |= {metric for _, metric in (*match.only_before, *match.only_after) if metric}
    for name in metrics:
        if name not in present_metrics:
            process_count = (
                processes_needed(MEASURES_BY_NAME[name].column) if name in MEASURES_BY_NAME else 1
            )
            why = (
                f"; it needs at least {process_count:,} processes in each run"
                if process_count > 1
                else ""
            )
            yield Text(
                f"Not compared, because some runs on both sides lack it: {_part_name(None, name)}{why}",
                "yellow",
            )


def _part_name(group: str | None, metric: str | None) -> str:
    if metric is None:
        return f"the group {group}"
    title = _TITLES.get(metric) or reported_value_measure(metric).title
    return title if group is None else f"{title}, of the group {group}"


def _hidden_rows_text(rows: Sequence[MetricChange]) -> str:
    """Returns how many rows are hidden because their metrics did not change."""
    counts = {
        "below the threshold": sum(row.verdict == "slight" for row in rows),
        "not significant": sum(row.verdict == "chance" for row in rows),
        "the same": sum(row.verdict == "same" for row in rows),
    }
    return "Metrics not shown: " + ", ".join(
        f"{count} {words}" for words, count in counts.items() if count
    )


def _seeds_text(match: MatchedConfiguration) -> str:
    """Returns the seeds of both sides in words."""
    if not match.is_paired:
        run_counts = [len(setup.runs) for setup in (match.before, match.after)]
        return f"different seeds on each side, not paired: {run_counts[0]} and {run_counts[1]}"
    count = len(match.seeds)
    seeds_text = f"seed {match.seeds[0]}" if count == 1 else f"{count} seeds, paired"
    return seeds_text + _excluded_seeds_text(match)


def _excluded_seeds_text(match: MatchedConfiguration) -> str:
    """Returns in words which seeds are excluded, because only one side has them."""
    if not match.excluded_seeds:
        return ""
    return f"; excluded, because only one side has them: seeds {', '.join(map(str, match.excluded_seeds))}"


def _row_cells(row: MetricChange, first: bool) -> tuple[str | Text, ...]:
    """Returns the cells of a row: metric, both means, change, p-value and verdict."""
    measure, difference = row.measure, row.difference
    group = "all" if row.group is None else row.group
    return (
        Text(group if first else "", "bold"),
        measure.title,
        side_mean_text(row, measure, "before"),
        side_mean_text(row, measure, "after"),
        change_as_text(difference, measure.quantity),
        "" if difference.relative is None else percent_change(difference.relative),
        p_value_text(row.p_value) + (" (floor)" if row.is_at_floor else ""),
        _verdict_text(row),
    )


def _verdict_text(row: MetricChange) -> Text:
    """Returns the verdict; if it is uncertain, with the observed direction."""
    words, style = _VERDICT_TEXTS[row.verdict]
    if row.verdict in ("perhaps", "one seed", "slight") and row.improves is not None:
        direction = "better" if row.improves else "worse"
        return Text(words.format(direction), style)
    return Text(words.format("changed"), style)


def side_mean_text(row: MetricChange, measure: Measure, side: str) -> str:
    """Returns a mean with its interval. A single seed has no interval; the table's title mentions it."""
    estimate = row.difference.before if side == "before" else row.difference.after
    if not estimate.has_interval and row.difference.paired:
        return number_as_text(estimate.mean, measure.quantity)
    return estimate_as_text(estimate, measure.quantity)


def p_value_text(p_value: float | None) -> str:
    """Returns a p-value as text, in percent with one decimal, or `< 0.1 %`."""
    if p_value is None:
        return ""
    return "< 0.1 %" if p_value < 0.001 else percent(p_value, 1)


def _notes(comparison: Comparison) -> Iterator[Text]:
    rows = [row for match in comparison.matches for row in match.rows]
    verdicts = {row.verdict for row in rows}
    if any(row.p_value is not None for row in rows):
        yield Text(
            "Means over seeds [95 % intervals]. A difference with a p-value below 5 % is"
            " significant. P-values are corrected for the number of metrics (Holm).",
            "dim",
        )
    if any(row.is_at_floor for row in rows):
        yield Text(
            "(floor): the smallest p-value that this number of seeds can give; do not rank rows by it.",
            "dim",
        )
    if "perhaps" in verdicts:
        has_few_seeds = any(
            row.verdict == "perhaps" and row.difference.count < T_TEST_COUNT_MAX for row in rows
        )
        yield Text(
            "Perhaps: significant only without the correction for the number of"
            f" metrics.{' More seeds would decide (`seeds=10`).' if has_few_seeds else ''}",
            "dim",
        )
    if "one seed" in verdicts:
        yield Text(
            "One seed each: on this machine the differences are exact for this seed, and unknown"
            " for other seeds. Run both sides with `seeds=10`.",
            "yellow",
        )
    if "not repeatable" in verdicts:
        yield Text(
            "One run each on a machine that is not repeatable: no difference is significant. Run"
            " both sides with `seeds=10`, or on spike.",
            "yellow",
        )
