# SPDX-License-Identifier: MIT
"""The command line. Each command imports what it needs when it is called: a start stays quick."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click

from schedlab import __version__
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.paths import ROOT, RUNS
from schedlab.plan import CPUS_MAX, MEMORY_MIB, TICK_NS
from schedlab.policies import PolicyChoice, parse_choices, parse_setting
from schedlab.terminal import results, say
from schedlab.units import format_time, parse_counts, parse_time

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.bench import PolicyRow, Row
    from schedlab.doctor import Finding
    from schedlab.plan import Plan
    from schedlab.run import Finished
    from schedlab.shares import Row as ShareRow
    from schedlab.shares import Setting

T = TypeVar("T")
MACHINE_NAMES = ("spike", "qemu")
Format = Literal["perfetto", "parquet", "csv"]


class Parsed(click.ParamType[Any]):
    """An option whose text one function reads; its ValueError becomes the option's error."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(f"'{value}': {error}", param, ctx)


def time_between(lowest: int, highest: int) -> Callable[[str], int]:
    """Reads a time within bounds."""

    def read(text: str) -> int:
        nanoseconds = parse_time(text)
        if not lowest <= nanoseconds <= highest:
            raise ValueError(f"only {format_time(lowest)} to {format_time(highest)} are possible")
        return nanoseconds

    return read


CPUS = Parsed("CPUS", lambda text: parse_counts(text, 1, CPUS_MAX))
SHARE_TESTS = Parsed("TESTS", lambda text: parse_counts(text, 1, 6))
POLICIES = Parsed("POLICIES", parse_choices)
SETTING = Parsed("NAME=VALUE", parse_setting)
TICK = Parsed("TIME", time_between(*TICK_NS))
LIMIT = Parsed("TIME", time_between(1_000_000, 24 * 3600 * 1_000_000_000))
SEED = click.IntRange(0, 2**63 - 1)
MEMORY = click.IntRange(*MEMORY_MIB)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the results as JSON, for programs."
)


def memory_option(command: Callable[..., T]) -> Callable[..., T]:
    return click.option(
        "--memory", default=512, show_default=True, type=MEMORY, help="Memory of the machine, MiB."
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="schedlab")
def cli() -> None:
    """A laboratory for CPU schedulers.

    Runs scheduling policies on a small Unix-like kernel under one set of workloads, and measures
    them by one set of definitions. Without arguments, `./schedlab run` shows round-robin on 1 to
    4 CPUs.
    """


