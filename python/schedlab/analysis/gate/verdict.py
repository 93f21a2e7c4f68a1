# SPDX-License-Identifier: MIT
"""Judges a comparison: which metrics are significantly worse, and which can no longer be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedlab.analysis.comparison.compare import Comparison, Match, Row
from schedlab.analysis.comparison.listing import side_text, title
from schedlab.analysis.comparison.setups import key_of
from schedlab.base.display.markdown import code, code_cell, listing
from schedlab.base.display.names import visible_line
from schedlab.base.display.numbers import percent_change
from schedlab.errors import WrongUsage

FEWEST_SEEDS = 2


@dataclass(frozen=True)
class Count:
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
class Gate:
    """The verdict of the gate."""

    comparison: Comparison
    counts: tuple[Count, ...] = field(default=())

    def rows(self, *verdicts: str) -> list[tuple[Match, Row]]:
        """Returns all rows with one of these verdicts."""
        return [
            (match, row)
            for match in self.comparison.matches
            for row in match.rows
            if row.verdict in verdicts
        ]

    @property
    def worse_counts(self) -> list[Count]:
        return [count for count in self.counts if count.is_worse(self.comparison.matters)]

    def unjudged(self) -> Iterator[str]:
        """Yields what can no longer be compared, in words. A gate that ignored it could be passed by failing."""
        for alone in self.comparison.alone_before:
            yield f"{', '.join(key_of(alone)[:4])}: it was not run"
        for match in self.comparison.matches:
            name = title(match, self.comparison.across)
            for run in match.failed:
                yield f"{name}, seed {run.seed}: {run.manifest.get('message') or run.status}"
            for group, metric in match.only_before:
                of = f" of {group}" if group else ""
                yield f"{name}: {metric or 'all metrics'}{of}: some runs lack it now"
            if match.left_out:
                seeds = ", ".join(map(str, match.left_out))
                yield f"{name}: seeds of only one side: {seeds}"

    @property
    def passes(self) -> bool:
        return not (self.rows("worse") or self.worse_counts or any(self.unjudged()))

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        worse = len(self.rows("worse")) + len(self.worse_counts)
        better = len(self.rows("better"))
        open_ones = len(self.rows("perhaps"))
        same = sum(match.identical for match in self.comparison.matches)
        parts = [
            f"{worse} worse",
            f"{better} better",
            *([f"{open_ones} perhaps"] if open_ones else []),
            *(
                [f"{same} of {len(self.comparison.matches)} configurations the same, byte for byte"]
                if same
                else []
            ),
        ]
        missing = sum(1 for _ in self.unjudged())
        if missing:
            parts.append(f"{missing} no longer comparable")
        return f"{'passed' if self.passes else 'not passed'}: {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the verdict for JSON."""
        return {
            "passes": self.passes,
            "summary": self.summary,
            "unjudged": list(self.unjudged()),
            "instructions": [
                {**vars(count), "worse": count.is_worse(self.comparison.matters)}
                for count in self.counts
            ],
            "comparison": self.comparison.to_dict(),
        }


def judge(
    comparison: Comparison,
    before: Mapping[str, Mapping[str, int]],
    after: Mapping[str, Mapping[str, int]],
) -> Gate:
    """Returns the verdict on a comparison, and on instructions by policy and number of tasks.

    Raises WrongUsage if a configuration has only one seed: no difference could be significant.
    """
    for match in comparison.matches:
        if min(len(match.before.runs), len(match.after.runs)) < FEWEST_SEEDS:
            raise WrongUsage(
                f"{title(match, comparison.across)}: a gate needs several seeds per configuration",
                what="`gate=`",
                fix="run both sides with `seeds=5` or more",
            )
    counts = [
        Count(policy, int(tasks), count, after.get(policy, {}).get(tasks))
        for policy, before_counts in before.items()
        for tasks, count in before_counts.items()
    ]
    return Gate(comparison, tuple(counts))


_WIDTH = 41
"""Width of the plot's axis in characters; odd, so that 0 has one."""
_ROWS_MAX = 24
_LEAST = -0.999
"""Smallest relative change in the plot. A change of −100 % has no logarithm."""


def markdown(gate: Gate) -> str:
    """Returns the verdict as Markdown, for a comment."""
    return "\n".join(_lines(gate)) + "\n"


