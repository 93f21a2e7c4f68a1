# SPDX-License-Identifier: MIT
"""`./schedlab dev bench`: instructions of the kernel's operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab.base.display.numbers import percent
from schedlab.base.display.terminal import new_table, results
from schedlab.base.toolchain.build import IMAGE, KERNEL, POLICY_COST, build
from schedlab.commands.options import echo_json
from schedlab.machines import kernel_machine

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab_tools.benchmarks.instructions import PolicyRow, Row


def show(of_host: bool, as_json: bool) -> None:
    from schedlab_tools.benchmarks import instructions as benchmark

    build("kernel", "image", "policy-cost")
    spike = kernel_machine("spike")
    operations = benchmark.measure_kernel(spike, KERNEL, IMAGE)
    policies = benchmark.measure_policies(spike, POLICY_COST)
    tracing = benchmark.measure_tracing(spike, KERNEL, IMAGE)
    decoding = [benchmark.measure_decoding()] if of_host else []
    if as_json:
        rows = {"operations": [row.to_dict() for row in operations]}
        others = {"policies": [row.to_dict() for row in policies], "tracing": tracing.to_dict()}
        echo_json({**rows, **others, "decoding": [row.to_dict() for row in decoding]})
    else:
        results().print(operations_table(operations))
        results().print(policies_table(policies))
        results().print(
            f"Tracing adds {percent(tracing.cost, 3)} to the instructions of CPU-bound work at a tick of"
            f" 1 ms ({tracing.without:,} without; aim: at most 3 %, {tracing.verdict})"
        )
        for row in decoding:
            results().print(
                f"One core of this host decodes and validates {row.decode_and_validate:,} events a"
                f" second (aim: 5,000,000, {row.verdict}), computes the metrics of {row.metrics:,},"
                f" exports {row.perfetto:,} for Perfetto; it measures {row.runs} runs a second, of"
                " 5,000 events each"
            )
    if not benchmark.all_met([*operations, *policies, tracing, *decoding]):
        raise SystemExit(1)


def operations_table(rows: list[Row]) -> Table:
    title = "Instructions for one operation (Spike, 1 CPU)"
    figures = (">instructions", ">baseline", ">aim")
    table = new_table(title, "operation", "what it is", *figures, "aim")
    for row in rows:
        numbers = (row.instructions, row.baseline, row.aim)
        shown = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(row.name, row.meaning, *shown, row.verdict)
    return table


def policies_table(rows: list[PolicyRow]) -> Table:
    title = "Instructions for one enqueue and one pick, mean (worst), by tasks that wait"
    counts = sorted({count for row in rows for count in row.mean})
    table = new_table(title, "policy", *(f">{count:,} tasks" for count in counts), "does not grow")
    for row in rows:
        cells = [
            f"{row.mean[n]:,} ({row.worst.get(n, 0):,})" if n in row.mean else "" for n in counts
        ]
        table.add_row(row.policy, *cells, row.verdict)
    return table
