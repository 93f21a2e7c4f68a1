# SPDX-License-Identifier: MIT
"""Judges a comparison: which metrics are significantly worse, and which can no longer be compared."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedlab.analysis.comparison.compare import Comparison, MatchedConfiguration, MetricChange
from schedlab.analysis.comparison.listing import abbreviated_list, match_title, side_mean_text
from schedlab.analysis.comparison.setups import configuration_key
from schedlab.base.display.markdown import code, code_cell, listing
from schedlab.base.display.names import visible_line
from schedlab.base.display.numbers import percent_change
from schedlab.errors import WrongUsage

SEEDS_MIN = 2


@dataclass(frozen=True)
class InstructionCount:
    """Instructions of one pick and one enqueue, before and after."""

    policy: str
    tasks: int
    before: int
    after: int | None
    """None if the policy no longer exists."""

    def is_worse(self, matters: float) -> bool:
        """True if the count grew by more than the threshold. Counts are exact and need no test."""
        return self.after is None or self.after - self.before > matters * self.before


@dataclass(frozen=True)
class GateVerdict:
    """Whether a change passes the gate, and the results that decide it."""

    comparison: Comparison
    counts: tuple[InstructionCount, ...] = field(default=())

    def rows(self, *verdicts: str) -> list[tuple[MatchedConfiguration, MetricChange]]:
        """Returns all rows with one of these verdicts."""
        return [
            (match, row)
            for match in self.comparison.matches
            for row in match.rows
            if row.verdict in verdicts
        ]

    @property
    def worse_counts(self) -> list[InstructionCount]:
        """Returns the instruction counts that grew by more than the threshold."""
        return [count for count in self.counts if count.is_worse(self.comparison.threshold)]

    def not_comparable(self) -> Iterator[str]:
        """Yields what can no longer be compared, in words. A gate that ignored it could be passed by failing."""
        for unmatched in self.comparison.unmatched_before:
            yield f"{', '.join(configuration_key(unmatched)[:4])}: it was not run"
        for match in self.comparison.matches:
            name = match_title(match, self.comparison.across)
            for run in match.failed_runs:
                yield f"{name}, seed {run.seed}: {run.manifest.get('message') or run.status}"
            for group, metric in match.only_before:
                of_group = f" of {group}" if group else ""
                yield f"{name}: {metric or 'all metrics'}{of_group}: some runs lack it now"
            if match.excluded_seeds:
                seeds = ", ".join(map(str, match.excluded_seeds))
                yield f"{name}: seeds of only one side: {seeds}"

    @property
    def passes(self) -> bool:
        """Returns whether nothing is worse, and everything can still be compared."""
        return not (self.rows("worse") or self.worse_counts or any(self.not_comparable()))

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        worse = len(self.rows("worse")) + len(self.worse_counts)
        better = len(self.rows("better"))
        open_ones = len(self.rows("perhaps"))
        equal = sum(match.is_identical for match in self.comparison.matches)
        count_texts = [
            f"{worse} worse",
            f"{better} better",
            *([f"{open_ones} perhaps"] if open_ones else []),
            *(
                [
                    f"{equal} of {len(self.comparison.matches)} configurations the same, byte for byte"
                ]
                if equal
                else []
            ),
        ]
        missing = sum(1 for _ in self.not_comparable())
        if missing:
            count_texts.append(f"{missing} no longer comparable")
        return f"{'passed' if self.passes else 'not passed'}: {', '.join(count_texts)}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the verdict for JSON."""
        return {
            "passes": self.passes,
            "summary": self.summary,
            "unjudged": list(self.not_comparable()),
            "instructions": [
                {**vars(count), "worse": count.is_worse(self.comparison.threshold)}
                for count in self.counts
            ],
            "comparison": self.comparison.to_dict(),
        }


def judge_comparison(
    comparison: Comparison,
    before: Mapping[str, Mapping[str, int]],
    after: Mapping[str, Mapping[str, int]],
) -> GateVerdict:
    """Returns the verdict on a comparison, and on instructions by policy and number of tasks.

    Raises WrongUsage if a configuration has only one seed: no difference could be significant.
    """
    for match in comparison.matches:
        if min(len(match.before.runs), len(match.after.runs)) < SEEDS_MIN:
            raise WrongUsage(
                f"{match_title(match, comparison.across)}: a gate needs several seeds per configuration",
                what="`gate=`",
                fix="run both sides with `seeds=5` or more",
            )
    counts = [
        InstructionCount(policy, int(tasks), count, after.get(policy, {}).get(tasks))
        for policy, before_counts in before.items()
        for tasks, count in before_counts.items()
    ]
    return GateVerdict(comparison, tuple(counts))


_PLOT_WIDTH = 41
"""Width of the plot's axis in characters; odd, so that 0 has one."""
_ROWS_MAX = 24
_CHANGE_MIN = -0.999
"""Smallest relative change in the plot. A change of −100 % has no logarithm."""


def verdict_markdown(gate: GateVerdict) -> str:
    """Returns the verdict as Markdown, for a comment."""
    return "\n".join(_markdown_lines(gate)) + "\n"