def _lines(gate: Gate) -> Iterator[str]:
    across = gate.comparison.across
    yield f"### schedlab: {gate.summary}"
    shown = [*gate.rows("worse"), *gate.rows("better"), *gate.rows("perhaps")]
    drawn = [row for row in shown if row[1].difference.before.mean]
    if drawn:
        yield from ("", listing("\n".join(picture(_by_setup(drawn[:_ROWS_MAX], across))), "text"))
    if len(drawn) > _ROWS_MAX:
        yield f"… and {len(drawn) - _ROWS_MAX} more, below."
    if any(row.at_floor for _, row in gate.rows("perhaps")):
        yield "\nToo few seeds for this number of metrics: run both sides with `seeds=10` or more."
    yield from _listed("No longer comparable", gate.unjudged())
    yield from _listed("Instructions of one pick and one enqueue", map(_count, _changed(gate)))
    if shown:
        yield from (
            "",
            "<details><summary>Figures</summary>",
            "",
            *_table(shown, across),
            "",
            "</details>",
        )
    differs = [fact for fact in gate.comparison.facts if fact.differs]
    yield from _listed(
        "What differs",
        (f"{count.name}: {_some(count.before)} → {_some(count.after)}" for count in differs),
    )


Rows = Sequence[tuple[Match, Row]]


def _by_setup(rows: Rows, across: Sequence[str]) -> dict[str, list[Row]]:
    rows_by_setup: dict[str, list[Row]] = {}
    for match, row in rows:
        rows_by_setup.setdefault(visible_line(title(match, across)), []).append(row)
    return rows_by_setup


def picture(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yields the lines of a forest plot: each mean's relative change and its interval, on a logarithmic axis."""
    every = [row for setup_rows in rows.values() for row in setup_rows]
    most = max(abs(value) for row in every for value in _logarithms(row)) or 1.0
    width = max(len(_name(row)) for row in every) + 2
    ends = [percent_change(math.expm1(end)) for end in (-most, most)]
    yield f"{'':{width}}  {ends[0]:<{_WIDTH // 2}}0{ends[1]:>{_WIDTH // 2}}"
    for name, setup_rows in rows.items():
        yield name
        for row in setup_rows:
            change = row.difference.change / abs(row.difference.before.mean)
            yield f"  {_name(row):{width - 2}}  {_bar(_logarithms(row), most)}  {percent_change(change)} {row.verdict}"


def _logarithms(row: Row) -> tuple[float, float, float]:
    """Returns the logarithms of three factors: low bound, mean and high bound."""
    difference = row.difference
    scale = abs(difference.before.mean)
    low, change, high = (
        math.log1p(max(value / scale, _LEAST))
        for value in (difference.low, difference.change, difference.high)
    )
    return low, change, high


def _bar(values: tuple[float, float, float], most: float) -> str:
    middle = _WIDTH // 2
    first, point, last = (middle + round(value / most * middle) for value in values)
    cells = [" "] * _WIDTH
    cells[middle] = "│"
    cells[first : last + 1] = "─" * (last + 1 - first)
    cells[point] = "●"
    return "".join(cells)


def _name(row: Row) -> str:
    return visible_line(f"{row.measure.title}, {row.group}" if row.group else row.measure.title)


def _table(rows: Rows, across: Sequence[str]) -> Iterator[str]:
    yield "| configuration | metric | before | after | verdict |"
    yield "|---|---|---|---|---|"
    for match, row in rows:
        sides = (side_text(row, row.measure, side) for side in ("before", "after"))
        cells = (code_cell(title(match, across)), code_cell(_name(row)), *sides, row.verdict)
        yield f"| {' | '.join(cells)} |"


def _changed(gate: Gate) -> list[Count]:
    return [count for count in gate.counts if count.after != count.before]


def _count(count: Count) -> str:
    if count.after is None:
        return f"{count.policy}: the policy no longer exists"
    change = count.after - count.before
    return (
        f"{count.policy}, {count.tasks:,} tasks: {count.before:,} → {count.after:,} ({change:+,})"
    )


def _listed(heading: str, items: Iterable[str]) -> Iterator[str]:
    names = list(items)
    if names:
        yield from ("", f"{heading}:", "", *(f"- {code(item)}" for item in names))


def _some(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= 3 else f"{', '.join(values[:2])} … ({len(values)})"
