# SPDX-License-Identifier: MIT
"""`./schedlab run`: the studies reproduced, or a workload under policies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab import __version__
from schedlab.commands.carrying_out import perform
from schedlab.commands.options import (
    CHANGE,
    CPUS_OF_ANY,
    LIMIT,
    MEMORY,
    POLICIES,
    SEED,
    SETTING,
    TICK,
    echo_json,
    given,
    json_option,
    no_kvm_option,
)
from schedlab.commands.replay import recorded, replay_option
from schedlab.display.terminal import results, say
from schedlab.errors import WrongUsage
from schedlab.machines import MACHINES, SIMULATOR
from schedlab.paths import new_runs_folder
from schedlab.studies.pack import studies
from schedlab.toolchain.policies import STANDARD, PolicyChoice

if TYPE_CHECKING:
    from schedlab.machines.run import Run
    from schedlab.runs.carrying_out import Finished
    from schedlab.runs.plan import Plan
    from schedlab.runs.recording import Recording
    from schedlab.studies.experiment import Depth
    from schedlab.workload.changes import Change
    from schedlab.workload.model import WorkloadFile

ALL_STUDIES = "study"
STUDIES = {f"study-{each.number}": each.number for each in studies()}
KERNEL_HELP = (
    "A kernel of your own: an image of Linux on linux, another build of ours on spike and qemu."
)
OF_A_WORKLOAD = {
    "workload": "--workload",
    "policies": "--policy",
    "changes": "--with",
    "settings": "--set",
    "cpus": "--cpus",
    "machine": "--machine",
    "repeats": "--runs",
    "limit": "--limit",
    "costs": "--costs",
    "replay": "--replay",
    "kernel": "--kernel",
}
"""Options that say what is run; a study says that itself."""


@click.command()
@click.argument("what", nargs=-1, metavar="[STUDY]...", type=click.Choice((ALL_STUDIES, *STUDIES)))
@click.option("--quick", is_flag=True, help="Of a study: what takes some minutes.  [default]")
@click.option("--full", is_flag=True, help="Of a study: all that it ran, and more; takes an hour.")
@click.option(
    "--workload",
    default="mixed -n 24 -g 80",
    show_default=True,
    metavar="COMMAND",
    help="What runs in the guest: a program and its options, such as 'cpu-bound -n 10'; or a"
    " workload file.",
)
@click.option(
    "--with",
    "changes",
    multiple=True,
    type=CHANGE,
    help="Another value in the workload file: tasks.cpu.instance=40. May be repeated.",
)
@click.option(
    "--policy",
    "policies",
    default=STANDARD,
    show_default=True,
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; see `./schedlab policies`.",
)
@click.option(
    "--set", "settings", multiple=True, type=SETTING, help="A tunable's value. May be repeated."
)
@click.option(
    "--cpus",
    default="1-4",
    show_default=True,
    type=CPUS_OF_ANY,
    help="How many CPUs: 4, 1,2,8 or 1-4.",
)
@click.option(
    "--machine",
    default="spike",
    show_default=True,
    type=click.Choice(MACHINES),
    help="spike and qemu have our kernel, sim none (it runs workload files only), linux a real Linux"
    " kernel. All but qemu and linux-free, whose time is the host's, give the same run every time.",
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
    "--limit",
    default="60s",
    show_default=True,
    type=LIMIT,
    help="Time of the guest after which a run is ended.",
)
@click.option(
    "--seed", default=1, show_default=True, type=SEED, help="Of all randomness in the run."
)
@click.option(
    "--tick",
    type=TICK,
    help="Length of a tick. Of a study: all work grows with it (study size: 10ms).  [default: 1ms;"
    " linux has 4ms and no other]",
)
@click.option(
    "--costs",
    metavar="PROFILE",
    help="On sim: what things take. kernel, none, a profile that ./schedlab calibrate made, and"
    " changes: kernel,fork=20000.  [default: kernel]",
)
@replay_option
@click.option("--kernel", type=click.Path(path_type=Path), help=KERNEL_HELP)
@click.option(
    "--memory",
    type=MEMORY,
    help="Memory of the machine, MiB.  [default: 512; of linux 1024]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; of a study, also one to go on in.  [default: a new one in runs/]",
)
@no_kvm_option
@json_option
@click.pass_context
def run(
    context: click.Context,
    /,
    what: tuple[str, ...],
    quick: bool,
    full: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Reproduce the studies, or run a workload under policies.

    STUDY is `study`, for all five, or `study-1` to `study-5`. Their suites run under their
    policies and all others; what comes out is one report. Without arguments: `study --quick`. A
    study that was interrupted goes on where it was, with its folder as --out.

    With --machine sim, a study's suites run in the simulator, as workload files, in a fraction of
    the time. Study 5 is run on our kernel and on Linux; --machine spike or linux runs one of the two.

    With --workload, --with, --policy, --set, --cpus, --machine, --runs, --limit, --costs or --replay
    instead: every policy runs on every number of CPUs, --runs times, side by side on this host's
    CPUs.

    Each run leaves a folder with its manifest, console, event trace and metrics.
    """
    of_a_workload = list(given(context, OF_A_WORKLOAD).values())
    study = [*what, *(["--quick"] if quick else []), *(["--full"] if full else [])]
    machine_given = "--machine" in of_a_workload
    if study and machine_given:
        of_a_workload.remove("--machine")
        check_machine_of_studies(study, options["machine"])
    if study and of_a_workload:
        raise WrongUsage(
            f"{' '.join(study)} and {of_a_workload[0]}: a study says itself what is run. Leave out"
            f" {' and '.join(of_a_workload)}; or leave out {' and '.join(study)}, to run a workload"
        )
    if quick and full:
        raise WrongUsage("--quick and --full: choose one of them")
    replay = None if study else recorded(context, options)
    fill_in(options)
    if options["machine"] != SIMULATOR and options["costs"] is not None:
        raise WrongUsage(
            f"--costs: on --machine {options['machine']} things take what they take; leave it out, or"
            f" add --machine {SIMULATOR}"
        )
    if of_a_workload:
        wanted = Request(**options, replay=replay, out=out)
        run_workload(wanted, as_json)
    else:
        shared = {name: options[name] for name in ("seed", "tick", "memory")}
        machine = options["machine"] if machine_given else None
        depth: Depth = "full" if full else "quick"
        run_studies(what, depth, machine=machine, out=out, as_json=as_json, **shared)


