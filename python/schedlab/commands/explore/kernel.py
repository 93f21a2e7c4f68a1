# SPDX-License-Identifier: MIT
"""`./schedlab explore kernel`: tests the kernel with time slices of varied length."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import print_result
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.toolchain.policies import DEFAULT_POLICY, PolicyChoice, parse_choices
from schedlab.commands.options import (
    EXISTING_FILE,
    LIMIT,
    PATH,
    Parsed,
    echo_json,
    json_option,
    pass_as_object,
    quiet_option,
)
from schedlab.errors import WrongUsage

TEST_WORKLOADS = ("test-channels", "test-stress")
"""Guest programs that exercise and check locks, wake-ups, processes and files."""
_SHRINK_ATTEMPTS_MAX = 200
"""Maximum number of attempts to shrink a failing run."""

POLICY_TYPE = Parsed("POLICY", lambda text: parse_choices(text)[0])


@dataclass(frozen=True)
class Options:
    """The parameters of `./schedlab explore kernel`."""

    seeds: int
    seed: int | None
    holds: Path | None  # a list of held CPUs to repeat
    workloads: tuple[str, ...]
    policy: PolicyChoice
    cpus: int
    limit: int  # simulated ns per run
    jobs: int
    out: Path | None
    as_json: bool


@click.command()
@click.option(
    "--seeds",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Try seeds from 1 to this one.",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Try only this seed.")
@click.option(
    "--holds", type=EXISTING_FILE, help="Try the interleaving in this file of an earlier search."
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    help=f"Run this program of the guest. May be repeated. [default: {', '.join(TEST_WORKLOADS)}]",
)
@click.option("--policy", default=DEFAULT_POLICY, show_default=True, type=POLICY_TYPE)
@click.option("--cpus", default=3, show_default=True, type=click.IntRange(2, 16))
@click.option(
    "--limit",
    default="10s",
    show_default=True,
    type=LIMIT,
    help="End each run after this time of the guest.",
)
@click.option(
    "--jobs",
    default=count_host_cpus,
    show_default="the CPUs of this host",
    type=click.IntRange(1, 1024),
    help="Number of runs at a time.",
)
@click.option(
    "--out",
    type=PATH,
    help="Keep the failing run in this folder. [default: a new one in runs/]",
)
@quiet_option
@json_option
@pass_as_object(Options)
def kernel(options: Options) -> None:
    """Run the kernel while its CPUs pause at moments that a seed draws: at locks, after calls, and anywhere.

    Nothing may break: no assertion, no invariant of the trace, no lost wake-up, no CPU that idles while a process
    is in its queue, and no damage to the file system. A failing run is reduced to as few pauses as needed and
    described (exit status 1). The same seed repeats it. docs/explore.md has details.
    """
    from schedlab.base.files.replacement import check_folder
    from schedlab.base.toolchain.build import build
    from schedlab.base.toolchain.policies import check_choices, read_catalogue
    from schedlab.machines.spike import Spike
    from schedlab_tools.interleavings.holds import read_holds
    from schedlab_tools.interleavings.search import SmallestFailure, minimise, search
    from schedlab_tools.interleavings.trial import Setup, need_driver, run_trial

    check_choices(read_catalogue(), [options.policy], {})
    setups = [
        Setup(workload, options.policy, options.cpus, options.limit)
        for workload in options.workloads or TEST_WORKLOADS
    ]
    for setup in setups:
        Spike().check(setup.run)
    if options.holds and len(setups) != 1:
        raise WrongUsage("--holds: applies to one workload; name it with --workload")
    if options.out:
        check_folder("out", options.out)
    need_driver()
    build("kernel", "image", "build/fsck")
    if options.holds:
        holds = read_holds(options.holds)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            failure = run_trial(setups[0], holds, Path(folder))
        finding = failure and SmallestFailure(setups[0], 0, failure, len(holds), holds)
        seeds = 1
    else:
        seeds_to_try = [options.seed] if options.seed is not None else range(1, options.seeds + 1)
        seeds = len(seeds_to_try)
        with working("starting") as update:
            search_result = search(
                setups, seeds_to_try, options.jobs, lambda seed: update(f"seed {seed} of {seeds}")
            )
            finding = search_result and minimise(
                *search_result,
                _SHRINK_ATTEMPTS_MAX,
                lambda count: update(f"seed {search_result[1]} breaks; trying {count:,} moments"),
            )
    if finding is None:
        _print_no_failure(options, [setup.workload for setup in setups], seeds)
        return
    _print_failure(options, finding)
    raise SystemExit(1)


def _print_no_failure(options: Options, workloads: list[str], seeds: int) -> None:
    """Prints that no run failed."""
    if options.as_json:
        echo_json({"seeds": seeds, "workloads": workloads, "found": None})
    else:
        print_result(
            f"{', '.join(workloads)} under {options.policy} on {options.cpus} CPUs: no rule broken with"
            f" {seeds} {'seed' if seeds == 1 else 'seeds'}"
        )


def _print_failure(options: Options, finding: object) -> None:
    """Prints the failing run, reduced to as few pauses as needed."""
    from schedlab.paths import new_runs_folder
    from schedlab_tools.interleavings.search import SmallestFailure, store_failure
    from schedlab_tools.interleavings.story import describe_failure
    from schedlab_tools.interleavings.trial import HOLDS_FILE

    assert isinstance(finding, SmallestFailure)
    path = options.out or new_runs_folder("explored")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        holds = store_failure(finding, path, Path(scratch) / "run")
        lines = list(describe_failure(finding, holds, path))
    setup = finding.setup
    rerun_command = (
        f"./schedlab explore kernel --holds {quote(str(path / HOLDS_FILE))} --workload {quote(setup.workload)}"
        f" --policy {setup.policy} --cpus {setup.cpus}"
    )
    if options.as_json:
        echo_json(
            {
                "seeds": finding.seed,
                "found": {
                    "workload": setup.workload,
                    "seed": finding.seed,
                    "kind": finding.failure.kind,
                    "words": finding.failure.words,
                    "drawn": finding.drawn,
                    "needed": len(holds),
                    "story": lines,
                    "folder": str(path),
                },
            }
        )
        return
    print_result("\n".join(lines))
    print_result(f"\nAgain:  {rerun_command}\nSee it: ./schedlab monitor {quote(str(path))}")
