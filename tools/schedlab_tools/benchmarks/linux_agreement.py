# SPDX-License-Identifier: MIT
"""`./schedlab dev bench linux-agreement`: compares `eevdf` with Linux's fair class, on many workloads."""

import datetime
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

import click
import polars as pl

import schedlab
from schedlab.analysis.tables import Run
from schedlab.base.display.terminal import print_result, say
from schedlab.commands.options import CPUS
from schedlab.errors import SchedlabError
from schedlab.machines.linux.packages import packages
from schedlab.machines.spec import machine_named
from schedlab_tools.linux_agreement import (
    ALL_CPUS,
    DEFAULTS,
    FOLDER,
    GUEST,
    HALVES,
    KERNEL,
    KEY,
    MEASURED,
    POLICIES,
    SIMULATOR,
    WAKEUPS_LEAST,
    Row,
    Variant,
    Workload,
    add_row,
    cells,
    judge,
    read_data,
    read_variants,
    read_workloads,
)

TICK_NS = machine_named(GUEST).tick_ns
LIMIT_NS = 20_000_000_000
GOLDEN = 0.618
"""Spreads the seeds' starts evenly over a tick."""


@click.command("linux-agreement")
@click.option("--machine", "machines", type=click.Choice(tuple(POLICIES)), multiple=True)
@click.option("--cpus", type=CPUS, help="How many CPUs.  [default: 1,2,4]")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True)
@click.option("--workload", "pattern", default="*", help="Only these workloads, such as 'hogs-*'.")
@click.option("--again", is_flag=True, help="Repeat runs that the data already has.")
def linux_agreement(
    machines: tuple[str, ...], cpus: tuple[int, ...] | None, seeds: int, pattern: str, again: bool
) -> None:
    """Compare eevdf with Linux's fair class.

    Runs the workloads of bench/linux-agreement/workloads.csv in the repeatable Linux guest, in the
    simulator and on the kernel (Spike), and adds each run to runs.csv. Existing runs are not
    repeated. `./schedlab dev docs linux-agreement` writes the page.
    """
    present = {tuple(row[name] for name in KEY) for row in read_data()}
    planned = [
        (workload, machine, variant, number, seed)
        for seed in range(1, seeds + 1)
        for number in cpus or ALL_CPUS
        for machine in machines or tuple(POLICIES)
        for variant in ([DEFAULTS, *read_variants()] if machine == SIMULATOR else [DEFAULTS])
        for workload in read_workloads()
        if fnmatch(workload.workload, pattern) and variant.covers(workload)
    ]
    if not again:
        planned = [run for run in planned if key(*run) not in present]
    for done, run in enumerate(planned):
        name = " ".join(filter(None, key(*run)))
        say(f"{done}/{len(planned)}: {name}")
        try:
            add_row(measure(*run))
        except SchedlabError as error:
            say(f"{name}: {error}")
    for line in summary():
        print_result(line)


def key(
    workload: Workload, machine: str, variant: Variant, cpus: int, seed: int
) -> tuple[str, ...]:
    """Returns the run's values of KEY."""
    return workload.workload, machine, variant.variant, str(cpus), str(seed)


def measure(workload: Workload, machine: str, variant: Variant, cpus: int, seed: int) -> Row:
    """Runs a workload and returns its row. Raises SchedlabError if the run fails.

    In the simulator, the seed also decides where in a tick the workload starts, and several CPUs share
    one clock, as in the guest.
    """
    start = round(TICK_NS * (1 + seed * GOLDEN % 1))
    runs = schedlab.run(
        str(workload.path),
        POLICIES[machine],
        cpus=cpus,
        machine=machine,
        first_seed=seed,
        settings=variant.tunables,
        changes=workload.changed_values,
        tick_ns=TICK_NS,
        limit_ns=LIMIT_NS,
        costs=f"{variant.costs_text},boot={start}" if machine == SIMULATOR else None,
        shape=shared_clock(cpus) if machine == SIMULATOR else None,
    )
    if runs.failed:
        raise SchedlabError(next(iter(runs.failed.values())))
    summary = runs.summary.row(0, named=True)
    stays = preempted_stays(runs, runs.groups["group"].to_list())
    summary |= {"slice_median_ns": stays.median(), "preemptions": len(stays)}
    if summary["wakeups"] < WAKEUPS_LEAST:
        summary["wakeup_latency_p99_ns"] = None
    shares = " ".join(
        f"{group['group']}={100 * group['share']:.2f}" for group in runs.groups.to_dicts()
    )
    return {
        **dict(zip(KEY, key(workload, machine, variant, cpus, seed), strict=True)),
        "half": workload.half,
        "policy": POLICIES[machine],
        "versions": versions(machine, runs[0]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        **{name: _as_text(summary[name]) for name in MEASURED},
        "shares": shares,
    }


def shared_clock(cpus: int) -> str | None:
    """Returns the shape of several CPUs that share one clock."""
    return str(FOLDER / f"shared-clock-{cpus}.json") if cpus > 1 else None


def _as_text(value: float | None) -> str:
    return "" if value is None else str(round(value))


def preempted_stays(runs: schedlab.Runs, groups: Sequence[str]) -> pl.Series:
    """Returns the lengths of the groups' stays on a CPU that ended with a preemption, in the window.

    Linux records no switch if it picks the preempted task again, so such stays are joined.
    """
    run = runs[0]
    stays = run.stays.sort("cpu", "begin_ns")
    again = pl.col("left").str.starts_with("preempted").fill_null(value=False) & (
        pl.struct("cpu", "life") == pl.struct("cpu", "life").shift(-1)
    )
    return (
        stays.with_columns(stay=again.shift(1, fill_value=False).not_().cum_sum())
        .group_by("stay", maintain_order=True)
        .agg(
            pl.col("group", "begin_ns").first(),
            pl.col("end_ns", "left").last(),
            pl.col("duration_ns").sum(),
        )
        .filter(
            pl.col("group").is_in(list(groups))
            & pl.col("left").str.starts_with("preempted")
            & (pl.col("begin_ns") >= run.window.begin_ns)
            & (pl.col("end_ns") <= run.window.end_ns)
        )["duration_ns"]
    )


def versions(machine: str, run: Run) -> str:
    """Returns the versions that decide a run: of Linux and QEMU, or of schedlab."""
    manifest = run.manifest
    if machine == GUEST:
        return f"Linux {packages().pins['kernel'][0].version} QEMU {manifest['machine_version']}"
    return f"schedlab {manifest['schedlab']}"


def summary() -> Iterator[str]:
    """Yields the number of cells that agree, by machine, experiment and half."""
    rows, workloads = read_data(), read_workloads()
    machines = [(SIMULATOR, variant) for variant in (DEFAULTS, *read_variants())]
    for machine, variant in [*machines, (KERNEL, DEFAULTS)]:
        for half in HALVES:
            verdicts = [
                judge(cell)
                for cell in cells(rows, workloads, machine, variant.variant)
                if cell.workload.half == half
            ]
            agree = len(verdicts) - verdicts.count("off")
            yield f"{machine} {variant.variant}, {half}: {agree} of {len(verdicts)} agree"