def fill_in(options: dict[str, Any]) -> None:
    """What is not said is as the machine has it."""
    from schedlab.machines import machine_named

    machine = machine_named(options["machine"])
    if machine.name == SIMULATOR and options["memory"] is not None:
        raise WrongUsage(f"--memory: --machine {SIMULATOR} has none; leave it out")
    for name, standard in (("tick", machine.tick_ns), ("memory", machine.memory_mib)):
        if options[name] is None:
            options[name] = standard


# --- studies


def check_machine_of_studies(study: list[str], machine: str) -> None:
    """A study's runs are compared with each other: they must be repeatable, except those that are
    there to show what the host's time does."""
    from schedlab.machines import LINUX_MACHINES, machine_named

    if machine not in LINUX_MACHINES and not machine_named(machine).repeatable:
        raise WrongUsage(
            f"{' '.join(study)} and --machine {machine}: its runs are not repeatable; spike and"
            f" {SIMULATOR} run studies, and {LINUX_MACHINES[0]} runs study-5"
        )


def run_studies(
    what: tuple[str, ...],
    depth: Depth,
    seed: int,
    tick: int,
    memory: int,
    machine: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """The last line says where the report is."""
    from schedlab.commands.study import Request, reproduce

    numbers = () if ALL_STUDIES in what else tuple(sorted({STUDIES[name] for name in what}))
    done = reproduce(Request(numbers, depth, seed, tick, memory, machine), out)
    if as_json:
        runs = [{"folder": str(run.folder), "status": run.status} for run in done.runs]
        place = {"folder": str(done.folder), "report": str(done.report)}
        echo_json({"schedlab": __version__, **place, "runs": runs})
    else:
        results().print(f"Kept in {done.folder}", markup=False, soft_wrap=True)
        results().print(f"Report: {done.report}", markup=False, soft_wrap=True)
    if not done.succeeded:
        raise SystemExit(1)


# --- a workload


@dataclass(frozen=True)
class Request:
    """What is run, by the options' names."""

    workload: str
    changes: tuple[Change, ...]
    policies: tuple[PolicyChoice, ...]
    settings: tuple[tuple[str, int], ...]
    cpus: tuple[int, ...]
    machine: str
    repeats: int
    seed: int
    tick: int
    limit: int
    costs: str | None
    memory: int
    kernel: Path | None
    replay: Recording | None
    out: Path | None

    def base(self) -> Run:
        """The first of the runs. Raises WrongUsage for what cannot be run."""
        from schedlab.machines.run import Run
        from schedlab.workload import costs

        values = one_value_each(self.settings)
        file = None if self.replay else workload_file(self.workload, self.changes)
        recorded_costs = self.replay.costs if self.replay and not self.costs else None
        return Run(
            self.workload,
            self.policies[0],
            values,
            self.cpus[0],
            self.machine,
            self.seed,
            self.tick,
            self.limit,
            self.memory,
            file=file,
            costs=recorded_costs or costs.choose(self.costs or "kernel"),
            changes=file.changes if file else (),
            replay=self.replay,
        )

    def plan(self) -> Plan:
        """All runs, which may be carried out."""
        from schedlab.runs import plan

        if self.seed + self.repeats - 1 >= 2**63:
            raise WrongUsage(
                f"--seed {self.seed}: with --runs {self.repeats} the last seed is too large"
            )
        base = self.base()
        folder = self.out or new_runs_folder(folder_name(self.workload, self.policies))
        wanted = plan.product(folder.absolute(), base, self.policies, self.cpus, self.repeats)
        wanted.check()
        wanted.check_new()
        return wanted


def run_workload(request: Request, as_json: bool) -> None:
    """Under policies, on numbers of CPUs, with seeds; prints tables of what they did."""
    wanted = request.plan()
    instead = kernel_instead(request.kernel, request.machine)
    finished = perform(wanted, request.machine, instead=instead)
    show(finished, as_json)
    if not all(each.outcome.succeeded for each in finished):
        raise SystemExit(1)


def workload_file(workload: str, changes: tuple[Change, ...]) -> WorkloadFile | None:
    """Says what in it has no effect. None: it is none."""
    from schedlab.workload import workload_files

    if not workload_files.is_workload_file(workload):
        if changes:
            raise WrongUsage(
                f"--with {changes[0][0]}: --workload {workload!r} is no workload file; programs"
                " have options of their own"
            )
        return None
    file = workload_files.read(Path(workload.strip()), changes)
    for note in file.notes:
        say(f"schedlab: {workload}, {note}")
    return file


def one_value_each(settings: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """In the order given. The same tunable twice is a mistake."""
    values = dict(settings)
    if len(values) < len(settings):
        names = [name for name, _ in settings]
        twice = next(name for name in names if names.count(name) > 1)
        raise WrongUsage(f"--set {twice}: given more than once")
    return settings


def folder_name(workload: str, policies: tuple[PolicyChoice, ...]) -> str:
    """Program and policies, in characters that are safe in names."""
    first = workload.removesuffix(".json").split()[0:1]
    program = "".join(
        c if c.isalnum() or c in "-_" else "-" for c in first and first[0].rpartition("/")[2]
    )
    names = "+".join(dict.fromkeys(choice.name for choice in policies))[:40]
    return f"{program or 'run'}-{names}"


def kernel_instead(kernel: Path | None, machine: str) -> dict[str, Path]:
    """The part that a kernel of the user's own takes the place of."""
    from schedlab.machines import machine_named

    if kernel is None:
        return {}
    for part in machine_named(machine).parts:
        if part.endswith("kernel"):
            return {part: kernel}
    raise WrongUsage(f"--kernel: --machine {machine} has none; leave it out")


def show(finished: list[Finished], as_json: bool) -> None:
    """The table or JSON on standard output; what failed, on standard error."""
    from schedlab.runs import carrying_out as runs

    if as_json:
        click.echo(runs.as_json(finished))
    else:
        show_tables(finished)
    for message in runs.describe(finished):
        say(message)


def show_tables(finished: list[Finished]) -> None:
    from schedlab.runs import carrying_out as runs

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
