# SPDX-License-Identifier: MIT
"""The command line. Each command imports what it needs when it is called: a start stays quick."""

from __future__ import annotations

import os
import signal
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from schedlab import __version__
from schedlab.commands.agreement import bench_agreement
from schedlab.commands.bench import bench_monitor, bench_monitor_model, bench_simulator
from schedlab.commands.bench_linux import bench_shares_on_linux, bench_throughput
from schedlab.commands.calibrate import calibrate
from schedlab.commands.linux import linux
from schedlab.commands.monitor import monitor, top
from schedlab.commands.options import (
    CPUS,
    POLICIES,
    TICK,
    Parsed,
    echo_json,
    json_option,
    memory_option,
    no_kvm_option,
)
from schedlab.commands.perf import check_usage, from_perf_options, import_recording
from schedlab.commands.run import perform, run
from schedlab.commands.soak import soak
from schedlab.commands.sweep import dask, sweep
from schedlab.commands.testing import lint, test
from schedlab.display.terminal import new_table, results, say, tell
from schedlab.errors import SchedlabError, WrongUsage, refusal
from schedlab.machines import KERNEL_MACHINES, LINUX_MACHINES
from schedlab.machines.kernel import KERNEL_CPUS_MAX
from schedlab.paths import ROOT
from schedlab.toolchain.policies import STANDARD, PolicyChoice
from schedlab.units import format_time, parse_counts

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.benchmarks.instructions import PolicyRow, Row
    from schedlab.benchmarks.linux_shares import Setting as SharesOnLinux
    from schedlab.commands.doctor import Finding
    from schedlab.runs.carrying_out import Finished
    from schedlab.studies.shares import Row as ShareRow
    from schedlab.studies.shares import Setting

SHARE_TESTS = Parsed("TESTS", lambda text: parse_counts(text, 1, 6))
Format = Literal["perfetto", "parquet", "csv"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="schedlab")
def cli() -> None:
    """A laboratory for CPU schedulers.

    Runs scheduling policies on a small Unix-like kernel under one set of workloads, and measures
    them by one set of definitions. `./schedlab run` reproduces five studies, in one report.
    """


cli.add_command(run)
cli.add_command(sweep)
cli.add_command(dask)
cli.add_command(calibrate)
cli.add_command(linux)
cli.add_command(monitor)
cli.add_command(soak)
cli.add_command(top)


@cli.command()
@click.option(
    "--cpus",
    default=1,
    show_default=True,
    type=click.IntRange(1, KERNEL_CPUS_MAX),
    help="How many CPUs.",
)
@click.option("--policy", "policies", default=STANDARD, show_default=True, type=POLICIES)
@click.option("--machine", default="qemu", show_default=True, type=click.Choice(KERNEL_MACHINES))
@click.option("--tick", default="10ms", show_default=True, type=TICK, help="Length of a tick.")
@memory_option
@click.option(
    "--disk",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A disk that build/mkfs made.  [default: the one with all programs]",
)
@click.option(
    "--arguments",
    default="",
    help="More boot arguments, such as 'processes=64 overcommit=0'"
    " (docs/kernel-boot-and-devices.md).",
)
def boot(
    cpus: int,
    policies: tuple[PolicyChoice, ...],
    machine: str,
    tick: int,
    memory: int,
    disk: Path | None,
    arguments: str,
) -> None:
    """Boot the kernel with a shell in this terminal.

    What is written to its disk is gone when it ends.
    """
    from schedlab.machines import Boot, kernel_machine
    from schedlab.machines.kernel import with_more_arguments
    from schedlab.toolchain.build import IMAGE, KERNEL, build
    from schedlab.toolchain.policies import check_choices, read_catalogue

    if len(policies) > 1:
        raise WrongUsage(
            "--policy: one machine has one policy; `policy NAME` in its shell switches"
        )
    check_choices(read_catalogue(), policies, {})
    told = {"policy": str(policies[0]), "tick": format_time(tick)}
    words = with_more_arguments(told, arguments)
    build("kernel", "image")
    start = Boot(KERNEL, disk or IMAGE, cpus, memory, words, traced=False)
    command = kernel_machine(machine).command(start)
    leave = "Ctrl-A, then X" if machine == "qemu" else "`poweroff` in the shell, or Ctrl-C"
    say(f"To leave: {leave}.")
    os.execv(command[0], command)