def _markdown_lines(gate: GateVerdict) -> Iterator[str]:
    across = gate.comparison.across
    yield f"### schedlab: {gate.summary}"
    shown_rows = [*gate.rows("worse"), *gate.rows("better"), *gate.rows("perhaps")]
    plotted_rows = [row for row in shown_rows if row[1].difference.before.mean]
    if plotted_rows:
        yield from (
            "",
            listing(
                "\n".join(forest_plot(_rows_by_title(plotted_rows[:_ROWS_MAX], across))), "text"
            ),
        )
    if len(plotted_rows) > _ROWS_MAX:
        yield f"… and {len(plotted_rows) - _ROWS_MAX} more, below."
    if any(row.is_at_floor for _, row in gate.rows("perhaps")):
        yield "\nToo few seeds for this number of metrics: run both sides with `seeds=10` or more."
    yield from _bulleted_list("No longer comparable", gate.not_comparable())
    yield from _bulleted_list(
        "Instructions of one pick and one enqueue", map(_count_line, _changed_counts(gate))
    )
    if shown_rows:
        yield from (
            "",
            "<details><summary>Figures</summary>",
            "",
            *_markdown_table(shown_rows, across),
            "",
            "</details>",
        )
    differs = [fact for fact in gate.comparison.facts if fact.differs]
    yield from _bulleted_list(
        "What differs",
        (
            f"{count.name}: {abbreviated_list(count.before, 3)} → {abbreviated_list(count.after, 3)}"
            for count in differs
        ),
    )


MatchedRows = Sequence[tuple[MatchedConfiguration, MetricChange]]


def _rows_by_title(rows: MatchedRows, across: Sequence[str]) -> dict[str, list[MetricChange]]:
    rows_by_setup: dict[str, list[MetricChange]] = {}
    for match, row in rows:
        rows_by_setup.setdefault(visible_line(match_title(match, across)), []).append(row)
    return rows_by_setup


def forest_plot(rows: Mapping[str, Sequence[MetricChange]]) -> Iterator[str]:
    """Yields the lines of a forest plot: each mean's relative change and its interval, on a logarithmic axis."""
    all_rows = [row for setup_rows in rows.values() for row in setup_rows]
    axis_end = max(abs(value) for row in all_rows for value in _logarithms(row)) or 1.0
    width = max(len(_metric_name(row)) for row in all_rows) + 2
    end_labels = [percent_change(math.expm1(end)) for end in (-axis_end, axis_end)]
    yield f"{'':{width}}  {end_labels[0]:<{_PLOT_WIDTH // 2}}0{end_labels[1]:>{_PLOT_WIDTH // 2}}"
    for name, setup_rows in rows.items():
        yield name
        for row in setup_rows:
            change = row.difference.change / abs(row.difference.before.mean)
            metric = f"{_metric_name(row):{width - 2}}"
            bar = _plot_bar(_logarithms(row), axis_end)
            yield f"  {metric}  {bar}  {percent_change(change)} {row.verdict}"


def _logarithms(row: MetricChange) -> tuple[float, float, float]:
    """Returns the logarithms of three factors: low bound, mean and high bound."""
    difference = row.difference
    scale = abs(difference.before.mean)
    low, change, high = (
        math.log1p(max(value / scale, _CHANGE_MIN))
        for value in (difference.low, difference.change, difference.high)
    )
    return low, change, high


def _plot_bar(values: tuple[float, float, float], axis_end: float) -> str:
    """Returns a line of the plot. `values`: logarithms; `axis_end`: the logarithm at the axis's end."""
    middle = _PLOT_WIDTH // 2
    first, point, last = (middle + round(value / axis_end * middle) for value in values)
    cells = [" "] * _PLOT_WIDTH
    cells[middle] = "│"
    cells[first : last + 1] = "─" * (last + 1 - first)
    cells[point] = "●"
    return "".join(cells)


def _metric_name(row: MetricChange) -> str:
    """Returns the title of the row's metric, with its group."""
    return visible_line(f"{row.measure.title}, {row.group}" if row.group else row.measure.title)


def _markdown_table(rows: MatchedRows, across: Sequence[str]) -> Iterator[str]:
    yield "| configuration | metric | before | after | verdict |"
    yield "|---|---|---|---|---|"
    for match, row in rows:
        sides = (side_mean_text(row, row.measure, side) for side in ("before", "after"))
        cells = (
            code_cell(match_title(match, across)),
            code_cell(_metric_name(row)),
            *sides,
            row.verdict,
        )
        yield f"| {' | '.join(cells)} |"


def _changed_counts(gate: GateVerdict) -> list[InstructionCount]:
    return [count for count in gate.counts if count.after != count.before]


def _count_line(count: InstructionCount) -> str:
    """Returns a line on the instructions of a policy."""
    if count.after is None:
        return f"{count.policy}: the policy no longer exists"
    change = count.after - count.before
    return (
        f"{count.policy}, {count.tasks:,} tasks: {count.before:,} → {count.after:,} ({change:+,})"
    )


def _bulleted_list(heading: str, items: Iterable[str]) -> Iterator[str]:
    """Yields a heading and a bulleted list; nothing without items."""
    names = list(items)
    if names:
        yield from ("", f"{heading}:", "", *(f"- {code(item)}" for item in names))
