# SPDX-License-Identifier: MIT
"""Generates docs/linux-agreement.md: how far results about Linux may be trusted, from bench/linux-agreement."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from schedlab.base.display.numbers import duration, three_digits
from schedlab.paths import ROOT
from schedlab_tools.linux_agreement import (
    ALL_CPUS,
    FOLDER,
    GUEST,
    HALVES,
    KERNEL,
    METRICS,
    NEARNESS,
    ORDER,
    SHARES,
    SIMULATOR,
    Cell,
    Row,
    Variant,
    Workload,
    cells,
    judge,
    read_data,
    read_variants,
    read_workloads,
)

DOCUMENT = ROOT / "docs" / "linux-agreement.md"
TEMPLATE = FOLDER / "page.md"
TRUSTED, ROUGHLY = 0.8, 0.5
"""The least parts of agreeing cells for "yes" and for "roughly"."""
CHOSEN = "chosen settings"
WORST = 15
"""Number of cells in the table of the worst cases."""
UNEXPLAINED = "not explained"
Key = tuple[str, int, str]
Tried = Mapping[Variant, Mapping[Key, Cell]]
"""The cells of each experiment."""


def text() -> str:
    """Returns the page."""
    rows, workloads = read_data(), read_workloads()
    simulated = cells(rows, workloads, SIMULATOR)
    tried = {
        variant: {_key(cell): cell for cell in cells(rows, workloads, SIMULATOR, variant.variant)}
        for variant in read_variants()
    }
    chosen = next(by_key for variant, by_key in tried.items() if variant.half == "all")
    sections = {
        "summary": _summary(simulated, chosen),
        "worst": _worst(simulated, tried),
        "reasons": _reasons_table(simulated, tried),
        "experiments": _experiments([cell for cell in simulated if cell.cpus == 1], tried),
        "one": _per_workload(simulated, workloads, 1),
        "several": _per_workload(simulated, workloads, *ALL_CPUS[1:]),
        "kernel": _kernel(simulated, cells(rows, workloads, KERNEL)),
        "data": _facts(rows),
    }
    page = TEMPLATE.read_text("utf-8")
    for name, section in sections.items():
        page = page.replace(f"{{{{ {name} }}}}", section)
    return page


def _key(cell: Cell) -> Key:
    """Returns what identifies a cell on all machines."""
    return cell.workload.workload, cell.cpus, cell.metric


def _agreeing(group: Iterable[Cell]) -> str:
    verdicts = [judge(cell) != "off" for cell in group]
    return f"{sum(verdicts)} of {len(verdicts)}" if verdicts else "–"


def _of_half(group: Iterable[Cell], half: str) -> list[Cell]:
    return [cell for cell in group if cell.workload.half == half]


def _summary(simulated: Sequence[Cell], chosen: Mapping[Key, Cell]) -> str:
    """Returns a row per metric and number of CPUs: how far to trust it, agreement, and typical difference."""
    lines = []
    for metric, about in METRICS.items():
        for cpus in ((1,), ALL_CPUS[1:]) if 1 in about.cpus else (ALL_CPUS[1:],):
            group = [cell for cell in simulated if cell.metric == metric and cell.cpus in cpus]
            if group:
                worst = max(group, key=lambda cell: cell.excess)
                name = worst.workload.workload
                lines.append(
                    (
                        about.title,
                        _cpus_text(cpus),
                        _trust(_of_half(group, HALVES[1])),
                        *(_agreeing(_of_half(group, half)) for half in HALVES),
                        _agreeing(_of_half(_cells_with_equal_keys(group, chosen), HALVES[1])),
                        _typical(group),
                        f"{_difference(worst)}, `{name}`",
                    )
                )
    for cpus in ((1,), ALL_CPUS[1:]):
        group = [cell for cell in simulated if cell.cpus in cpus]
        halves = [_of_half(group, half) for half in HALVES]
        sums = [*halves, _of_half(_cells_with_equal_keys(group, chosen), HALVES[1])]
        lines.append(("**all**", _cpus_text(cpus), "", *map(_agreeing, sums), "", ""))
    head = ("result", "CPUs", "trust", *(f"agree, {half}" for half in HALVES))
    return _table((*head, f"the same, {CHOSEN}", "median difference", "largest difference"), lines)


def _cells_with_equal_keys(group: Iterable[Cell], others: Mapping[Key, Cell]) -> list[Cell]:
    return [others[_key(cell)] for cell in group if _key(cell) in others]


def _trust(tested_half: Sequence[Cell]) -> str:
    """Returns how far a kind of result may be trusted: by the part of cells of the other half that agree."""
    if not tested_half:
        return "unknown"
    near = sum(judge(cell) != "off" for cell in tested_half) / len(tested_half)
    return "yes" if near >= TRUSTED else "roughly" if near >= ROUGHLY else "no"


def _typical(group: Iterable[Cell]) -> str:
    """Returns the median size of the differences."""
    group = list(group)
    relative = [abs(cell.relative) for cell in group if cell.relative is not None]
    if relative:
        return f"{100 * median(relative):.0f} %"
    return (
        f"{median(abs(cell.change) for cell in group):.1f} {METRICS[group[0].metric].unit}".strip()
    )


def _worst(simulated: Sequence[Cell], tried: Tried) -> str:
    """Returns the cells that are off, the largest difference relative to the allowed one first."""
    off_cells = sorted((c for c in simulated if judge(c) == "off"), key=lambda c: -c.excess)
    lines = [
        (
            f"`{cell.workload.workload}`",
            str(cell.cpus),
            METRICS[cell.metric].title,
            _value(cell.metric, cell.guest) if cell.metric not in (SHARES, ORDER) else "",
            _value(cell.metric, cell.other) if cell.metric not in (SHARES, ORDER) else "",
            _difference(cell) + _interval(cell),
            _reason(cell, tried),
        )
        for cell in off_cells[:WORST]
    ]
    return _table(
        ("workload", "CPUs", "result", "Linux", "simulator", "difference", "reason"), lines
    )


def _per_workload(simulated: Sequence[Cell], workloads: Iterable[Workload], *cpus: int) -> str:
    """Returns a row per workload: differences, in bold if off."""
    metrics = [name for name, about in METRICS.items() if set(about.cpus) & set(cpus)]
    by_key = {_key(cell): cell for cell in simulated}
    lines = []
    for workload in workloads:
        for number in cpus:
            row = [by_key.get((workload.workload, number, metric)) for metric in metrics]
            if any(row):
                head = (f"`{workload.workload}`", workload.half)
                middle = (str(number),) if len(cpus) > 1 else ()
                lines.append((*head, *middle, *(_marked_difference(cell) for cell in row)))
    titles = [METRICS[metric].title for metric in metrics]
    return _table(("workload", "half", *(("CPUs",) if len(cpus) > 1 else ()), *titles), lines)


def _marked_difference(cell: Cell | None) -> str:
    """Returns the difference in bold if the cell is off; "–" without a cell."""
    if cell is None:
        return "–"
    shown = _difference(cell)
    verdict = judge(cell)
    return f"**{shown}**" if verdict == "off" else f"{shown} ±" if verdict != "near" else shown


def _difference(cell: Cell) -> str:
    """Returns the difference as text: in points, a number of pairs, or percent."""
    if cell.metric == SHARES:
        return f"{cell.change:.1f} points"
    if cell.metric == ORDER:
        return f"{cell.change:.0f}" if cell.change == round(cell.change) else f"{cell.change:.1f}"
    if METRICS[cell.metric].unit == "ns" and abs(cell.change) <= METRICS[cell.metric].floor:
        return f"{cell.change / 1000:+.0f} µs"
    if cell.relative is None:
        return _value(cell.metric, (cell.change,))
    return f"{100 * cell.relative:+.0f} %"


def _interval(cell: Cell) -> str:
    """Returns the 95 % interval of a relative difference; empty if there is none."""
    if cell.interval is None or cell.relative is None:
        return ""
    mean = fmean(cell.guest)
    low, high = (100 * bound / mean for bound in cell.interval)
    return f" ({low:+.0f} to {high:+.0f})"


def _value(metric: str, values: Sequence[float]) -> str:
    """Returns the mean of values with its unit."""
    mean = fmean(values)
    if METRICS[metric].unit == "ns":
        return duration(mean)
    return three_digits(mean)


def _kernel(simulated: Sequence[Cell], on_kernel: Sequence[Cell]) -> str:
    """Returns the cells of the schedlab kernel next to those of the simulator."""
    cell_by_key = {_key(cell): cell for cell in simulated if cell.cpus == 1}
    lines = []
    for metric, about in METRICS.items():
        pairs = [
            (cell, cell_by_key[_key(cell)])
            for cell in on_kernel
            if cell.metric == metric and _key(cell) in cell_by_key
        ]
        if pairs:
            agree = (sum(judge(pair[side]) != "off" for pair in pairs) for side in (0, 1))
            same_count = sum(_same(*pair) for pair in pairs)
            lines.append((about.title, str(len(pairs)), *map(str, agree), str(same_count)))
    return _table(
        (
            "result",
            "cells",
            "kernel agrees with Linux",
            "simulator agrees with Linux",
            "kernel and simulator agree",
        ),
        lines,
    )


def _same(kernel: Cell, simulator: Cell) -> bool:
    """True if kernel and simulator differ by at most 10 % or the metric's floor."""
    if kernel.metric in (SHARES, ORDER):
        return abs(kernel.change - simulator.change) <= METRICS[kernel.metric].floor
    first, second = fmean(kernel.other), fmean(simulator.other)
    return abs(first - second) <= max(NEARNESS * first, METRICS[kernel.metric].floor)