@cli.command()
@click.argument("run", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "file_format",
    default="perfetto",
    show_default=True,
    type=click.Choice(get_args(Format)),
    help="perfetto is for ui.perfetto.dev.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The file to write.  [default: trace.FORMAT in the run's folder]  With --from-perf: the"
    " run's folder.  [default: one in runs/]",
)
@click.option(
    "--as-workload",
    "workload",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Instead: write what its processes wanted into this file, as a workload for the simulator.",
)
@from_perf_options
@json_option
@click.pass_context
def trace(
    context: click.Context,
    /,
    run: Path | None,
    file_format: Format,
    out: Path | None,
    workload: Path | None,
    from_perf: Path | None,
    policy: str,
    tick: int,
    root: str | None,
    as_json: bool,
) -> None:
    """Export the event trace of a RUN's folder, and check it.

    RUN may also be a folder that holds one run. A trace that says what cannot have happened is
    exported all the same; the message names the record, and the exit status is 1.

    With --from-perf, a recording of any Linux machine becomes a run with trace and metrics, to be
    exported, compared, replayed and reported on as others are (docs/perf-traces.md).
    """
    from schedlab import trace as traces
    from schedlab.files import placing
    from schedlab.runs.results import find_run

    check_usage(context, run, from_perf)
    if from_perf:
        import_recording(from_perf, out, policy, tick, root, as_json)
        return
    assert run is not None
    if workload:
        export_workload(context, run, workload, as_json)
        return
    folder = find_run(run)
    suffix = {"perfetto": "perfetto-trace"}.get(file_format, file_format)
    place = (out or folder / f"trace.{suffix}").absolute()
    placing.check_file("--out", place, ours=out is None)
    read = traces.read(folder / "trace.bin")
    new = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        traces.export(read, new, file_format)
        os.replace(new, place)
        if not out:
            placing.add_to_list(place)
    finally:
        new.unlink(missing_ok=True)
    problem = trace_problem(read)
    if as_json:
        content = {"file": str(place), "records": len(read.events), "lost": read.lost}
        echo_json({**content, "problem": problem})
    else:
        tell(f"{place}: {len(read.events):,} records")
    if problem:
        raise SchedlabError(f"the trace of {folder} is not sound: {problem}")


@cli.command()
@click.argument(
    "places",
    nargs=-1,
    required=True,
    metavar="RUN...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the report.  [default: report, beside the runs]",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("html",),
    show_default=True,
    type=click.Choice(("html", "markdown")),
    help="html is for a browser, markdown for a paper's appendix. May be repeated.",
)
@click.option(
    "--from-traces",
    is_flag=True,
    help="Compute all metrics anew from the traces, instead of reading what each run kept.",
)
@json_option
def report(
    places: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    from_traces: bool,
    as_json: bool,
) -> None:
    """Make a report of RUNs: tables and charts that a browser opens without a network.

    RUN is the folder of a run, or one that holds runs, at any depth. Runs that failed are in the
    report, with how they failed.
    """
    from schedlab.report.command import report as make

    made = make(places, out, formats, from_traces)
    if as_json:
        echo_json(made)
    else:
        tell(f"{made['report']}: {made['runs']} runs, {len(made['failed'])} failed")


def export_workload(context: click.Context, run: Path, file: Path, as_json: bool) -> None:
    """docs/replay.md: a recording as a text that can be read, changed and run."""
    from schedlab.commands.replay import write_workload

    for name, option in (("file_format", "--format"), ("out", "--out")):
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise WrongUsage(f"--as-workload and {option}: it names its file itself; leave one out")
    found = write_workload(run, file)
    if as_json:
        echo_json({"file": str(file.absolute()), "replay_of": found.facts})
    else:
        tell(f"{file.absolute()}: {found.title}")
    for note in found.notes:
        say(f"schedlab: {run}: {note}")


def trace_problem(read: Any) -> str | None:
    """What validation says against a trace."""
    from schedlab import trace as traces

    try:
        traces.validate(read)
    except traces.TraceError as error:
        return str(error)
    return None