@cli.command()
@click.option(
    "--workload",
    default="mixed -n 24 -g 80",
    show_default=True,
    metavar="COMMAND",
    help="What runs in the guest: a program and its options, such as 'cpu-bound -n 10'.",
)
@click.option(
    "--policy",
    "policies",
    default="rr",
    show_default=True,
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; see `./schedlab policies`.",
)
@click.option(
    "--set", "settings", multiple=True, type=SETTING, help="A tunable's value. May be repeated."
)
@click.option(
    "--cpus", default="1-4", show_default=True, type=CPUS, help="How many CPUs: 4, 1,2,8 or 1-4."
)
@click.option(
    "--machine",
    default="spike",
    show_default=True,
    type=click.Choice(MACHINE_NAMES),
    help="spike gives the same run every time; qemu does not.",
)
@click.option(
    "--runs",
    "repeats",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10000),
    help="Repetitions. Each has its own seed, from --seed on.",
)
@click.option(
    "--seed", default=1, show_default=True, type=SEED, help="Of all randomness in the run."
)
@click.option("--tick", default="1ms", show_default=True, type=TICK, help="Length of a tick.")
@click.option(
    "--limit",
    default="60s",
    show_default=True,
    type=LIMIT,
    help="Time of the guest after which a run is ended.",
)
@memory_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: a new one in runs/]",
)
@json_option
def run(
    workload: str,
    policies: tuple[PolicyChoice, ...],
    settings: tuple[tuple[str, int], ...],
    cpus: tuple[int, ...],
    machine: str,
    repeats: int,
    seed: int,
    tick: int,
    limit: int,
    memory: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a workload under policies, and print what they did.

    Every policy runs on every number of CPUs, --runs times, side by side on the CPUs of this host.
    Each run leaves a folder with its manifest, console, event trace and metrics.
    """
    from schedlab import plan

    if seed + repeats - 1 >= 2**63:
        raise WrongUsage(f"--seed {seed}: with --runs {repeats} the last seed is too large")
    values = one_value_each(settings)
    base = plan.Run(workload, policies[0], values, cpus[0], machine, seed, tick, limit, memory)
    folder = (out or default_folder(workload, policies)).absolute()
    wanted = plan.product(folder, base, policies, cpus, repeats)
    wanted.check()
    finished = perform(wanted, machine)
    show(finished, as_json)
    if not all(each.outcome.succeeded for each in finished):
        raise SystemExit(1)


def one_value_each(settings: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """In the order given. The same tunable twice is a mistake."""
    values = dict(settings)
    if len(values) < len(settings):
        names = [name for name, _ in settings]
        twice = next(name for name in names if names.count(name) > 1)
        raise WrongUsage(f"--set {twice}: given more than once")
    return settings


def default_folder(workload: str, policies: tuple[PolicyChoice, ...]) -> Path:
    """A new name in runs/, in the order of time."""
    program = "".join(
        c if c.isalnum() or c in "-_" else "-"
        for c in workload.split()[0:1] and workload.split()[0]
    )
    names = "+".join(dict.fromkeys(choice.name for choice in policies))[:40]
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{program or 'run'}-{names}"
    place, number = RUNS / stem, 2
    while place.exists():
        place, number = RUNS / f"{stem}-{number}", number + 1
    return place


def perform(wanted: Plan, machine_name: str, kept: bool = True) -> list[Finished]:
    """Builds, checks names, and carries out. `kept`: the folder stays when this is interrupted."""
    from schedlab.build import IMAGE, KERNEL, build, host_processors
    from schedlab.machines import machine_named
    from schedlab.policies import check_choices, read_catalogue
    from schedlab.progress import Board
    from schedlab.run import Interrupted, carry_out, software
    from schedlab.versions import commit

    choices = list(dict.fromkeys(each.policy for each in wanted.runs))
    check_choices(read_catalogue(), choices, dict(wanted.runs[0].settings))
    build("kernel", "image")
    machine = machine_named(machine_name)
    machine.release()
    slots = host_processors()
    try:
        with software(KERNEL, IMAGE, commit()) as base, Board(wanted, slots) as board:
            return carry_out(wanted, machine, base, slots, board)
    except Interrupted as interruption:
        count = len(interruption.finished)
        say(
            f"schedlab: interrupted; {count} of {len(wanted.runs)} runs were finished"
            + (" and are kept" if kept else "")
        )
        if count and kept:
            say(f"  in {wanted.folder}")
        raise SystemExit(128 + interruption.number) from None


def show(finished: list[Finished], as_json: bool) -> None:
    """The table or JSON on standard output; what failed, on standard error."""
    from schedlab import run as runs

    if as_json:
        click.echo(runs.as_json(finished))
    else:
        show_tables(finished)
    for message in runs.describe(finished):
        say(message)


def show_tables(finished: list[Finished]) -> None:
    from schedlab import run as runs

    measured = [each for each in finished if each.metrics]
    if measured:
        from schedlab import metrics

        several = len({each.run.seed for each in measured}) > 1
        labelled = [
            (runs.label(each.run, several), each.metrics) for each in measured if each.metrics
        ]
        results().print(runs.summary(measured[0].run), markup=False)
        for table in metrics.tables(labelled):
            results().print(table)
    results().print(f"Kept in {finished[0].folder.parent}", markup=False, soft_wrap=True)


@cli.command()
@click.option(
    "--cpus", default=1, show_default=True, type=click.IntRange(1, CPUS_MAX), help="How many CPUs."
)
@click.option("--policy", "policies", default="rr", show_default=True, type=POLICIES)
@click.option("--machine", default="qemu", show_default=True, type=click.Choice(MACHINE_NAMES))
@click.option("--tick", default="10ms", show_default=True, type=TICK, help="Length of a tick.")
@memory_option
def boot(
    cpus: int, policies: tuple[PolicyChoice, ...], machine: str, tick: int, memory: int
) -> None:
    """Boot the kernel with a shell in this terminal.

    What is written to its disk is gone when it ends.
    """
    from schedlab.build import IMAGE, KERNEL, build
    from schedlab.machines import Boot, machine_named
    from schedlab.policies import check_choices, read_catalogue

    if len(policies) > 1:
        raise WrongUsage(
            "--policy: one machine has one policy; `policy NAME` in its shell switches"
        )
    check_choices(read_catalogue(), policies, {})
    build("kernel", "image")
    arguments = f"policy={policies[0]} tick={format_time(tick)}"
    start = Boot(KERNEL, IMAGE, cpus, memory, arguments, traced=False)
    command = machine_named(machine).command(start)
    leave = "Ctrl-A, then X" if machine == "qemu" else "`poweroff` in the shell, or Ctrl-C"
    say(f"To leave: {leave}.")
    os.execv(command[0], command)


@cli.command()
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "file_format",
    default="perfetto",
    show_default=True,
    type=click.Choice(get_args(Format)),
    help="perfetto is for ui.perfetto.dev.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: trace.FORMAT in the run's folder]",
)
@json_option
def trace(run: Path, file_format: Format, out: Path | None, as_json: bool) -> None:
    """Export the event trace of a RUN's folder, and check it.

    RUN may also be a folder that holds one run. A trace that says what cannot have happened is
    exported all the same; the message names the record, and the exit status is 1.
    """
    from schedlab import trace as traces
    from schedlab.results import find_run

    folder = find_run(run)
    suffix = {"perfetto": "perfetto-trace"}.get(file_format, file_format)
    place = (out or folder / f"trace.{suffix}").absolute()
    read = traces.read(folder / "trace.bin")
    new = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        traces.export(read, new, file_format)
        os.replace(new, place)
    finally:
        new.unlink(missing_ok=True)
    problem = trace_problem(read)
    if as_json:
        content = {"file": str(place), "records": len(read.events), "lost": read.lost}
        echo_json({**content, "problem": problem})
    else:
        click.echo(f"{place}: {len(read.events):,} records")
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
        click.echo(f"{made['report']}: {made['runs']} runs, {len(made['failed'])} failed")


def trace_problem(read: Any) -> str | None:
    """What validation says against a trace."""
    from schedlab import trace as traces

    try:
        traces.validate(read)
    except traces.TraceError as error:
        return str(error)
    return None


def echo_json(content: Any) -> None:
    import json

    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


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
    from schedlab.collection import read
    from schedlab.compare import compare
    from schedlab.compare_listing import listing

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
    status 1 if an aim is not met. `bench shares` measures something else: CPU shares.
    """
    if context.invoked_subcommand is None:
        bench_instructions(of_host, as_json)


def bench_instructions(of_host: bool, as_json: bool) -> None:
    from schedlab import bench as benchmark
    from schedlab.build import IMAGE, KERNEL, POLICY_COST, build
    from schedlab.machines import machine_named

    build("kernel", "image", "policy-cost")
    spike = machine_named("spike")
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


def new_table(title: str = "") -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)


