# SPDX-License-Identifier: MIT
"""A cell as tables print it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schedlab.analysis.agreement.known import Judged
from schedlab.base.display.numbers import milliseconds, percent

HEADINGS = (
    "experiment",
    "policy",
    "CPUs",
    "what",
    "kernel",
    "simulator",
    "difference",
    "ticks",
    "±",
    "verdict",
)
LEFT = ("experiment", "policy", "what", "verdict")
"""Columns of words."""
NOTHING = "–"


def row(each: Judged) -> tuple[str, ...]:
    """A row in the order of HEADINGS. Times are in ms, shares in percent; ± is that of the ticks."""
    cell = each.cell
    who = (cell.key.experiment, cell.key.policy, str(cell.key.cpus), cell.key.what)
    if cell.failure:
        return (*who, *[NOTHING] * 5, f"failed: {cell.failure}")
    width = cell.half_width
    return (
        *who,
        amount(cell.kernel_mean, cell.is_share),
        amount(cell.simulator_mean, cell.is_share),
        f"{100 * cell.relative:+.2f} %",
        f"{cell.ticks:+.2f}",
        NOTHING if width is None else f"{width / cell.tick:.2f}",
        verdict(each),
    )


def amount(value: float, is_share: bool) -> str:
    return percent(value, 2) if is_share else milliseconds(value, 2)


def verdict(each: Judged) -> str:
    """The verdict, with the reason's name, or with the figures between which microseconds decide."""
    if each.judgement == "microseconds" and each.range:
        least, most = (
            amount(value, each.cell.is_share) for value in (each.range.least, each.range.most)
        )
        return f"microseconds: {least} to {most}"
    return f"{each.judgement}: {each.reason.name}" if each.reason else each.judgement


def summary(found: Sequence[Judged]) -> str:
    """How many cells there are of each kind."""
    counts: dict[str, int] = {}
    for each in found:
        counts[each.judgement] = counts.get(each.judgement, 0) + 1
    words = {
        "near": "near",
        "known": "off, for a reason that is known",
        "microseconds": "off, where microseconds decide",
        "not told apart": "further apart, but not further than chance allows",
        "off": "off, for no known reason",
        "near after all": "near, though a reason is given why not",
        "failed": "without a figure on both sides",
    }
    parts = [f"{counts[name]:,} {text}" for name, text in words.items() if name in counts]
    return f"{len(found):,} figures: {'; '.join(parts)}"


def by_policy(found: Sequence[Judged]) -> list[str]:
    """A line for each policy: the mean of all differences, which shows a bias no cell could."""
    lines = []
    for policy in dict.fromkeys(each.cell.key.policy for each in found):
        own = [each.cell for each in found if each.cell.key.policy == policy and _counts(each)]
        if own:
            mean = sum(cell.relative for cell in own) / len(own)
            size = sum(abs(cell.relative) for cell in own) / len(own)
            lines.append(
                f"{policy}: {len(own):,} figures, {100 * mean:+.2f} % on average, {percent(size, 2)} in size"
            )
    return lines


def _counts(each: Judged) -> bool:
    return not each.cell.failure and each.cell.kernel_mean > 0


def table(found: Sequence[Judged]) -> pl.DataFrame:
    """Returns all cells with their verdicts, unrounded."""
    return pl.DataFrame(
        [
            {
                **each.cell.to_dict(),
                "judgement": each.judgement,
                "reason": each.reason.name if each.reason else "",
                "least": each.range.least if each.range else None,
                "most": each.range.most if each.range else None,
            }
            for each in found
        ],
        infer_schema_length=None,
    )
