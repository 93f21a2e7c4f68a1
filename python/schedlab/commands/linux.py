# SPDX-License-Identifier: MIT
"""`./schedlab linux`: runs policies on a real Linux kernel, on this machine or in a guest.

On this machine, the program of linux/loader does the work and needs no Python. These commands build
it and pass their arguments to it.
"""

import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import click

from schedlab.base.display.terminal import say
from schedlab.base.toolchain.policies import check_choices, parse_choices, read_catalogue
from schedlab.commands.options import (
    EXISTING_FILE,
    FILE,
    FOLDER,
    SEED,
    SETTING,
    duration_option,
    echo_json,
    json_option,
    no_kvm_option,
    trace_limit_option,
)
from schedlab.errors import WrongUsage

FAIR_CLASS = "fair"
"""The name of the kernel's fair class, where a command expects a policy."""
ATTRIBUTES = ("priority", "tickets", "weight")
LOADER_PROGRAM = "schedlab-linux"
SHELL_SETUP = "tar -xf programs.tar && rm programs.tar && mv workloads/* ."
"""Unpacks the programs into /job, which is on the guest's PATH."""

control_option = click.option(
    "--control", type=FOLDER, help="Folder of the control files.  [default: /run/schedlab]"
)


@click.group()
def linux() -> None:
    """Run policies on a real Linux kernel that has sched_ext.

    `serve` brings them to this machine, as root, until it is ended; the other commands ask of it what they say.
    `boot` starts a guest in QEMU, to try all of it safely: there, the program schedlab-linux has the same commands.
    docs/linux.md lists what changes on a machine."""


# --- on this machine


def build_loader() -> Path:
    """Builds the loader and its BPF objects if they are out of date,
    and returns the loader's path.
    """
    from schedlab.machines.linux.parts import LINUX_BUILD, build_linux

    build_linux("linux-host")
    return LINUX_BUILD / LOADER_PROGRAM


def exec_loader(command: str, *arguments: str, control: Path | None = None) -> NoReturn:
    """Replaces this process with the loader, whose exit status becomes schedlab's."""
    program = str(build_loader())
    options = ["--control", str(control)] if control else []
    os.execv(program, [program, command, *options, *arguments])


def json_arguments(as_json: bool) -> list[str]:
    """Returns the loader's option for JSON, if JSON is requested."""
    return ["--json"] if as_json else []


@linux.command()
@control_option
@json_option
def status(control: Path | None, as_json: bool) -> None:
    """Show the active policy and all threads."""
    exec_loader("status", *json_arguments(as_json), control=control)


@linux.command()
@control_option
@json_option
def policies(control: Path | None, as_json: bool) -> None:
    """List the policies to switch to."""
    exec_loader("policies", *json_arguments(as_json), control=control)


@linux.command()
@click.argument("name")
@control_option
def policy(name: str, control: Path | None) -> None:
    """Switch to the policy NAME: POLICY, POLICY:PRESET, or fair, the kernel's own class."""
    check_policy(name)
    exec_loader("policy", name, control=control)


@linux.command()
@control_option
def restore(control: Path | None) -> None:
    """Return to the kernel's own class; a running server continues."""
    exec_loader("restore", control=control)


@linux.command("set")
@click.argument("pid", type=click.IntRange(min=1))
@click.argument("words", nargs=-1, required=True, metavar="[ATTRIBUTE] VALUE")
@control_option
def set_attribute(pid: int, words: tuple[str, ...], control: Path | None) -> None:
    """Set an attribute of the thread PID; for a process with several threads, of its first one.

    Without a name, sets what sched_status calls PRIORITY: the weight under policies that share by it. Threads
    that it creates later inherit it.
    """
    *names, value = words
    if len(names) > 1:
        raise WrongUsage(
            f"set {pid} {' '.join(words)}: expected one attribute and one value, such "
            "as `set 12 nice 5`"
        )
    for name in names:
        if name not in ATTRIBUTES:
            raise WrongUsage(
                f"set {pid} {name}: unknown attribute; choose one of {', '.join(ATTRIBUTES)}"
            )
    if not value.lstrip("-").isdecimal():
        raise WrongUsage(f"set {pid} {' '.join(words)}: '{value}' is not a whole number; give one")
    exec_loader("set", str(pid), *names, "--", value, control=control)


@linux.command()
@click.argument("setting", required=False, type=SETTING, metavar="[NAME=VALUE]")
@control_option
@json_option
def tunable(setting: tuple[str, int] | None, control: Path | None, as_json: bool) -> None:
    """List the tunables of the active policy, or set one, which restarts the policy."""
    if setting and as_json:
        raise WrongUsage(f"tunable {setting[0]}=…: prints nothing; leave out --json")
    words = [f"{setting[0]}={setting[1]}"] if setting else json_arguments(as_json)
    exec_loader("tunable", *words, control=control)


@linux.command()
def stop() -> None:
    """End the server and return to the fair class."""
    exec_loader("stop")