@cli.command("compare")
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--metric", "metrics", multiple=True, help="Only this, such as turnaround. May be repeated."
)
@click.option("--all", "everything", is_flag=True, help="Show what did not change, too.")
@json_option
def compare_runs(
    before: Path, after: Path, metrics: tuple[str, ...], everything: bool, as_json: bool
) -> None:
    """Say what changed from one folder of runs to another, and whether it is more than chance.

    Each folder holds one run, or many: several policies, CPUs, workloads and seeds. Setups are
    matched with what is like them on the other side; if the policy (or any other one thing) is
    another, across it. Runs with the same seed are compared pair by pair. docs/comparing.md says
    what may be concluded.
    """
    from schedlab.comparison.compare import compare
    from schedlab.comparison.listing import listing
    from schedlab.runs.collection import read

    found = compare(read([before]), read([after]), metrics)
    if as_json:
        echo_json(found.to_dict())
        return
    for part in listing(found, everything):
        results().print(part, soft_wrap=isinstance(part, str))


@cli.group(invoke_without_command=True)
@click.option("--host", "of_host", is_flag=True, help="Also: how fast this host reads traces.")
@json_option
@click.pass_context
def bench(context: click.Context, of_host: bool, as_json: bool) -> None:
    """Count the instructions of the kernel's operations, and compare.

    On Spike with one CPU: exact, and the same every time. The baseline is xv6 for RISC-V. Exit
    status 1 if an aim is not met. `bench shares` measures something else, CPU shares;
    `bench simulator` the simulator, which `bench agreement` holds against the kernel;
    `bench throughput` what policies cost on Linux, `bench monitor` what it costs to be watched,
    `bench monitor-model` how many records a second the monitor takes in.
    """
    if context.invoked_subcommand is None:
        bench_instructions(of_host, as_json)


def bench_instructions(of_host: bool, as_json: bool) -> None:
    from schedlab.benchmarks import instructions as benchmark
    from schedlab.machines import kernel_machine
    from schedlab.toolchain.build import IMAGE, KERNEL, POLICY_COST, build

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
            f"Tracing adds {tracing.cost:.3%} to the instructions of CPU-bound work at a tick of"
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
    table = new_table("Instructions for one operation (Spike, 1 CPU)")
    for heading in ("operation", "what it is"):
        table.add_column(heading)
    for heading in ("instructions", "baseline", "aim"):
        table.add_column(heading, justify="right")
    table.add_column("aim")
    for row in rows:
        numbers = (row.instructions, row.baseline, row.aim)
        shown = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(row.name, row.meaning, *shown, row.verdict)
    return table


def policies_table(rows: list[PolicyRow]) -> Table:
    table = new_table("Instructions for one enqueue and one pick, mean (worst), by tasks that wait")
    table.add_column("policy")
    counts = sorted({count for row in rows for count in row.mean})
    for count in counts:
        table.add_column(f"{count:,} tasks", justify="right")
    table.add_column("does not grow")
    for row in rows:
        cells = [
            f"{row.mean[n]:,} ({row.worst.get(n, 0):,})" if n in row.mean else "" for n in counts
        ]
        table.add_row(row.policy, *cells, row.verdict)
    return table


bench.add_command(bench_simulator)
bench.add_command(bench_monitor)
bench.add_command(bench_monitor_model)
bench.add_command(bench_agreement)
bench.add_command(bench_throughput)


