# SPDX-License-Identifier: MIT
"""`./schedlab run`: the studies reproduced, or a workload under policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab import __version__
from schedlab.commands.again import run_again
from schedlab.commands.deciding import FEWEST_SEEDS, Budget, tell_decided
from schedlab.commands.options import (
    BUDGET,
    CHANGE,
    CPUS,
    DELAY,
    LIMIT,
    MEMORY,
    OWN_SETTING,
    POLICIES,
    SEED,
    SHAPE,
    TICK,
    echo_json,
    given,
    json_option,
    no_kvm_option,
)
from schedlab.commands.replay import recorded, replay_option
from schedlab.commands.what_if import check_beside, run_what_if, what_if_option
from schedlab.commands.workload_run import run_workload
from schedlab.display.terminal import tell
from schedlab.errors import WrongUsage
from schedlab.machines import (
    HOST,
    LINUX_KERNELS,
    LINUX_MACHINES,
    MACHINES,
    SIMULATOR,
    machine_named,
)
from schedlab.runs.asked import Request
from schedlab.studies.pack import studies
from schedlab.toolchain.policies import STANDARD, PolicyChoice

if TYPE_CHECKING:
    from schedlab.studies.experiment import Depth

ALL_STUDIES = "study"
_CPUS = (1, 2, 3, 4)
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
    "delays": "--delay",
    "shape": "--shape",
    "replay": "--replay",
    "what_if": "--what-if",
    "kernel": "--kernel",
    "ignore_limits": "--ignore-limits",
}
"""Options that say what is run; a study says that itself."""
OF_ALL = {
    "what": "STUDY",
    "quick": "--quick",
    "full": "--full",
    "seed": "--seed",
    "tick": "--tick",
    "memory": "--memory",
    "decide": "--decide",
}
"""Options that say what is run, or how, of a study as of a workload."""

STANDARD_WORKLOAD = "mixed -n 24 -g 80"
_READY = "mixed"
"""Where there are no programs: the workload file of that name."""


@click.command()
@click.argument("what", nargs=-1, metavar="[STUDY]...", type=click.Choice((ALL_STUDIES, *STUDIES)))
@click.option("--quick", is_flag=True, help="Of a study: what takes some minutes.  [default]")
@click.option(
    "--full",
    is_flag=True,
    help="Of a study: all that it ran, and more; study 5 also boots Linux 554 times.",
)
@click.option(
    "--workload",
    metavar="COMMAND",
    help="What runs in the guest: a program and its options, such as 'cpu-bound -n 10'; or a"
    f" workload file; see `./schedlab workloads`.  [default: {STANDARD_WORKLOAD}; on sim {_READY}]",
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
    help="POLICY or POLICY:PRESET, several with commas; see `./schedlab policies`. On Linux also fair, the"
    " kernel's own class, and scx:NAME, the published scheduler scx_NAME if it is installed.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=OWN_SETTING,
    help="A tunable's value, for all policies or, as POLICY.NAME=VALUE, for one. May be repeated.",
)
@click.option(
    "--cpus",
    type=CPUS,
    help="How many CPUs: 4, 1,2,8 or 1-4.  [default: 1-4; on linux as many as this host has, on host"
    " all of them]",
)
@click.option(
    "--machine",
    default="spike",
    show_default=True,
    type=click.Choice(MACHINES),
    help="spike and qemu have our kernel, sim none (it runs workload files only), linux a real Linux"
    " kernel in a guest, host the one that this machine runs. spike, sim and linux give the same run every"
    " time; the others have the host's time.",
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
    type=LIMIT,
    help="Time of the guest after which a run is ended.  [default: 60s; of a workload file with a longer"
    " duration, that and half a minute]",
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
    help="On sim: what things take. kernel, none, textbook, a profile that ./schedlab calibrate made, and"
    " changes: kernel,fork=20000.  [default: kernel]",
)
@click.option(
    "--delay",
    "delays",
    multiple=True,
    type=DELAY,
    help="An operation takes so much longer, as on another machine: fork=380us.",
)
@click.option(
    "--shape",
    type=SHAPE,
    help="The shape of the machine: which CPUs share a core, a cache, a node, and how fast they are. A file, or"
    " one that `./schedlab shape` lists.  [default: all CPUs are alike]",
)
@click.option(
    "--decide",
    is_flag=False,
    flag_value=str(Budget()),
    type=BUDGET,
    metavar="[SEEDS|TIME]",
    help="Add seeds to each test until it is told which policy is best, but at most so many, or until so much"
    f" time is over.  [without a value: {Budget()} seeds]",
)
@replay_option
@what_if_option
@click.option(
    "--again",
    metavar="PLACE",
    type=click.Path(exists=True, path_type=Path),
    help="A run's folder, a folder of runs, or the file of `report --artifact`: carry them out once more from what"
    " they keep, and say which came out the same, byte for byte; of the file, which figures did, too.",
)
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
@click.option(
    "--ignore-limits",
    is_flag=True,
    help="On host: policies take over although control groups or nice values share out CPU time here in a"
    " way that they would not honour.",
)
@no_kvm_option
@click.option(
    "--unchecked",
    is_flag=True,
    help="Also run policies that were changed and have not passed `./schedlab check` since.",
)
@json_option
@click.pass_context
def run(
    context: click.Context,
    /,
    what: tuple[str, ...],
    quick: bool,
    full: bool,
    again: Path | None,
    out: Path | None,
    as_json: bool,
    decide: Budget | None,
    **options: Any,
) -> None:
    """Reproduce the studies, or run a workload under policies.

    STUDY is `study`, for all six, or `study-1` to `study-6`. Their suites run under their
    policies and all others; what comes out is one report. Without arguments: `study --quick`. A
    study that was interrupted goes on where it was, with its folder as --out.

    With --machine sim, a study's suites run in the simulator, as workload files, in a fraction of
    the time. Study 5 is run on our kernel and on Linux; --machine spike or linux runs one of the two.

    With --workload, --with, --policy, --set, --cpus, --machine, --runs, --limit, --costs, --delay,
    --shape or --replay instead: every policy runs on every number of CPUs, --runs times, side by side on this host's
    CPUs.

    With --what-if RECORDING, one command leads from a recording to one page (docs/replay.md).

    Each run leaves a folder with its manifest, console, event trace and metrics.
    """
    what_if = options.pop("what_if")
    if again:
        check_alone(context)
        run_again(request_of, again, out, as_json)
        return
    if what_if:
        check_beside(context, {**OF_A_WORKLOAD, **OF_ALL})
        said = given(context, dict.fromkeys(options, ""))
        policies = options["policies"] if "policies" in said else None
        run_what_if(
            request_of, what_if, policies, options["tick"], out, options["unchecked"], as_json
        )
        return
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
        if decide:
            check_rivals(options["policies"])
            options["repeats"] = max(options["repeats"], FEWEST_SEEDS)
        run_workload(Request(**options, replay=replay, out=out), as_json, decide)
    else:
        shared = {name: options[name] for name in ("seed", "tick", "memory")}
        machine = options["machine"] if machine_given else None
        depth: Depth = "full" if full else "quick"
        run_studies(what, depth, machine=machine, out=out, as_json=as_json, decide=decide, **shared)


def request_of(words: list[str]) -> Request:
    """Returns what these options ask for. Raises click's UsageError."""
    context = run.make_context("run", words)
    options = context.params
    options["replay"] = recorded(context, options)
    fill_in(options)
    fields = Request.__dataclass_fields__
    return Request(**{name: value for name, value in options.items() if name in fields})


