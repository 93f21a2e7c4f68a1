# SPDX-License-Identifier: MIT
"""Generates the table of agreement in docs/sched-ext.md: sched_ext in the simulator and on Linux."""

from schedlab.errors import SchedlabError
from schedlab.paths import ROOT
from schedlab_tools.scx_agreement import (
    CASES,
    Case,
    compare,
    read_guest_runs,
    simulate,
    stored_tasks,
)

DOCUMENT = ROOT / "docs" / "sched-ext.md"
PART = "scx-agreement"
HEADER = (
    "| scheduler | CPUs | callbacks, Linux | callbacks, simulator | common transitions"
    " | without interruptions | largest difference of a turnaround | reason |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
UNEXPLAINED = "not explained"
REASONS = {
    Case(
        "vtime", "mixed", 1
    ): "processes of a higher class interrupt tasks; the rest is not explained",
}
"""Why the runs of a case differ."""


def block() -> str:
    """Returns the table. Raises SchedlabError if a run of the guest is missing or stale."""
    stored = read_guest_runs()
    rows = []
    kernels = set()
    for case in CASES:
        entry = stored.get(case)
        if not entry or entry["inputs"] != case.inputs:
            raise SchedlabError(
                f"{case.scheduler}: the guest's run is missing or stale;"
                " ./schedlab dev bench scx-agreement repeats it"
            )
        kernels.add(entry["kernel"])
        agreement = compare(stored_tasks(entry), simulate(case))
        linux, simulator = agreement.callbacks
        rows.append(
            f"| `{case.scheduler}` | {case.cpus} | {linux:,} | {simulator:,}"
            f" | {100 * agreement.transitions:.0f} % | {100 * agreement.uninterrupted:.0f} %"
            f" | {100 * agreement.turnaround:.1f} %"
            f" | {REASONS.get(case, UNEXPLAINED)} |"
        )
    kernel = f"\n\nLinux {', '.join(sorted(kernels))}, ticks of 4 ms.\n"
    return f"\n{HEADER}" + "\n".join(rows) + kernel
