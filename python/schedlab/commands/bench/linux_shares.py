# SPDX-License-Identifier: MIT
"""`./schedlab dev bench shares --machine linux`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.display.terminal import new_table, results, tell
from schedlab.commands.carrying_out import carried_out, check_finished
from schedlab.commands.options import echo_json
from schedlab.machines import machine_named

if TYPE_CHECKING:
    from schedlab_tools.benchmarks.linux_shares import Row as ShareRow
    from schedlab_tools.benchmarks.linux_shares import Setting as ShareSetting


def shares(setting: ShareSetting, out: Path | None, as_json: bool) -> None:
    """Measures, and prints what came out. Exit status 1 if a share is off."""
    from schedlab_tools.benchmarks import linux_shares

    with carried_out(
        lambda folder: linux_shares.plan(folder, setting), setting.machine, out
    ) as runs:
        check_finished(runs)
    rows = linux_shares.evaluate(runs)
    if as_json:
        bound = {"bound_points": linux_shares.BOUND_POINTS, "machine": setting.machine}
        echo_json({**bound, "rows": [row.to_dict() for row in rows]})
    else:
        show(setting, rows)
    if any(row.verdict == "off" for row in rows):
        raise SystemExit(1)


def show(setting: ShareSetting, rows: list[ShareRow]) -> None:
    """Prints a line for each process, and one for each policy."""
    from schedlab_tools.benchmarks import linux_shares

    title = f"Shares of the CPU time on Linux, in %, over {setting.seconds} s"
    figures = (">CPUs", ">seed", ">weight or tickets", ">share", ">ideal", ">error, points")
    table = new_table(title, "policy", *figures, "aim")
    for row in rows:
        shares = (f"{100 * row.share:.2f}", f"{100 * row.ideal:.2f}", f"{row.error_points:+.2f}")
        table.add_row(
            row.policy, str(row.cpus), str(row.seed), str(row.weight), *shares, row.verdict
        )
    results().print(table)
    for line in linux_shares.summary(rows):
        tell(line)
    note = machine_named(setting.machine).note
    results().print(f"Machine {setting.machine}, {note}.")
