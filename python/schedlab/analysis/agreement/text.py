# SPDX-License-Identifier: MIT
"""Formats cells as rows of tables."""

from collections.abc import Sequence

import polars as pl

from schedlab.analysis.agreement.known import JudgedCell
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
LEFT_ALIGNED = ("experiment", "policy", "what", "verdict")
"""Columns of text, aligned left."""
NO_VALUE = "–"


def cell_row(judged_cell: JudgedCell) -> tuple[str, ...]:
    """Returns a row in the order of HEADINGS: times in ms, shares in percent, ± in ticks."""
    cell = judged_cell.cell
    identification = (cell.key.experiment, cell.key.policy, str(cell.key.cpus), cell.key.what)
    if cell.failure:
        return (*identification, *[NO_VALUE] * 5, f"failed: {cell.failure}")
    width = cell.half_width
    return (
        *identification,
        format_amount(cell.kernel_mean, cell.is_share),
        format_amount(cell.simulator_mean, cell.is_share),
        f"{100 * cell.relative:+.2f} %",
        f"{cell.ticks:+.2f}",
        NO_VALUE if width is None else f"{width / cell.tick_effect:.2f}",
        verdict_text(judged_cell),
    )


def format_amount(value: float, is_share: bool) -> str:
    """Returns a share in percent, or a time in ms, as text."""
    return percent(value, 2) if is_share else milliseconds(value, 2)


def verdict_text(cell: JudgedCell) -> str:
    """Returns the verdict with its reason, or with the range over cost variants."""
    if cell.judgement == "microseconds" and cell.range:
        least, most = (
            format_amount(value, cell.cell.is_share)
            for value in (cell.range.least, cell.range.most)
        )
        return f"microseconds: {least} to {most}"
    return f"{cell.judgement}: {cell.reason.name}" if cell.reason else cell.judgement


def verdict_counts_text(cells: Sequence[JudgedCell]) -> str:
    """Returns the number of cells per verdict as text."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.judgement] = counts.get(cell.judgement, 0) + 1
    texts = {
        "near": "near",
        "known": "off, for a known reason",
        "microseconds": "off, where microseconds decide",
        "not significant": "not significantly off",
        "off": "off, not explained",
        "unexpectedly near": "near, although a reason for a difference is listed",
        "failed": "without a figure from one of the machines",
    }
    count_texts = [f"{counts[name]:,} {text}" for name, text in texts.items() if name in counts]
    return f"{len(cells):,} figures: {'; '.join(count_texts)}"


def policy_bias_lines(cells: Sequence[JudgedCell]) -> list[str]:
    """Returns one line per policy: the mean of all differences, which reveals a bias that single cells hide."""
    lines = []
    for policy in dict.fromkeys(cell.cell.key.policy for cell in cells):
        policy_cells = [
            cell.cell for cell in cells if cell.cell.key.policy == policy and _has_difference(cell)
        ]
        if policy_cells:
            mean = sum(cell.relative for cell in policy_cells) / len(policy_cells)
            mean_size = sum(abs(cell.relative) for cell in policy_cells) / len(policy_cells)
            lines.append(
                f"{policy}: {len(policy_cells):,} figures, {100 * mean:+.2f} % on average,"
                f" {percent(mean_size, 2)} in size"
            )
    return lines


def _has_difference(cell: JudgedCell) -> bool:
    """Returns whether the cell has a difference that a mean over cells can include."""
    return not cell.cell.failure and cell.cell.kernel_mean > 0


def cells_table(cells: Sequence[JudgedCell]) -> pl.DataFrame:
    """Returns all cells with their verdicts, unrounded."""
    return pl.DataFrame(
        [
            {
                **cell.cell.to_dict(),
                "judgement": cell.judgement,
                "reason": cell.reason.name if cell.reason else "",
                "least": cell.range.least if cell.range else None,
                "most": cell.range.most if cell.range else None,
            }
            for cell in cells
        ],
        infer_schema_length=None,
    )