@bench.command("shares")
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas.  [default: the study's, and ours of its kind]",
)
@click.option("--tests", default="1-6", show_default=True, type=SHARE_TESTS, help="Which tests.")
@click.option("--cpus", default="1-5", show_default=True, type=CPUS, help="How many CPUs.")
@click.option(
    "--seeds", default=10, show_default=True, type=click.IntRange(1, 1000), help="Runs of each."
)
@click.option(
    "--ticks",
    default=500,
    show_default=True,
    type=click.IntRange(10, 100000),
    help="Ticks of each run (study 1: 50).",
)
@click.option("--tick", default="1ms", show_default=True, type=TICK, help="Length of a tick.")
@click.option(
    "--yield",
    "yield_work",
    default=0,
    show_default=True,
    type=click.IntRange(0, 10**9),
    help="Each process yields after so many iterations of 10 ns (study 1: 5000). 0: it does not.",
)
@click.option(
    "--original",
    is_flag=True,
    help="The study's own program: its finite work, its yields, no common start.",
)
@click.option("--quick", is_flag=True, help="1, 2 and 5 CPUs, 3 seeds, whatever else is said.")
@click.option(
    "--machine",
    default="spike",
    show_default=True,
    type=click.Choice(("spike", *LINUX_MACHINES)),
    help="On linux: ten processes with weights (or tickets, if shares go by them) from 1 to 10, for 20 s.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep all runs in.  [default: they are not kept]",
)
@no_kvm_option
@json_option
@click.pass_context
def bench_shares(
    context: click.Context,
    /,
    policies: tuple[PolicyChoice, ...] | None,
    tests: tuple[int, ...],
    cpus: tuple[int, ...],
    seeds: int,
    ticks: int,
    tick: int,
    yield_work: int,
    original: bool,
    quick: bool,
    machine: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure CPU shares in the six lottery tests of study 1; on Linux, of weights from 1 to 10.

    On Spike: the same shares every time. Each mean share over the seeds is held against the ideal
    share; the standard error is what independent draws would give. Exit status 1 if a policy with
    its defaults is off by more than 3.5 standard errors; presets keep their studies' quirks.

    With --machine linux: a policy that shares by tickets and one that shares by weight, on 2 CPUs,
    one seed, unless --policy, --cpus or --seeds say otherwise. Exit status 1 if a share is more
    than 3 percentage points off its ideal.
    """
    from schedlab.studies import shares

    if machine in LINUX_MACHINES:
        given = {
            name: context.params[name]
            for name in context.params
            if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        }
        bench_shares_on_linux(shares_on_linux(machine, given), out, as_json)
        return
    if quick:
        cpus, seeds = (1, 2, 5), 3
    setting = shares.Setting(
        policies or shares.POLICIES,
        tests,
        cpus,
        seeds,
        ticks,
        tick,
        yield_work=yield_work,
        original=original,
    )
    finished = share_runs(setting, out)
    rows = shares.evaluate(setting, finished)
    if as_json:
        echo_json({"bound": shares.BOUND, "rows": [row.to_dict() for row in rows]})
    else:
        for test in shares.TESTS:
            show_shares([row for row in rows if row.test == test.name], test.title)
        results().print(f"Measured over {shares.describe(setting)}")
        if not original:
            for line in shares.summary(rows):
                results().print(line, markup=False, soft_wrap=True)
    report_failures(finished)
    if any(row.verdict == "off" and shares.as_shipped(row) for row in rows):
        raise SystemExit(1)


def shares_on_linux(machine: str, given: dict[str, Any]) -> SharesOnLinux:
    """What is measured, by the options that were given. Raises WrongUsage for those that Spike has."""
    from schedlab.benchmarks.linux_shares import Setting as SharesOnLinux
    from schedlab.toolchain.policies import first_that_shares_by, read_catalogue

    names = {"tests": "--tests", "ticks": "--ticks", "tick": "--tick", "yield_work": "--yield",
             "original": "--original", "quick": "--quick"}  # fmt: skip
    for name, option in names.items():
        if name in given:
            raise WrongUsage(
                f"{option}: of study 1's tests, on spike; leave it out, or --machine {machine}"
            )
    chosen = {name: given[name] for name in ("policies", "cpus", "seeds") if name in given}
    if "policies" not in chosen:
        known = read_catalogue()
        chosen["policies"] = tuple(
            first_that_shares_by(known, attribute) for attribute in ("tickets", "weight")
        )
    return SharesOnLinux(machine=machine, **chosen)


def share_runs(setting: Setting, out: Path | None) -> list[Finished]:
    """In a folder that stays, or in one that does not."""
    import tempfile

    from schedlab.studies import shares

    if out:
        wanted = shares.plan(out.absolute(), setting)
        wanted.check()
        wanted.check_new()
        return perform(wanted, "spike")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return perform(shares.plan(Path(folder), setting), "spike", kept=False)


def report_failures(finished: list[Finished]) -> None:
    from schedlab.runs import carrying_out as runs

    for message in runs.describe(finished):
        say(message)
    if not all(each.outcome.succeeded and each.metrics for each in finished):
        raise SystemExit(1)


def show_shares(rows: list[ShareRow], title: str) -> None:
    """One test."""
    if not rows:
        return
    judged = any(row.judged for row in rows)
    table = new_table(f"{title}: shares of the CPUs, in %")
    table.add_column("policy")
    table.add_column("CPUs", justify="right")
    table.add_column("group")
    headings = ["study 1", "selections", "share", "ideal"]
    headings += ["error", "standard error", "in standard errors"] if judged else []
    for heading in headings:
        table.add_column(heading, justify="right")
    if judged:
        table.add_column("aim")
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].cpus != row.cpus
        first = number == 0 or rows[number - 1].cpus != row.cpus
        study = "" if row.published is None else f"{100 * row.published:.1f}"
        cells = [study, *(f"{100 * x:.1f}" for x in (row.selections, row.share, row.ideal))]
        if judged:
            cells += [f"{100 * row.error:+.2f}", f"{100 * row.standard_error:.2f}"]
            cells += [f"{row.deviation:+.1f}", row.verdict]
        names = (row.policy, str(row.cpus)) if first else ("", "")
        table.add_row(*names, row.group, *cells, end_section=last)
    results().print(table)


@cli.command()
@click.argument("names", nargs=-1, metavar="[POLICY]...")
@json_option
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List all policies or those named, with their presets and tunables."""
    from dataclasses import asdict

    from schedlab.commands.policy_listing import listing
    from schedlab.toolchain.policies import FAIR, read_catalogue, those_named

    catalogue = {**read_catalogue(), FAIR.name: FAIR}
    wanted = those_named(catalogue, names) if names else list(catalogue.values())
    if as_json:
        echo_json({"policies": [asdict(policy) for policy in wanted]})
    else:
        click.echo(listing(wanted), nl=False)


@cli.command("new-policy")
@click.argument("name")
@click.option(
    "--source",
    default="not published",
    show_default=True,
    metavar="'AUTHOR YEAR'",
    help="Where the algorithm is from.",
)
def new_policy(name: str, source: str) -> None:
    """Write the beginning of a policy, and of its test.

    NAME is of a-z, 0-9 and -. The policy is complete: it runs at once, as a line of tasks with a
    time slice. docs/writing-a-policy.md leads on.
    """
    from schedlab.commands.new_policy import create, next_steps

    policy, test = create(ROOT, name, source)
    click.echo(next_steps(name, policy.relative_to(ROOT), test.relative_to(ROOT)))


cli.add_command(test)
cli.add_command(lint)


@cli.command()
@json_option
def doctor(as_json: bool) -> None:
    """List what schedlab stands on, and what to do about what is missing.

    Installs nothing. Exit status 1 if something is missing or unfit.
    """
    from schedlab.commands.doctor import as_dict, examine

    findings = examine()
    if as_json:
        echo_json(as_dict(findings))
    else:
        results().print(doctor_table(findings))
        for finding in findings:
            if finding.advice:
                say(f"{finding.name}: {finding.advice}")
    if not all(finding.healthy for finding in findings):
        raise SystemExit(1)


def doctor_table(findings: list[Finding]) -> Table:
    table = new_table()
    for heading in ("what", "for", "state", "version", "where from"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        origin = f"{finding.path}\n{finding.origin}".strip()
        table.add_row(finding.name, finding.purpose, finding.status, finding.version, origin)
    return table


def main() -> None:
    """Runs a command, and turns what goes wrong into one message and an exit status."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        cli(prog_name="schedlab", standalone_mode=False)
    except click.exceptions.Abort:
        say("schedlab: interrupted")
        sys.exit(128 + signal.SIGINT)
    except KeyboardInterrupt:
        say("schedlab: interrupted")
        sys.exit(128 + signal.SIGINT)
    except click.ClickException as error:
        usage = StringIO()
        error.show(usage)
        say(usage.getvalue().rstrip())
        sys.exit(error.exit_code)
    except SchedlabError as error:
        say(f"schedlab: {error}")
        sys.exit(error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        message, status = refusal(error)
        say(f"schedlab: {message}")
        sys.exit(status)
    except SystemExit:
        raise
    except BaseException as error:  # libraries in Rust raise what is no Exception
        from schedlab.commands.internal_error import describe

        say(f"schedlab: {describe(error)}")
        sys.exit(1)