def _reason(cell: Cell, tried: Tried) -> str:
    """Returns the first experiment that makes a cell agree."""
    for variant, by_key in tried.items():
        if _key(cell) in by_key and judge(by_key[_key(cell)]) != "off":
            return f"`{variant.variant}`"
    return UNEXPLAINED


def _reasons_table(simulated: Sequence[Cell], tried: Tried) -> str:
    """Returns how many cells that are off have each reason."""
    reasons = [_reason(cell, tried) for cell in simulated if judge(cell) == "off"]
    names = [*(f"`{variant.variant}`" for variant in tried), UNEXPLAINED]
    return _table(("reason", "results"), [(name, str(reasons.count(name))) for name in names])


def _experiments(simulated: Sequence[Cell], tried: Tried) -> str:
    """Returns a row per experiment: agreement without and with it, on the same cells."""
    lines = []
    for variant, by_key in tried.items():
        counts = []
        for half in HALVES:
            default_cells = [cell for cell in _of_half(simulated, half) if _key(cell) in by_key]
            varied_cells = _cells_with_equal_keys(default_cells, by_key)
            counts += [_agreeing(default_cells), _agreeing(varied_cells)]
        lines.append((f"`{variant.variant}`", variant.cause, *counts))
    head = (f"{half}, {what}" for half in HALVES for what in ("defaults", "with it"))
    return _table(("experiment", "what differs", *head), lines)


def _facts(rows: Sequence[Row]) -> str:
    """Returns the versions, dates and numbers of runs."""
    lines = []
    for machine in (GUEST, SIMULATOR, KERNEL):
        for cpus in ALL_CPUS:
            runs = [row for row in rows if row["machine"] == machine and row["cpus"] == str(cpus)]
            if runs:
                dates = sorted({row["date"] for row in runs})
                seeds = max(int(row["seed"]) for row in runs)
                lines.append(
                    (
                        machine,
                        str(cpus),
                        str(len(runs)),
                        str(seeds),
                        ", ".join(sorted({row["versions"] for row in runs})),
                        dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
                    )
                )
    return _table(("machine", "CPUs", "runs", "seeds, at most", "versions", "date"), lines)


def _cpus_text(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
