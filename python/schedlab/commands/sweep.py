# SPDX-License-Identifier: MIT
"""`./schedlab sweep`, and `./schedlab dask`, by which a cluster gets its workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.commands.options import echo_json, json_option
from schedlab.display.terminal import results, say, tell
from schedlab.errors import WrongUsage
from schedlab.paths import cache_folder, new_runs_folder

if TYPE_CHECKING:
    from schedlab.sweep.command import Doing, Done
    from schedlab.sweep.objectives import Objective
    from schedlab.sweep.plan import SweepPlan

_SHOWN = 10


@click.command()
@click.argument(
    "file", required=False, metavar="[FILE.yaml]", type=click.Path(dir_okay=False, path_type=Path)
)
@click.option("--workload", "workloads", multiple=True, help="A workload. May be repeated.")
@click.option(
    "--with",
    "changes",
    multiple=True,
    metavar="PLACE=VALUES",
    help="Values of the workload file, such as tasks.cpu.instance=10,20. May be repeated.",
)
@click.option(
    "--policy", "policies", multiple=True, help="POLICY or POLICY:PRESET, several with commas."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values of a tunable: 1,2,4 or 1..8 or 1..32+4 or 60..3840*2. May be repeated.",
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Leaves out other setups: 'slice_1 <= slice_0'. May be repeated.",
)
@click.option(
    "--sample",
    metavar="METHOD:COUNT[:SEED]",
    help="This many setups instead of all: random, sobol, halton, latin-hypercube.",
)
@click.option("--machine", "machines", metavar="NAMES", help="sim, spike, qemu.  [default: sim]")
@click.option("--cpus", metavar="CPUS", help="4, 1,2,8 or 1-4.  [default: 1]")
@click.option("--seeds", metavar="SEEDS", help="7, 1,2,3 or 1..8.  [default: 1]")
@click.option("--tick", metavar="TIMES", help="Lengths of a tick.  [default: 1ms]")
@click.option("--costs", metavar="PROFILE", help="On sim: what things take.  [default: kernel]")
@click.option("--limit", metavar="TIME", help="Of the guest's time.  [default: 60s]")
@click.option("--memory", metavar="MIB", help="Of the kernel's machine.  [default: 512]")
@click.option("--dry-run", is_flag=True, help="Only say how many runs that are, and show some.")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A cluster of Dask, such as tls://10.0.0.1:8786.  [default: all CPUs of this host]",
)
@click.option(
    "--certificate",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Of the cluster (./schedlab dask certificate).",
)
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes of this host.")
@click.option(
    "--best",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Rank setups by it: turnaround, response@GROUP, min:migrations. Several: their front.",
)
@click.option(
    "--top", default=10, show_default=True, type=click.IntRange(1), help="Setups that are shown."
)
@click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With two --best: their frontier as a picture, .svg or .png.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run nothing: rank what is in this folder of a sweep.",
)
@click.option("--keep-traces", is_flag=True, help="Keep each run's folder, with its trace.")
@click.option("--retry-failed", is_flag=True, help="Run again what is there and failed.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the data set; also one to go on in.  [default: a new one in runs/]",
)
@json_option
def sweep(
    file: Path | None,
    dry_run: bool,
    scheduler: str | None,
    certificate: Path | None,
    workers: int | None,
    keep_traces: bool,
    retry_failed: bool,
    out: Path | None,
    metrics: tuple[str, ...],
    top: int,
    chart: Path | None,
    source: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run many setups, and keep what was measured as one data set.

    FILE.yaml, or options, say which: policies with ranges of their tunables, workloads, CPUs,
    seeds, machines. Options replace what the file says. The runs go to all CPUs of this host, or to
    a cluster. What is finished is not run again: the same command, with the same --out, goes on
    where it was ended. docs/sweeps.md has all of it.
    """
    from schedlab.sweep import best, command

    objectives = best.objectives_of(metrics)
    if chart:
        best.check_chart(chart, objectives)
    if source:
        check_source(
            source, [file, out, scheduler, certificate, workers, *options.values()], objectives
        )
        show_best(source, objectives, top, chart, as_json)
        return
    if scheduler and workers:
        raise WrongUsage("--scheduler and --workers: a cluster has the workers that it has")
    if certificate and not scheduler:
        raise WrongUsage("--certificate: of which cluster? Add --scheduler ADDRESS")
    if scheduler:
        from schedlab.sweep.certificate import of_scheduler

        of_scheduler(scheduler, certificate)
    wanted = command.plan(file, given(options))
    if dry_run:
        show_plan(wanted, as_json)
        return
    folder = (out or new_runs_folder(f"sweep-{file.stem if file else 'options'}")).absolute()
    doing = command.Doing(folder, scheduler, certificate, workers, keep_traces, retry_failed)
    done = carry_out(wanted, doing)
    if objectives and done.runs > done.failed:
        show_best(folder, objectives, top, chart, as_json)
    if not (objectives and as_json):
        show(done, as_json)
    if done.failed:
        raise SystemExit(1)


