# SPDX-License-Identifier: MIT
"""`./schedlab explore kernel`: tests the kernel with time slices of varied length."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import print_result
from schedlab.base.host.processor import host_processors
from schedlab.base.toolchain.policies import STANDARD, PolicyChoice, parse_choices
from schedlab.commands.options import (
    EXISTING_FILE,
    LIMIT,
    PLACE,
    Parsed,
    as_object,
    echo_json,
    json_option,
    quiet_option,
)
from schedlab.errors import WrongUsage

WORKLOADS = ("test-channels", "test-stress")
"""Guest programs that exercise and check locks, wake-ups, processes and files."""
_TRIES = 200
"""Maximum number of attempts to shrink a failing run."""

POLICY = Parsed("POLICY", lambda text: parse_choices(text)[0])


@dataclass(frozen=True)
class Options:
    """The command's parameters."""

    seeds: int
    seed: int | None
    holds: Path | None
    workloads: tuple[str, ...]
    policy: PolicyChoice
    cpus: int
    limit: int
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
    help=f"Run this program of the guest. May be repeated. [default: {', '.join(WORKLOADS)}]",
)
@click.option("--policy", default=STANDARD, show_default=True, type=POLICY)
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
    default=host_processors,
    show_default="the CPUs of this host",
    type=click.IntRange(1, 1024),
    help="Number of runs at a time.",
)
@click.option(
    "--out",
    type=PLACE,
    help="Keep the failing run in this folder. [default: a new one in runs/]",
)
@quiet_option
@json_option
@as_object(Options)
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
    from schedlab_tools.interleavings.search import SmallestFailure, made_small, search
    from schedlab_tools.interleavings.trial import Setup, carry_out, need_driver

    check_choices(read_catalogue(), [options.policy], {})
    setups = [
        Setup(workload, options.policy, options.cpus, options.limit)
        for workload in options.workloads or WORKLOADS
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
            failure = carry_out(setups[0], holds, Path(folder))
        finding = failure and SmallestFailure(setups[0], 0, failure, len(holds), holds)
        seeds = 1
    else:
        todo = [options.seed] if options.seed is not None else range(1, options.seeds + 1)
        seeds = len(todo)
        with working("starting") as update:
            one = search(setups, todo, options.jobs, lambda seed: update(f"seed {seed} of {seeds}"))
            finding = one and made_small(
                *one,
                _TRIES,
                lambda count: update(f"seed {one[1]} breaks; trying {count:,} moments"),
            )
    if finding is None:
        _print_no_failure(options, [setup.workload for setup in setups], seeds)
        return
    _print_failure(options, finding)
    raise SystemExit(1)


def _print_no_failure(options: Options, workloads: list[str], seeds: int) -> None:
    if options.as_json:
        echo_json({"seeds": seeds, "workloads": workloads, "found": None})
    else:
        print_result(
            f"{', '.join(workloads)} under {options.policy} on {options.cpus} CPUs: no rule broken with"
            f" {seeds} {'seed' if seeds == 1 else 'seeds'}"
        )


def _print_failure(options: Options, finding: object) -> None:
    from schedlab.paths import new_runs_folder
    from schedlab_tools.interleavings.search import SmallestFailure, keep
    from schedlab_tools.interleavings.story import story
    from schedlab_tools.interleavings.trial import HOLDS

    assert isinstance(finding, SmallestFailure)
    place = options.out or new_runs_folder("explored")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        holds = keep(finding, place, Path(scratch) / "run")
        lines = list(story(finding, holds, place))
    setup = finding.setup
    again = (
        f"./schedlab explore kernel --holds {quote(str(place / HOLDS))} --workload {quote(setup.workload)}"
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
                    "folder": str(place),
                },
            }
        )
        return
    print_result("\n".join(lines))
    print_result(f"\nAgain:  {again}\nSee it: ./schedlab monitor {quote(str(place))}")
