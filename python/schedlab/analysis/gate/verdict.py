# SPDX-License-Identifier: MIT
"""What a gate says of a comparison: which figures are surely worse, and what cannot be judged any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedlab.analysis.comparison.compare import Comparison, Match, Row
from schedlab.analysis.comparison.listing import title
from schedlab.analysis.comparison.setups import key_of
from schedlab.errors import WrongUsage

FEWEST_SEEDS = 2


@dataclass(frozen=True)
class Count:
    """Instructions of one pick and one enqueue, before and after."""

    policy: str
    tasks: int
    before: int
    after: int | None
    """None: there is no such policy any more."""

    def is_worse(self, matters: float) -> bool:
        """They are exact, so a change that matters is all that is asked."""
        return self.after is None or self.after - self.before > matters * self.before


@dataclass(frozen=True)
class Gate:
    """The verdict."""

    found: Comparison
    counts: tuple[Count, ...] = field(default=())

    def rows(self, *verdicts: str) -> list[tuple[Match, Row]]:
        """All rows that have one of these verdicts."""
        return [
            (match, row)
            for match in self.found.matches
            for row in match.rows
            if row.verdict in verdicts
        ]

    @property
    def worse_counts(self) -> list[Count]:
        return [each for each in self.counts if each.is_worse(self.found.matters)]

    def unjudged(self) -> Iterator[str]:
        """What was measured before, and cannot be compared now, in words: a gate that let it pass could be
        passed by failing."""
        for alone in self.found.alone_before:
            yield f"{', '.join(key_of(alone)[:4])}: it was not run"
        for match in self.found.matches:
            name = title(match, self.found.across)
            for run in match.failed:
                yield f"{name}, seed {run.seed}: {run.manifest.get('message') or run.status}"
            for group, metric in match.only_before:
                of = f" of {group}" if group else ""
                yield f"{name}: {metric or 'all metrics'}{of}: not all runs have it now"
            if match.left_out:
                seeds = ", ".join(map(str, match.left_out))
                yield f"{name}: seeds that only one side has: {seeds}"

    @property
    def passes(self) -> bool:
        return not (self.rows("worse") or self.worse_counts or any(self.unjudged()))

    @property
    def summary(self) -> str:
        """The verdict in a line."""
        worse = len(self.rows("worse")) + len(self.worse_counts)
        better = len(self.rows("better"))
        open_ones = len(self.rows("perhaps"))
        same = sum(match.identical for match in self.found.matches)
        parts = [
            f"{worse} worse",
            f"{better} better",
            *([f"{open_ones} perhaps"] if open_ones else []),
            *(
                [f"{same} of {len(self.found.matches)} setups the same byte for byte"]
                if same
                else []
            ),
        ]
        missing = sum(1 for _ in self.unjudged())
        if missing:
            parts.append(f"{missing} that cannot be compared any more")
        return f"{'passed' if self.passes else 'not passed'}: {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "passes": self.passes,
            "summary": self.summary,
            "unjudged": list(self.unjudged()),
            "instructions": [
                {**vars(each), "worse": each.is_worse(self.found.matters)} for each in self.counts
            ],
            "comparison": self.found.to_dict(),
        }


def judge(
    found: Comparison,
    before: Mapping[str, Mapping[str, int]],
    after: Mapping[str, Mapping[str, int]],
) -> Gate:
    """Returns the verdict on a comparison, and on instructions by policy and number of tasks.

    Raises WrongUsage where one seed of a setup is all there is, which tells nothing of others: no difference
    could ever be called worse.
    """
    for match in found.matches:
        if min(len(match.before.runs), len(match.after.runs)) < FEWEST_SEEDS:
            raise WrongUsage(
                f"{title(match, found.across)}: one seed tells nothing of others",
                what="`gate=`",
                fix="make both sides with `seeds=5` or more",
            )
    counts = [
        Count(policy, int(tasks), count, after.get(policy, {}).get(tasks))
        for policy, own in before.items()
        for tasks, count in own.items()
    ]
    return Gate(found, tuple(counts))