@linux.command()
@click.option(
    "--policy", "name", default=FAIR_CLASS, show_default=True, help="Policy to start with."
)
@click.option(
    "--set", "settings", multiple=True, type=SETTING, help="Set a tunable. May be repeated."
)
@control_option
@click.option(
    "--seed", type=SEED, help="Seed of the policies' random numbers. [default: from the clock]"
)
@click.option("--trace", type=FILE, help="Write the event trace to this file.")
@click.option("--trace-memory", is_flag=True, help="Keep the trace in memory until the end.")
@click.option("--trace-queues", is_flag=True, help="Also record each place in a policy's queues.")
@click.option(
    "--trace-delay",
    type=click.IntRange(1, 1000),
    metavar="MS",
    help="Write each record to the file within this time. [default: 50]",
)
@click.option(
    "--load-limit",
    type=click.IntRange(1, 86400),
    metavar="SECONDS",
    help="Stop loading a policy after this time. [default: 120]",
)
@click.option(
    "--ignore-limits",
    is_flag=True,
    help="Serve even if control groups or nice values share CPU time in a way that"
    " the policy ignores.",
)
@duration_option("End after this time, such as 60s or 10min.", "8760h")
@click.option(
    "--background", is_flag=True, help="Return when the server is ready, and keep it running."
)
@click.option("--dry-run", is_flag=True, help="Print the actions and change nothing.")
@trace_limit_option
def serve(
    name: str,
    settings: tuple[tuple[str, int], ...],
    control: Path | None,
    duration_ns: int | None,
    **options: Any,
) -> None:
    """Schedule this machine with schedlab's policies; needs root and a kernel with sched_ext.

    The policy schedules all threads except the kernel's, until it ends (Ctrl-C, `stop`, or the end of a trial).
    The fair class then takes over, also if the program dies.
    """
    check_policy(name)
    if options["trace_memory"] and not options["trace"]:
        raise WrongUsage("--trace-memory: applies to a trace; name its file with --trace")
    if options["trace_queues"] and not options["trace"]:
        raise WrongUsage("--trace-queues: applies to a trace; name its file with --trace")
    words = ["--policy", name]
    if duration_ns:
        words += ["--for", f"{-(-duration_ns // 10**9)}s"]
    for setting, value in settings:
        words += ["--set", f"{setting}={value}"]
    for option, given in options.items():
        if given not in (None, False):
            words += [f"--{option.replace('_', '-')}", *([] if given is True else [str(given)])]
    exec_loader("serve", *words, control=control)


@linux.command()
@json_option
def build(as_json: bool) -> None:
    """Build the program and the policies' BPF objects, and print their paths.

    Root can then run `serve` without a build: `sudo PROGRAM serve`.
    """
    program = build_loader()
    if as_json:
        echo_json({"program": str(program), "objects": str(program.parent / "bpf")})
    else:
        click.echo(program)


@linux.command()
@click.option(
    "--out",
    type=FOLDER,
    default=Path(),
    help="Write the files to this folder. [default: this one]",
)
@json_option
def package(out: Path, as_json: bool) -> None:
    """Package schedlab-linux for machines without a checkout: Debian package, tarball, RPM, PKGBUILD.

    All contain the program, the policies, a configuration file, a systemd unit and a manual page. The RPM is made if
    rpmbuild is installed. Its spec file and the PKGBUILD make packages of the tarball on other machines. The same
    commit gives the same bytes. SOURCE_DATE_EPOCH sets the files' time instead of the commit's; DEBFULLNAME and
    DEBEMAIL name the maintainer.
    """
    from schedlab.machines.linux.package import make_package

    made = make_package(out)
    if as_json:
        echo_json(
            {
                "debian": str(made.debian),
                "tarball": str(made.tarball),
                "recipes": [str(file) for file in made.recipes],
                "rpm": str(made.rpm) if made.rpm else None,
            }
        )
        return
    for file in filter(None, (made.debian, made.tarball, *made.recipes, made.rpm)):
        click.echo(file)


def check_policy(name: str) -> None:
    """Raises WrongUsage for an unknown name, and suggests similar names."""
    if name == FAIR_CLASS or name.partition(":")[0].isdecimal():
        return  # a number: the loader checks it
    try:
        choices = parse_choices(name)
    except ValueError as error:
        raise WrongUsage(f"policy {error}") from None
    if len(choices) != 1:
        raise WrongUsage(f"policy {name}: only one policy is active at a time; give one")
    check_choices(read_catalogue(), choices, {})


# --- a guest


@linux.command()
@click.option(
    "--cpus",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Number of CPUs.",
)
@click.option(
    "--memory",
    default=1024,
    show_default=True,
    type=click.IntRange(256, 65536),
    help="Memory, MiB.",
)
@click.option(
    "--policy", "name", default=FAIR_CLASS, show_default=True, help="Policy to start with."
)
@click.option("--kernel", type=EXISTING_FILE, help="Boot this kernel instead of the packaged one.")
@no_kvm_option
def boot(cpus: int, memory: int, name: str, kernel: Path | None) -> None:
    """Boot a stock Linux kernel with a shell in this terminal, together with the policies.

    The first start fetches the kernel and the programs as packages and keeps them. Changes in the guest are lost
    when it ends.
    """
    from schedlab.machines.linux import guest, parts

    check_policy(name)
    job = guest.GuestJob(
        files={"programs.tar": parts.build_programs_archive()},
        script=f"{SHELL_SETUP} && {LOADER_PROGRAM} serve --background --policy {name}\n",
        cpus=cpus,
        memory_mib=memory,
        repeatable=False,
        kernel=kernel,
    )
    say("To leave: `poweroff -f` in the shell, or Ctrl-A, then X.")
    with tempfile.TemporaryDirectory(prefix="schedlab-guest-") as folder:
        exit_status = guest.interact(job, Path(folder))
    if exit_status:
        raise SystemExit(1)