def check_alone(context: click.Context) -> None:
    """Raises WrongUsage if --again stands beside an option that says what is run."""
    for option in given(context, {**OF_A_WORKLOAD, **OF_ALL}).values():
        raise WrongUsage(
            f"--again and {option}: the runs say themselves what is run; leave one of them out"
        )


def check_rivals(policies: tuple[PolicyChoice, ...]) -> None:
    """Raises WrongUsage if there are no two policies, of which one may be the best."""
    if len(set(policies)) < 2:
        raise WrongUsage(
            "--decide: with one policy there is nothing to decide; name several in --policy"
        )


def fill_in(options: dict[str, Any]) -> None:
    """Fills in what was not given, as the machine has it."""
    from schedlab.toolchain.build import host_processors

    machine = machine_named(options["machine"])
    if options["ignore_limits"] and machine.name != HOST:
        raise WrongUsage(
            f"--ignore-limits: on --machine {machine.name} there are none; leave it out, or add"
            f" --machine {HOST}"
        )
    if machine.name == SIMULATOR and options["memory"] is not None:
        raise WrongUsage(f"--memory: --machine {SIMULATOR} has none; leave it out")
    if options["workload"] is None:
        options["workload"] = STANDARD_WORKLOAD if machine.programs != frozenset() else _READY
    of_host = (
        machine.cpus_max if machine.name == HOST else min(host_processors(), machine.cpus_max),
    )
    standards = {
        "tick": machine.tick_ns,
        "memory": machine.memory_mib,
        "cpus": (options["shape"].cpus,)
        if options["shape"]
        else of_host
        if machine.name in LINUX_KERNELS
        else _CPUS,
    }
    for name, standard in standards.items():
        if options[name] is None:
            options[name] = standard


def check_machine_of_studies(study: list[str], machine: str) -> None:
    """Raises WrongUsage for a machine whose runs are not repeatable: a study's runs are compared with
    each other. Those that are there to show what the host's time does are exceptions."""
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
    decide: Budget | None = None,
) -> None:
    """Reproduces studies. The last line that is printed says where the report is."""
    from schedlab.commands.study import Request, reproduce
    from schedlab.commands.what_next import tell_findings, tell_what_next
    from schedlab.report.output import findings_in

    numbers = () if ALL_STUDIES in what else tuple(sorted({STUDIES[name] for name in what}))
    done = reproduce(Request(numbers, depth, seed, tick, memory, machine, decide), out)
    if as_json:
        runs = [{"folder": str(run.folder), "status": run.status} for run in done.runs]
        place = {"folder": str(done.folder), "report": str(done.report)}
        contests = done.contests
        decided = {} if contests is None else {"contests": [each.to_dict() for each in contests]}
        echo_json({"schedlab": __version__, **place, "runs": runs, **decided})
    else:
        tell(f"Kept in {done.folder}")
        if done.contests is not None:
            tell_decided(done.contests)
        tell_findings(findings_in(done.report.parent))
        tell_what_next([run.folder for run in done.runs if run.succeeded])
        tell(f"Report: {done.report}")
    if not done.succeeded:
        raise SystemExit(1)