@bench.command("shares")
@click.option(
    "--policy",
    "policies",
    default="lottery,lottery:thesis",
    show_default=True,
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas.",
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
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep all runs in.  [default: they are not kept]",
)
@json_option
def bench_shares(
    policies: tuple[PolicyChoice, ...],
    tests: tuple[int, ...],
    cpus: tuple[int, ...],
    seeds: int,
    ticks: int,
    tick: int,
    yield_work: int,
    original: bool,
    quick: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure CPU shares in the six lottery tests of study 1.

    On Spike: the same shares every time. Each mean share over the seeds is held against the ideal
    share; the standard error is what independent draws would give. Exit status 1 if a policy with
    its defaults is off by more than 3.5 standard errors; presets keep their studies' quirks.
    """
    from schedlab import shares

    if quick:
        cpus, seeds = (1, 2, 5), 3
    setting = shares.Setting(
        policies, tests, cpus, seeds, ticks, tick, yield_work=yield_work, original=original
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


def share_runs(setting: Setting, out: Path | None) -> list[Finished]:
    """In a folder that stays, or in one that does not."""
    import tempfile

    from schedlab import shares

    if out:
        wanted = shares.plan(out.absolute(), setting)
        wanted.check()
        return perform(wanted, "spike")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        return perform(shares.plan(Path(folder), setting), "spike", kept=False)


def report_failures(finished: list[Finished]) -> None:
    from schedlab import run as runs

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

    from schedlab.policies import read_catalogue, those_named
    from schedlab.policy_listing import listing

    catalogue = read_catalogue()
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
    from schedlab.new_policy import create, next_steps

    policy, test = create(ROOT, name, source)
    click.echo(next_steps(name, policy.relative_to(ROOT), test.relative_to(ROOT)))


@cli.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=True,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
def test(arguments: tuple[str, ...]) -> None:
    """Build everything and run all tests, or those that the arguments for pytest name."""
    from schedlab.build import build, host_processors

    build("all", "host-tests")
    command = [sys.executable, "-m", "pytest", "-n", str(host_processors()), *arguments]
    say(f"schedlab: {' '.join(command[1:])}")
    os.chdir(ROOT)
    os.execv(command[0], command)


@cli.command()
@json_option
def doctor(as_json: bool) -> None:
    """List what schedlab stands on, and what to do about what is missing.

    Installs nothing. Exit status 1 if something is missing or unfit.
    """
    from schedlab.doctor import as_dict, examine

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
        error.show()
        sys.exit(error.exit_code)
    except SchedlabError as error:
        say(f"schedlab: {error}")
        sys.exit(error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        say(f"schedlab: {error}")
        sys.exit(1)