def check_source(source: Path, others: list[Any], objectives: list[Objective]) -> None:
    if any(others):
        raise WrongUsage(f"--from {source}: nothing is run then; leave out what says how")
    if not objectives:
        raise WrongUsage(f"--from {source}: by what? Add --best METRIC, such as --best turnaround")


def show_best(
    folder: Path, objectives: list[Objective], top: int, chart: Path | None, as_json: bool
) -> None:
    from schedlab.sweep import best

    if as_json:
        echo_json({"folder": str(folder), "scenes": best.as_dicts(folder, objectives)})
    else:
        for table in best.tables(folder, objectives, top):
            results().print(table)
    if chart:
        for path in best.draw(folder, objectives, chart):
            say(f"schedlab: {path}")


def given(options: dict[str, Any]) -> dict[str, Any]:
    """As the reader of files has them."""
    from schedlab.sweep import options as reading

    simple = {name: options[name] for name in reading.SIMPLE}
    return reading.nodes(
        options["workloads"],
        options["changes"],
        options["policies"],
        options["settings"],
        options["conditions"],
        options["sample"],
        simple,
    )


def show_plan(wanted: SweepPlan, as_json: bool) -> None:
    """How many runs, and some of them."""
    from schedlab.sweep.plan import spread, title_of

    shown = [title_of(point) for point in spread(wanted.points, _SHOWN)]
    if as_json:
        echo_json({"runs": len(wanted.points), "dimensions": wanted.dimensions, "some": shown})
        return
    tell(f"{len(wanted.points):,} runs{', such as' if len(shown) < len(wanted.points) else ''}:")
    for line in shown:
        tell(f"  {line}")


def carry_out(wanted: SweepPlan, doing: Doing) -> Done:
    """Says how to go on if it is interrupted."""
    from schedlab.sweep import command
    from schedlab.sweep.dataset import read_statuses
    from schedlab.sweep.execution import Interrupted

    try:
        return command.carry_out(wanted, doing)
    except Interrupted as interruption:
        count = len(read_statuses(doing.out))
        say(
            f"schedlab: interrupted; {count} runs are finished and kept. The same command with"
            f" --out {doing.out} goes on"
        )
        raise SystemExit(128 + interruption.number) from None


def show(done: Done, as_json: bool) -> None:
    if as_json:
        echo_json(
            {"folder": str(done.folder), "runs": done.runs, "already": done.already,
             "failed": done.failed}
        )  # fmt: skip
        return
    failed = f", {done.failed} failed" if done.failed else ""
    results().print(
        f"{done.runs:,} runs{failed}. Kept in {done.folder}", markup=False, soft_wrap=True
    )


_PLAIN = ("--protocol", "--dashboard", "--dashboard-address", "--jupyter")
"""Of Dask's options, those by which its programs would serve others than who have the certificate."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--certificate",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Of the cluster; the same for its scheduler, its workers, and those that use it.",
)
@click.argument(
    "arguments",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="scheduler|worker|certificate [ARGUMENT]...",
)
def dask(certificate: Path | None, arguments: tuple[str, ...]) -> None:
    """Start a scheduler of Dask, or a worker, in schedlab's own environment.

    First `./schedlab dask certificate FOLDER`: bring that folder to each host, by a way that is
    secret. On one `./schedlab dask scheduler --certificate FOLDER --host ADDRESS`, on each
    `./schedlab dask worker --certificate FOLDER tls://ADDRESS:8786 --nworkers 8 --nthreads 1`: then
    `./schedlab sweep --scheduler tls://ADDRESS:8786 --certificate FOLDER`. Whoever has the
    certificate can have the workers run anything; others are not spoken to.
    """
    import os

    from schedlab.host.interpreter import module_command
    from schedlab.sweep import certificate as certificates

    what, *others = arguments or ("",)
    if what == "certificate" and len(others) == 1:
        certificates.make(Path(others[0]))
        say(f"schedlab: {others[0]}: bring it to each host of the cluster; it is a secret")
        return
    if what not in ("scheduler", "worker"):
        raise WrongUsage(
            f"dask {' '.join(arguments)}: expected scheduler, worker, or certificate FOLDER"
        )
    check_closed(others)
    if certificate is None:
        raise WrongUsage(
            f"dask {what}: without a certificate, anyone who reaches it runs what they like as you: add"
            f" --certificate FOLDER; {certificates.CURE}"
        )
    os.environ |= {
        **certificates.read(certificate).environment(),
        "POLARS_MAX_THREADS": "1",
        "DASK_TEMPORARY_DIRECTORY": str(scratch_folder()),
        # Dask cannot be without its HTTP servers: they serve nothing, to this host alone.
        "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }
    closed = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    command = module_command("dask", what, *closed, *others)
    os.execv(command[0], command)


def check_closed(arguments: list[str]) -> None:
    """Raises WrongUsage for what would open another door than that of the certificate."""
    for each in arguments:
        if "tcp://" in each or each.partition("=")[0] in _PLAIN:
            raise WrongUsage(
                f"dask: {each}: it would serve users that do not have the certificate; leave it out"
            )


def scratch_folder() -> Path:
    """What Dask writes down, and loads again, is for no other user to write."""
    folder = cache_folder() / "dask"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder
